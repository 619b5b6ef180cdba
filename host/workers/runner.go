package workers

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"openskill/sdk/skill"
)

// Front is the part of a runner that stays in the host: it looks at files, and runs
// nothing.
type Front interface {
	Kind() skill.Kind
	// ReadyWith is skill.Runner's Ready for a skill that requires these packages. A
	// runtime that is installed and not compiled is an error that [NotCompiled] knows.
	ReadyWith(folder, entry string, requires []string) error
	// Available reports whether this machine has what the runner needs for skills
	// that require these packages.
	AvailableWith(ctx context.Context, requires []string) error
	// Source finds the module of a digest that a worker has not got for a call; for one
	// with neither folder nor digest, the runtime that calls begin with, and its
	// digest. nil: no such thing.
	Source(call *skill.Call, digest string) (*Source, string, error)
	Close() error
}

// Runner is a skill.Runner whose runs are in workers.
type Runner struct {
	p *Pool
	f Front

	ctx  context.Context //nolint:containedctx // of what is compiled ahead, which nobody's call waits for
	stop context.CancelFunc

	mu     sync.Mutex
	closed bool
	runs   sync.WaitGroup
}

var _ skill.Runner = (*Runner)(nil)

// Runner makes the runner of a front. The pool stays the caller's, and is closed
// after its runners.
func (p *Pool) Runner(f Front) *Runner {
	r := &Runner{p: p, f: f}
	r.ctx, r.stop = context.WithCancel(context.Background())
	return r
}

// Kind is the front's.
func (r *Runner) Kind() skill.Kind { return r.f.Kind() }

// Ready implements [skill.Runner].
func (r *Runner) Ready(folder, entry string) error { return r.ReadyWith(folder, entry, nil) }

// ReadyWith is Ready for a skill that requires packages. What has to be compiled
// first is begun.
func (r *Runner) ReadyWith(folder, entry string, requires []string) error {
	if err := r.enter(); err != nil {
		return err
	}
	defer r.runs.Done()
	err := r.f.ReadyWith(folder, entry, requires)
	if digest := NotCompiled(err); digest != "" && r.p.o.Modules != nil {
		r.runs.Add(1)
		go func() {
			defer r.runs.Done()
			_ = r.compile(r.ctx, &skill.Call{Requires: requires}, digest) // the next who asks begins it again
		}()
	}
	return err
}

// Available reports whether this machine has what the runner needs.
func (r *Runner) Available(ctx context.Context) error { return r.f.AvailableWith(ctx, nil) }

// AvailableWith is Available for what skills require.
func (r *Runner) AvailableWith(ctx context.Context, requires []string) error {
	return r.f.AvailableWith(ctx, requires)
}

// Warm has the runtime compiled, and spare workers load it.
func (r *Runner) Warm(ctx context.Context) error { return r.WarmWith(ctx, nil) }

// WarmWith is Warm for the runtime of what skills require.
func (r *Runner) WarmWith(ctx context.Context, requires []string) error {
	if err := r.enter(); err != nil {
		return err
	}
	defer r.runs.Done()
	call := &skill.Call{Requires: requires}
	src, digest, err := r.f.Source(call, "")
	if err != nil || src == nil {
		return err
	}
	if r.p.o.Modules != nil {
		if _, err := r.p.o.Modules.Ensure(ctx, digest, src); err != nil {
			return err
		}
	}
	r.p.keepLoaded(&wireCall{Kind: r.Kind(), Call: *call}, digest)
	r.p.restock() // spares are for later calls
	return nil
}

// Start gets a worker ready for calls like this one.
func (r *Runner) Start(ctx context.Context, call *skill.Call) error {
	if err := r.enter(); err != nil {
		return err
	}
	defer r.runs.Done()
	reply, err := r.attempt(ctx, kindStart, call)
	if err == nil && reply.Code != "" {
		err = &skill.Error{Op: "worker.Start", Code: reply.Code, Message: reply.Message}
	}
	return err
}

// Run implements [skill.Runner].
func (r *Runner) Run(ctx context.Context, call *skill.Call) (*skill.Reply, error) {
	if err := r.enter(); err != nil {
		return nil, err
	}
	defer r.runs.Done()
	return r.attempt(ctx, kindRun, call)
}

// Close waits for the runs under way. The pool is the caller's. It may be called twice.
func (r *Runner) Close() error {
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	r.stop()
	r.runs.Wait()
	return r.f.Close()
}

func (r *Runner) enter() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return &skill.Error{Op: "worker.Run", Code: skill.Internal, Message: "the runner is closed"}
	}
	r.runs.Add(1)
	return nil
}

// attempts bounds how often a call is handed over: to a worker that was just
// retired, and for each module that one had not got.
const attempts = 8

