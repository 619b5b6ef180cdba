package apitest

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"openskill/host/agent"
	"openskill/host/agent/conversations"
	"openskill/host/agent/llm"
	"openskill/host/api"
	"openskill/sdk/skill"
)

// Reply is what the agent of [Chat] says to a message. The conversation is made, its
// start was told, and what is said is added to it when Reply has returned. a is the
// answer so far.
type Reply func(ctx context.Context, r agent.ChatRequest, hear func(agent.Event), a *agent.Answer) error

// Chat has conversations in memory, each of one principal of one tenant, and an agent
// that repeats what it is told: after a call of the skill echo, word by word. It is safe
// for concurrent use.
type Chat struct {
	Reply Reply            // nil: as said above
	Now   func() time.Time // nil: the system's clock

	mu    sync.Mutex
	all   []*talk // the one that began last at the end
	turns []agent.ChatRequest
	asks  []agent.Decision
}

type talk struct {
	tenant, principal string
	busy              bool
	view              agent.View
}

var _ api.Chat = (*Chat)(nil)

// Turns gives the messages that came in, in order.
func (c *Chat) Turns() []agent.ChatRequest {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.turns)
}

// Decisions gives what was decided, in order.
func (c *Chat) Decisions() []agent.Decision {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.asks)
}

func (c *Chat) now() time.Time {
	if c.Now != nil {
		return c.Now()
	}
	return time.Now()
}

// Add begins a conversation of p in which nothing was said yet but title, and in which
// something waits if pending says so.
func (c *Chat) Add(p skill.Principal, title string, pending ...agent.Awaited) (id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.begin(p, title, pending).view.ID
}

func (c *Chat) begin(p skill.Principal, title string, pending []agent.Awaited) *talk {
	now := c.now().UTC()
	t := &talk{tenant: p.Tenant, principal: p.ID, view: agent.View{
		ID: fmt.Sprintf("00000000-0000-7000-9000-%012x", len(c.all)+1), Title: title, CreatedAt: now, UpdatedAt: now, Pending: pending,
		Messages: []agent.MessageView{{Role: llm.User, Text: title, At: now}},
	}}
	c.all = append(c.all, t)
	return t
}

func (c *Chat) find(p skill.Principal, id string) (*talk, error) {
	if err := may(p, skill.ScopeAgent); err != nil {
		return nil, err
	}
	for _, t := range c.all {
		if t.view.ID == id && t.tenant == p.Tenant && t.principal == p.ID {
			return t, nil
		}
	}
	return nil, &skill.Error{Code: skill.NotFound, Message: "there is no such conversation"}
}

// Turn answers one message.
func (c *Chat) Turn(ctx context.Context, p skill.Principal, r agent.ChatRequest, hear func(agent.Event)) (*agent.Answer, error) {
	t, err := c.enter(p, r)
	if err != nil {
		return nil, err
	}
	return c.reply(ctx, t, r, hear)
}

func (c *Chat) enter(p skill.Principal, r agent.ChatRequest) (*talk, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := may(p, skill.ScopeAgent); err != nil {
		return nil, err
	}
	if r.Message == "" || len(r.Message) > 32<<10 || !utf8.ValidString(r.Message) {
		return nil, &skill.Error{Code: skill.InvalidArgument, Message: "message: must be 1 byte to 32 KiB of UTF-8"}
	}
	var t *talk
	if r.Conversation == "" {
		t = c.begin(p, r.Message, nil)
	} else {
		var err error
		if t, err = c.find(p, r.Conversation); err != nil {
			return nil, err
		}
		if t.busy {
			return nil, &skill.Error{Code: skill.Conflict, Message: "a turn of this conversation is under way; wait for its answer"}
		}
		t.view.Messages = append(t.view.Messages, agent.MessageView{Role: llm.User, Text: r.Message, At: c.now().UTC()})
	}
	t.busy = true
	c.turns = append(c.turns, r)
	return t, nil
}

