package store_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgconn"

	"openskill/host/records"
	"openskill/host/store"
	"openskill/host/store/pgtest"
	"openskill/host/store/storetest"
	"openskill/internal/musttest"
	"openskill/sdk/skill"
)

func startOf(tenant string) *records.Entry {
	id := uuid.Must(uuid.NewV7()).String()
	s := &records.Started{ExecutionID: id, Tenant: tenant, Principal: "p", PrincipalType: skill.Agent, Session: id, Skill: "echo", Time: when}
	return &records.Entry{Record: records.Record{Tenant: tenant, Kind: records.KindStarted, ExecutionID: id, Time: when, Body: []byte("{}")}, Started: s}
}

// works appends a record, which is there then.
func works(t *testing.T, d *store.DB) {
	t.Helper()
	e := startOf("acme")
	if err := records.NewStore(d).Append(t.Context(), []*records.Entry{e}); err != nil {
		t.Fatalf("it does not work: %v", err)
	}
	if all, err := records.NewStore(d).Records(t.Context(), "acme", e.Seq, 1); err != nil || len(all) != 1 || all[0].Hash != e.Hash {
		t.Fatalf("what was written is not there: %v, %v", all, err)
	}
}

// cannot holds that nothing can be appended now, for a reason.
func cannot(t *testing.T, d *store.DB, reason store.Reason) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 700*time.Millisecond)
	defer cancel()
	e := startOf("acme")
	e.Body = []byte(`"` + strings.Repeat("x", 1<<20) + `"`)
	err := records.NewStore(d).Append(ctx, []*records.Entry{e})
	if got := store.ReasonOf(err); got != reason || !store.Unavailable(err) {
		t.Errorf("got %q (%v), want %q", got, err, reason)
	}
	if err != nil && strings.Contains(err.Error(), "xxx") {
		t.Error("the error shows what was to be written")
	}
}

func sqliteOf(t *testing.T) (d *store.DB, file string) {
	t.Helper()
	file = filepath.Join(t.TempDir(), "test.db")
	return storetest.Open(t, "sqlite:"+file), file
}

func TestSQLiteLocked(t *testing.T) {
	d, file := sqliteOf(t)
	works(t, d)
	other := musttest.Get(rawOf(t, "sqlite:"+file).Conn(t.Context()))(t)
	defer other.Close()
	for _, statement := range []string{"BEGIN IMMEDIATE", "COMMIT"} {
		musttest.Get(other.ExecContext(t.Context(), statement))(t)
		if statement == "BEGIN IMMEDIATE" {
			cannot(t, d, store.Locked)
			if _, err := records.NewStore(d).Tenants(t.Context()); err != nil {
				t.Errorf("what is read needs no lock: %v", err)
			}
		}
	}
	works(t, d)
}

func TestSQLiteFull(t *testing.T) {
	d, _ := sqliteOf(t)
	works(t, d)
	for range 2 {
		if err := d.Run(t.Context(), "PRAGMA max_page_count = 1"); err != nil { // of what it has
			t.Fatal(err)
		}
		cannot(t, d, store.Full)
		musttest.Do(t, d.Run(t.Context(), "PRAGMA max_page_count = 1000000"))
		works(t, d)
	}
}

func TestSQLiteReadOnly(t *testing.T) {
	d, _ := sqliteOf(t)
	works(t, d)
	musttest.Do(t, d.Run(t.Context(), "PRAGMA query_only = 1"))
	cannot(t, d, store.ReadOnly)
	musttest.Do(t, d.Run(t.Context(), "PRAGMA query_only = 0"))
	works(t, d)
}

// A file that is not there is not made anew, and is used again when it is back.
func TestSQLiteGoneAndBack(t *testing.T) {
	d, file := sqliteOf(t)
	works(t, d)
	musttest.Do(t, os.Rename(file, file+".away"))
	cannot(t, d, store.Gone)
	if _, err := os.Stat(file); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("there is a file again: %v", err)
	}
	if _, err := records.NewStore(d).Tenants(t.Context()); !store.Unavailable(err) {
		t.Errorf("what is gone was read: %v", err)
	}
	musttest.Do(t, os.Rename(file+".away", file))
	works(t, d)
	if heads, err := records.NewStore(d).Tenants(t.Context()); err != nil || len(heads) != 1 || heads[0].Last != 2 {
		t.Errorf("got %+v, %v", heads, err)
	}
}

