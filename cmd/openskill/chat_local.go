package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"log/slog"
	"math"
	"sync"

	"openskill/host/agent"
	"openskill/host/app"
	"openskill/host/app/config"
	"openskill/sdk/client"
	"openskill/sdk/skill"
)

// localTalker is a host in this process, whose operator is who chats.
type localTalker struct {
	h    *app.Host
	cool context.CancelFunc // ends what is done ahead of calls
	warm sync.WaitGroup
}

var _ talker = (*localTalker)(nil)

// openLocal opens a host. ahead gets its skills ready before they are called, for a chat
// of several turns.
func (a *cli) openLocal(ctx context.Context, s *config.Settings, ahead bool) (*localTalker, error) {
	log := slog.New(slog.NewJSONHandler(cleanWriter{a.stderr}, &slog.HandlerOptions{Level: level(s, slog.LevelError)}))
	h, err := app.Open(s, &app.Options{Log: log}) // nothing to wait for
	if err != nil {
		return nil, hostFailed(err)
	}
	a.skipped(h)
	warming, cool := context.WithCancel(ctx)
	t := &localTalker{h: h, cool: cool}
	t.warm.Go(func() { h.KeepUp(warming) })
	if ahead {
		t.warm.Go(func() { prepareAll(warming, h) })
	}
	return t, nil
}

func (t *localTalker) close() {
	t.cool()
	t.warm.Wait()
	_ = t.h.Close() // everything is answered
}

func (t *localTalker) Turn(ctx context.Context, r client.ChatRequest, hear func(client.Event)) (*client.ChatAnswer, error) {
	a, err := t.h.Agent().Turn(ctx, skill.Local(), agent.ChatRequest{
		Message: r.Message, Conversation: r.Conversation, Provider: r.Provider, Model: r.Model,
		MaxIterations: r.MaxIterations, MaxToolCalls: r.MaxToolCalls, MaxTokens: r.MaxTokens,
		MaxRetries: r.MaxValidationRetries, TimeoutMS: r.TimeoutMS, Trace: skill.TraceID(rand.Text()),
	}, hearing(hear))
	return answerOf(a), err
}

func (t *localTalker) Decide(ctx context.Context, conversation string, d client.Decision, hear func(client.Event)) (*client.ChatAnswer, error) {
	a, err := t.h.Agent().Approve(ctx, skill.Local(), conversation, agent.Decision{ApprovalID: d.ApprovalID, Approve: d.Approve, ChatRequest: agent.ChatRequest{
		Provider: d.Provider, Model: d.Model,
		MaxIterations: d.MaxIterations, MaxToolCalls: d.MaxToolCalls, MaxTokens: d.MaxTokens,
		MaxRetries: d.MaxValidationRetries, TimeoutMS: d.TimeoutMS, Trace: skill.TraceID(rand.Text()),
	}}, hearing(hear))
	return answerOf(a), err
}

func (t *localTalker) Conversations(ctx context.Context, most int) ([]client.ConversationSummary, error) {
	list, _, err := t.h.Agent().List(ctx, skill.Local(), "", most)
	var out []client.ConversationSummary
	for _, s := range list {
		out = append(out, client.ConversationSummary(s))
	}
	return out, err
}

func (t *localTalker) Conversation(ctx context.Context, id string) (*client.Conversation, error) {
	v, err := t.h.Agent().Get(ctx, skill.Local(), id)
	if err != nil {
		return nil, err
	}
	out := &client.Conversation{
		ID: v.ID, Title: v.Title, CreatedAt: v.CreatedAt, UpdatedAt: v.UpdatedAt, Iterations: v.Iterations, TotalTokens: v.TotalTokens,
	}
	for _, m := range v.Messages {
		to := client.Message{Role: string(m.Role), Text: m.Text, CallID: m.CallID, Failed: m.Failed, At: m.At}
		for _, c := range m.Calls {
			to.Calls = append(to.Calls, client.Call(c))
		}
		out.Messages = append(out.Messages, to)
	}
	out.Pending = awaitedOf(v.Pending)
	return out, nil
}

func (t *localTalker) Skills(ctx context.Context) (list []skill.Descriptor, agents []skill.AgentSkill, err error) {
	for cursor := ""; len(list) < mostSkills; {
		page, next, err := t.h.Catalogue().List(skill.Local(), cursor, 100)
		if err != nil {
			return nil, nil, err
		}
		if list = append(list, page...); next == "" {
			break
		}
		cursor = next
	}
	agents, err = t.h.AgentSkills().List(ctx, skill.Local())
	return list, agents, err
}

func (t *localTalker) Tools(ctx context.Context) (json.RawMessage, error) {
	list, _, err := t.h.Tools(ctx, skill.Local(), "openai", "", math.MaxInt)
	return list, err
}

func (t *localTalker) Approval(ctx context.Context, id string) (*client.Approval, error) {
	a, err := t.h.Approvals().Get(ctx, skill.Local(), id)
	if err != nil {
		return nil, err
	}
	return &client.Approval{
		ID: a.ID, State: string(a.State), Policy: string(a.Policy), Skill: a.Skill, Script: a.Script,
		Digest: a.Digest, PreviousDigest: a.PreviousDigest, Trust: a.Trust, Arguments: a.Arguments, ArgumentsCut: a.ArgumentsCut,
		Tenant: a.Tenant, Caller: a.Caller, AskedAt: a.AskedAt, ExpiresAt: a.ExpiresAt,
	}, nil
}

// hearing has events of the agent heard in the words of the client, which is how a chat
// hears of those of a host elsewhere.
func hearing(hear func(client.Event)) func(agent.Event) {
	if hear == nil {
		return nil
	}
	return func(e agent.Event) {
		if e.Kind == agent.EventError { // Turn gives it
			return
		}
		out := client.Event{
			Kind: client.EventKind(e.Kind), Conversation: e.Conversation, TraceID: e.Trace, Text: e.Text, Result: e.Result,
			Usage: (*client.Usage)(e.Usage), Approval: (*client.Awaited)(e.Approval), Answer: answerOf(e.Answer),
			Tool: (*client.ToolCall)(e.Tool),
		}
		hear(out)
	}
}

func answerOf(a *agent.Answer) *client.ChatAnswer {
	if a == nil {
		return nil
	}
	out := &client.ChatAnswer{
		Conversation: a.Conversation, Answer: a.Answer, ToolCalls: []client.ToolCall{}, Iterations: a.Iterations, Usage: client.Usage(a.Usage),
		StopReason: string(a.StopReason), TraceID: a.Trace, Provider: a.Provider, Model: a.Model, Approvals: awaitedOf(a.Approvals),
	}
	for _, t := range a.ToolCalls {
		out.ToolCalls = append(out.ToolCalls, client.ToolCall(t))
	}
	return out
}

func awaitedOf(list []agent.Awaited) (out []client.Awaited) {
	for _, w := range list {
		out = append(out, client.Awaited(w))
	}
	return out
}
