package records

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"openskill/host/internal/gate"
	"openskill/sdk/skill"
)

// This part begins queued calls on a host that has places for them.

// mostPaused is how many principals of a tenant are passed over in one turn of it.
const mostPaused = 100

// mostComing is how many calls of a tenant a host has taken at most that have not begun: each holds a place.
const mostComing = 4

// mostTurns is of how many tenants a host remembers whose turn is next.
const mostTurns = 10_000

// Worker runs the queued calls of a host.
type Worker struct {
	// Door runs them; *dispatch.Dispatcher is one.
	Door interface {
		Idempotent(c *QueuedCall) bool
		Start(ctx context.Context, p skill.Principal, r skill.Request, started func(executionID string)) *skill.Result
		StartScript(ctx context.Context, p skill.Principal, r skill.ScriptRequest, started func(executionID string)) *skill.Result
	}
	// Admit checks the credentials of a principal again. It returns the principal with its current scopes, and a
	// context that ends when the credentials become invalid; done must be called when the call has ended. The error is a *skill.Error,
	// UNAUTHORIZED if they are invalid now.
	Admit func(ctx context.Context, p skill.Principal, accepted time.Time) (run context.Context, now skill.Principal, done func(), err error)
}

// work is what a host does about queued calls. Only serve runs beside the loop.
type work struct {
	*Manager
	*queue
	by       Worker
	instance string
	after    string            // the tenant that was served last
	last     map[string]string // the principal of each tenant that was served last
	down     bool              // the database did not answer

	passed  map[ownKey]time.Time // schedules that this host cannot handle, until then
	sending *gate.Gate           // of messages to webhooks
	more    chan struct{}        // a message was sent, and the next one may go

	turns  sync.Mutex
	paused map[whose]time.Time       // principals whose next call was refused for now
	sent   map[whose]map[string]bool // messages to webhooks that are being sent
	coming map[whose]bool            // principals with a call that was taken and has not begun: the next one waits for it
}

// whose calls: those of a principal of a tenant.
type whose struct{ tenant, principal string }

// Work runs queued calls as there are places for them, until ctx ends.
func (m *Manager) Work(ctx context.Context, by Worker) {
	q := m.queue()
	if q == nil {
		return
	}
	w := &work{
		Manager: m, queue: q, by: by, instance: m.o.Queue.Record.Instance(), last: map[string]string{}, paused: map[whose]time.Time{}, coming: map[whose]bool{}, passed: map[ownKey]time.Time{}, sent: map[whose]map[string]bool{},
		sending: gate.New(gate.Options{Places: mostSending, Alone: m.o.Alone}), more: make(chan struct{}, 1),
	}
	var timed sync.WaitGroup
	defer timed.Wait()
	timed.Go(func() {
		(&duty{work: w, table: "schedules", do: w.makeDue}).keep(ctx)
	})
	if m.o.Queue.Post != nil {
		timed.Go(func() {
			(&duty{work: w, table: "deliveries", do: w.deliver, wake: w.more}).keep(ctx)
		})
	}
	m.setWorking(true)
	defer m.setWorking(false)
	look, rescue := time.NewTicker(m.o.AskEvery), time.NewTicker(aliveEvery)
	defer look.Stop()
	defer rescue.Stop()
	for w.try(ctx, w.rescueLost); ; w.try(ctx, w.takeAll) {
		wake := m.wake
		if w.down {
			wake = nil // not before the next look
		}
		select {
		case <-ctx.Done():
			return
		case <-wake:
		case <-look.C:
		case <-rescue.C:
			w.try(ctx, w.rescueLost)
		}
	}
}

func (m *Manager) setWorking(working bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.working = working
}

// try does something with the database, and says once that it does not answer.
func (w *work) try(ctx context.Context, do func(context.Context) error) {
	err := do(ctx)
	if err != nil && !w.down {
		w.log(ctx, "cannot read the queued calls", err)
	}
	w.down = err != nil
}

func (w *work) rescueLost(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	if n, err := w.waiting(ctx); err == nil {
		w.queued.Store(n)
	}
	w.forgetOld()
	silent := deadAfter
	if !w.o.Queue.Record.steadily() { // the others could not say that they are alive either
		silent = forgotten
	}
	return w.rescue(ctx, w.instance, func(id string) bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		_, has := w.taken[id]
		return has
	}, instanceDead, silent)
}

