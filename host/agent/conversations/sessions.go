package conversations

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"time"

	"openskill/host/store"
)

// stillRunning is the status of a session that has not ended.
const stillRunning = "running"

// Begin implements [Sessions].
func (s Rows) Begin(ctx context.Context, one *Session) error {
	if !store.IsUUID(one.ID) || !owns(one.Owner) {
		return malformed("conversations.Begin", "a session needs a UUID and an owner, whose names are text without NUL")
	}
	id := strings.ToLower(one.ID)
	return s.db.InTurn(ctx, one.Owner.Tenant, func() error {
		_, err := s.db.Exec(ctx, "INSERT INTO agent_sessions (id, tenant, principal, principal_type, task, status, iterations, tokens, duration_ms, created_at, ends_by)"+
			" VALUES ("+store.List(1, 11)+")", id, one.Owner.Tenant, one.Owner.Principal, store.Plain(one.PrincipalType), first(one.Task, 200), stillRunning,
			one.Iterations, one.Tokens, one.DurationMS, s.db.At(one.CreatedAt), s.db.At(one.EndsBy))
		if err != nil {
			return err
		}
		return s.db.Fit(ctx, one.Owner.Tenant, store.Tasks,
			"DELETE FROM agent_sessions WHERE id IN (SELECT id FROM agent_sessions WHERE tenant = $1 AND id <> $2 ORDER BY created_at LIMIT $3)", id)
	})
}

// End implements [Sessions].
func (s Rows) End(ctx context.Context, one *Session) error {
	switch one.Status {
	case "completed", "terminated", "timeout", "failed":
	default:
		return malformed("conversations.End", "a session ends as completed, terminated, timeout or failed")
	}
	if !store.IsUUID(one.ID) || !owns(one.Owner) {
		return nil // it is not there
	}
	_, err := s.db.ExecInTurn(ctx, "", "UPDATE agent_sessions SET status = $4, iterations = $5, tokens = $6, duration_ms = $7"+ofOwner+" AND status = $8",
		strings.ToLower(one.ID), one.Owner.Tenant, one.Owner.Principal, one.Status, one.Iterations, one.Tokens, one.DurationMS, stillRunning)
	return err
}

// Session implements [Sessions].
func (s Rows) Session(ctx context.Context, o Owner, id string) (*Session, error) {
	if !store.IsUUID(id) || store.Plain(o.Tenant) != o.Tenant || store.Plain(o.Principal) != o.Principal {
		return nil, ErrNotFound
	}
	one := &Session{}
	var created, ends store.Time
	err := s.db.Read.QueryRowContext(ctx, "SELECT id, tenant, principal, principal_type, task, status, iterations, tokens, duration_ms, created_at, ends_by FROM agent_sessions"+
		" WHERE id = $1 AND (tenant = $2 OR $2 = '') AND (principal = $3 OR $3 = '')", strings.ToLower(id), o.Tenant, o.Principal).
		Scan(&one.ID, &one.Owner.Tenant, &one.Owner.Principal, &one.PrincipalType, &one.Task, &one.Status, &one.Iterations, &one.Tokens, &one.DurationMS, &created, &ends)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return nil, ErrNotFound
	case err != nil:
		return nil, err
	}
	one.CreatedAt, one.EndsBy = created.Time, ends.Time
	return one, nil
}

// PruneSessions implements [Sessions], some hundred at a time.
func (s Rows) PruneSessions(ctx context.Context, before time.Time) (removed int, err error) {
	const together = 500
	for {
		n, err := s.db.ExecInTurn(ctx, "", "DELETE FROM agent_sessions WHERE id IN (SELECT id FROM agent_sessions WHERE created_at < $1 ORDER BY created_at LIMIT $2)", s.db.At(before), together)
		removed += n
		if err != nil || n < together {
			return removed, err
		}
	}
}
