package store

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/google/uuid"
	"github.com/uptrace/bun"

	"openskill/host/records/replay"
)

// Recordings is where it is kept what it takes to make runs again.
func (d *DB) Recordings() replay.Store { return recordingStore{d} }

type recordingStore struct{ db *DB }

// recordingRow is a row of recordings.
type recordingRow struct {
	bun.BaseModel `bun:"table:recordings"`

	Tenant    string `bun:"tenant"`
	CreatedAt stamp  `bun:"created_at"`
	Missing   string `bun:"missing"`
	Size      int64  `bun:"size"`
	Body      []byte `bun:"body"`
}

// Keep implements [replay.Store]. The body goes to the driver as it is, for the same
// reason as those of results.
func (s recordingStore) Keep(ctx context.Context, r *replay.Row) error {
	body := r.Body
	if body == nil {
		body = []byte{} // nil would be NULL
	}
	return s.db.inTurn(ctx, r.Tenant, func() error {
		err := again(ctx, func() error {
			_, err := s.db.write.DB.ExecContext(ctx,
				s.db.marked("INSERT INTO recordings (execution_id, tenant, created_at, missing, size, body) VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (execution_id) DO NOTHING"),
				r.ExecutionID, plain(r.Tenant), at(r.Created).of(s.db.kind), plain(r.Missing), r.Size, body)
			return err
		})
		if err != nil {
			return err
		}
		return s.db.Fit(ctx, r.Tenant, Recordings,
			"DELETE FROM recordings WHERE execution_id IN (SELECT execution_id FROM recordings WHERE tenant = $1 AND execution_id <> $2 ORDER BY created_at LIMIT $3)", r.ExecutionID)
	})
}

// Get implements [replay.Store].
func (s recordingStore) Get(ctx context.Context, tenant, executionID string) (*replay.Row, error) {
	if _, err := uuid.Parse(executionID); err != nil || len(executionID) != 36 {
		return nil, nil
	}
	row := &recordingRow{}
	err := s.db.read.NewSelect().Model(row).Where("execution_id = ?", executionID).Where("tenant = ?", plain(tenant)).Scan(ctx)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return nil, nil
	case err != nil:
		return nil, err
	}
	return &replay.Row{
		ExecutionID: executionID, Tenant: row.Tenant, Created: row.CreatedAt.Time, Missing: row.Missing, Size: row.Size, Body: row.Body,
	}, nil
}

// Prune implements [replay.Store].
func (s recordingStore) Prune(ctx context.Context, before time.Time, limit int) (n int, err error) {
	var old []key
	err = s.db.read.NewRaw("SELECT CAST(execution_id AS TEXT) AS execution_id, length(body) AS bytes FROM recordings WHERE created_at < ? ORDER BY created_at LIMIT ?",
		at(before), limit).Scan(ctx, &old)
	if err != nil {
		return 0, err
	}
	for _, part := range portions(old, func(k key) int64 { return k.Bytes }) {
		ids := make([]string, len(part))
		for i, k := range part {
			ids[i] = k.ExecutionID
		}
		gone, err := s.db.exec(ctx, "DELETE FROM recordings WHERE execution_id IN (?)", bun.List(ids))
		n += gone
		if err != nil {
			return n, err
		}
	}
	return n, nil
}
