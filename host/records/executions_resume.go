package records

import (
	"context"
	"time"

	"openskill/sdk/skill"
)

// This part keeps the calls of idempotent skills in the queue until they have ended.

// lasting is how far a call of an idempotent skill is on this host.
type lasting int

const (
	lastingHere   lasting = iota + 1
	lastingHanded         // another host goes on with it
)

// stay marks a call that stays in the queue.
func (m *Manager) stay(id string) (done func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.lasting[id] = lastingHere
	return func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		delete(m.lasting, id)
	}
}

// handOver leaves the running calls that stay in the queue to other hosts. They are about to be ended.
func (m *Manager) handOver() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for id := range m.lasting {
		if r := m.running[id]; r != nil && r.cancelled {
			continue
		}
		if m.o.Queue.Record.HandOver(id) {
			m.lasting[id] = lastingHanded
		}
	}
}

// ours reports whether what a call leaves is to be kept: it is not where another host goes on with it. r is its result, if it has one.
func (m *Manager) ours(ctx context.Context, id string, r *skill.Result) bool {
	m.mu.Lock()
	how := m.lasting[id]
	m.mu.Unlock()
	if how != lastingHere {
		return how == 0
	}
	if r != nil && r.Error != nil && r.Error.Code == skill.AuditUnavailable { // its end is that of another host, or is not on record yet
		return false
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTime)
	defer cancel()
	has, err := m.queue().has(ctx, id, m.o.Queue.Record.Instance())
	return has || err != nil
}

// Ours reports whether what a run leaves counts: it does not where another host goes on with the call.
func (m *Manager) Ours(ctx context.Context, id string) bool { return m.ours(ctx, id, nil) }

// leaveQueue removes a call that stayed in the queue when its end is on record, or lets it wait for another host.
func (w *work) leaveQueue(c *QueuedCall) {
	ctx := context.Background()
	w.mu.Lock()
	handed := w.lasting[c.ExecutionID] == lastingHanded
	w.mu.Unlock()
	if handed {
		ctx, cancel := context.WithTimeout(ctx, storeTime)
		defer cancel()
		if err := w.queue.handOver(ctx, c.ExecutionID, w.instance); err != nil {
			w.log(ctx, "cannot return a call to the queue", err)
		}
		return
	}
	again := time.NewTicker(time.Second)
	defer again.Stop()
	for w.ours(ctx, c.ExecutionID, nil) {
		asked, cancel := context.WithTimeout(ctx, askLimit)
		e, err := w.o.Records.Execution(asked, c.Principal.Tenant, c.ExecutionID)
		cancel()
		if err == nil && e.Finished != nil {
			w.forget(c)
			return
		}
		select {
		case <-again.C: // its end could not be written yet
		case <-w.base.Done():
			return
		}
	}
}