// A transaction that has begun does not commit to a file that went meanwhile.
func TestSQLiteGoneWithinATransaction(t *testing.T) {
	d, file := sqliteOf(t)
	works(t, d)
	err := d.Within(t.Context(), func() error { return os.Rename(file, file+".away") })
	if store.ReasonOf(err) != store.Gone {
		t.Errorf("got %v", err)
	}
	musttest.Do(t, os.Rename(file+".away", file))
	works(t, d)
}

// A file that was replaced, as by a copy from before, is the database from then on.
func TestSQLiteReplaced(t *testing.T) {
	d, file := sqliteOf(t)
	works(t, d)
	musttest.Do(t, d.Run(t.Context(), "VACUUM INTO '"+file+".copy'"))
	works(t, d)
	for _, name := range []string{file, file + "-wal", file + "-shm"} {
		musttest.Do(t, os.Remove(name))
	}
	cannot(t, d, store.Gone)
	musttest.Do(t, os.Rename(file+".copy", file))
	works(t, d)
	if heads, err := records.NewStore(d).Tenants(t.Context()); err != nil || len(heads) != 1 || heads[0].Last != 2 {
		t.Errorf("got %+v, %v", heads, err)
	}
}

// What was answered is there after a crash, also of a server that would answer before it
// has written anything, unless the operator's URL says so.
func TestPostgresWaitsForCommits(t *testing.T) {
	url := pgtest.New(t, "synchronous_commit = off").Database(t)
	for query, want := range map[string]string{"": "on", "&synchronous_commit=off": "off", "&synchronous_commit=local": "local"} {
		db := storetest.Open(t, url+query)
		var got string
		if err := db.Read.QueryRowContext(t.Context(), "SHOW synchronous_commit").Scan(&got); err != nil || got != want {
			t.Errorf("with %q synchronous_commit is %q, %v; want %s", query, got, err, want)
		}
	}
}

// asked has the connections of the pool that reads learn that the server has ended them. One
// that is idle for a second is asked before it is used; here it is not.
func asked(t *testing.T, d *store.DB) {
	t.Helper()
	for range 10 {
		_, _ = records.NewStore(d).Tenants(t.Context())
	}
}

func TestPostgresStoppedAndStarted(t *testing.T) {
	s := pgtest.New(t)
	d := storetest.Open(t, s.Database(t))
	works(t, d)
	musttest.Do(t, s.Stop())
	cannot(t, d, store.Gone)
	musttest.Do(t, s.Start())
	asked(t, d)
	works(t, d)
	// Connections that the server ended are replaced, without a record that is lost.
	musttest.Do(t, s.Exec("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'openskill'"))
	asked(t, d)
	works(t, d)
}

func TestPostgresLocked(t *testing.T) {
	url := pgtest.Start(t)
	d := storetest.Open(t, url+"&lock_timeout=100ms")
	works(t, d)
	r := rawOf(t, url)
	tx := musttest.Get(r.BeginTx(t.Context(), nil))(t)
	defer tx.Rollback()
	musttest.Get(tx.ExecContext(t.Context(), "SELECT * FROM audit_heads FOR UPDATE"))(t)
	for _, wait := range []bool{false, true} {
		held := startOf("acme")
		held.Wait = wait
		if err := records.NewStore(d).Append(t.Context(), []*records.Entry{held}); err != nil || !errors.Is(held.Left, records.ErrHeld) || held.Seq != 0 {
			t.Errorf("a chain that another one has: %+v, %v", held, err)
		}
	}
	other := startOf("other") // which nobody locked
	if err := records.NewStore(d).Append(t.Context(), []*records.Entry{other}); err != nil {
		t.Errorf("a tenant waits for another one: %v", err)
	}
	musttest.Do(t, tx.Rollback())
	works(t, d)
}

func TestPostgresReadOnly(t *testing.T) {
	url := pgtest.Start(t)
	works(t, storetest.Open(t, url))
	cannot(t, storetest.Open(t, url+"&default_transaction_read_only=on"), store.ReadOnly)
}

// A role that may not make tables, but use them, is enough once the schema is there.
func TestPostgresWithFewRights(t *testing.T) {
	url := pgtest.Start(t)
	storetest.Open(t, url)
	r := rawOf(t, url)
	role := "few_" + strings.ReplaceAll(uuid.NewString(), "-", "")
	r.exec(t, "CREATE ROLE "+role+" LOGIN PASSWORD 'few'")
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		for _, statement := range []string{"DROP OWNED BY " + role, "DROP ROLE " + role} {
			if _, err := r.ExecContext(ctx, statement); err != nil {
				t.Error(err)
			}
		}
	})
	r.exec(t, "GRANT USAGE ON SCHEMA agent TO "+role)
	r.exec(t, "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA agent TO "+role)
	config := musttest.Get(pgconn.ParseConfig(url))(t)
	works(t, storetest.Open(t, fmt.Sprintf("postgres://%s:few@127.0.0.1:%d/%s?sslmode=disable", role, config.Port, config.Database)))
}

