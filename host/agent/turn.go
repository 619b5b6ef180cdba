package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"
	"unicode/utf8"

	"openskill/host/agent/conversations"
	"openskill/host/agent/llm"
	"openskill/host/agent/tools"
	"openskill/sdk/skill"
)

// instructions are how those to the model begin.
const instructions = `You are the assistant of a host that runs skills. You can call skills as tools.
Call one where it gives a better answer than you could alone, several at once where they do not depend on each other, and none where none is needed.
When a call fails, read what is said about it, mend the call or say what went wrong; do not make the same wrong call again.
Answer in the language of the user, briefly, and only with what you know or the tools gave.`

// maxMessage is the length in bytes of the longest message of a caller.
const maxMessage = 32 << 10

// turn is one turn of a conversation under way.
type turn struct {
	driver
	hear  func(Event)
	asks  *ChatRequest
	room  string // the id of the workspace; "": none
	files string // what the model is told of its files

	retries  int           // answers in a row with calls that are wrong, after the first
	callTime time.Duration // of each call; 0: as the skill and the host have it

	conv    *conversations.Conversation
	first   int  // the conversation's rounds before this turn
	tokens  int  // and its tokens
	unkept  bool // something is to be written that is no message
	request llm.Request
	history history
	ids     map[string]bool // of the calls that the model is shown
	before  []llm.Message   // what was said before the turn that continues, and in it so far
	resume  []waiting       // the calls with which it continues
	left    []waiting       // the calls for which it cannot continue yet

	asked    int // questions to the model
	made     int // calls of tools
	calls    []ToolCall
	awaited  []Awaited
	lastText string // what the model said last
	wrong    int    // answers in a row with calls that were wrong
	beyond   int    // calls that were asked for and not made, because there were too many

	started bool // the stream has begun
	saying  bool // hear is being called
}

// Turn answers a message. It returns when nothing of the turn runs any more. hear is told
// what happens, in order, on the goroutine that called and never after Turn has returned;
// nil: nobody listens. Where hear waits, the turn does.
//
// The error is a *skill.Error. If it comes before EventStart nothing was kept of the
// message; otherwise it is told as EventError, and what was complete by then is kept.
func (a *Agent) Turn(ctx context.Context, p skill.Principal, r ChatRequest, hear func(Event)) (*Answer, error) {
	return a.serve(ctx, p, &r, hear, func(ctx context.Context, t *turn) error {
		return t.begin(ctx, r.Message)
	}, func() error { return checkMessage(r.Message) })
}

func checkMessage(m string) error {
	switch {
	case blank(m):
		return invalid("message", "must not be empty")
	case len(m) > maxMessage:
		return invalid("message", fmt.Sprintf("must be at most %d bytes, and has %d", maxMessage, len(m)))
	case !utf8.ValidString(m) || strings.ContainsRune(m, 0):
		return invalid("message", "must be text in UTF-8 without NUL")
	}
	return nil
}

// turnLimits are what a turn may use, and how often its model may mend calls: what its
// caller asks for, at most what the host allows.
func (a *Agent) turnLimits(r *ChatRequest) (l limits, retries int, err error) {
	o := &a.o.Chat
	l, retries = limits{iterations: o.Iterations, toolCalls: a.o.ToolCalls, tokens: o.Tokens, time: o.Time}, o.Retries
	most := r.TimeoutMS // which the dispatcher lowers
	for _, f := range []struct {
		name  string
		asked int
		limit *int
	}{
		{"max_iterations", r.MaxIterations, &l.iterations},
		{"max_tool_calls", r.MaxToolCalls, &l.toolCalls},
		{"max_tokens", r.MaxTokens, &l.tokens},
		{"max_validation_retries", r.MaxRetries, &retries},
		{"timeout_ms", r.TimeoutMS, &most},
	} {
		if f.asked < 0 {
			return l, 0, invalid(f.name, "must be a whole number from 1")
		}
		if f.asked > 0 {
			*f.limit = min(*f.limit, f.asked)
		}
	}
	return l, retries, nil
}

