package records

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/google/uuid"

	"openskill/host/store"
	"openskill/sdk/skill"
)

// This part runs calls that nobody waits for and that found no place: they wait in the
// database, so that they outlive their host, and any host begins them.
//
// A call begins at most once. A host takes it, and puts its beginning on record in the
// database, which has the id of the call as that of the execution: the second one that does is refused. Then
// its row goes. Where a host is gone before that, its calls wait again; a call that had begun ends as calls of
// hosts do that are gone. One that is refused when its turn comes is on record as an execution that failed.

// The bounds of queued calls.
const (
	mostQueuedBytes = 1 << 30
	mostQueuedItems = 100_000

	pauseFirst  = time.Second // after a refusal that time cures
	pauseLonger = time.Minute
	newerFor    = time.Minute // what one host has, all have after this time
)

// QueuedFor is how long a call waits at most; after that it does not begin.
const QueuedFor = 24 * time.Hour

// mostPaused is how many principals of a tenant are passed over in one turn of it.
const mostPaused = 100

// mostComing is how many calls of a tenant a host has taken at most that have not begun: each holds a place.
const mostComing = 4

// mostTurns is of how many tenants a host remembers whose turn is next.
const mostTurns = 10_000

// QueueOptions say where calls wait for a place.
type QueueOptions struct {
	DB     *store.DB // required
	Record *Log      // has the calls that are refused when their turn comes; required
	Most   Room      // of one tenant; 0: 100,000 calls, 1 GiB
}

// Worker runs the queued calls of a host.
type Worker struct {
	// Door runs them; *dispatch.Dispatcher is one.
	Door interface {
		Start(ctx context.Context, p skill.Principal, r skill.Request, started func(executionID string)) *skill.Result
		StartScript(ctx context.Context, p skill.Principal, r skill.ScriptRequest, started func(executionID string)) *skill.Result
	}
	// Admit gives the principal as it is now, and a context that ends when it is no longer let in; done is
	// called when the call has ended. The error is a *skill.Error, UNAUTHORIZED where it is not let in.
	Admit func(ctx context.Context, p skill.Principal, accepted time.Time) (run context.Context, now skill.Principal, done func(), err error)
}

// queue is the table of the queued calls; nil where they are refused.
func (m *Manager) queue() *queue {
	if m.o.Queue == nil {
		return nil
	}
	return &queue{m.o.Queue.DB}
}

// Accept is [Manager.Start] for a call that is queued if there is no place for it. status is that of the execution with
// the id, Running or Queued. check gives the result of a call that is refused before it is queued, or nil.
func (m *Manager) Accept(ctx context.Context, c *QueuedCall, run Run, check func(context.Context, *QueuedCall) *skill.Result) (id string, status Status, r *skill.Result, err error) {
	id, r, err = m.Start(ctx, c.Principal, run)
	m.mu.Lock()
	working := m.working
	m.mu.Unlock()
	if !working || id != "" || !waits(r, err) {
		return id, Running, r, err
	}
	if r = check(ctx, c); r != nil {
		return "", "", r, nil
	}
	id, err = m.enqueue(ctx, c)
	return id, Queued, nil, err
}

// waits reports whether a call was refused for a time that it can wait.
func waits(r *skill.Result, err error) bool {
	e, _ := errors.AsType[*skill.Error](err)
	switch {
	case e != nil:
		return e.Code == skill.RateLimited
	case r != nil && r.Error != nil && r.Error.Code == skill.RateLimited:
		ms, _ := r.Error.Details["retry_after_ms"].(int64)
		return ms <= pauseLonger.Milliseconds()
	}
	return false
}