// forgetOld removes what does not count any more.
func (w *work) forgetOld() {
	now := w.o.Now()
	w.mu.Lock()
	maps.DeleteFunc(w.behind, func(t whose, _ time.Time) bool { return !w.late(t) })
	w.mu.Unlock()
	w.turns.Lock()
	maps.DeleteFunc(w.paused, func(_ whose, until time.Time) bool { return !now.Before(until) })
	w.turns.Unlock()
	if len(w.last) > mostTurns {
		clear(w.last)
	}
}

// takeAll begins queued calls until all places are taken or no call can begin. Tenants take turns, and the principals of each tenant.
func (w *work) takeAll(ctx context.Context) error {
	for began, round := false, 0; ; {
		if held, _, places, _ := w.places.Load(); held >= places || ctx.Err() != nil {
			return nil
		}
		ctx, cancel := context.WithTimeout(ctx, askLimit)
		tenant, err := w.nextTenant(ctx, w.after)
		took := false
		if err == nil && tenant != "" {
			took, err = w.takeOne(ctx, tenant)
		}
		cancel()
		if errors.Is(err, errStopping) {
			return nil
		}
		if err != nil {
			return err
		}
		if w.after, began = tenant, began || took; tenant == "" { // from the first one
			if round++; round > 1 && !began {
				return nil
			}
			began = false
		}
	}
}

// takeOne begins a call of a tenant, if one can begin.
func (w *work) takeOne(ctx context.Context, tenant string) (took bool, err error) {
	t, id, err := w.find(ctx, tenant)
	if err != nil || id == "" {
		return false, err
	}
	leave, err := w.place(tenant)
	if err != nil {
		w.notComing(t)
		if skill.CodeOf(err) == skill.Cancelled {
			return false, errStopping
		}
		w.isLate(whose{tenant: tenant})
		return false, nil
	}
	w.last[tenant] = t.principal
	var c *QueuedCall
	free := w.take(id) // it may run here, although another host had this one for dead
	if free {
		if c, err = w.claim(ctx, id, w.instance); err != nil || c == nil {
			w.letGo(id)
		}
	}
	if err != nil || c == nil {
		w.notComing(t)
		leave()
		return free && err == nil, err // another host has it, and the next one may be free
	}
	go w.serve(c, t, leave)
	return true, nil
}

// find returns the next call of a tenant that can begin, and marks its principal in coming; id is "" if no call can.
func (w *work) find(ctx context.Context, tenant string) (t whose, id string, err error) {
	if w.full(tenant) {
		w.isLate(whose{tenant: tenant})
		return t, "", nil
	}
	after, wrapped := w.last[tenant], false
	for range mostPaused {
		principal, id, err := w.next(ctx, tenant, after)
		if err != nil {
			return t, "", err
		}
		if id == "" {
			if wrapped || after == "" {
				return t, "", nil // none can begin: the turn stays where it is
			}
			after, wrapped = "", true
			continue
		}
		after = principal
		if t = (whose{tenant, principal}); w.turnOf(t) {
			return t, id, nil
		}
	}
	w.last[tenant] = after
	return t, "", nil
}

// isLate notes that calls of a principal wait, or, without one, of a tenant.
func (w *work) isLate(t whose) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.behind[t] = w.o.Now()
}

// turnOf reports whether the next call of a principal can begin, which has its turn then.
func (w *work) turnOf(t whose) bool {
	w.turns.Lock()
	defer w.turns.Unlock()
	if w.coming[t] {
		w.isLate(t)
		return false
	}
	if until, paused := w.paused[t]; paused && w.o.Now().Before(until) {
		return false
	}
	w.coming[t] = true
	return true
}

// full reports whether a tenant has as many calls that were taken and have not begun as it may have.
func (w *work) full(tenant string) bool {
	w.turns.Lock()
	defer w.turns.Unlock()
	n := 0
	for t := range w.coming {
		if t.tenant == tenant {
			n++
		}
	}
	return n >= mostComing
}

// notComing says that the call of a principal that was taken has begun, or does not.
func (w *work) notComing(t whose) {
	w.turns.Lock()
	defer w.turns.Unlock()
	delete(w.coming, t)
}

