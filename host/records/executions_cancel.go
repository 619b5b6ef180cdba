package records

import (
	"context"
	"time"

	"openskill/sdk/skill"
)

// running is a call under way on this host.
type running struct {
	cancel    context.CancelCauseFunc
	cancelled bool // by its caller
}

// Track makes a call known that is on record and about to run. The door runs it with the
// context, which ends when the call is cancelled, and calls done when it has ended.
func (m *Manager) Track(ctx context.Context, s *Started) (run context.Context, done func()) {
	run, cancel := context.WithCancelCause(ctx)
	r := &running{cancel: cancel}
	m.mu.Lock()
	if m.running[s.ExecutionID] != nil && m.taken[s.ExecutionID] {
		m.taken[s.ExecutionID] = false // it has begun
	}
	m.running[s.ExecutionID] = r
	m.mu.Unlock()
	return run, func() {
		m.mu.Lock()
		if m.running[s.ExecutionID] == r {
			delete(m.running, s.ExecutionID)
		}
		m.mu.Unlock()
		cancel(nil)
	}
}

// end ends a call that runs on this host; false if none does.
func (m *Manager) end(id string) bool {
	m.mu.Lock()
	r := m.running[id]
	if r != nil {
		r.cancelled = true
	}
	m.mu.Unlock()
	if r == nil {
		return false
	}
	r.cancel(errCancelled)
	return true
}

// Cancel ends an execution of the caller's own; who holds the scope admin ends any. It
// gives the execution as it is then: ended, or running for a moment more. One that has
// ended before stays as it is. Of a long result it has the beginning only: who cancels wants
// to know the end, and not to read.
func (m *Manager) Cancel(ctx context.Context, p skill.Principal, id string) (*View, error) {
	e, err := m.mine(ctx, p, id)
	if err != nil {
		return nil, err
	}
	ended := e.Finished != nil
	if e.Queued {
		if ended, err = m.cancelQueued(ctx, e.ExecutionID); err != nil {
			return nil, cannotKeep("executions.Cancel", err)
		}
	}
	if !ended {
		if err := m.stop(ctx, e.ExecutionID); err != nil {
			return nil, err
		}
	}
	return m.seenToEnd(ctx, e)
}

// stop ends a running execution, here or by a note for the host that runs it.
func (m *Manager) stop(ctx context.Context, id string) error {
	if m.end(id) {
		return nil
	}
	if m.o.Results == nil {
		return &skill.Error{
			Op: "executions.Cancel", Code: skill.Conflict, Subject: id,
			Message: "the execution runs in another process and cannot be cancelled from here; it ends at its timeout",
		}
	}
	if err := m.o.Results.Ask(ctx, id, m.o.Now().UTC()); err != nil {
		return cannotKeep("executions.Cancel", err)
	}
	return nil
}

// seenToEnd gives an execution as soon as it has ended, or as it is after a moment.
func (m *Manager) seenToEnd(ctx context.Context, e *Execution) (*View, error) {
	deadline := time.NewTimer(m.o.EndWait)
	defer deadline.Stop()
	for pause := 5 * time.Millisecond; ; pause = min(2*pause, 100*time.Millisecond) {
		v, err := m.view(ctx, e, FirstPart)
		if err != nil || v.Status != Running && v.Status != Queued {
			return v, err
		}
		again := time.NewTimer(pause)
		select {
		case <-again.C:
		case <-deadline.C:
			again.Stop()
			return v, nil
		case <-ctx.Done():
			again.Stop()
			return v, nil
		}
		if e, err = m.execution(ctx, sight{tenant: e.Tenant}, e.ExecutionID); err != nil {
			return nil, err
		}
	}
}

// mostAsked is how many executions are asked for at once.
const mostAsked = 4096

// endAsked ends those calls of this host that another one was told to end.
func (m *Manager) endAsked(ctx context.Context) error {
	m.mu.Lock()
	ids := make([]string, 0, min(len(m.running), mostAsked))
	for id := range m.running {
		if ids = append(ids, id); len(ids) == mostAsked {
			break // the map's order is another one the next time
		}
	}
	m.mu.Unlock()
	if len(ids) == 0 {
		return nil
	}
	asked, err := m.o.Results.Asked(ctx, ids)
	for _, id := range asked {
		m.end(id)
	}
	return err
}
