package workers

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"openskill/host/internal/tracing"
	"openskill/sdk/skill"
)

// Runner is a skill.Runner whose runs are in workers. Calls are prepared in the host.
type Runner struct {
	p     *Pool
	plans skill.Runner // prepares calls, and runs none

	ctx  context.Context //nolint:containedctx // of what is compiled ahead, which nobody's call waits for
	stop context.CancelFunc

	mu     sync.Mutex
	closed bool
	runs   sync.WaitGroup
}

var _ skill.Runner = (*Runner)(nil)

// Runner makes a runner of calls that plans prepares, which it owns. The pool stays the
// caller's, and is closed after its runners.
func (p *Pool) Runner(plans skill.Runner) *Runner {
	r := &Runner{p: p, plans: plans}
	r.ctx, r.stop = context.WithCancel(context.Background())
	return r
}

// Kind implements [skill.Runner].
func (r *Runner) Kind() skill.Kind { return r.plans.Kind() }

// Prepare implements [skill.Runner]. It begins to compile a language runtime that is not;
// a stranger's module is compiled when it is admitted, or by its first call. Spare workers
// load a runtime that somebody has waited for.
func (r *Runner) Prepare(ctx context.Context, s *skill.Spec) (skill.Plan, error) {
	if err := r.enter(); err != nil {
		return skill.Plan{}, err
	}
	defer r.runs.Done()
	plan, err := r.plans.Prepare(ctx, s)
	of, m := &plan.Module, r.p.o.Modules
	switch {
	case err != nil || of.Digest == "" || m == nil:
		return plan, err
	case s.Wait:
		if _, err := m.Ensure(ctx, &Source{Module: *of, Tenant: s.Tenant}); err != nil {
			return plan, err
		}
		if of.Trusted {
			r.p.keepLoaded(&wireCall{Kind: r.Kind(), Call: skill.Call{Plan: plan, Ahead: true}})
			r.p.restock() // spares are for later calls
		}
	case of.Trusted && !m.Has(of.Digest, true):
		plan.Missing = skill.Compiling()
		r.compileAhead(of)
	}
	return plan, nil
}

// Run implements [skill.Runner].
func (r *Runner) Run(ctx context.Context, call *skill.Call) (*skill.Reply, error) {
	if err := r.enter(); err != nil {
		return nil, err
	}
	defer r.runs.Done()
	if call.Ahead && call.Code { // which all tenants call
		r.p.keepLoaded(&wireCall{Kind: r.Kind(), Call: *call})
		r.p.restock()
	}
	return r.attempt(ctx, call)
}

// Close waits for the runs under way. The pool is the caller's. It may be called twice.
func (r *Runner) Close() error {
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	r.stop()
	r.runs.Wait()
	return r.plans.Close()
}

func (r *Runner) enter() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return &skill.Error{Op: "workers.Run", Code: skill.Internal, Message: "the runner is closed"}
	}
	r.runs.Add(1)
	return nil
}

// maxRetries bounds how often a call is handed over: to a worker that was just
// retired, or that found its module damaged.
const maxRetries = 8

// attempt waits for a worker that has the call's module, for as long as Preparing says;
// the call's own time begins when it is handed over.
func (r *Runner) attempt(ctx context.Context, call *skill.Call) (*skill.Reply, error) {
	within, cancel := context.WithTimeout(ctx, r.p.o.Preparing)
	defer cancel()
	within, span := r.p.o.Trace.Start(within, "worker")
	defer span.End()
	for range maxRetries {
		reply, again, err := r.once(ctx, within, call, span)
		if !again {
			return reply, err
		}
	}
	return nil, fmt.Errorf("workers: no process took the call in %d attempts", maxRetries)
}

// once hands a call to a worker. again says that it was not begun, and another worker may take it.
func (r *Runner) once(ctx, within context.Context, call *skill.Call, span *tracing.Span) (reply *skill.Reply, again bool, err error) {
	key, began := r.p.o.Key(call), time.Now()
	w, err := r.p.acquire(within, key, call)
	waited := time.Since(began)
	if err == nil {
		defer r.p.release(w)
		err = r.p.give(within, w, &call.Plan.Module, call.Tenant)
	}
	if err == nil {
		err = r.givePrograms(within, w, call)
	}
	if err != nil {
		switch {
		case w == nil || within.Err() != nil:
		case w.cause() != nil:
			return nil, true, nil // it ended meanwhile, with the folder of its modules: nothing was begun
		case r.p.damaged(&call.Plan.Module): // it cannot be shown beside what the worker has
			r.p.suspect(key, w)
			return nil, true, nil
		}
		reply, err = r.ended(ctx, within, call, 0, err)
		return reply, false, err
	}
	handed := time.Now()
	reply, err = w.do(span.In(ctx), r.Kind(), call)
	var damaged *damagedError
	switch {
	case err == nil:
		r.p.callEnded(key, w, waited+time.Duration(min(reply.Usage.StartFuel, uint64(mostCost)))) // a unit takes about a nanosecond
		clamp(&reply.Usage, handed, time.Now())
		r.p.o.Trace.Past(within, "guest", time.Unix(0, reply.Usage.Began), reply.Usage.Took)
		return reply, false, nil
	case errors.Is(err, errGone) || errors.Is(err, errRetired):
		return nil, true, nil // it was not begun, or the pool is closing, which acquire tells
	case errors.As(err, &damaged) && r.p.damaged(&call.Plan.Module): // as is what the worker has of it
		r.p.suspect(key, w)
		return nil, true, nil
	case errors.Is(err, errHung):
		r.p.suspect(key, w)
	}
	reply, err = r.ended(ctx, within, call, time.Since(handed), err)
	return reply, false, err
}