// serve runs a call that this host has taken.
func (w *work) serve(c *QueuedCall, t whose, leave func()) {
	defer leave()
	defer w.sendMore()
	defer w.tell(c)
	defer w.letGo(c.ExecutionID)
	came := sync.OnceFunc(func() {
		w.notComing(t)
		w.poke()
	})
	defer came()
	ctx, done := w.Track(w.base, c.started()) // it can be cancelled before it is on record
	defer done()
	if w.stopping() { // since it was taken
		w.giveBack()
	}
	if c.Again {
		defer w.stay(c.ExecutionID)()
	}
	begun := make(chan string, 1)
	r := w.run(ctx, c.Principal, func(ctx context.Context, started func(string)) *skill.Result {
		if c.damaged {
			return c.refused(&skill.Error{Op: "executions.Work", Code: skill.Internal, Message: "the queued call is damaged in the database; call again"})
		}
		if w.o.Now().Sub(c.At) > QueuedFor {
			return c.refused(&skill.Error{Op: "executions.Work", Code: skill.Timeout, Message: fmt.Sprintf("the call was queued for %s without a place to run; call again", QueuedFor)})
		}
		if w.o.Results != nil { // it may have been cancelled before it was taken
			if asked, _ := w.o.Results.Asked(ctx, []string{c.ExecutionID}); len(asked) > 0 {
				return c.refused(errCancelledQueued)
			}
		}
		if c.begun {
			e, err := w.o.Records.Execution(ctx, c.Principal.Tenant, c.ExecutionID)
			if err != nil {
				return c.refused(cannotKeep("executions.Work", err))
			}
			c.Request.Version = e.Version
		}
		run, p, done, err := w.by.Admit(ctx, c.Principal, c.At)
		if err != nil {
			return c.refused(err)
		}
		defer done()
		begin := func(id string) {
			started(id)
			came()
			if !c.Again {
				w.forget(c)
			}
		}
		if c.Script != nil {
			return w.by.Door.StartScript(run, p, *c.Script, begin)
		}
		return w.by.Door.Start(run, p, *c.Request, begin)
	}, begun)
	select {
	case <-begun:
		if c.Again {
			w.leaveQueue(c)
		}
		return
	default:
	}
	ended := errors.Is(context.Cause(ctx), errCancelled)
	if ended {
		r = c.refused(errCancelledQueued)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), askLimit)
	defer cancel()
	if wait := w.endUnbegun(ctx, c, r); wait > 0 {
		if ended && w.o.Results != nil { // for whoever takes it next
			if err := w.o.Results.Ask(ctx, c.ExecutionID, w.o.Now().UTC()); err != nil {
				w.log(ctx, "cannot note that a queued call was cancelled", err)
			}
		}
		if err := w.release(ctx, c.ExecutionID, w.instance); err != nil {
			w.log(ctx, "cannot return a call to the queue", err)
		}
		w.turns.Lock()
		w.paused[t] = w.o.Now().Add(wait)
		w.turns.Unlock()
	}
}

// forget removes a call whose beginning is on record. Where that fails, rescue does it later.
func (w *work) forget(c *QueuedCall) {
	ctx, cancel := context.WithTimeout(context.Background(), storeTime)
	defer cancel()
	if err := w.drop(ctx, c.ExecutionID, w.instance); err != nil {
		w.log(ctx, "cannot remove a call that has begun from the queue", err)
	}
}

// endUnbegun puts on record that a call was refused when its turn came, with its result; or it says after
// which time the call is to be tried again.
func (w *work) endUnbegun(ctx context.Context, c *QueuedCall, r *skill.Result) (wait time.Duration) {
	switch e, err := w.o.Records.Execution(ctx, c.Principal.Tenant, c.ExecutionID); {
	case err == nil && c.begun && e.Finished == nil:
	case err == nil: // it is on record: begun by another host, or in doubt, which ends it
		w.forget(c)
		return 0
	case !errors.Is(err, ErrNotFound):
		return pauseFirst
	}
	switch e := r.Error; {
	case w.stopping():
		return pauseFirst
	case e == nil: // it ended without having begun, which no door does
		r = c.refused(errors.New("the call ended before it began"))
	case e.Code == skill.RateLimited, e.Code == skill.AuditUnavailable:
		return pauseOf(e.Details)
	case e.Code == skill.Conflict && c.waits(): // for its workspace, longer than it may
		return pauseFirst
	case e.Code == skill.NotFound && w.o.Now().Sub(c.At) < newerFor: // another host accepted it: this one may not have the skill yet
		return pauseFirst
	}
	if err := w.recordRefusal(ctx, c, r); err != nil {
		w.log(ctx, "cannot record that a queued call was refused", err)
		e, _ := errors.AsType[*skill.Error](err)
		if e == nil {
			return pauseFirst
		}
		return pauseOf(e.Details)
	}
	return 0
}

// pauseOf is after which time a call is tried again.
func pauseOf(details map[string]any) time.Duration {
	ms, _ := details["retry_after_ms"].(int64)
	return min(max(time.Duration(ms)*time.Millisecond, pauseFirst), pauseLonger)
}
