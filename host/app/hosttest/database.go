package hosttest

import (
	"testing"

	"openskill/host/store"
)

// Database returns a new SQLite database in a folder of the test's own.
func Database(t testing.TB) *store.DB {
	t.Helper()
	db, err := store.Open(t.Context(), store.Options{StateDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db
}