// place names one conversation. The owner is in it so that nobody can hold up, or ask
// after, another one's.
type place struct {
	owner conversations.Owner
	id    string
}

func placeOf(p skill.Principal, id string) place { return place{ownerOf(p), strings.ToLower(id)} }

var errDeleted = errors.New("the conversation was deleted")

// hold has the conversation for this turn alone. The context ends when the conversation is
// deleted; release must be called.
func (a *Agent) hold(ctx context.Context, at place) (in context.Context, release func(), err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.running[at] != nil {
		return nil, nil, &skill.Error{
			Op: "agent.Turn", Code: skill.Conflict,
			Message: "another turn of this conversation is running; wait for it, or start a new conversation",
		}
	}
	in, cancel := context.WithCancelCause(ctx)
	a.running[at] = cancel
	return in, func() {
		a.mu.Lock()
		delete(a.running, at)
		a.mu.Unlock()
		cancel(nil)
	}, nil
}

// serve is a turn from its first check to its last event. begin runs when the
// conversation is this turn's alone, and before the stream begins.
func (a *Agent) serve(ctx context.Context, p skill.Principal, r *ChatRequest, hear func(Event), begin func(context.Context, *turn) error, check func() error) (out *Answer, err error) {
	defer func() {
		if how := string(skill.CodeOf(err)); out != nil {
			a.o.Ended("chat", string(out.StopReason))
		} else {
			a.o.Ended("chat", how)
		}
	}()
	if err := authorize(p); err != nil {
		return nil, err
	}
	most, retries, err := a.turnLimits(r)
	if err != nil {
		return nil, err
	}
	if err := check(); err != nil {
		return nil, err
	}
	model, err := a.o.Models.Choose(p, r.Provider, r.Model)
	if err != nil {
		return nil, err
	}
	id, isNew := r.Conversation, r.Conversation == ""
	if isNew {
		if id, err = newID(); err != nil {
			return nil, err
		}
	}
	ctx, release, err := a.hold(ctx, placeOf(p, id))
	if err != nil {
		return nil, err
	}
	defer release()
	leave, err := a.enter(ctx, p)
	if err != nil {
		return nil, err
	}
	defer leave()
	t := &turn{
		driver: driver{Agent: a, p: p, trace: r.Trace, kind: "conversation", session: id, model: model}, hear: hear, asks: r,
		conv:    &conversations.Conversation{ID: id, Owner: ownerOf(p)},
		retries: retries, callTime: time.Duration(r.TimeoutMS) * time.Millisecond,
	}
	ctx, cancel := t.start(ctx, most)
	defer cancel()
	err = t.guard(ctx, func() error {
		if err := t.open(ctx, isNew); err != nil {
			return err
		}
		if err := begin(ctx, t); err != nil {
			return err
		}
		t.started = true
		t.say(Event{Kind: EventStart, Conversation: t.conv.ID, Trace: string(t.trace)})
		end, err := t.run(ctx)
		if err == nil {
			out, err = t.answered(ctx, end)
		}
		return err
	})
	if err != nil {
		return nil, t.failed(ctx, err)
	}
	return out, nil
}

// open finds the conversation, unless it is new, and what the caller's model can call.
func (t *turn) open(ctx context.Context, isNew bool) error {
	if !isNew {
		conv, err := t.o.Store.Get(ctx, t.conv.Owner, t.conv.ID)
		if err != nil {
			return t.unread(ctx, err)
		}
		t.conv = conv
	}
	t.first, t.tokens = t.conv.Iterations, t.conv.Tokens
	if err := t.loadTools(ctx); err != nil {
		return err
	}
	files, err := t.openWorkspace(ctx)
	if err != nil {
		return t.endOr(ctx, err)
	}
	t.files = files
	t.request.System += files
	t.history.fixed = t.model.Tokens(&t.request)
	return nil
}

