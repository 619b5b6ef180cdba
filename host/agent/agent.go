package agent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"openskill/host/agent/conversations"
	"openskill/host/agent/llm"
	"openskill/host/agent/tools"
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

// Workspaces are folders that the calls of a conversation share. Errors are *skill.Error.
type Workspaces interface {
	// PutFiles adds files to a workspace, which is created if it does not exist.
	PutFiles(ctx context.Context, p skill.Principal, id string, files []skill.FileRef) error
	Get(ctx context.Context, p skill.Principal, id string) (*skill.Workspace, error)
}

// Options of an [Agent]. What does not say what nil means is required, and each number
// must be above zero.
type Options struct {
	Models *llm.Models
	// Tools gives what a caller's model may call; see [tools.Toolbox.For]. Its error is a
	// *skill.Error, AGENT_SKILL_NOT_FOUND where only names something else.
	Tools    func(ctx context.Context, p skill.Principal, only []skill.ID, form tools.Form) (tools.Set, error)
	Store    conversations.Store
	Sessions conversations.Sessions
	// Approvals is asked where a call waits for an approval; nil: nobody decides in a
	// conversation, and a call that waited is made again when its caller says so.
	Approvals Approvals
	// Workspaces keep the files of conversations; nil: conversations have none.
	Workspaces Workspaces
	Quotas     Quotas // counts each turn and task as a request of its caller; nil: nothing does

	Concurrent int       // turns and tasks of all callers at once; more are RATE_LIMITED
	Alone      bool      // all callers are one tenant, which may have all of these
	ToolCalls  int       // calls of tools in one turn or task
	Cost       llm.Money // of the models of one turn or task
	Fuel       uint64    // of the skills of one turn or task
	Days       int       // for which conversations and tasks are kept that nobody continues
	Chat       ChatOptions
	Task       TaskLimits

	// Ended is told how each turn ("chat") and task ("task") ended: a [StopReason], a
	// [TaskStatus], or the code of an error. nil: nothing is.
	Ended func(kind, how string)
	Log   *slog.Logger
	Now   func() time.Time // nil: the system's clock
}

// ChatOptions are those of conversations.
type ChatOptions struct {
	Iterations    int           // questions to the model in a turn
	Tokens        int           // of a turn, prompts and replies together
	Time          time.Duration // of a turn
	ReplyTokens   int           // the most of one reply of a model
	History       int           // messages from before a turn that the model is shown
	Keep          int           // messages that are kept of a conversation, and always those of one round
	Retries       int           // times in a row that a model may answer with wrong calls, after the first time
	Conversations int           // that are kept of one principal's, those that changed last
}

// TaskLimits are the limits of tasks.
type TaskLimits struct {
	Iterations       int           // the most rounds of a task that a caller may ask for, and what it gets
	Tokens           int           // of one task, prompts and replies together
	MinTokens        int           // when fewer are left the model is asked no more; at most Tokens
	ReplyTokens      int           // of one reply of the model
	IterationTimeout time.Duration // of one round, model and skill together
	Timeout          time.Duration // of a task whose caller says nothing; at most MaxTimeout
	MaxTimeout       time.Duration // the most that a caller may ask for
	History          int           // rounds that the model is shown
	ShortHistory     int           // the same where those do not fit into the tokens that are left; at most History
	// Kinds have limits of their own, by the names that tasks give; nil: there are none.
	// What is above the limits of all tasks counts as those.
	Kinds map[string]TaskKind
}

// TaskKind are limits of the tasks of a kind; zero: those of all tasks.
type TaskKind struct {
	Iterations, Tokens int
	Timeout            time.Duration // also of a task whose caller says nothing
}

// check says what is wrong with the options.
func (o *Options) check() error {
	if o.Models == nil || o.Tools == nil || o.Store == nil || o.Sessions == nil || o.Log == nil {
		return errors.New("one of Models, Tools, Store, Sessions and Log is missing")
	}
	c, t := &o.Chat, &o.Task
	for name, set := range map[string]bool{
		"Concurrent": o.Concurrent > 0, "ToolCalls": o.ToolCalls > 0, "Cost": o.Cost > 0, "Fuel": o.Fuel > 0, "Days": o.Days > 0,
		"Chat": min(c.Iterations, c.Tokens, int(c.Time), c.ReplyTokens, c.History, c.Keep, c.Retries, c.Conversations) > 0,
		"Task": min(t.Iterations, t.Tokens, t.MinTokens, t.ReplyTokens, t.History, t.ShortHistory) > 0 &&
			min(t.IterationTimeout, t.Timeout, t.MaxTimeout) > 0,
	} {
		if !set {
			return fmt.Errorf("each number of %s must be above zero", name)
		}
	}
	switch {
	case t.MinTokens > t.Tokens:
		return fmt.Errorf("Task.MinTokens is %d, more than Task.Tokens, which is %d", t.MinTokens, t.Tokens)
	case t.Timeout > t.MaxTimeout:
		return fmt.Errorf("Task.Timeout is %s, more than Task.MaxTimeout, which is %s", t.Timeout, t.MaxTimeout)
	case t.ShortHistory > t.History:
		return fmt.Errorf("Task.ShortHistory is %d, more than Task.History, which is %d", t.ShortHistory, t.History)
	}
	return nil
}

