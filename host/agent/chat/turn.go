package chat

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"

	"openskill/host/agent/budget"
	"openskill/host/agent/conversations"
	"openskill/host/agent/llm"
	"openskill/host/agent/toolbox"
	"openskill/sdk/skill"
)

// maxMessage is the length in bytes of the longest message of a caller.
const maxMessage = 32 << 10

// turn is one turn under way. It is used by one goroutine, but for the calls of tools.
type turn struct {
	c      *Chat
	p      skill.Principal
	trace  skill.TraceID
	hear   func(Event)
	model  *llm.Model
	tools  toolbox.Tools
	budget *budget.Budget
	began  time.Time

	retries  int           // answers in a row with calls that are wrong, after the first
	callTime time.Duration // of each call; 0: as the skill and the host have it

	conv    *conversations.Conversation
	first   int  // the conversation's rounds before this turn
	tokens  int  // and its tokens
	unkept  bool // something is to be written that is no message
	request llm.Request
	prompt  prompt
	ids     map[string]bool // of the calls that the model is shown
	before  []llm.Message   // what was said before the turn that goes on, and in it so far
	resume  []waiting       // the calls with which it goes on
	left    []waiting       // the calls for which it cannot go on yet

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
func (c *Chat) Turn(ctx context.Context, p skill.Principal, r Request, hear func(Event)) (*Answer, error) {
	return c.serve(ctx, p, &r, hear, func(ctx context.Context, t *turn) error {
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

// limits are what a turn may use, and how often its model may mend calls: what its caller
// asks for, at most what the host allows.
func (c *Chat) limits(r *Request) (l budget.Limits, retries int, err error) {
	l, retries = c.o.Limits, c.o.ValidationRetries
	most := r.TimeoutMS // which the door lowers
	for _, f := range []struct {
		name  string
		asked int
		limit *int
	}{
		{"max_iterations", r.MaxIterations, &l.Iterations},
		{"max_tool_calls", r.MaxToolCalls, &l.ToolCalls},
		{"max_tokens", r.MaxTokens, &l.Tokens},
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

// serve is a turn from its first check to its last event. begin runs when the
// conversation is this turn's alone, and before the stream begins.
func (c *Chat) serve(ctx context.Context, p skill.Principal, r *Request, hear func(Event), begin func(context.Context, *turn) error, check func() error) (a *Answer, err error) {
	if err := mayChat(p); err != nil {
		return nil, err
	}
	limits, retries, err := c.limits(r)
	if err != nil {
		return nil, err
	}
	if err := check(); err != nil {
		return nil, err
	}
	model, err := c.o.Models.Choose(p, r.Provider, r.Model)
	if err != nil {
		return nil, err
	}
	id := r.Conversation
	if id == "" {
		made, err := uuid.NewV7()
		if err != nil {
			return nil, told(err)
		}
		id = made.String()
	}
	ctx, leave, err := c.enter(ctx, placeOf(p, id))
	if err != nil {
		return nil, err
	}
	defer leave()
	if c.o.Quotas != nil {
		if err := c.o.Quotas.Request(ctx, p); err != nil {
			return nil, err
		}
	}
	t := &turn{
		c: c, p: p, trace: r.Trace, hear: hear, model: model, budget: budget.New(limits, c.o.Now), began: c.o.Now(),
		conv:    &conversations.Conversation{ID: id, Owner: ownerOf(p)},
		retries: retries, callTime: time.Duration(r.TimeoutMS) * time.Millisecond,
	}
	defer func() {
		if v := recover(); v != nil {
			a, err = nil, t.broke(ctx, v)
		}
	}()
	ctx, cancel := context.WithTimeoutCause(ctx, t.budget.Deadline().Sub(c.o.Now()), errTime)
	defer cancel()
	if err := t.open(ctx, r.Conversation == ""); err != nil {
		return nil, t.failed(ctx, err)
	}
	if err := begin(ctx, t); err != nil {
		return nil, t.failed(ctx, err)
	}
	t.started = true
	t.say(Event{Kind: EventStart, Conversation: t.conv.ID, Trace: string(t.trace)})
	end, err := t.run(ctx)
	if err == nil {
		a, err = t.answered(ctx, end)
	}
	if err != nil {
		return nil, t.failed(ctx, err)
	}
	return a, nil
}

// open finds the conversation, unless it is new, and what the caller's model can call.
func (t *turn) open(ctx context.Context, isNew bool) error {
	if !isNew {
		conv, err := t.c.o.Store.Get(ctx, t.conv.Owner, t.conv.ID)
		if err != nil {
			return t.unread(ctx, err)
		}
		t.conv = conv
	}
	t.first, t.tokens = t.conv.Iterations, t.conv.Tokens
	tools, err := t.c.o.Tools(ctx, t.p, nil)
	if err != nil {
		return t.endOr(ctx, err)
	}
	t.tools = tools
	system := t.c.o.System + "\n\n" + toolbox.Notice
	if more := tools.Instructions(); more != "" {
		system += "\n\n" + more
	}
	t.request = llm.Request{System: system, Tools: tools.List(), Trace: t.trace, Tenant: t.p.Tenant}
	t.prompt.fixed = t.c.counts.fixed(t.model, system, t.request.Tools)
	return nil
}

// begin keeps the message of the caller, and with it what a call that waited is answered
// because something else was said instead of a decision.
func (t *turn) begin(ctx context.Context, message string) error {
	now := t.c.o.Now().UTC()
	said := llm.Message{Role: llm.User, Text: message}
	var before []llm.Message
	if t.conv.Revision == 0 {
		t.conv.Title, t.conv.CreatedAt, t.conv.UpdatedAt = title(message), now, now
		if err := t.c.o.Store.Create(ctx, t.conv); err != nil {
			return t.unwritten(ctx, err)
		}
		t.c.oneMore()
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
	for _, most := range []int{t.c.o.History, max(t.c.o.Keep, t.c.o.History)} {
		list, err := t.c.o.Store.Messages(ctx, t.conv.Owner, t.conv.ID, most)
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
	for _, m := range history(before, t.c.o.History) {
		t.show(m)
	}
	t.prompt.turn = len(t.prompt.messages)
	for _, m := range turn {
		t.show(m)
	}
}

// show adds a message to what the model is shown.
func (t *turn) show(m llm.Message) {
	t.prompt.add(m, t.c.counts.message(t.model, &m))
	for _, c := range m.Calls {
		t.ids[c.ID] = true
	}
}

// keepTime is how long the conversation may take to be written. It is written also when
// the caller has left, since what has happened has happened.
const keepTime = 10 * time.Second

// keep writes messages, and how the conversation stands.
func (t *turn) keep(ctx context.Context, add ...llm.Message) error {
	within, cancel := context.WithTimeout(context.WithoutCancel(ctx), keepTime)
	defer cancel()
	used := t.budget.Used()
	t.conv.UpdatedAt = t.c.o.Now().UTC()
	t.conv.Iterations, t.conv.Tokens = t.first+t.asked, t.tokens+used.Usage.Total()
	if err := t.c.o.Store.Append(within, t.conv, add, t.c.o.Keep); err != nil {
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
	u := t.budget.Used()
	return &Usage{
		PromptTokens: u.Usage.Prompt, CompletionTokens: u.Usage.Completion, TotalTokens: u.Usage.Total(),
		Estimated: u.Usage.Estimated, CostUSD: u.Cost.Dollars(),
	}
}

// ending is how a turn comes to its end.
type ending struct {
	reason StopReason
	text   string // what the model said at last; "" where the turn was ended
}

// answered keeps the end of the turn, and tells it.
func (t *turn) answered(ctx context.Context, end ending) (*Answer, error) {
	a := &Answer{
		Conversation: t.conv.ID, Answer: end.text, ToolCalls: t.calls, Iterations: t.asked, Usage: *t.usage(),
		StopReason: end.reason, Trace: string(t.trace), Provider: t.model.Provider, Model: t.model.Name, Approvals: t.awaited,
	}
	if a.ToolCalls == nil {
		a.ToolCalls = []ToolCall{}
	}
	if end.reason == ApprovalRequired { // the calls that wait are to be answered first
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
	t.log(ctx, slog.LevelInfo, end.reason, nil)
	t.say(Event{Kind: EventDone, Answer: a})
	return a, nil
}

// failed tells and logs the error of a turn, and gives it.
func (t *turn) failed(ctx context.Context, err error) error {
	err = told(err)
	t.log(ctx, slog.LevelWarn, "", err)
	t.close(ctx, err)
	return err
}

// close is what is left to do of a turn that ends with an error: what it took is kept,
// unless that is what failed, and who listens is told.
func (t *turn) close(ctx context.Context, err error) {
	switch skill.CodeOf(err) {
	case skill.AuditUnavailable, skill.Conflict, skill.NotFound, skill.PayloadTooLarge:
	default:
		t.keepUsage(ctx)
	}
	if t.started && !t.saying {
		t.say(Event{Kind: EventError, Error: skill.Failure("", t.trace, skill.Meta{}, err).Error})
	}
}

// keepUsage keeps what the turn took, if that is not kept yet.
func (t *turn) keepUsage(ctx context.Context) {
	if !t.unkept {
		return
	}
	t.unkept = false
	if err := t.keep(ctx); err != nil {
		t.c.o.Log.LogAttrs(context.WithoutCancel(ctx), slog.LevelWarn, "cannot store the usage of a turn",
			slog.String("trace_id", string(t.trace)), slog.String("cause", err.Error()))
	}
}

// broke is the end of a turn in a panic: of the loop, a tool, a provider, the store, or
// who listens.
func (t *turn) broke(ctx context.Context, v any) error {
	stack := debug.Stack()
	if b, ok := v.(*brokenCall); ok {
		v, stack = b.value, b.stack
	}
	err := &skill.Error{
		Op: "chat.Turn", Code: skill.AgentLoopError, Err: fmt.Errorf("panic: %v", v),
		Message: "internal error of the agent; the server log has the reason under this trace id",
	}
	t.log(ctx, slog.LevelError, "", err, slog.String("stack", string(stack)))
	again(func() { t.keepUsage(ctx) })
	again(func() { t.close(ctx, err) })
	return err
}

// again calls f after a panic: what failed may fail again.
func again(f func()) {
	defer func() { _ = recover() }()
	f()
}

// log writes the one line of a turn. Nothing that was said is in it.
func (t *turn) log(ctx context.Context, level slog.Level, reason StopReason, err error, more ...slog.Attr) {
	used := t.budget.Used()
	attrs := []slog.Attr{
		slog.String("trace_id", string(t.trace)), slog.String("conversation", t.conv.ID),
		slog.String("principal", skill.CleanText(t.p.ID, 128)), slog.String("tenant", skill.CleanText(t.p.Tenant, 128)),
		slog.String("provider", t.model.Provider), slog.String("model", t.model.Name),
		slog.Int("iterations", t.asked), slog.Int("calls", t.made), slog.Int("tokens", used.Usage.Total()),
		slog.String("stop_reason", string(reason)), slog.Int64("latency_ms", max(t.c.o.Now().Sub(t.began).Milliseconds(), 0)),
	}
	if err != nil {
		attrs = append(attrs, slog.String("error.code", string(skill.CodeOf(err))))
		switch skill.CodeOf(err) { //nolint:exhaustive // the others are the caller's, or say all in their code
		case skill.AgentLoopError, skill.Internal, skill.AuditUnavailable, skill.AgentLLMUnavailable, skill.AgentLLMParseError:
			attrs = append(attrs, slog.String("cause", skill.CleanText(err.Error(), 2*skill.MaxMessage)))
		}
	}
	t.c.o.Log.LogAttrs(context.WithoutCancel(ctx), level, "chat", append(attrs, more...)...)
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
