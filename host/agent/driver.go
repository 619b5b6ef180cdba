package agent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"

	"github.com/google/uuid"

	"openskill/host/agent/conversations"
	"openskill/host/agent/llm"
	"openskill/host/agent/tools"
	"openskill/sdk/skill"
)

// driver is what a turn of a conversation and a task have in common. One goroutine has
// it, but for the calls of tools.
type driver struct {
	*Agent
	p       skill.Principal
	trace   skill.TraceID
	kind    string // how the log calls the session: conversation or session_id
	session string // id of the conversation, or of the task
	began   time.Time
	model   *llm.Model
	tools   tools.Set
	budget  *budget
}

// errTime ends the context of a turn or task whose time is over.
var errTime = errors.New("the time is over")

// storeTime is how long the store may take to write what became of a turn or a task. It is
// written also when the caller has left, since what has happened has happened.
const storeTime = 10 * time.Second

// start begins the budget now, and gives the context that ends with its time.
func (d *driver) start(ctx context.Context, l limits) (context.Context, context.CancelFunc) {
	l.cost, l.fuel = d.o.Cost, d.o.Fuel
	d.began, d.budget = d.o.Now(), newBudget(l, d.o.Now)
	return context.WithTimeoutCause(ctx, l.time, errTime)
}

// loopError is what callers read of a fault of the agent's own.
const loopError = "internal error of the agent; the server log has the reason under this trace id"

// guard calls f. A panic in it, of the loop, a tool, a provider, the store or who listens,
// is an error that tells nothing of it: the log has the rest.
func (d *driver) guard(ctx context.Context, f func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &skill.Error{
				Op: "agent", Code: skill.AgentLoopError, Err: fmt.Errorf("panic: %v", v),
				Message: loopError,
			}
			d.o.Log.LogAttrs(context.WithoutCancel(ctx), slog.LevelError, "the agent panicked", d.attrs(err, slog.String("stack", string(debug.Stack())))...)
		}
	}()
	return f()
}

// ask puts one question to the model, and counts what the answer took.
func (d *driver) ask(ctx context.Context, r *llm.Request, hear func(string)) (*llm.Reply, error) {
	r.Trace, r.Tenant = d.trace, d.p.Tenant
	reply, err := d.model.Chat(ctx, r, hear)
	if err == nil {
		d.budget.spend(reply.Usage, d.model.Price.Of(reply.Usage))
	}
	return reply, err
}

// attrs are those of a line in the log of a turn or a task. Nothing that was said is in it.
func (d *driver) attrs(err error, more ...slog.Attr) []slog.Attr {
	attrs := []slog.Attr{
		slog.String("trace_id", string(d.trace)), slog.String(d.kind, d.session),
		slog.String("principal", skill.CleanText(d.p.ID, 128)), slog.String("tenant", skill.CleanText(d.p.Tenant, 128)),
		slog.String("provider", d.model.Provider), slog.String("model", d.model.Name),
	}
	if err != nil {
		attrs = append(attrs, slog.String("error.code", string(skill.CodeOf(err))))
		switch skill.CodeOf(err) { //nolint:exhaustive // the others are the caller's, or say all in their code
		case skill.AgentLoopError, skill.Internal, skill.AuditUnavailable, skill.AgentLLMUnavailable, skill.AgentLLMParseError:
			attrs = append(attrs, slog.String("cause", skill.CleanText(err.Error(), 2*skill.MaxMessage)))
		}
	}
	return append(attrs, more...)
}

// took is how long it has taken so far, in milliseconds.
func (d *driver) took() int64 { return max(d.o.Now().Sub(d.began).Milliseconds(), 0) }

// newID gives the id of a conversation or a task.
func newID() (string, error) {
	id, err := uuid.NewV7()
	if err != nil {
		return "", &skill.Error{Op: "agent", Code: skill.Internal, Message: "no random numbers are available", Err: err}
	}
	return id.String(), nil
}

func ownerOf(p skill.Principal) conversations.Owner {
	return conversations.Owner{Tenant: p.Tenant, Principal: p.ID}
}

// storeError is an error of the store for a caller: one that has a code keeps it.
func storeError(err error, message string) error {
	if _, ok := errors.AsType[*skill.Error](err); ok {
		return err
	}
	return &skill.Error{Op: "agent.store", Code: skill.AuditUnavailable, Message: message, Err: err}
}
