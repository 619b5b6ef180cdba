package store_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"openskill/host/store"
	"openskill/internal/musttest"
)

// Who signed out stays so when a copy comes back, and calls that ran do not run again: it has no session and no queued
// call, also not in pages that are free.
func TestSnapshotsLeaveOut(t *testing.T) {
	state, to := t.TempDir(), filepath.Join(t.TempDir(), "copy.db")
	id := bytes.Repeat([]byte("session!"), 4)
	d := musttest.Get(store.Open(t.Context(), store.Options{StateDir: state}))(t)
	defer d.Close()
	musttest.Get(d.Write.ExecContext(t.Context(), "INSERT INTO console_sessions (id, tenant, principal, credential, began_at, seen_at) VALUES ($1, 'acme', 'p', $1, 1, 1)", id))(t)
	call := []byte("a queued call")
	musttest.Get(d.Write.ExecContext(t.Context(), `INSERT INTO queued_calls (id, tenant, principal_id, principal_type, skill_name, created_at, bytes, body)
		VALUES ('00000000-0000-7000-8000-000000000001', 'acme', 'p', 'agent', 'echo', 1, 1, $1)`, call))(t)
	hook := []byte("a message to a webhook")
	musttest.Get(d.Write.ExecContext(t.Context(), "INSERT INTO deliveries (id, tenant, principal, name, attempts, next_at) VALUES ('1', 'acme', 'p', $1, 0, 1)", string(hook)))(t)
	if kind, _, err := store.Snapshot(t.Context(), store.Options{StateDir: state}, to); err != nil || kind != store.SQLite {
		t.Fatal(kind, err)
	}
	b, err := os.ReadFile(to)
	if err != nil || bytes.Contains(b, id) || bytes.Contains(b, call) || bytes.Contains(b, hook) {
		t.Errorf("the copy has the session or the call, or is none: %v", err)
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