// loadTools finds what the caller's model can call.
func (t *turn) loadTools(ctx context.Context) error {
	set, err := t.o.Tools(ctx, t.p, nil, t.asks.Tools)
	if err != nil {
		return t.endOr(ctx, err)
	}
	t.tools = set
	system := instructions + "\n\n" + tools.Notice
	if more := set.Instructions(); more != "" {
		system += "\n\n" + more
	}
	t.request = llm.Request{System: system + t.files, Tools: set.List()}
	t.history.fixed = t.model.Tokens(&t.request)
	return nil
}

// begin keeps the message of the caller, and with it what a call that waited is answered
// because something else was said instead of a decision.
func (t *turn) begin(ctx context.Context, message string) error {
	now := t.o.Now().UTC()
	said := llm.Message{Role: llm.User, Text: message}
	var before []llm.Message
	if t.conv.Revision == 0 {
		t.conv.Title, t.conv.CreatedAt, t.conv.UpdatedAt = title(message), now, now
		if err := t.o.Store.Create(ctx, t.conv); err != nil {
			return t.unwritten(ctx, err)
		}
		t.oneMore()
	} else {
		kept, err := t.read(ctx)
		if err != nil {
			return err
		}
		before = kept
	}
	var add []llm.Message
	for _, w := range t.waits(ctx) {
		add = append(add, llm.Message{Role: llm.Tool, CallID: w.Call.ID, Text: wentOn, Failed: true})
	}
	t.conv.Pending = nil
	if err := t.keep(ctx, append(add, said)...); err != nil {
		return err
	}
	t.remember(append(before, add...), []llm.Message{said})
	return nil
}

// read gives what a model may be shown of what was said: the last messages, or more where
// these are all of one exchange, so that its beginning is there.
func (t *turn) read(ctx context.Context) ([]llm.Message, error) {
	var kept []llm.Message
	for _, most := range []int{t.o.Chat.History, max(t.o.Chat.Keep, t.o.Chat.History)} {
		list, err := t.o.Store.Messages(ctx, t.conv.Owner, t.conv.ID, most)
		if err != nil {
			return nil, t.unread(ctx, err)
		}
		if kept = bodies(list); lastOfUser(kept) >= 0 || len(kept) < most {
			break
		}
	}
	return kept, nil
}

// lastOfUser is where the last message of a user is, -1 if there is none.
func lastOfUser(list []llm.Message) int {
	for i := len(list) - 1; i >= 0; i-- {
		if list[i].Role == llm.User {
			return i
		}
	}
	return -1
}

// remember makes the prompt of what was said before the turn, and in it.
func (t *turn) remember(before, turn []llm.Message) {
	t.ids = map[string]bool{}
	for _, m := range lastOf(before, t.o.Chat.History) {
		t.show(m)
	}
	t.history.turn = len(t.history.messages)
	for _, m := range turn {
		t.show(m)
	}
}

// show adds a message to what the model is shown.
func (t *turn) show(m llm.Message) {
	t.history.add(m, t.model.TokensOf(&m))
	for _, c := range m.Calls {
		t.ids[c.ID] = true
	}
}

// keep writes messages, and how the conversation stands.
func (t *turn) keep(ctx context.Context, add ...llm.Message) error {
	within, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTime)
	defer cancel()
	t.conv.UpdatedAt = t.o.Now().UTC()
	t.conv.Iterations, t.conv.Tokens = t.first+t.asked, t.tokens+t.budget.used.usage.Total()
	if err := t.o.Store.Append(within, t.conv, add, t.o.Chat.Keep); err != nil {
		return t.unwritten(ctx, err)
	}
	t.unkept = false
	return nil
}

// say tells who listens.
func (t *turn) say(e Event) {
	if t.hear == nil {
		return
	}
	t.saying = true
	t.hear(e)
	t.saying = false
}

