package store

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/google/uuid"
	"github.com/uptrace/bun"

	"openskill/host/replay"
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
	marks := "?, ?, ?, ?, ?, ?"
	if s.db.postgres() {
		marks = "$1, $2, $3, $4, $5, $6"
	}
	body := r.Body
	if body == nil {
		body = []byte{} // nil would be NULL
	}
	return again(ctx, func() error {
		_, err := s.db.write.DB.ExecContext(ctx,
			"INSERT INTO recordings (execution_id, tenant, created_at, missing, size, body) VALUES ("+marks+") ON CONFLICT (execution_id) DO NOTHING", //nolint:gosec // marks
			r.ExecutionID, plain(r.Tenant), at(r.Created).of(s.db.kind), plain(r.Missing), r.Size, body)
		return err
	})
}

// Get implements [replay.Store].
func (s recordingStore) Get(ctx context.Context, tenant, executionID string) (*replay.Row, error) {
	if _, err := uuid.Parse(executionID); err != nil || len(executionID) != 36 {
		return nil, nil //nolint:nilerr,nilnil // there is none of another form
	}
	row := &recordingRow{}
	err := s.db.read.NewSelect().Model(row).Where("execution_id = ?", executionID).Where("tenant = ?", plain(tenant)).Scan(ctx)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return nil, nil //nolint:nilnil // as replay.Store says
	case err != nil:
		return nil, err
	}
	return &replay.Row{
		ExecutionID: executionID, Tenant: row.Tenant, Created: row.CreatedAt.Time, Missing: row.Missing, Size: row.Size, Body: row.Body,
	}, nil
}

// Prune implements [replay.Store].
func (s recordingStore) Prune(ctx context.Context, before time.Time, limit int) (n int, err error) {
	err = s.db.inTx(ctx, func(ctx context.Context, tx bun.Tx) error {
		old := tx.NewSelect().Table("recordings").Column("execution_id").Where("created_at < ?", at(before)).Order("created_at").Limit(int64(limit))
		done, err := tx.NewDelete().Table("recordings").Where("execution_id IN (?)", old).Exec(ctx)
		if err != nil {
			return err
		}
		gone, err := done.RowsAffected()
		n = int(gone)
		return err
	})
	return n, err
}