// enqueue puts a call into the database, and gives the id of its execution.
func (m *Manager) enqueue(ctx context.Context, c *QueuedCall) (string, error) {
	id, err := uuid.NewV7()
	if err != nil {
		return "", err
	}
	c.ExecutionID, c.At = id.String(), m.o.Now().UTC().Truncate(time.Microsecond)
	ctx, cancel := context.WithTimeout(ctx, storeTime)
	defer cancel()
	err = m.queue().put(ctx, c, m.o.Queue.Most)
	switch {
	case errors.Is(err, errQueueFull):
		return "", &skill.Error{
			Op: "executions.Enqueue", Code: skill.RateLimited, Details: map[string]any{"retry_after_ms": pauseLonger.Milliseconds()},
			Message: fmt.Sprintf("too many queued calls of this tenant (at most %d calls and %d bytes); try again in %d ms", m.o.Queue.Most.Items, m.o.Queue.Most.Bytes, pauseLonger.Milliseconds()),
		}
	case err != nil: // it may be there all the same, and its answer lost
		look, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTime)
		defer cancel()
		if _, none := m.queue().get(look, c.Principal.Tenant, c.ExecutionID); none != nil {
			return "", cannotKeep("executions.Enqueue", err)
		}
	}
	m.poke()
	return c.ExecutionID, nil
}

// poke says that there may be a queued call and a place for it.
func (m *Manager) poke() {
	select {
	case m.wake <- struct{}{}:
	default:
	}
}

// late reports whether queued calls of a principal, or a tenant, were seen waiting a moment ago: they come first. m.mu is held.
func (m *Manager) late(t whose) bool {
	at, ok := m.behind[t]
	return ok && m.o.Now().Sub(at) <= 2*m.o.AskEvery
}

// take notes that this host has a queued call, or not any more.
func (m *Manager) take(id string, has bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if delete(m.taken, id); has {
		m.taken[id] = true
	}
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

	turns  sync.Mutex
	paused map[whose]time.Time // principals whose next call was refused for now
	coming map[whose]bool      // principals with a call that was taken and has not begun: the next one waits for it
}

// whose calls: those of a principal of a tenant.
type whose struct{ tenant, principal string }

// Work runs queued calls as there are places for them, until ctx ends.
func (m *Manager) Work(ctx context.Context, by Worker) {
	q := m.queue()
	if q == nil {
		return
	}
	w := &work{Manager: m, queue: q, by: by, instance: m.o.Queue.Record.Instance(), last: map[string]string{}, paused: map[whose]time.Time{}, coming: map[whose]bool{}}
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
	return w.rescue(ctx, w.instance, func(id string) bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		return w.taken[id]
	}, instanceDead, deadAfter)
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

// takeAll begins queued calls until there is no place, or none can begin. Tenants take turns, and in each its principals.
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
	w.take(id, true)
	c, err := w.claim(ctx, id, w.instance)
	if err != nil || c == nil {
		w.take(id, false)
		w.notComing(t)
		leave()
		return err == nil, err // another host has it, and the next one may be free
	}
	go w.serve(c, t, leave)
	return true, nil
}

