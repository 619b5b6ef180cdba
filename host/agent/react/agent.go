package react

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"runtime/debug"
	"time"

	"openskill/host/agent/conversations"
	"openskill/host/agent/llm"
	"openskill/host/agent/toolbox"
	"openskill/host/internal/gate"
	"openskill/sdk/skill"
)

// Options of an [Agent]. Models, Tools and Sessions are required. Of the others zero
// is what each field says, and never "any amount".
type Options struct {
	Models *llm.Models // the slot reasoning is asked
	// Tools gives what a caller's model can call; only nil is all of it. Its error is a
	// *skill.Error, of AGENT_SKILL_NOT_FOUND where only names something else.
	Tools    func(ctx context.Context, p skill.Principal, only []skill.ID) (toolbox.Tools, error)
	Sessions conversations.Sessions
	// Quotas counts each task as a request of its caller, and gives a *skill.Error where
	// there is no room; nil: nothing does.
	Quotas interface {
		Request(ctx context.Context, p skill.Principal) error
	}

	MaxIterations int       // the most rounds of a task that a caller may ask for, and what it gets; 0: 10
	MaxCalls      int       // of skills in one task, however many rounds it has; 0: as many as rounds
	MaxTokens     int       // of one task, prompts and replies together; 0: 8192
	MinTokens     int       // when fewer are left the model is asked no more; 0: 500; at most MaxTokens
	ReplyTokens   int       // of one answer of the model; 0: 2048
	Cost          llm.Money // of one task; 0: a dollar
	Fuel          uint64    // of all calls of one task; 0: 100,000,000,000

	IterationTimeout time.Duration // of one round, model and skill together; 0: 60 s
	Timeout          time.Duration // of a task whose caller says nothing; 0: 300 s, or MaxTimeout if that is less
	MaxTimeout       time.Duration // the most that a caller may ask for; 0: 600 s, or Timeout if that is more

	// Kinds have limits of their own, by the names that tasks give; nil: there are none. What
	// is above the limits of all tasks counts as those.
	Kinds map[string]Kind

	History      int // rounds that the model is shown; 0: 5
	ShortHistory int // the same where those do not fit into the tokens that are left; 0: 3, or History if that is less
	MaxTask      int // characters of a task; 0: 2000

	Temperature *float64      // nil: 0.3; below 0: as the model has it
	Concurrent  int           // tasks under way; 0: 1024. More are refused
	Alone       bool          // all callers are one tenant, which may have all of these
	Keep        time.Duration // how long sessions are kept, see [Agent.Tend]; 0: 30 days

	Log *slog.Logger     // nil: slog.Default()
	Now func() time.Time // nil: the system's clock
}

// Kind are limits of the tasks of a kind; zero: those of all tasks.
type Kind struct {
	Iterations, Tokens int
	Timeout            time.Duration // also of a task whose caller says nothing
}

// Agent works on tasks. It is safe for concurrent use.
type Agent struct {
	o     Options
	under *gate.Gate // tasks under way
}

