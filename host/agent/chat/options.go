package chat

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"time"

	"openskill/host/agent/budget"
	"openskill/host/agent/conversations"
	"openskill/host/agent/llm"
	"openskill/host/agent/toolbox"
	"openskill/host/dispatch/approval"
	"openskill/host/internal/gate"
	"openskill/sdk/skill"
)

// Approvals is the record of what people have approved; [approval.Store] is one.
type Approvals interface {
	// Get gives one approval to those who may see it, or NOT_FOUND.
	Get(ctx context.Context, p skill.Principal, id string) (approval.Approval, error)
	// Decide approves or denies. It is FORBIDDEN to those who may not, and to who asked.
	Decide(ctx context.Context, p skill.Principal, id string, approve bool) (approval.Approval, error)
}

// Quotas bound how many requests callers make; *quota.Quotas is one. The error is a
// *skill.Error.
type Quotas interface {
	Request(ctx context.Context, p skill.Principal) error
}

// Options of a [Chat]. Zero never means "unlimited".
type Options struct {
	Models *llm.Models // required
	// Tools gives what a caller's model may call; see [toolbox.Toolbox.For]. Required.
	Tools func(ctx context.Context, p skill.Principal, only []skill.ID) (toolbox.Tools, error)
	Store conversations.Store // required
	// Approvals is asked where a call waits for an approval; nil: nobody decides in a
	// conversation, and a call that waited is made again when its caller says so.
	Approvals Approvals
	// Quotas counts each turn as a request of its caller; nil: nothing does.
	Quotas Quotas

	// Limits are the most that a turn may use, and what it may use where its caller does
	// not ask for less. Each must be above zero.
	Limits      budget.Limits
	ReplyTokens int // the most of one answer of a model; 0: 4096
	History     int // messages from before a turn that the model is shown; 0: 20
	Keep        int // messages that are kept of a conversation, and always those of one round; 0: 200
	// ValidationRetries is how often in a row a model may answer with calls of which some
	// are wrong, after the first time; 0: 3.
	ValidationRetries int

	Conversations int  // that are kept of one principal's, those that changed last; 0: 1000
	Days          int  // for which one is kept that nobody goes on with; 0: 30
	Concurrent    int  // turns of all callers at once, more are RATE_LIMITED; 0: 1024
	Alone         bool // all callers are one tenant, which may have all of these

	System string           // how the instructions to the model begin; "": a few sentences of the host's own
	Log    *slog.Logger     // nil: slog.Default()
	Now    func() time.Time // nil: the system's clock
}

const defaultSystem = `You are the assistant of a host that runs skills. You can call skills as tools.
Call one where it gives a better answer than you could alone, several at once where they do not depend on each other, and none where none is needed.
When a call fails, read what is said about it, mend the call or say what went wrong; do not make the same wrong call again.
Answer in the language of the user, briefly, and only with what you know or the tools gave.`

func (o Options) withDefaults() Options {
	or(&o.ReplyTokens, 4096)
	or(&o.History, 20)
	or(&o.Keep, 200)
	or(&o.ValidationRetries, 3)
	or(&o.Conversations, 1000)
	or(&o.Days, 30)
	or(&o.Concurrent, 1024)
	if o.System == "" {
		o.System = defaultSystem
	}
	if o.Log == nil {
		o.Log = slog.Default()
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return o
}

func or(p *int, d int) {
	if *p <= 0 {
		*p = d
	}
}

// Chat is made by [New]. It is safe for concurrent use, and has nothing to close: a turn
// ends with its context.
type Chat struct {
	o      Options
	counts counts
	under  *gate.Gate // turns under way

	mu      sync.Mutex
	running map[place]context.CancelCauseFunc
	made    int           // conversations since the last look at how many there are
	many    chan struct{} // says that there are so many new ones that it is time for that
}

// place names one conversation. The owner is in it so that nobody can hold up, or ask
// after, another one's.
type place struct {
	owner conversations.Owner
	id    string
}

// New checks the options. It starts nothing; see [Chat.Tend].
func New(o Options) (*Chat, error) {
	if o.Models == nil || o.Tools == nil || o.Store == nil {
		return nil, errors.New("chat.New: Models, Tools and Store are required")
	}
	l := o.Limits
	if l.Iterations <= 0 || l.ToolCalls <= 0 || l.Tokens <= 0 || l.Cost <= 0 || l.Fuel == 0 || l.Time <= 0 {
		return nil, errors.New("chat.New: each of Limits must be above zero")
	}
	o = o.withDefaults()
	o.Keep = max(o.Keep, 2+min(l.ToolCalls, maxCalls)+shownBeyond)
	return &Chat{
		o: o, counts: newCounts(), under: gate.New(gate.Options{Places: o.Concurrent, Alone: o.Alone, Retry: time.Second}),
		running: map[place]context.CancelCauseFunc{}, many: make(chan struct{}, 1),
	}, nil
}

// What ends a turn before its own end.
var (
	errTime    = errors.New("the time of the turn is over")
	errDeleted = errors.New("the conversation was deleted")
)

// enter takes a place among the turns that are under way, and the conversation for this
// one alone. The context ends when the conversation is deleted; leave must be called.
func (c *Chat) enter(ctx context.Context, at place) (in context.Context, leave func(), err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.running[at] != nil {
		return nil, nil, errBusy()
	}
	out, err := c.under.TryEnter(at.owner.Tenant)
	if err != nil {
		return nil, nil, gate.Refusal(err, "chat.enter", "too many turns are running, in total or of this tenant")
	}
	in, cancel := context.WithCancelCause(ctx)
	c.running[at] = cancel
	return in, func() {
		c.mu.Lock()
		delete(c.running, at)
		c.mu.Unlock()
		out()
		cancel(nil)
	}, nil
}

func errBusy() error {
	return &skill.Error{
		Op: "chat.enter", Code: skill.Conflict,
		Message: "another turn of this conversation is running; wait for it, or start a new conversation",
	}
}

func mayChat(p skill.Principal) error {
	switch {
	case p.ID == "" || p.Type == "":
		return &skill.Error{Op: "chat.authorize", Code: skill.Unauthorized, Message: "authentication required: send an API key or a token"}
	case !p.May(skill.ScopeAgent):
		return &skill.Error{Op: "chat.authorize", Code: skill.Forbidden, Subject: p.ID, Message: "missing scope " + skill.ScopeAgent}
	}
	return nil
}

func placeOf(p skill.Principal, id string) place { return place{ownerOf(p), strings.ToLower(id)} }

func ownerOf(p skill.Principal) conversations.Owner {
	return conversations.Owner{Tenant: p.Tenant, Principal: p.ID}
}

func invalid(field, message string) error {
	return &skill.Error{
		Op: "chat.check", Code: skill.InvalidArgument, Subject: field, Message: field + ": " + message,
		Details: map[string]any{"fields": []map[string]string{{"field": field, "problem": message}}},
	}
}