func (c *Chat) reply(ctx context.Context, t *talk, r agent.ChatRequest, hear func(agent.Event)) (*agent.Answer, error) {
	defer func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		t.busy = false
	}()
	if hear == nil {
		hear = func(agent.Event) {}
	}
	a := &agent.Answer{
		Conversation: t.view.ID, ToolCalls: []agent.ToolCall{}, Iterations: 1, StopReason: agent.StopCompleted, Trace: string(r.Trace), Provider: "rules", Model: "rules",
	}
	hear(agent.Event{Kind: agent.EventStart, Conversation: t.view.ID, Trace: string(r.Trace)})
	say := c.Reply
	if say == nil {
		say = repeat
	}
	if err := say(ctx, r, hear, a); err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	t.view.Iterations += a.Iterations
	t.view.TotalTokens += a.Usage.TotalTokens
	t.view.UpdatedAt = c.now().UTC()
	t.view.Messages = append(t.view.Messages, agent.MessageView{Role: llm.Assistant, Text: a.Answer, At: t.view.UpdatedAt})
	hear(agent.Event{Kind: agent.EventDone, Answer: a})
	return a, nil
}

// repeat calls echo, and says the message again.
func repeat(_ context.Context, r agent.ChatRequest, hear func(agent.Event), a *agent.Answer) error {
	args, err := json.Marshal(map[string]string{"text": r.Message})
	if err != nil {
		return err
	}
	call := agent.ToolCall{ID: "call_1", SkillID: "echo", Arguments: args}
	hear(agent.Event{Kind: agent.EventToolGo, Tool: &call})
	done := call
	done.Success, done.LatencyMS, done.ExecutionID = true, 1, "x-1"
	hear(agent.Event{Kind: agent.EventToolEnd, Tool: &done, Result: `{"echoed": `})
	words := strings.SplitAfter(r.Message, " ")
	for _, w := range words {
		hear(agent.Event{Kind: agent.EventText, Text: w})
	}
	a.Usage = agent.Usage{PromptTokens: 10, CompletionTokens: len(words), TotalTokens: 10 + len(words)}
	hear(agent.Event{Kind: agent.EventUsage, Usage: &a.Usage})
	a.Answer, a.ToolCalls, a.Iterations = r.Message, append(a.ToolCalls, done), 2
	return nil
}

// Approve decides about what waits, and says that it did.
func (c *Chat) Approve(ctx context.Context, p skill.Principal, id string, d agent.Decision, hear func(agent.Event)) (*agent.Answer, error) {
	t, err := c.decide(p, id, d)
	if err != nil {
		return nil, err
	}
	word := "denied"
	if d.Approve {
		word = "approved"
	}
	return c.reply(ctx, t, agent.ChatRequest{Message: word, Trace: d.Trace}, hear)
}

func (c *Chat) decide(p skill.Principal, id string, d agent.Decision) (*talk, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	t, err := c.find(p, id)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(t.view.Pending, func(a agent.Awaited) bool { return d.ApprovalID == "" || a.ApprovalID == d.ApprovalID })
	if i < 0 {
		return nil, &skill.Error{Code: skill.NotFound, Message: "nothing of this conversation waits for that approval"}
	}
	t.view.Pending = slices.Delete(t.view.Pending, i, i+1)
	if len(t.view.Pending) == 0 {
		t.view.Pending = nil
	}
	t.busy = true
	c.asks = append(c.asks, d)
	return t, nil
}

// List gives the caller's conversations, the one that began last first. A cursor is the
// id of the last one of a page.
func (c *Chat) List(_ context.Context, p skill.Principal, cursor string, limit int) ([]agent.Summary, string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := may(p, skill.ScopeAgent); err != nil {
		return nil, "", err
	}
	var page []agent.Summary
	for _, t := range slices.Backward(c.all) {
		if t.tenant != p.Tenant || t.principal != p.ID || cursor != "" && t.view.ID >= cursor {
			continue
		}
		if len(page) == limit {
			return page, page[limit-1].ID, nil
		}
		page = append(page, agent.Summary{ID: t.view.ID, Title: t.view.Title, CreatedAt: t.view.CreatedAt, UpdatedAt: t.view.UpdatedAt, Messages: len(t.view.Messages)})
	}
	return page, "", nil
}