func (t *turn) usage() *Usage {
	u := &t.budget.used
	return &Usage{
		PromptTokens: u.usage.Prompt, CompletionTokens: u.usage.Completion, TotalTokens: u.usage.Total(),
		Estimated: u.usage.Estimated, CostUSD: u.cost.Dollars(),
	}
}

// turnEnd is how a turn comes to its end.
type turnEnd struct {
	reason StopReason
	text   string // what the model said at last; "" where the turn was ended
}

// answered keeps the end of the turn, and tells it.
func (t *turn) answered(ctx context.Context, end turnEnd) (*Answer, error) {
	a := &Answer{
		Workspace:    t.room,
		Conversation: t.conv.ID, Answer: end.text, ToolCalls: t.calls, Iterations: t.asked, Usage: *t.usage(),
		StopReason: end.reason, Trace: string(t.trace), Provider: t.model.Provider, Model: t.model.Name, Approvals: t.awaited,
	}
	if a.ToolCalls == nil {
		a.ToolCalls = []ToolCall{}
	}
	if end.reason == StopApprovalRequired { // the calls that wait are to be answered first
		a.Answer = cmp.Or(t.lastText, t.sentence(end.reason))
	} else {
		kept := end.text
		if blank(kept) {
			kept = t.sentence(end.reason)
			a.Answer = cmp.Or(t.lastText, kept)
		}
		if err := t.keep(ctx, llm.Message{Role: llm.Assistant, Text: kept}); err != nil {
			return nil, err
		}
	}
	t.ended(ctx, slog.LevelInfo, end.reason, nil)
	t.say(Event{Kind: EventDone, Answer: a})
	return a, nil
}

// failed tells and logs the error of a turn, and gives it. What the turn took is kept,
// unless that is what failed, and who listens is told; either may panic once more.
func (t *turn) failed(ctx context.Context, err error) error {
	if _, ok := errors.AsType[*skill.Error](err); !ok {
		err = &skill.Error{Op: "agent.Turn", Code: skill.AgentLoopError, Message: loopError, Err: err}
	}
	t.ended(ctx, slog.LevelWarn, "", err)
	switch skill.CodeOf(err) {
	case skill.AuditUnavailable, skill.Conflict, skill.NotFound, skill.PayloadTooLarge:
	default:
		_ = t.guard(ctx, func() error { return t.keepUsage(ctx) })
	}
	_ = t.guard(ctx, func() error {
		if t.started && !t.saying {
			t.say(Event{Kind: EventError, Error: skill.Failure("", t.trace, skill.Meta{}, err).Error})
		}
		return nil
	})
	return err
}

// ended writes the one line of a turn.
func (t *turn) ended(ctx context.Context, level slog.Level, reason StopReason, err error) {
	t.o.Log.LogAttrs(context.WithoutCancel(ctx), level, "chat", t.attrs(err, slog.Int("iterations", t.asked), slog.Int("calls", t.made), slog.Int("tokens", t.budget.used.usage.Total()),
		slog.String("stop_reason", string(reason)), slog.Int64("latency_ms", t.took()))...)
}

// keepUsage keeps what the turn took, if that is not kept yet.
func (t *turn) keepUsage(ctx context.Context) error {
	if !t.unkept {
		return nil
	}
	t.unkept = false
	if err := t.keep(ctx); err != nil {
		t.o.Log.LogAttrs(context.WithoutCancel(ctx), slog.LevelWarn, "cannot store the usage of a turn", t.attrs(err)...)
	}
	return nil
}

// title is the beginning of a message, 80 characters at most.
func title(message string) string {
	s := skill.CleanText(message, 320)
	n := 0
	for i := range s {
		if n++; n == 80 && utf8.RuneCountInString(s) > 80 {
			return strings.TrimSpace(s[:i]) + "…"
		}
	}
	return s
}
