package records_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"openskill/host/records"
	"openskill/host/store"
	"openskill/host/store/pgtest"
	"openskill/internal/musttest"
	"openskill/sdk/skill"
)

// database opens a database for as long as a test.
func database(t *testing.T, url string) *store.DB {
	t.Helper()
	db := musttest.Get(store.Open(t.Context(), store.Options{URL: url}))(t)
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// outage takes the database away and brings it back (L01): calls are refused, what had
// begun ends on record, and all of it works again without a restart.
func outage(t *testing.T, s records.Store, away, back func()) {
	t.Helper()
	l := open(t, s, func(o *records.Options) { o.Wait = 700 * time.Millisecond })
	running, ended := call("acme"), call("other")
	wantCode(t, l.Started(t.Context(), running, nil), "")
	wantCode(t, l.Started(t.Context(), ended, nil), "")
	wantCode(t, l.Finished(t.Context(), ended, success(), nil), "")
	away()
	var refused []*records.Started
	for range 20 {
		c := call("acme")
		wantCode(t, l.Started(t.Context(), c, nil), skill.AuditUnavailable)
		refused = append(refused, c)
	}
	wantCode(t, l.Finished(t.Context(), running, success(), []byte(`{}`)), skill.AuditUnavailable)
	wantCode(t, l.Started(t.Context(), call("acme"), nil), skill.AuditUnavailable)
	back()
	next := call("acme")
	eventually(t, func() error { return l.Started(t.Context(), next, nil) })
	wantCode(t, l.Finished(t.Context(), next, success(), nil), "")
	for _, c := range []*records.Started{running, ended, next} {
		wantStatus(t, s, c.ExecutionID, records.Success, "")
	}
	for _, c := range refused {
		// Most were never written. One may be, and is ended then.
		eventually(t, func() error {
			e, err := s.Execution(t.Context(), "", c.ExecutionID)
			if errors.Is(err, records.ErrNotFound) || err == nil && e.Status() == records.Terminated && e.Finished.Code == skill.AuditUnavailable {
				return nil
			}
			return fmt.Errorf("a call that was refused is %+v on record, %w", e, err)
		})
	}
	wantWhole(t, s)
}

// eventually tries until there is no error, for much longer than it should take.
func eventually(t *testing.T, try func() error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		err := try()
		if err == nil {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatal(err)
		case <-tick.C:
		}
	}
}

func TestOutagesOfSQLite(t *testing.T) {
	t.Parallel()
	other := func(t *testing.T, file string) *sql.Conn {
		t.Helper()
		db := musttest.Get(sql.Open("sqlite", file))(t)
		t.Cleanup(func() { _ = db.Close() })
		return musttest.Get(db.Conn(t.Context()))(t)
	}
	for name, prepare := range map[string]func(t *testing.T, file string) (away, back func()){
		"locked": func(t *testing.T, file string) (away, back func()) {
			t.Helper()
			conn := other(t, file)
			do := func(statement string) func() {
				return func() {
					musttest.Get(conn.ExecContext(t.Context(), statement))(t)
				}
			}
			return do("BEGIN IMMEDIATE"), do("ROLLBACK")
		},
		"refusing records": func(t *testing.T, file string) (away, back func()) {
			t.Helper()
			conn := other(t, file)
			do := func(statement string) func() {
				return func() {
					musttest.Get(conn.ExecContext(t.Context(), "PRAGMA busy_timeout = 5000; "+statement))(t)
				}
			}
			return do("CREATE TRIGGER no BEFORE INSERT ON audit_records BEGIN SELECT RAISE(ABORT, 'no'); END"), do("DROP TRIGGER no")
		},
		"gone": func(t *testing.T, file string) (away, back func()) {
			t.Helper()
			return func() { musttest.Do(t, os.Rename(file, file+".gone")) }, func() { musttest.Do(t, os.Rename(file+".gone", file)) }
		},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "test.db")
			db := database(t, "sqlite:"+file)
			away, back := prepare(t, file)
			outage(t, records.NewStore(db), away, back)
		})
	}
}

func TestOutagesOfPostgres(t *testing.T) {
	t.Parallel()
	server := pgtest.New(t, "synchronous_commit = on") // it is killed, and must know what it acknowledged
	t.Run("stopped", func(t *testing.T) {
		db := database(t, server.Database(t))
		outage(t, records.NewStore(db), func() { musttest.Do(t, server.Stop()) }, func() { musttest.Do(t, server.Start()) })
	})
	t.Run("locked", func(t *testing.T) {
		address := server.Database(t)
		db := database(t, address)
		conn := musttest.Get(pgx.Connect(t.Context(), address))(t)
		defer conn.Close(context.Background())
		do := func(statement string) func() {
			return func() {
				musttest.Get(conn.Exec(t.Context(), statement))(t)
			}
		}
		outage(t, records.NewStore(db), do("BEGIN; LOCK TABLE agent.audit_records IN ACCESS EXCLUSIVE MODE"), do("ROLLBACK"))
	})
	t.Run("connections are cut under load", func(t *testing.T) {
		address := server.Database(t)
		cutUnderLoad(t, records.NewStore(database(t, address)), address, "")
	})
	t.Run("connections are cut under load, with a journal", func(t *testing.T) {
		address := server.Database(t)
		cutUnderLoad(t, records.NewStore(database(t, address)), address, t.TempDir())
	})
}

// cutUnderLoad ends connections in the middle of transactions: what was acknowledged is
// on record, and what was not is not left running there.
func cutUnderLoad(t *testing.T, s records.Store, address, journal string) {
	t.Helper()
	u := musttest.Get(url.Parse(address))(t)
	conn := musttest.Get(pgx.Connect(t.Context(), address))(t)
	defer conn.Close(context.Background())
	l := open(t, s, func(o *records.Options) { o.Journal = journal })
	var mu sync.Mutex
	began, ended := map[string]bool{}, map[string]bool{}
	var stop atomic.Bool
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for !stop.Load() {
				c := call("acme")
				err := l.Started(t.Context(), c, nil)
				mu.Lock()
				began[c.ExecutionID] = err == nil
				mu.Unlock()
				if err == nil && l.Finished(t.Context(), c, success(), nil) == nil {
					mu.Lock()
					ended[c.ExecutionID] = true
					mu.Unlock()
				}
			}
		})
	}
	cuts := 0
	for range 8 {
		mu.Lock()
		have := len(ended)
		mu.Unlock()
		eventually(t, func() error { // some work between the cuts
			mu.Lock()
			defer mu.Unlock()
			if len(ended) < have+20 {
				return errors.New("no call ends")
			}
			return nil
		})
		var n int
		musttest.Do(t, conn.QueryRow(t.Context(),
			"SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE datname = $1 AND pid <> pg_backend_pid()", u.Path[1:]).Scan(&n))
		cuts += n
	}
	stop.Store(true)
	all.Wait()
	if cuts == 0 {
		t.Error("no connection was cut")
	}
	for id, acknowledged := range began {
		eventually(t, func() error {
			e, err := s.Execution(t.Context(), "acme", id)
			switch {
			case acknowledged && err == nil && e.Status() == records.Success: // the end too, told or not
			case !acknowledged && errors.Is(err, records.ErrNotFound):
			case !acknowledged && err == nil && e.Status() == records.Terminated:
			default:
				return fmt.Errorf("%s, acknowledged: %t, ended: %t, is %+v, %w", id, acknowledged, ended[id], e, err)
			}
			return nil
		})
	}
	wantWhole(t, s)
	t.Logf("%d connections cut, %d calls", cuts, len(began))
}
