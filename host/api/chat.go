package api

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"log/slog"
	"runtime/debug"
	"strings"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"

	"openskill/host/agent"
	"openskill/host/agent/tools"
	"openskill/host/identity"
	"openskill/sdk/skill"
)

// Chat is the agent that people talk to; *agent.Agent is one. It authorizes: the edge only
// says who asks. Its errors are *skill.Error; it is safe for concurrent use.
type Chat interface {
	// Turn answers one message. hear, if it is not nil, is told what happens while it
	// does, from one goroutine at a time and never after Turn has returned.
	Turn(ctx context.Context, p skill.Principal, r agent.ChatRequest, hear func(agent.Event)) (*agent.Answer, error)
	// Approve decides about a call that waits for it, and goes on as Turn does.
	Approve(ctx context.Context, p skill.Principal, id string, d agent.Decision, hear func(agent.Event)) (*agent.Answer, error)
	// List gives at most limit (1 to 100) of the caller's conversations after cursor (""
	// for the first page), and the cursor of the next page or "".
	List(ctx context.Context, p skill.Principal, cursor string, limit int) ([]agent.Summary, string, error)
	Get(ctx context.Context, p skill.Principal, id string) (*agent.View, error)
	Delete(ctx context.Context, p skill.Principal, id string) error
}

var errAgentOff = &skill.Error{Op: "api.agent", Code: skill.NotFound, Message: "the agent is disabled on this host; call skills with POST /skills/{id}:invoke"}

// postChat answers POST /agent/chat.
func (s *Server) postChat(c *fiber.Ctx) error {
	ctx := c.Context()
	stream := acceptsEvents(ctx)
	r, err := decodeChat(ctx.Request.Body(), &stream)
	if err != nil {
		return err
	}
	r.Trace = traceOf(ctx)
	p := principalOf(ctx)
	return s.turn(c, stream, func(run context.Context, hear func(agent.Event)) (*agent.Answer, error) {
		return s.opt.Chat.Turn(run, p, r, hear)
	})
}

// The longest names that a request may have, in characters.
const (
	maxConversation = 64
	maxProvider     = 64
	maxModel        = 256
)

// decodeChat reads a message. stream stays as it is where the body says nothing of it.
func decodeChat(b []byte, stream *bool) (r agent.ChatRequest, err error) {
	if len(b) == 0 {
		return r, invalidField("body", `is empty; send {"message": "…"}`)
	}
	said := false
	err = readMembers(b, "", append([]member{
		{"message", func(field string, value []byte) error {
			said = true
			return text(&r.Message, 0)(field, value)
		}},
		{"conversation_id", text(&r.Conversation, maxConversation)},
		{"files", filesOf(&r.Files)},
		{"workspace", workspaceID(&r.Workspace)},
	}, turnMembers(&r, stream)...))
	if err == nil && !said {
		err = invalidField("message", `is missing; send {"message": "…"}`)
	}
	return r, err
}

// turnMembers are the keys that say how a turn is to be taken.
func turnMembers(r *agent.ChatRequest, stream *bool) []member {
	return []member{
		{"provider", text(&r.Provider, maxProvider)},
		{"model", text(&r.Model, maxModel)},
		{"tools", func(field string, value []byte) (err error) {
			name := ""
			if err = text(&name, 16)(field, value); err == nil {
				r.Tools, err = tools.ParseForm(name, "")
			}
			return err
		}},
		{"max_iterations", count(&r.MaxIterations)},
		{"max_tool_calls", count(&r.MaxToolCalls)},
		{"max_tokens", count(&r.MaxTokens)},
		{"max_validation_retries", count(&r.MaxRetries)},
		{"timeout_ms", count(&r.TimeoutMS)},
		{"stream", flag(stream)},
	}
}

// acceptsEvents reports whether the client names server-sent events among what it takes.
func acceptsEvents(ctx *fasthttp.RequestCtx) bool {
	for _, line := range ctx.Request.Header.PeekAll(fasthttp.HeaderAccept) {
		for part := range bytes.SplitSeq(line, []byte(",")) {
			name, _, _ := bytes.Cut(part, []byte(";"))
			if strings.EqualFold(string(bytes.TrimSpace(name)), eventsType) {
				return true
			}
		}
	}
	return false
}

// taking takes a turn of the agent: it asks it, in a context that ends when the client
// leaves, and has it tell what happens.
type taking func(run context.Context, hear func(agent.Event)) (*agent.Answer, error)

// turn answers with what a turn comes to: as one object, or as events while it happens.
func (s *Server) turn(c *fiber.Ctx, stream bool, take taking) error {
	ctx := c.Context()
	take = s.telling(take)
	if stream {
		return s.streamTurn(ctx, take)
	}
	run, done := s.calling(ctx)
	defer done()
	a, err := take(run, nil)
	if err == nil && a == nil {
		err = errNoAnswer
	}
	return s.json(c, a, err)
}

// telling takes a turn, and tells the metrics how it ended.
func (s *Server) telling(take taking) taking {
	return func(run context.Context, hear func(agent.Event)) (*agent.Answer, error) {
		a, err := take(run, hear)
		reason := ""
		if a != nil {
			reason = string(a.StopReason)
		}
		s.turned("chat", reason, err)
		return a, err
	}
}

var errNoAnswer = errors.New("the agent returned no answer")

// streamTurn answers with events. Until the first of them there is no answer yet, and
// what fails before that is answered as it is without a stream.
func (s *Server) streamTurn(ctx *fasthttp.RequestCtx, take taking) error {
	run, a := s.answering(s.base, ctx, true)
	events := s.newEvents(a, traceOf(ctx))
	var refused error
	go func() {
		defer a.finish(nil)
		said, err := s.guarded(run, events.trace, take, events.hear)
		if err != nil {
			err = cmp.Or(identity.Refused(run), err)
		}
		if !events.end(said, err) {
			refused = err
			return
		}
		if err = cmp.Or(events.broken, err); err != nil && skill.CodeOf(err).Status() >= 500 {
			s.log.LogAttrs(context.WithoutCancel(run), slog.LevelError, "a stream ended with an error",
				slog.String("trace_id", string(events.trace)), slog.String("error", err.Error()))
		}
	}()
	<-a.begun
	if !a.streams() {
		a.end()
		return refused
	}
	a.send(ctx)
	return nil
}

// guarded takes a turn, and makes an error of its panic: it runs in a goroutine of its
// own, where a panic would end the host.
func (s *Server) guarded(run context.Context, trace skill.TraceID, take taking, hear func(agent.Event)) (a *agent.Answer, err error) {
	defer func() {
		if p := recover(); p != nil {
			s.log.LogAttrs(context.WithoutCancel(run), slog.LevelError, "panic in a turn of the agent",
				slog.String("trace_id", string(trace)), slog.Any("panic", p), slog.String("stack", string(debug.Stack())))
			a, err = nil, &skill.Error{Op: "api.turn", Code: skill.Internal}
		}
	}()
	if a, err = take(run, hear); a == nil && err == nil {
		err = errNoAnswer
	}
	return a, err
}
