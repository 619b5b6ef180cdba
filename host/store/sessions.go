package store

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/uptrace/bun"

	"openskill/host/agent/conversations"
)

// Sessions is where the tasks are kept that the agent worked on.
func (d *DB) Sessions() conversations.Sessions { return sessionStore{d} }

type sessionStore struct{ db *DB }

// sessionRow is a row of agent_sessions.
type sessionRow struct {
	bun.BaseModel `bun:"table:agent_sessions"`

	ID            string `bun:"id"`
	Tenant        string `bun:"tenant"`
	Principal     string `bun:"principal"`
	PrincipalType string `bun:"principal_type"`
	Task          string `bun:"task"`
	Status        string `bun:"status"`
	Iterations    int    `bun:"iterations"`
	Tokens        int    `bun:"tokens"`
	DurationMS    int64  `bun:"duration_ms"`
	CreatedAt     stamp  `bun:"created_at"`
	EndsBy        stamp  `bun:"ends_by"`
}

// stillRunning is the status of a session that has not ended.
const stillRunning = "running"

// Begin implements [conversations.Sessions].
func (s sessionStore) Begin(ctx context.Context, one *conversations.Session) error {
	if !isUUID(one.ID) || !owns(one.Owner) {
		return malformed("store.Begin", "a session needs a UUID and an owner, whose names are text without NUL")
	}
	row := &sessionRow{
		ID: lower(one.ID), Tenant: one.Owner.Tenant, Principal: one.Owner.Principal, PrincipalType: plain(one.PrincipalType),
		Task: first(one.Task, 200), Status: stillRunning, Iterations: one.Iterations, Tokens: one.Tokens, DurationMS: one.DurationMS,
		CreatedAt: at(one.CreatedAt), EndsBy: at(one.EndsBy),
	}
	return s.db.inTurn(ctx, one.Owner.Tenant, func() error {
		err := again(ctx, func() error {
			_, err := s.db.write.NewInsert().Model(row).Exec(ctx)
			return err
		})
		if err != nil {
			return err
		}
		return s.db.Fit(ctx, row.Tenant, Tasks,
			"DELETE FROM agent_sessions WHERE id IN (SELECT id FROM agent_sessions WHERE tenant = $1 AND id <> $2 ORDER BY created_at LIMIT $3)", row.ID)
	})
}

// End implements [conversations.Sessions].
func (s sessionStore) End(ctx context.Context, one *conversations.Session) error {
	switch one.Status {
	case "completed", "terminated", "timeout", "failed":
	default:
		return malformed("store.End", "a session ends as completed, terminated, timeout or failed")
	}
	if !isUUID(one.ID) || !owns(one.Owner) {
		return nil // it is not there
	}
	_, err := s.db.change(ctx, "UPDATE agent_sessions SET status = ?, iterations = ?, tokens = ?, duration_ms = ?"+ofOwner+" AND status = ?",
		one.Status, one.Iterations, one.Tokens, one.DurationMS, lower(one.ID), one.Owner.Tenant, one.Owner.Principal, stillRunning)
	return err
}

// Session implements [conversations.Sessions].
func (s sessionStore) Session(ctx context.Context, o conversations.Owner, id string) (*conversations.Session, error) {
	if !isUUID(id) || plain(o.Tenant) != o.Tenant || plain(o.Principal) != o.Principal {
		return nil, conversations.ErrNotFound
	}
	row := &sessionRow{}
	ask := s.db.read.NewSelect().Model(row).Where("id = ?", lower(id))
	if o.Tenant != "" {
		ask = ask.Where("tenant = ?", o.Tenant)
	}
	if o.Principal != "" {
		ask = ask.Where("principal = ?", o.Principal)
	}
	switch err := ask.Scan(ctx); {
	case errors.Is(err, sql.ErrNoRows):
		return nil, conversations.ErrNotFound
	case err != nil:
		return nil, err
	}
	return &conversations.Session{
		ID: row.ID, Owner: conversations.Owner{Tenant: row.Tenant, Principal: row.Principal}, PrincipalType: row.PrincipalType,
		Task: row.Task, Status: row.Status, Iterations: row.Iterations, Tokens: row.Tokens, DurationMS: row.DurationMS,
		CreatedAt: row.CreatedAt.Time, EndsBy: row.EndsBy.Time,
	}, nil
}

// PruneSessions implements [conversations.Sessions], some hundred at a time.
func (s sessionStore) PruneSessions(ctx context.Context, before time.Time) (removed int, err error) {
	const together = 500
	for {
		n, err := s.db.change(ctx, "DELETE FROM agent_sessions WHERE id IN (SELECT id FROM agent_sessions WHERE created_at < ? ORDER BY created_at LIMIT ?)", at(before), together)
		removed += n
		if err != nil || n < together {
			return removed, err
		}
	}
}