// clamp holds what a worker says of times against when it had the call.
func clamp(u *skill.Usage, handed, back time.Time) {
	u.Began = min(max(u.Began, handed.UnixNano()), back.UnixNano())
	u.Took = min(max(u.Took, 0), time.Duration(back.UnixNano()-u.Began))
}

// give has a module compiled, unless it is, and shows it to a worker that has not got it.
func (p *Pool) give(ctx context.Context, w *process, of *skill.Module, tenant string) error {
	if p.o.Modules == nil || of.Digest == "" || w.has(of) {
		return nil
	}
	if _, err := p.o.Modules.Ensure(ctx, &Source{Module: *of, Tenant: tenant}); err != nil {
		return err
	}
	if err := p.o.Modules.Link(w.view, of.Digest, of.Trusted); err != nil {
		return err
	}
	w.gave(of)
	return nil
}

// givePrograms shows a worker the programs that a call can start. It waits until they are
// compiled where the script may start some; else those that are not begin to be, unless the pool is
// brief, and cannot be started until then.
func (r *Runner) givePrograms(ctx context.Context, w *process, call *skill.Call) error {
	m := r.p.o.Modules
	starts := sync.OnceValue(func() bool { return startsPrograms(call) }) // read where something lacks
	for i := range call.Plan.Programs {
		of := &call.Plan.Programs[i].Module
		if m != nil && !w.has(of) && !m.Has(of.Digest, of.Trusted) && !starts() {
			if !r.p.o.Brief {
				r.compileAhead(of)
			}
			continue
		}
		if err := r.p.give(ctx, w, of, ""); err != nil {
			return err
		}
	}
	return nil
}

// compileAhead begins to compile a language runtime.
func (r *Runner) compileAhead(of *skill.Module) {
	r.runs.Add(1)
	go func() {
		defer r.runs.Done()
		_, _ = r.p.o.Modules.Ensure(r.ctx, &Source{Module: *of}) // the next who asks begins it again
	}()
}

// damaged reports whether a module that a worker finds of no use is not as it was
// compiled; it is compiled again then.
func (p *Pool) damaged(of *skill.Module) bool {
	return p.o.Modules != nil && p.o.Modules.Damaged(of.Digest, of.Trusted)
}

// ended says how a call ended that has no reply of its worker's, which had it for so long.
func (r *Runner) ended(ctx, within context.Context, call *skill.Call, had time.Duration, err error) (*skill.Reply, error) {
	var crash *crashedError
	var used skill.Usage
	if errors.Is(err, errHung) || errors.As(err, &crash) {
		used.Fuel = call.Limits.Fuel // nobody can say how much of it
	}
	switch {
	case ctx.Err() != nil:
		return &skill.Reply{Code: skill.Cancelled, Usage: used, Message: "the client disconnected before the skill finished"}, nil
	case errors.Is(err, errHung) || crash != nil && had >= call.Limits.Timeout:
		return &skill.Reply{Code: skill.Timeout, Usage: used, Message: fmt.Sprintf("the skill did not finish within its limit of %d ms", call.Limits.Timeout.Milliseconds())}, nil
	case crash == nil && within.Err() != nil:
		return r.unready(), nil
	case crash != nil:
		return &skill.Reply{
			Code: skill.WorkerCrashed, Bystander: crash.hung, Usage: used, Message: "the worker process crashed during the call; nothing of the call was kept; retry",
		}, nil
	}
	return nil, err
}

// unready is the reply to a call that waited in vain before a process had it: what it
// waited for is done without it, so that the same call may end well a moment later.
func (r *Runner) unready() *skill.Reply {
	return &skill.Reply{
		Code: skill.Timeout, Bystander: true,
		Message: fmt.Sprintf("still compiling, or starting a worker process, after %d ms; retry shortly", r.p.o.Preparing.Milliseconds()),
	}
}

// keepLoaded has spares load a runtime from now on, or the image of a call.
func (p *Pool) keepLoaded(c *wireCall) {
	p.mu.Lock()
	defer p.mu.Unlock()
	c.Call.Limits.Timeout = time.Minute
	same := func(l *wireCall) bool {
		return l.Kind == c.Kind && l.Call.Plan.Module.Digest == c.Call.Plan.Module.Digest
	}
	switch i := slices.IndexFunc(p.loads, same); {
	case i < 0:
		p.loads = append(p.loads, c)
	case p.loads[i].Call.Code || !c.Call.Code:
		return
	default:
		p.loads[i] = c // an image is of a runtime
	}
	for _, w := range p.spares { // they know less; others are started
		p.forget(w)
		w.retire()
	}
	p.spares = nil
}

// load has a worker load a runtime.
func (p *Pool) load(w *process, c *wireCall) {
	ctx, cancel := context.WithTimeout(context.Background(), c.Call.Limits.Timeout)
	defer cancel()
	err := p.give(ctx, w, &c.Call.Plan.Module, "")
	if err == nil {
		_, err = w.do(ctx, c.Kind, &c.Call)
	}
	if err != nil {
		p.o.Log.Warn("a spare worker process could not load its runtime", slog.String("kind", string(c.Kind)), slog.String("reason", err.Error()))
	}
}
