package api

import (
	"context"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"

	"openskill/host/agent/chat"
	"openskill/host/api/internal/wire"
)

// listConversations answers GET /agent/conversations.
func (s *Server) listConversations(c *fiber.Ctx) error {
	agent, err := s.chat()
	if err != nil {
		return err
	}
	cursor, limit, err := page(c)
	if err != nil {
		return err
	}
	run, done := s.calling(c.Context())
	defer done()
	list, next, err := agent.List(run, who(c.Context()), cursor, limit)
	if err != nil {
		return err
	}
	l := wire.ConversationList{Data: append([]chat.Summary{}, list...)} // [], not null
	if next != "" {
		l.Next = &next
	}
	s.writeJSON(c.Context(), fasthttp.StatusOK, l)
	return nil
}

// getConversation answers GET /agent/conversations/{id}.
func (s *Server) getConversation(c *fiber.Ctx) error {
	agent, err := s.chat()
	if err != nil {
		return err
	}
	run, done := s.calling(c.Context())
	defer done()
	v, err := agent.Get(run, who(c.Context()), c.Params("id"))
	if err != nil {
		return err
	}
	s.writeJSON(c.Context(), fasthttp.StatusOK, v)
	return nil
}

// deleteConversation answers DELETE /agent/conversations/{id}.
func (s *Server) deleteConversation(c *fiber.Ctx) error {
	ctx := c.Context()
	agent, err := s.chat()
	if err != nil {
		return err
	}
	run, done := s.calling(ctx)
	defer done()
	if err := agent.Delete(run, who(ctx), c.Params("id")); err != nil {
		return err
	}
	ctx.Response.Header.SetNoDefaultContentType(true)
	ctx.SetStatusCode(fasthttp.StatusNoContent)
	return nil
}

// approveCall answers POST /agent/conversations/{id}:approve.
func (s *Server) approveCall(c *fiber.Ctx) error {
	ctx := c.Context()
	agent, err := s.chat()
	if err != nil {
		return err
	}
	if err := checkBodyHeaders(&ctx.Request.Header); err != nil {
		return err
	}
	stream := acceptsEvents(ctx)
	d, err := decodeDecision(ctx.Request.Body(), &stream)
	if err != nil {
		return err
	}
	d.Trace = traceOf(ctx)
	p, id := who(ctx), c.Params("id")
	return s.turn(ctx, stream, func(run context.Context, hear func(chat.Event)) (*chat.Answer, error) {
		return agent.Approve(run, p, id, d, hear)
	})
}

// maxApproval is the longest id of an approval, in characters.
const maxApproval = 64

// decodeDecision reads what is decided about a call that waits. A body may be missing:
// the path says what is meant.
func decodeDecision(b []byte, stream *bool) (chat.Decision, error) {
	d := chat.Decision{Approve: true}
	if len(b) == 0 {
		return d, nil
	}
	var r chat.Request
	err := readMembers(b, "", append([]member{
		{"approval_id", text(&d.ApprovalID, maxApproval)},
		{"approve", flag(&d.Approve)},
	}, turnMembers(&r, stream)...))
	d.Provider, d.Model, d.MaxIterations, d.MaxToolCalls, d.MaxTokens = r.Provider, r.Model, r.MaxIterations, r.MaxToolCalls, r.MaxTokens
	d.MaxRetries, d.TimeoutMS = r.MaxRetries, r.TimeoutMS
	return d, err
}
