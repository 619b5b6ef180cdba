package replay

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"openskill/host/store"
)

// recordings are the rows of the table of this name.
type recordings struct{ db *store.DB }

// NewStore gives the recordings of a database.
func NewStore(db *store.DB) Store { return recordings{db} }

// Keep implements [Store].
func (s recordings) Keep(ctx context.Context, r *Row) error {
	body := r.Body
	if body == nil {
		body = []byte{} // nil would be NULL
	}
	return s.db.InTurn(ctx, r.Tenant, func() error {
		_, err := s.db.Exec(ctx, "INSERT INTO recordings (execution_id, tenant, created_at, missing, size, body) VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (execution_id) DO NOTHING",
			r.ExecutionID, store.Plain(r.Tenant), s.db.At(r.Created), store.Plain(r.Missing), r.Size, body)
		if err != nil {
			return err
		}
		return s.db.Fit(ctx, r.Tenant, store.Recordings,
			"DELETE FROM recordings WHERE execution_id IN (SELECT execution_id FROM recordings WHERE tenant = $1 AND execution_id <> $2 ORDER BY created_at LIMIT $3)", r.ExecutionID)
	})
}

// Get implements [Store].
func (s recordings) Get(ctx context.Context, tenant, executionID string) (*Row, error) {
	if !store.IsUUID(executionID) {
		return nil, nil
	}
	r := &Row{ExecutionID: executionID}
	var created store.Time
	err := s.db.Read.QueryRowContext(ctx, "SELECT tenant, created_at, missing, size, body FROM recordings WHERE execution_id = $1 AND tenant = $2", executionID, store.Plain(tenant)).
		Scan(&r.Tenant, &created, &r.Missing, &r.Size, &r.Body)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return nil, nil
	case err != nil:
		return nil, err
	}
	r.Created = created.Time
	return r, nil
}

// Prune implements [Store].
func (s recordings) Prune(ctx context.Context, before time.Time, limit int) (n int, err error) {
	type old struct {
		id    string
		bytes int64
	}
	list, err := store.All(ctx, s.db.Read, func(rows *sql.Rows) (o old, err error) { return o, rows.Scan(&o.id, &o.bytes) },
		"SELECT execution_id, length(body) FROM recordings WHERE created_at < $1 ORDER BY created_at LIMIT $2", s.db.At(before), limit)
	if err != nil {
		return 0, err
	}
	for _, part := range store.Portions(list, func(o old) int64 { return o.bytes }) {
		ids := make([]any, len(part))
		for i, o := range part {
			ids[i] = o.id
		}
		gone, err := s.db.Exec(ctx, "DELETE FROM recordings WHERE execution_id IN ("+store.List(1, len(ids))+")", ids...)
		if n += gone; err != nil {
			return n, err
		}
	}
	return n, nil
}
