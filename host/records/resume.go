package records

import (
	"context"
	"database/sql"
	"errors"
	"slices"

	"openskill/host/store"
	"openskill/sdk/skill"
)

// This part lets calls of idempotent skills go on when their host is gone. Such a call stays in the queue until it has
// ended. Another host takes it then, puts on record that it begins again, and becomes the one that runs the
// execution: from then on the end of the host before is not written.

// ResumeExecution is the action of the [Change] that says that an execution begins again.
const ResumeExecution = "execution.resume"

// errChanged says that what began cannot begin again, since it would be something else.
var errChanged = &skill.Error{Op: "audit.Resume", Code: skill.NotFound, Message: "the host that ran the call is gone, and the version with which it began is not here; call again"}

// resume is what Started does for an execution that has begun on another host.
func (l *Log) resume(ctx context.Context, s *Started) error {
	e, err := l.execution(ctx, s)
	switch {
	case err != nil:
		return unavailable("audit.Resume", refusedMessage, err)
	case e.Finished != nil:
		return unavailable("audit.Resume", foreignMessage, errors.New("the execution has ended"))
	case s.Digest != "" && s.Digest != e.Digest:
		return errChanged
	}
	from := e.host()
	s.Instance, s.Time, s.Input, s.On = e.Instance, e.Started.Time, e.Started.Input, l.o.Instance
	kept := e.Started
	kept.On = l.o.Instance
	r := &run{started: &kept}
	if err := l.reserve(r); err != nil {
		return err
	}
	resuming, cancel := context.WithTimeout(ctx, l.o.Wait)
	defer cancel()
	if err = l.o.Store.Resume(resuming, s.ExecutionID, l.o.Instance); err == nil {
		err = putChange(ctx, l.o.Store, Change{
			Tenant: s.Tenant, Action: ResumeExecution, Subject: s.ExecutionID, Details: map[string]string{"from": from, "to": l.o.Instance},
			Principal: s.Principal, PrincipalType: s.PrincipalType, Of: s.Tenant,
		}, false)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil {
		delete(l.open, s.ExecutionID)
		return unavailable("audit.Resume", refusedMessage, err)
	}
	r.begun = true
	return nil
}

// reserve takes a place for a run that goes on.
func (l *Log) reserve(r *run) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed || l.down || l.open[r.started.ExecutionID] != nil || len(l.open) >= l.o.Open {
		return unavailable("audit.Resume", refusedMessage, errors.New("the host stops, has too many calls, or the database rejects records"))
	}
	l.open[r.started.ExecutionID] = r
	return nil
}

// HandOver leaves an execution to the next host: its end on this one is not recorded. It is false if it has ended.
func (l *Log) HandOver(executionID string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	r := l.open[executionID]
	if r == nil || !r.begun || r.ended {
		return false
	}
	r.handed = true
	return true
}

// unlessResumed leaves out the executions that another host goes on with.
func (l *Log) unlessResumed(ctx context.Context, left []*Started) ([]*Started, error) {
	if len(left) == 0 {
		return nil, nil
	}
	ids := make([]string, len(left))
	for i, s := range left {
		ids[i] = s.ExecutionID
	}
	asked, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	kept, err := l.o.Store.Resumable(asked, ids)
	return slices.DeleteFunc(left, func(s *Started) bool { return slices.Contains(kept, s.ExecutionID) }), err
}

// Resume implements [Store].
func (a *tables) Resume(ctx context.Context, executionID, instance string) error {
	instance = fit(instance, mostWord)
	return a.db.InTx(ctx, func(tx *sql.Tx) error {
		var locked int // else an end could be written meanwhile, of the host before
		err := tx.QueryRowContext(ctx, "SELECT 1 FROM audit_heads WHERE tenant = (SELECT tenant FROM running_executions WHERE id = $1)"+a.db.ForUpdate(), executionID).Scan(&locked)
		if errors.Is(err, sql.ErrNoRows) {
			return ErrNotFound
		}
		if err != nil {
			return err
		}
		// The second time, since the answer was lost, nothing changes.
		for _, change := range []string{
			`UPDATE queued_calls SET again = again - CASE WHEN EXISTS (SELECT 1 FROM running_executions WHERE id = $1 AND instance = $2) THEN 0 ELSE 1 END WHERE id = $1 AND instance = $2
				AND (again > 1 OR EXISTS (SELECT 1 FROM running_executions WHERE id = $1 AND instance = $2))`,
			"UPDATE running_executions SET instance = $2 WHERE id = $1",
		} {
			done, err := tx.ExecContext(ctx, change, executionID, instance)
			if err != nil {
				return err
			}
			if n, err := done.RowsAffected(); err != nil || n == 0 {
				return errors.Join(err, ErrNotFound)
			}
		}
		return nil
	})
}

// Resumable implements [Store].
func (a *tables) Resumable(ctx context.Context, ids []string) ([]string, error) {
	now, err := a.db.Now(ctx, a.db.Read)
	if err != nil {
		return nil, err
	}
	return store.All(ctx, a.db.Read, store.Column[string], "SELECT CAST(id AS TEXT) FROM queued_calls WHERE again > 1 AND created_at >= $1 AND id IN ("+store.List(2, len(ids))+")",
		append([]any{a.db.At(now.Add(-QueuedFor))}, store.Args(ids)...)...)
}
