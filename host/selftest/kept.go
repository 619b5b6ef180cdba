package selftest

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"openskill/host/store"
)

// Kept is the report of the last whole self-test, as the database has it for the console.
type Kept struct {
	At      time.Time `json:"at"`
	Version string    `json:"version"` // of the program that ran it
	Report
}

// maxKept is the size of the largest report that is stored, in bytes; one has some 200 KB.
const maxKept = 4 << 20

// Keep makes k the last report.
func Keep(ctx context.Context, db *store.DB, k *Kept) error {
	b, err := json.Marshal(k)
	if err != nil {
		return err
	}
	if len(b) > maxKept {
		return fmt.Errorf("the report has %d bytes, and at most %d are stored", len(b), maxKept)
	}
	_, err = db.Exec(ctx, "INSERT INTO selftest (id, report) VALUES (1, $1) ON CONFLICT (id) DO UPDATE SET report = excluded.report", store.Plain(string(b)))
	return err
}

// Last returns the last report; nil: there is none.
func Last(ctx context.Context, db *store.DB) (*Kept, error) {
	var report string
	err := db.Read.QueryRowContext(ctx, "SELECT report FROM selftest WHERE id = 1").Scan(&report)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	k := &Kept{}
	if err := json.Unmarshal([]byte(report), k); err != nil {
		return nil, fmt.Errorf("the stored report: %w", err)
	}
	return k, nil
}