// find gives the next call of a tenant that can begin, whose principal has its turn then; "" if there is none.
func (w *work) find(ctx context.Context, tenant string) (t whose, id string, err error) {
	after, wrapped := w.last[tenant], false
	for range mostPaused {
		principal, id, err := w.next(ctx, tenant, after)
		if err != nil {
			return t, "", err
		}
		if id == "" {
			if wrapped || after == "" {
				break
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
	coming := 0
	for other := range w.coming {
		if other.tenant == t.tenant {
			coming++
		}
	}
	if coming >= mostComing {
		return false
	}
	w.coming[t] = true
	return true
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
	defer w.take(c.ExecutionID, false)
	came := sync.OnceFunc(func() {
		w.notComing(t)
		w.poke()
	})
	defer came()
	ctx, done := w.Track(w.base, c.started()) // it can be cancelled before it is on record
	defer done()
	begun := make(chan string, 1)
	r := w.run(ctx, c.Principal, func(ctx context.Context, started func(string)) *skill.Result {
		if c.damaged {
			return c.refused(&skill.Error{Op: "executions.Work", Code: skill.Internal, Message: "the queued call is damaged in the database; call again"})
		}
		if w.o.Now().Sub(c.At) > QueuedFor {
			return c.refused(&skill.Error{Op: "executions.Work", Code: skill.Timeout, Message: fmt.Sprintf("the call was queued for %s without a place to run; call again", QueuedFor)})
		}
		run, p, done, err := w.by.Admit(ctx, c.Principal, c.At)
		if err != nil {
			return c.refused(err)
		}
		defer done()
		begin := func(id string) {
			started(id)
			came()
			w.forget(c)
		}
		if c.Script != nil {
			return w.by.Door.StartScript(run, p, *c.Script, begin)
		}
		return w.by.Door.Start(run, p, *c.Request, begin)
	}, begun)
	select {
	case <-begun:
		return
	default:
	}
	if errors.Is(context.Cause(ctx), errCancelled) {
		r = c.refused(errCancelledQueued)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), askLimit)
	defer cancel()
	if wait := w.endUnbegun(ctx, c, r); wait > 0 {
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
	switch _, err := w.o.Records.Execution(ctx, c.Principal.Tenant, c.ExecutionID); {
	case err == nil: // it is on record: begun by another host, or in doubt, which ends it
		w.forget(c)
		return 0
	case !errors.Is(err, ErrNotFound):
		return pauseFirst
	}
	switch e := r.Error; {
	case w.base.Err() != nil: // the host stops
		return pauseFirst
	case e == nil: // it ended without having begun, which no door does
		r = c.refused(errors.New("the call ended before it began"))
	case e.Code == skill.RateLimited, e.Code == skill.AuditUnavailable:
		return pauseOf(e.Details)
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

// recordRefusal puts on record that a call that this host has taken does not begin.
func (m *Manager) recordRefusal(ctx context.Context, c *QueuedCall, r *skill.Result) error {
	to, s := m.o.Queue.Record, c.started()
	s.Contested, s.Time = true, time.Time{}
	var input []byte
	if c.Request != nil {
		input = c.Request.Input
	}
	if err := to.Started(ctx, s, input); err != nil {
		return err
	}
	r.Meta.ExecutionID = c.ExecutionID
	m.keepResult(ctx, s.Tenant, s.ExecutionID, r)
	f := &Finished{ExecutionID: s.ExecutionID, Status: StatusOf(r.Error.Code), Code: r.Error.Code, Message: r.Error.Message}
	if err := to.Finished(ctx, s, f, nil); err != nil {
		return err
	}
	return m.queue().drop(ctx, c.ExecutionID, to.Instance())
}

// refused is the result of a call that does not begin.
func (c *QueuedCall) refused(err error) *skill.Result {
	s := c.started()
	return skill.Failure(skill.ID(s.Skill), skill.TraceID(s.TraceID), skill.Meta{ExecutionID: c.ExecutionID}, err)
}

var errCancelledQueued = &skill.Error{Op: "executions.Cancel", Code: skill.Cancelled, Message: "the call was cancelled before it began"}

// cancelQueued puts on record that a queued call was cancelled. It is false where the call has begun, or is about to.
func (m *Manager) cancelQueued(ctx context.Context, id string) (bool, error) {
	m.mu.Lock()
	busy := m.taken[id]
	m.mu.Unlock()
	if busy {
		return false, nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), askLimit)
	defer cancel()
	m.take(id, true)
	defer m.take(id, false)
	c, err := m.queue().claim(ctx, id, m.o.Queue.Record.Instance())
	if err != nil || c == nil {
		return false, err
	}
	err = m.recordRefusal(ctx, c, c.refused(errCancelledQueued))
	if err != nil {
		err = errors.Join(err, m.queue().release(ctx, id, m.o.Queue.Record.Instance()))
	}
	return err == nil, err
}

// queuedExecution gives a queued call as an execution that is not on record.
func (m *Manager) queuedExecution(ctx context.Context, tenant, id string) (*Execution, error) {
	q := m.queue()
	if q == nil {
		return nil, ErrNotFound
	}
	e, err := q.get(ctx, tenant, id)
	if errors.Is(err, ErrNotFound) { // it may have begun meanwhile
		return m.o.Records.Execution(ctx, tenant, id)
	}
	return e, err
}

// Queued is how many calls wait in the database, of all hosts, as of a moment ago.
func (m *Manager) Queued() int64 { return m.queued.Load() }