// Get gives one of the caller's conversations.
func (c *Chat) Get(_ context.Context, p skill.Principal, id string) (*agent.View, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	t, err := c.find(p, id)
	if err != nil {
		return nil, err
	}
	v := t.view
	v.Messages, v.Pending = slices.Clone(v.Messages), slices.Clone(v.Pending)
	return &v, nil
}

// Delete removes one of the caller's conversations.
func (c *Chat) Delete(_ context.Context, p skill.Principal, id string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	t, err := c.find(p, id)
	if err != nil {
		return err
	}
	t.tenant, t.principal = "", "" // its number is not given again
	return nil
}

// React has an agent that works on tasks by what they say: see [React.Execute]. It is
// safe for concurrent use.
type React struct {
	// Work does a task; nil: as [React.Execute] says.
	Work func(ctx context.Context, t agent.Task) (*agent.Outcome, error)

	mu    sync.Mutex
	tasks []agent.Task
	kept  []*conversations.Session
}

var _ api.React = (*React)(nil)

// Keep has the agent know of a task.
func (a *React) Keep(s conversations.Session) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.kept = append(a.kept, &s)
}

// Tasks gives the tasks that came in, in order.
func (a *React) Tasks() []agent.Task {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.tasks)
}

// Execute ends a task as its first word says: terminated, timeout, late (408), failed
// (503) or broken (500); of any other one it has completed.
func (a *React) Execute(ctx context.Context, p skill.Principal, t agent.Task) (*agent.Outcome, error) {
	if err := may(p, skill.ScopeAgent); err != nil {
		return nil, err
	}
	if strings.TrimSpace(t.Text) == "" || utf8.RuneCountInString(t.Text) > 2000 {
		return nil, &skill.Error{Code: skill.AgentInvalidTask, Message: "the task must be 1 to 2000 characters long"}
	}
	a.mu.Lock()
	a.tasks = append(a.tasks, t)
	a.mu.Unlock()
	if a.Work != nil {
		return a.Work(ctx, t)
	}
	if o := t.Options; o.TimeoutSeconds != 0 && o.TimeoutSeconds < 10 || o.Skills != nil && (len(o.Skills) == 0 || len(o.Skills) > 256) {
		return nil, &skill.Error{Code: skill.AgentValidationError, Message: "an option is out of range"}
	}
	out := &agent.Outcome{
		SessionID: "00000000-0000-7000-a000-000000000001", Status: agent.TaskTerminated, Iterations: 1, TotalTokens: 800, TotalDuration: 1234,
		Result: json.RawMessage(`{"summary":"It was not finished.","findings":[],"skill_calls":[{"skill":"echo","iteration":0,"input":{},"status":"success","duration_ms":1}],"partial":true}`),
	}
	word, _, _ := strings.Cut(t.Text, " ")
	switch word {
	case "terminated":
	case "timeout":
		out.Status = agent.TaskTimedOut
	case "late":
		out.Status, out.Err = agent.TaskTimedOut, &skill.Error{Code: skill.AgentExecutionTimeout, Message: "the task took longer than it may"}
	case "failed":
		out.Status, out.Err = agent.TaskFailed, &skill.Error{Code: skill.AgentLLMUnavailable, Message: "the model is unavailable"}
	case "broken":
		out.Status, out.Err = agent.TaskFailed, &skill.Error{Code: skill.AgentLoopError, Message: "the agent failed"}
	default:
		out.Status = agent.TaskCompleted
		out.Result = json.RawMessage(`{"summary":"All is well.","skill_calls":[{"skill":"echo","iteration":0,"input":{},"status":"success","duration_ms":1,"execution_id":"x-1"}],"partial":false}`)
	}
	return out, nil
}

// Session gives a task that [React.Keep] was told of: to whom it belongs, to the readers
// of their tenant, and to those of the host.
func (a *React) Session(_ context.Context, p skill.Principal, id string) (*conversations.Session, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, s := range a.kept {
		own := s.Owner == conversations.Owner{Tenant: p.Tenant, Principal: p.ID}
		if s.ID == id && (own || p.May(skill.ScopeHost) || p.May(skill.ScopeAllExecutions) && s.Owner.Tenant == p.Tenant) {
			return s, nil
		}
	}
	return nil, &skill.Error{Code: skill.NotFound, Message: "there is no such task"}
}