// New checks the options.
func New(o Options) (*Agent, error) {
	if o.Models == nil || o.Tools == nil || o.Sessions == nil {
		return nil, errors.New("react.New: Models, Tools and Sessions are required")
	}
	if err := o.positive(); err != nil {
		return nil, err
	}
	or(&o.MaxIterations, 10)
	or(&o.MaxCalls, o.MaxIterations)
	or(&o.MaxTokens, 8192)
	or(&o.MinTokens, min(500, o.MaxTokens))
	or(&o.ReplyTokens, 2048)
	or(&o.Cost, llm.Dollar)
	or(&o.Fuel, 100_000_000_000)
	or(&o.IterationTimeout, time.Minute)
	if o.MaxTimeout > 0 {
		or(&o.Timeout, min(300*time.Second, o.MaxTimeout))
	}
	or(&o.Timeout, 300*time.Second)
	or(&o.MaxTimeout, max(600*time.Second, o.Timeout))
	or(&o.History, 5)
	or(&o.ShortHistory, min(3, o.History))
	or(&o.MaxTask, 2000)
	or(&o.Concurrent, 1024)
	or(&o.Keep, 30*24*time.Hour)
	switch {
	case o.MinTokens > o.MaxTokens:
		return nil, fmt.Errorf("react.New: MinTokens is %d, more than MaxTokens, which is %d: no task could begin", o.MinTokens, o.MaxTokens)
	case o.Timeout > o.MaxTimeout:
		return nil, fmt.Errorf("react.New: Timeout is %s, more than MaxTimeout, which is %s", o.Timeout, o.MaxTimeout)
	case o.ShortHistory > o.History:
		return nil, fmt.Errorf("react.New: ShortHistory is %d, more than History, which is %d", o.ShortHistory, o.History)
	}
	switch t := 0.3; {
	case o.Temperature == nil:
		o.Temperature = &t
	case math.IsNaN(*o.Temperature) || *o.Temperature > 2:
		return nil, errors.New("react.New: Temperature is at most 2")
	case *o.Temperature < 0:
		o.Temperature = nil
	}
	if o.Log == nil {
		o.Log = slog.Default()
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Agent{o: o, under: gate.New(gate.Options{Places: o.Concurrent, Alone: o.Alone, Retry: busyMS * time.Millisecond})}, nil
}

// positive refuses numbers below zero, which mean nothing.
func (o *Options) positive() error {
	for _, f := range []struct {
		name  string
		below bool
	}{
		{"MaxIterations", o.MaxIterations < 0},
		{"MaxCalls", o.MaxCalls < 0},
		{"MaxTokens", o.MaxTokens < 0},
		{"MinTokens", o.MinTokens < 0},
		{"ReplyTokens", o.ReplyTokens < 0},
		{"Cost", o.Cost < 0},
		{"IterationTimeout", o.IterationTimeout < 0},
		{"Timeout", o.Timeout < 0},
		{"MaxTimeout", o.MaxTimeout < 0},
		{"History", o.History < 0},
		{"ShortHistory", o.ShortHistory < 0},
		{"MaxTask", o.MaxTask < 0},
		{"Concurrent", o.Concurrent < 0},
		{"Keep", o.Keep < 0},
	} {
		if f.below {
			return fmt.Errorf("react.New: %s is below zero", f.name)
		}
	}
	return nil
}

func or[T int | uint64 | llm.Money | time.Duration](p *T, d T) {
	if *p == 0 {
		*p = d
	}
}

// Execute works on a task until the model has finished or a limit is reached, and tells
// what it came to. An error is a *skill.Error, and says that nothing was begun, or that
// the caller has left (CANCELLED): whatever else happens to a task is an [Outcome].
//
// The skills are called as p, who needs the scope agent:run beside the rights to what
// they do.
func (a *Agent) Execute(ctx context.Context, p skill.Principal, t Task) (*Outcome, error) {
	if err := mayRun(p); err != nil {
		return nil, err
	}
	limits, err := a.check(&t)
	if err != nil {
		return nil, err
	}
	leave, err := a.under.TryEnter(p.Tenant)
	if err != nil {
		return nil, gate.Refusal(err, "react.Execute", fmt.Sprintf("too many tasks are running (at most %d in total, and a share per tenant)", a.o.Concurrent))
	}
	defer leave()
	if a.o.Quotas != nil {
		if err := a.o.Quotas.Request(ctx, p); err != nil {
			return nil, err
		}
	}

	r := &run{Agent: a, p: p, task: &t, limits: limits}
	if err := r.begin(ctx); err != nil {
		return nil, err
	}
	end := r.work(ctx)
	out := r.outcome(&end)
	r.close(ctx, &end, out)
	if end.cancelled {
		return nil, &skill.Error{
			Op: "react.Execute", Code: skill.Cancelled, Subject: r.session.ID, Err: context.Cause(ctx),
			Message: "the task was cancelled", Details: map[string]any{"session_id": r.session.ID},
		}
	}
	return out, nil
}

// busyMS is when a caller is told to try again, in milliseconds: rounds take seconds.
const busyMS = 1000

// mayRun says whether somebody may have the agent work.
func mayRun(p skill.Principal) error {
	switch {
	case p.ID == "":
		return &skill.Error{Op: "react.Execute", Code: skill.Unauthorized, Message: "authentication required: send an API key or a token"}
	case !p.May(skill.ScopeAgent):
		return &skill.Error{Op: "react.Execute", Code: skill.Forbidden, Subject: p.ID, Message: "missing scope " + skill.ScopeAgent}
	case p.Tenant == "": // whose sessions nobody could tell from anybody's
		return &skill.Error{Op: "react.Execute", Code: skill.Forbidden, Subject: p.ID, Message: "tasks require a tenant"}
	}
	return nil
}

// guarded calls f, and reports whether it panicked. The log has what is known of that;
// a caller is told nothing of it.
func (a *Agent) guarded(ctx context.Context, trace skill.TraceID, session string, f func()) (panicked bool) {
	defer func() {
		if v := recover(); v != nil {
			panicked = true
			a.o.Log.LogAttrs(context.WithoutCancel(ctx), slog.LevelError, "the agent panicked",
				slog.String("trace_id", string(trace)), slog.String("session_id", session), slog.String("error.code", string(skill.AgentLoopError)),
				slog.Any("panic", v), slog.String("stack", string(debug.Stack())))
		}
	}()
	f()
	return false
}

func loopError() *skill.Error {
	return &skill.Error{
		Op: "react.Execute", Code: skill.AgentLoopError,
		Message: "internal error of the agent; the server log has the reason under this trace id",
	}
}