// mostGifts bounds how often a worker is given again what it was given.
const mostGifts = 3

// attempt waits for a worker that has the call's module, for as long as Preparing says;
// the call's own time begins when it is handed over.
func (r *Runner) attempt(ctx context.Context, k kind, call *skill.Call) (*skill.Reply, error) {
	within, cancel := context.WithTimeout(ctx, r.p.o.Preparing)
	defer cancel()
	within, span := r.p.o.Trace.Start(within, "worker")
	defer span.End()
	key := r.p.o.Key(call)
	given, gifts := "", 0
	for range attempts {
		w, err := r.p.acquire(within, key, call)
		if err != nil {
			return r.ended(ctx, within, call, 0, err)
		}
		handed := time.Now()
		reply, err := w.do(span.In(ctx), k, r.Kind(), call)
		digest := NotCompiled(err)
		switch {
		case err == nil:
			r.p.served(key, w)
			clamp(&reply.Usage, handed, time.Now())
			r.p.o.Trace.Past(within, "guest", time.Unix(0, reply.Usage.Began), reply.Usage.Took)
			return reply, nil
		case errors.Is(err, errGone) || errors.Is(err, errRetired):
			continue // it was not begun, or the pool is closing, which acquire tells
		case digest != "" && r.p.o.Modules != nil:
			asks := digest == given // for what it was given
			if !asks {
				given, gifts = digest, 0
				err = r.supply(within, w, call, digest)
			}
			switch {
			case err == nil:
				continue
			case r.damaged(call, digest): // as is what the worker has of it
				r.p.doubted(key, w)
				given = ""
				continue
			case asks && gifts < mostGifts:
				// Another call may have had it look before the gift, and this one was told
				// what that look found; or this is another worker.
				gifts++
				if err = r.supply(within, w, call, digest); err == nil {
					continue
				}
			}
			if w.cause() != nil {
				continue // it ended while it waited for the module, with the folder that was to hold it: nothing was begun
			}
		case errors.Is(err, errHung):
			r.p.doubted(key, w)
		}
		return r.ended(ctx, within, call, time.Since(handed), err)
	}
	return nil, fmt.Errorf("worker: no process took the call in %d attempts", attempts)
}

// clamp holds what a worker says of times against when it had the call.
func clamp(u *skill.Usage, handed, back time.Time) {
	u.Began = min(max(u.Began, handed.UnixNano()), back.UnixNano())
	u.Took = min(max(u.Took, 0), time.Duration(back.UnixNano()-u.Began))
}

// supply gives a worker a module that it has not got.
func (r *Runner) supply(ctx context.Context, w *process, call *skill.Call, digest string) error {
	src, _, err := r.f.Source(call, digest)
	if err != nil {
		return err
	}
	if src == nil {
		return fmt.Errorf("worker: a process wants the module %s, which is not of this call", skill.CleanText(digest, 80))
	}
	if _, err := r.p.o.Modules.Ensure(ctx, digest, src); err != nil {
		return err
	}
	return r.p.o.Modules.Give(w.view, digest, src.Trusted)
}

// damaged reports whether a module that a worker was given, and finds of no use, is
// not as it was compiled; it is compiled again then.
func (r *Runner) damaged(call *skill.Call, digest string) bool {
	src, _, err := r.f.Source(call, digest)
	return err == nil && src != nil && r.p.o.Modules.Damaged(digest, src.Trusted)
}

func (r *Runner) compile(ctx context.Context, call *skill.Call, digest string) error {
	src, _, err := r.f.Source(call, digest)
	if err != nil || src == nil {
		return err
	}
	_, err = r.p.o.Modules.Ensure(ctx, digest, src)
	return err
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

// keepLoaded has spares load a runtime from now on.
func (p *Pool) keepLoaded(c *wireCall, digest string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	c.Call.Digest, c.Call.Limits.Timeout = digest, time.Minute
	for _, l := range p.loads {
		if l.Kind == c.Kind && l.Call.Digest == digest {
			return
		}
	}
	p.loads = append(p.loads, c)
	for _, w := range p.spares { // they know less; others are started
		p.forget(w)
		w.retire()
	}
	p.spares = nil
}

// load has a worker load a runtime, as far as that is compiled.
func (p *Pool) load(w *process, c *wireCall) {
	ctx, cancel := context.WithTimeout(context.Background(), c.Call.Limits.Timeout)
	defer cancel()
	if p.o.Modules != nil && p.o.Modules.Give(w.view, c.Call.Digest, true) != nil {
		return // the first call tells
	}
	if _, err := w.do(ctx, kindStart, c.Kind, &c.Call); err != nil {
		p.o.Log.Warn("a spare worker process could not load its runtime", slog.String("kind", string(c.Kind)), slog.String("reason", err.Error()))
	}
}