// Agent is made by [New]. It is safe for concurrent use, and has nothing to close: a turn
// or a task ends with its context.
type Agent struct {
	o     Options
	under *gate.Gate // turns and tasks under way

	mu      sync.Mutex
	running map[place]context.CancelCauseFunc // turns
	made    int                               // conversations since the last look at how many there are
	many    chan struct{}                     // says that there are so many new ones that it is time for that
}

// New checks the options. It starts nothing; see [Agent.Tend].
func New(o Options) (*Agent, error) {
	if err := o.check(); err != nil {
		return nil, fmt.Errorf("agent.New: %w", err)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Ended == nil {
		o.Ended = func(string, string) {}
	}
	o.Chat.Keep = max(o.Chat.Keep, 2+min(o.ToolCalls, maxCalls)+shownBeyond)
	return &Agent{
		o: o, under: gate.New(gate.Options{Places: o.Concurrent, Alone: o.Alone, Retry: time.Second}),
		running: map[place]context.CancelCauseFunc{}, many: make(chan struct{}, 1),
	}, nil
}

// authorize says whether somebody may have models work.
func authorize(p skill.Principal) error {
	switch {
	case p.ID == "" || p.Type == "":
		return &skill.Error{Op: "agent.authorize", Code: skill.Unauthorized, Message: "authentication required: send an API key or a token"}
	case !p.May(skill.ScopeAgent):
		return &skill.Error{Op: "agent.authorize", Code: skill.Forbidden, Subject: p.ID, Message: "missing scope " + skill.ScopeAgent}
	case p.Tenant == "": // whose conversations and tasks nobody could tell from anybody's
		return &skill.Error{Op: "agent.authorize", Code: skill.Forbidden, Subject: p.ID, Message: "conversations and tasks require a tenant"}
	}
	return nil
}

// enter takes a place among the turns and tasks under way, and counts a request. leave
// must be called.
func (a *Agent) enter(ctx context.Context, p skill.Principal) (leave func(), err error) {
	leave, err = a.under.TryEnter(p.Tenant)
	if err != nil {
		return nil, gate.Refusal(err, "agent.enter", "too many turns and tasks are running, in total or of this tenant")
	}
	if a.o.Quotas != nil {
		if err := a.o.Quotas.Request(ctx, p); err != nil {
			leave()
			return nil, err
		}
	}
	return leave, nil
}

// How often what is old is looked for, and after how many new conversations at the latest.
const (
	pruneEvery = time.Hour
	pruneAfter = 1000
)

// Tend removes conversations and tasks that are old, and conversations of which a
// principal has too many: at once, every hour, and when there are many new ones. It
// returns when ctx ends.
func (a *Agent) Tend(ctx context.Context) {
	hour := time.NewTicker(pruneEvery)
	defer hour.Stop()
	for {
		before := a.o.Now().UTC().AddDate(0, 0, -a.o.Days)
		a.prune(ctx, "conversations", func() (int, error) { return a.o.Store.Prune(ctx, before, a.o.Chat.Conversations) })
		a.prune(ctx, "tasks", func() (int, error) { return a.o.Sessions.PruneSessions(ctx, before) })
		select {
		case <-ctx.Done():
			return
		case <-hour.C:
		case <-a.many:
		}
	}
}

// prune removes some as long as there are any.
func (a *Agent) prune(ctx context.Context, what string, some func() (int, error)) {
	for ctx.Err() == nil {
		n, err := some()
		if err != nil && ctx.Err() == nil {
			a.o.Log.LogAttrs(ctx, slog.LevelWarn, "cannot remove expired agent data", slog.String("kind", what), slog.String("cause", err.Error()))
		}
		if err != nil || n == 0 {
			return
		}
		a.o.Log.LogAttrs(ctx, slog.LevelDebug, "removed expired agent data", slog.String("kind", what), slog.Int("number", n))
	}
}