func TestReasonsOfPostgres(t *testing.T) {
	for code, want := range map[string]store.Reason{
		"23505": store.Taken, "23503": store.Refused, "23514": store.Refused, "22P05": store.Refused, "42601": store.Refused, "42P01": store.Refused,
		"40001": store.Raced, "40P01": store.Raced, "55P03": store.Locked, "57014": store.Locked, "53100": store.Full, "25006": store.ReadOnly,
		"42501": store.ReadOnly, "57P01": store.Gone, "57P03": store.Gone, "08006": store.Gone, "53300": store.Gone, "58030": store.Gone,
		"28P01": store.Gone, "3D000": store.Gone, "25P03": store.Gone, "XX001": store.Damaged, "XX000": store.Gone, "": store.Refused, "5": store.Refused,
	} {
		err := fmt.Errorf("somewhere: %w", &pgconn.PgError{Code: code})
		if got := store.ReasonOf(err); got != want {
			t.Errorf("%q: got %q, want %q", code, got, want)
		}
	}
}

// What no host writes is refused, and nothing of its batch is written.
func TestEntriesThatSayTwoThings(t *testing.T) {
	d, _ := sqliteOf(t)
	for name, spoil := range map[string]func(*records.Entry){
		"nothing":               func(e *records.Entry) { e.Started = nil },
		"another kind":          func(e *records.Entry) { e.Kind = records.KindFinished },
		"a kind of its own":     func(e *records.Entry) { e.Kind = "odd" },
		"an end without start":  func(e *records.Entry) { e.Kind, e.Started, e.Finished = records.KindFinished, nil, &records.Finished{} },
		"start and end":         func(e *records.Entry) { e.Finished, e.Of = &records.Finished{}, e.Started },
		"what was removed":      func(e *records.Entry) { e.Kind, e.Started = records.KindPruned, nil },
		"no tenant":             func(e *records.Entry) { e.Tenant, e.Started.Tenant = "", "" },
		"another tenant":        func(e *records.Entry) { e.Started.Tenant = "other" },
		"NUL in the tenant":     func(e *records.Entry) { e.Tenant, e.Started.Tenant = "a\x00", "a\x00" },
		"a long tenant":         func(e *records.Entry) { e.Tenant = strings.Repeat("a", 201); e.Started.Tenant = e.Tenant },
		"another execution":     func(e *records.Entry) { e.Started.ExecutionID = uuid.NewString() },
		"no UUID":               func(e *records.Entry) { e.ExecutionID, e.Started.ExecutionID = "1", "1" },
		"no UUID as session":    func(e *records.Entry) { e.Started.Session = "'; --" },
		"no time":               func(e *records.Entry) { e.Time = time.Time{} },
		"no time of its start":  func(e *records.Entry) { e.Started.Time = time.Time{} },
		"no body":               func(e *records.Entry) { e.Body = nil },
		"no type of principal":  func(e *records.Entry) { e.Started.PrincipalType = "" },
		"another type of those": func(e *records.Entry) { e.Started.PrincipalType = "martian" },
	} {
		good, bad := startOf("acme"), startOf("acme")
		spoil(bad)
		err := records.NewStore(d).Append(t.Context(), []*records.Entry{good, bad})
		if store.ReasonOf(err) != store.Refused || skill.CodeOf(err) != skill.Internal {
			t.Errorf("%s: got %v", name, err)
		}
	}
	for _, status := range []records.Status{"", "odd", records.Running} {
		e := startOf("acme")
		e.Kind, e.Of, e.Started = records.KindFinished, e.Started, nil
		e.Finished = &records.Finished{ExecutionID: e.ExecutionID, Status: status, Time: when}
		if err := records.NewStore(d).Append(t.Context(), []*records.Entry{e}); store.ReasonOf(err) != store.Refused {
			t.Errorf("an end as %q: %v", status, err)
		}
	}
	if heads, err := records.NewStore(d).Tenants(t.Context()); err != nil || len(heads) != 0 {
		t.Errorf("something was written: %+v, %v", heads, err)
	}
}
