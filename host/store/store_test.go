package store_test

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"openskill/host/records"
	"openskill/internal/musttest"

	"openskill/host/store"
	"openskill/host/store/pgtest"
	"openskill/host/store/storetest"
	"openskill/sdk/skill"
)

// Where records are before a call goes on follows from the URL.
func TestWhereRecordsAre(t *testing.T) {
	server := pgtest.New(t).Database(t)
	for url, want := range map[string]store.Place{
		"sqlite:FILE": store.OnHost, "sqlite:FILE?synchronous=full": store.OnDisk, "sqlite:FILE?records=database&synchronous=full": store.InDatabase,
		"sqlite:FILE?records=disk": store.OnDisk, "postgres": store.InDatabase, "postgres&records=host": store.OnHost, "postgres&records=disk": store.OnDisk,
	} {
		t.Run(url, func(t *testing.T) {
			url = strings.ReplaceAll(url, "FILE", filepath.Join(t.TempDir(), "test.db"))
			if rest, ok := strings.CutPrefix(url, "postgres"); ok {
				url = server + rest
			}
			d := musttest.Get(store.Open(t.Context(), store.Options{URL: url}))(t)
			defer d.Close()
			if d.RecordsIn != want {
				t.Errorf("they are in %q, want %q", d.RecordsIn, want)
			}
		})
	}
}

func TestWhichDatabase(t *testing.T) {
	for name, c := range map[string]struct {
		url  string
		code skill.Code
	}{
		"no state folder":     {"", skill.InvalidArgument},
		"another scheme":      {"mysql://root:hunter2@localhost/x", skill.InvalidArgument},
		"no scheme":           {"hunter2", skill.InvalidArgument},
		"no file":             {"sqlite:", skill.InvalidArgument},
		"memory":              {"sqlite::memory:", skill.InvalidArgument},
		"unknown option":      {"sqlite:x.db?password=hunter2", skill.InvalidArgument},
		"one option too many": {"sqlite:x.db?synchronous=full&synchronous=full", skill.InvalidArgument},
		"a bad place":         {"sqlite:x.db?records=hunter2", skill.InvalidArgument},
		"two places":          {"postgres://root:hunter2@127.0.0.1:1/x?records=host&records=disk", skill.InvalidArgument},
		"NUL":                 {"sqlite:x\x00.db", skill.InvalidArgument},
		"a port of letters":   {"postgres://root:hunter2@localhost:hunter2/x", skill.InvalidArgument},
		"a bad escape":        {"postgres://root:hunter2%zz@localhost/x", skill.InvalidArgument},
		"a bad timeout":       {"postgres://root:hunter2@localhost/x?connect_timeout=hunter2", skill.InvalidArgument},
		"nobody listens":      {"postgres://root:hunter2@127.0.0.1:1/x?connect_timeout=1", skill.AuditUnavailable},
		"a folder":            {"sqlite:" + t.TempDir(), skill.AuditUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := store.Open(t.Context(), store.Options{URL: c.url})
			if skill.CodeOf(err) != c.code {
				t.Errorf("got %v, want %s", err, c.code)
			}
			if err != nil && strings.Contains(err.Error(), "hunter2") {
				t.Errorf("the error shows the password: %v", err)
			}
		})
	}
}

func TestFileIsPrivate(t *testing.T) {
	state := filepath.Join(t.TempDir(), "a", "state")
	d := musttest.Get(store.Open(t.Context(), store.Options{StateDir: state}))(t)
	defer d.Close()
	musttest.Get(records.NewStore(d).Alive(t.Context(), "x"))(t)
	for name, want := range map[string]os.FileMode{
		"": 0o700, store.File: 0o600, store.File + "-wal": 0o600, store.File + "-shm": 0o600,
	} {
		info, err := os.Stat(filepath.Join(state, name))
		if err != nil {
			t.Error(err)
		} else if got := info.Mode().Perm(); got != want {
			t.Errorf("%q has mode %o, want %o", name, got, want)
		}
	}
}

// The name of a folder is any name.
func TestStateFolderOfAnyName(t *testing.T) {
	state := filepath.Join(t.TempDir(), "a b?c=%41#&é")
	d := musttest.Get(store.Open(t.Context(), store.Options{StateDir: state}))(t)
	defer d.Close()
	works(t, d)
	if info, err := os.Stat(filepath.Join(state, store.File)); err != nil || info.Size() == 0 {
		t.Errorf("the database is elsewhere: %v, %v", info, err)
	}
}

// A file that others could read is made private when it is opened.
func TestFileBecomesPrivate(t *testing.T) {
	file := filepath.Join(t.TempDir(), "wide.db")
	musttest.Do(t, os.WriteFile(file, nil, 0o666))
	musttest.Do(t, os.Chmod(file, 0o666))
	d := musttest.Get(store.Open(t.Context(), store.Options{URL: "sqlite:" + file + "?synchronous=full"}))(t)
	defer d.Close()
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("got %v, %v", info.Mode(), err)
	}
}

func TestCloseTwice(t *testing.T) {
	storetest.Each(t, func(t *testing.T, fresh func(*testing.T) func() *store.DB) {
		d := fresh(t)()
		if err := errors.Join(d.Close(), d.Close()); err != nil {
			t.Error(err)
		}
	})
}

// A host waits longer than a statement does for one that has the file for itself, as who
// turns it to its log has.
func TestOpenWaits(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "x.db")
	other := musttest.Get(sql.Open("sqlite", file))(t)
	defer other.Close()
	tx := musttest.Get(other.BeginTx(t.Context(), nil))(t)
	musttest.Get(tx.ExecContext(t.Context(), "CREATE TABLE t (a)"))(t)
	ended := make(chan error, 1)
	go func() {
		time.Sleep(700 * time.Millisecond) // a statement waits for 500
		ended <- tx.Rollback()
	}()
	d := musttest.Get(store.Open(t.Context(), store.Options{URL: "sqlite:" + file}))(t)
	if err := errors.Join(<-ended, d.Close()); err != nil {
		t.Error(err)
	}
}

// Several hosts that start at once on an empty database all find it up to date.
func TestOpenedByManyAtOnce(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, fresh func(*testing.T) string) {
		url := fresh(t)
		var all sync.WaitGroup
		for range 6 {
			all.Go(func() {
				d, err := store.Open(t.Context(), store.Options{URL: url})
				if err != nil {
					t.Error(err)
					return
				}
				if _, err := records.NewStore(d).Tenants(t.Context()); err != nil {
					t.Error(err)
				}
				if err := d.Close(); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
	})
}

func TestErrorsAreToldApart(t *testing.T) {
	if r := store.ReasonOf(nil); r != "" || store.Unavailable(nil) {
		t.Errorf("no error has the reason %q", r)
	}
	if r := store.ReasonOf(errors.New("x")); r != store.Refused || store.Unavailable(errors.New("x")) {
		t.Errorf("any error has the reason %q", r)
	}
	if r := store.ReasonOf(context.Canceled); r != store.Ended || store.Unavailable(context.Canceled) {
		t.Errorf("a context that ended has the reason %q", r)
	}
	_, err := store.Open(t.Context(), store.Options{URL: "postgres://u:p@127.0.0.1:1/x"})
	if r := store.ReasonOf(err); r != store.Gone || !store.Unavailable(err) {
		t.Errorf("a server that is not there has the reason %q", r)
	}
}
