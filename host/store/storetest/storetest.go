// Package storetest is what every database must do for those who keep something in it:
// one suite for each interface, in a file of its own. A suite takes its stores from a
// function, so that a fake is held to it as well.
package storetest

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"openskill/host/store"
	"openskill/host/store/pgtest"
	"openskill/internal/musttest"
)

// Each runs test for each kind of database. Each call of fresh makes a new, empty one,
// and gives what opens it: as often as it is called, as several hosts do. Databases are
// closed when the test that made them ends. Where there is no PostgreSQL, that part is
// skipped.
func Each(t *testing.T, test func(t *testing.T, fresh func(t *testing.T) (open func() *store.DB))) {
	t.Helper()
	each(t, true, func(t *testing.T, fresh func(*testing.T) string) {
		t.Helper()
		test(t, func(t *testing.T) func() *store.DB {
			t.Helper()
			url := fresh(t)
			return func() *store.DB { return Open(t, url) }
		})
	})
}

// EachURL runs test for each kind of database. Each call of fresh gives the URL of a new
// one, in which there is not even a table.
func EachURL(t *testing.T, test func(t *testing.T, fresh func(t *testing.T) (url string))) {
	t.Helper()
	each(t, false, test)
}

func each(t *testing.T, tables bool, test func(t *testing.T, fresh func(t *testing.T) (url string))) {
	t.Helper()
	t.Run("sqlite", func(t *testing.T) {
		test(t, func(t *testing.T) string {
			t.Helper()
			return "sqlite:" + filepath.Join(t.TempDir(), "test.db")
		})
	})
	t.Run("postgres", func(t *testing.T) {
		pgtest.Need(t)
		test(t, func(t *testing.T) string {
			t.Helper()
			if tables { // made once and copied, which is sooner done
				return pgtest.Copy(t, "tables", migrated)
			}
			return pgtest.Start(t)
		})
	})
}

func migrated(url string) error {
	d, err := store.Open(context.Background(), store.Options{URL: url})
	if err != nil {
		return err
	}
	return d.Close()
}

// Open opens a database until the test ends.
func Open(t testing.TB, url string) *store.DB {
	t.Helper()
	d := musttest.Get(store.Open(t.Context(), store.Options{URL: url}))(t)
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}

// SQLite opens a new, empty database in a file until the test ends.
func SQLite(t testing.TB) *store.DB {
	t.Helper()
	tables := musttest.Get(empty())(t)
	file := filepath.Join(t.TempDir(), store.File)
	musttest.Do(t, os.WriteFile(file, tables, 0o600))
	return Open(t, "sqlite:"+file)
}

// empty is the file of a database with all tables and no rows, which is sooner copied than
// made.
var empty = sync.OnceValues(func() ([]byte, error) {
	dir, err := os.MkdirTemp("", "openskill-empty-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	if err := migrated("sqlite:" + filepath.Join(dir, store.File)); err != nil {
		return nil, err
	}
	return os.ReadFile(filepath.Join(dir, store.File))
})
