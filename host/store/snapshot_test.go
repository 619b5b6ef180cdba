package store_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"openskill/host/store"
	"openskill/internal/musttest"
)

// Who signed out stays so when a copy comes back: it has no session, also not in pages that are
// free.
func TestSnapshotsHaveNoSessions(t *testing.T) {
	state, to := t.TempDir(), filepath.Join(t.TempDir(), "copy.db")
	id := bytes.Repeat([]byte("session!"), 4)
	d := musttest.Get(store.Open(t.Context(), store.Options{StateDir: state}))(t)
	defer d.Close()
	musttest.Get(d.Write.ExecContext(t.Context(), "INSERT INTO console_sessions (id, tenant, principal, credential, began_at, seen_at) VALUES ($1, 'acme', 'p', $1, 1, 1)", id))(t)
	if kind, _, err := store.Snapshot(t.Context(), store.Options{StateDir: state}, to); err != nil || kind != store.SQLite {
		t.Fatal(kind, err)
	}
	b, err := os.ReadFile(to)
	if err != nil || bytes.Contains(b, id) {
		t.Errorf("the copy has the session, or is none: %v", err)
	}
	if err := store.Check(t.Context(), to); err != nil {
		t.Error(err)
	}
	left, _ := filepath.Glob(to + "*")
	if len(left) != 1 {
		t.Errorf("%v", left)
	}
	var n int
	if err := d.Read.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM console_sessions").Scan(&n); err != nil || n != 1 {
		t.Errorf("%d sessions are left on the host, %v", n, err)
	}
}
