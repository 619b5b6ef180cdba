package records

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"openskill/host/store"
	"openskill/sdk/skill"
)

// This part queues asynchronous calls for which a host has no place. They are rows of the database, so that they
// outlive the host that accepted them; any host begins them.
//
// A call begins at most once. A host claims its row and records the beginning of the execution, whose id is that of the row. The
// database accepts one beginning of an execution, so a second host is refused. Then the row is deleted. The calls that a host
// had claimed when it died are queued again if they have not begun; those that had begun are recorded as terminated. A call
// that is refused when its turn comes is recorded as failed.

// The bounds of queued calls.
const (
	mostQueuedBytes = 1 << 30
	mostQueuedItems = 100_000

	pauseFirst  = time.Second // after a refusal that time cures
	pauseLonger = time.Minute
	newerFor    = time.Minute // what one host has, all have after this time
)

// mostAgain is how often a call of an idempotent skill begins again because its host is gone: it may be why.
const mostAgain = 3

// QueuedFor is how long a call waits at most; after that it does not begin.
const QueuedFor = 24 * time.Hour

// QueueOptions say where calls wait for a place.
type QueueOptions struct {
	DB     *store.DB // required
	Record *Log      // has the calls that are refused when their turn comes; required
	Most   Room      // of one tenant; 0: 100,000 calls, 1 GiB
	Post   *Post     // sends messages to webhooks; nil: webhooks are off
}

// queue is the table of the queued calls; nil where they are refused.
func (m *Manager) queue() *queue {
	if m.o.Queue == nil {
		return nil
	}
	return &queue{m.o.Queue.DB}
}

// Door says of calls what it would do with them; *dispatch.Dispatcher is one.
type Door interface {
	// Check gives the result of a call that is refused before it is queued, or nil.
	Check(ctx context.Context, c *QueuedCall) *skill.Result
	// Idempotent reports whether the call is one of an idempotent skill.
	Idempotent(c *QueuedCall) bool
}

// Accept is [Manager.Start], but queues a call for which the host has no place, and one that may begin again. status is that of
// the execution with the id, Running or Queued.
func (m *Manager) Accept(ctx context.Context, c *QueuedCall, run Run, door Door) (id string, status Status, r *skill.Result, err error) {
	m.mu.Lock()
	working := m.working
	m.mu.Unlock()
	c.Again = working && door.Idempotent(c)
	hooked := c.Request != nil && c.Request.Webhook != ""
	switch {
	case hooked && m.o.Queue.Post == nil:
		return "", "", nil, &skill.Error{Op: "executions.Accept", Code: skill.NotFound, Subject: "webhook", Message: "webhooks are off on this host; to permit them, set OPENSKILL_WEBHOOKS"}
	case hooked && !skill.ValidWorkspace(c.Request.Webhook):
		return "", "", nil, noWebhook(c.Request.Webhook)
	case hooked && !working:
		return "", "", nil, &skill.Error{Op: "executions.Accept", Code: skill.RateLimited, Details: map[string]any{"retry_after_ms": int64(1000)}, Message: "the host does not run queued calls now; try again in 1000 ms"}
	}
	if !c.Again && !hooked {
		id, r, err = m.Start(ctx, c.Principal, run)
		if !working || id != "" || !waits(r, err) {
			return id, Running, r, err
		}
	}
	if refused := door.Check(ctx, c); refused != nil {
		if (err != nil || r != nil) && refused.Error != nil && refused.Error.Code == skill.Conflict { // it is not one that is queued
			return "", "", r, err
		}
		return "", "", refused, nil
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
	switch told, _ := errors.AsType[*skill.Error](err); {
	case errors.Is(err, errQueueFull):
		return "", &skill.Error{
			Op: "executions.Enqueue", Code: skill.RateLimited, Details: map[string]any{"retry_after_ms": pauseLonger.Milliseconds()},
			Message: fmt.Sprintf("too many queued calls of this tenant (at most %d calls and %d bytes); try again in %d ms", m.o.Queue.Most.Items, m.o.Queue.Most.Bytes, pauseLonger.Milliseconds()),
		}
	case told != nil:
		return "", err
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

// take notes that this host has a queued call; false if it has it already.
func (m *Manager) take(id string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, has := m.taken[id]; has {
		return false
	}
	m.taken[id] = true
	return true
}

// giveBack ends the calls that this host has taken and that have not begun: another host begins them.
func (m *Manager) giveBack() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for id, waits := range m.taken {
		if r := m.running[id]; waits && r != nil {
			m.o.Queue.Record.unlessBegun(id, func() { r.cancel(errStopping) })
		}
	}
}

func (m *Manager) stopping() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.closed
}

// letGo notes that this host does not have a queued call any more.
func (m *Manager) letGo(id string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.taken, id)
}

// recordRefusal puts on record that a call that this host has taken does not begin.
func (m *Manager) recordRefusal(ctx context.Context, c *QueuedCall, r *skill.Result) error {
	to, s := m.o.Queue.Record, c.started()
	s.Contested, s.Time, s.Again = true, time.Time{}, c.begun
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

var errCancelledQueued = &skill.Error{Op: "executions.Cancel", Code: skill.Cancelled, Message: "the call was cancelled while it was queued"}

// cancelQueued puts on record that a queued call was cancelled. It is false where the call has begun, or is about to.
func (m *Manager) cancelQueued(ctx context.Context, id string) (bool, error) {
	if !m.take(id) {
		return false, nil
	}
	defer m.letGo(id)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), askLimit)
	defer cancel()
	c, err := m.queue().claim(ctx, id, m.o.Queue.Record.Instance())
	if err != nil || c == nil {
		return false, err
	}
	err = m.recordRefusal(ctx, c, c.refused(errCancelledQueued))
	if err != nil {
		err = errors.Join(err, m.queue().release(ctx, id, m.o.Queue.Record.Instance()))
	} else {
		m.tell(c)
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
