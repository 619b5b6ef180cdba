package store_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"openskill/host/dispatch/quota"
	"openskill/host/records"
	"openskill/host/store/pgtest"
	"openskill/host/store/storetest"
	"openskill/internal/musttest"
	"openskill/sdk/skill"
)

// heldElsewhere has a second connection, as of a host that froze, hold what a statement locks
// until the function that it gives is called.
func heldElsewhere(t *testing.T, url, statement string, args ...any) (free func()) {
	t.Helper()
	other := musttest.Get(sql.Open("pgx", url))(t)
	t.Cleanup(func() { _ = other.Close() })
	tx := musttest.Get(other.BeginTx(t.Context(), nil))(t)
	musttest.Get(tx.ExecContext(t.Context(), statement, args...))(t)
	return func() {
		if err := tx.Rollback(); err != nil && !errors.Is(err, sql.ErrTxDone) {
			t.Error(err)
		}
	}
}

// A host that freezes in a transaction with the chain of one tenant stops the records of that
// tenant alone.
func TestHeldChainStopsItsTenantAlone(t *testing.T) {
	t.Parallel()
	url := pgtest.Start(t)
	db := storetest.Open(t, url)
	s := records.NewStore(db)
	l, err := records.Open(t.Context(), records.Options{Store: s, Log: slog.New(slog.DiscardHandler)})
	musttest.Do(t, err)
	n := 0
	begin := func(tenant string) (*records.Started, error) {
		n++
		id := fmt.Sprintf("0198c2f0-0000-7000-8000-%012d", n)
		b := &records.Started{ExecutionID: id, Tenant: tenant, Principal: "p", PrincipalType: skill.Agent, Session: id, Skill: "echo"}
		return b, l.Started(t.Context(), b, nil)
	}
	call := func(tenant string) error {
		b, err := begin(tenant)
		if err == nil {
			err = l.Finished(t.Context(), b, &records.Finished{Status: records.Success}, nil)
		}
		return err
	}
	for _, tenant := range []string{"acme", "gamma"} {
		musttest.Do(t, call(tenant))
	}
	runs, err := begin("acme")
	musttest.Do(t, err)
	free := heldElsewhere(t, url, "SELECT 1 FROM agent.audit_heads WHERE tenant = 'acme' FOR UPDATE")
	ended := make(chan error, 1)
	go func() { ended <- l.Finished(t.Context(), runs, &records.Finished{Status: records.Success}, nil) }()
	waits := make(chan error, 1)
	late, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	go func() {
		waits <- records.Around(late, s, skill.Local(), records.Change{Tenant: "acme", Action: "key.create"}, func() error { t.Error("a change without a record"); return nil })
	}()
	for i := range 100 {
		// A tenant that is new has no chain yet, and gets one.
		for _, tenant := range []string{"gamma", fmt.Sprint("new", i%5)} {
			if err := call(tenant); err != nil {
				t.Fatalf("call %d of %s: %v", i, tenant, err)
			}
		}
	}
	if err := records.Around(t.Context(), s, skill.Local(), records.Change{Tenant: "gamma", Action: "key.create"}, func() error { return nil }); err != nil {
		t.Errorf("a change of another tenant: %v", err)
	}
	if err := <-waits; skill.CodeOf(err) != skill.AuditUnavailable {
		t.Errorf("a change of the tenant: %v", err)
	}
	if err := call("acme"); skill.CodeOf(err) != skill.AuditUnavailable {
		t.Errorf("a call of the tenant: %v", err)
	}
	if err := l.Ready(); err != nil {
		t.Error(err)
	}
	<-ended // in time or not, its record is kept
	free()
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		if e, err := s.Execution(t.Context(), "acme", runs.ExecutionID); err == nil && e.Finished != nil {
			break
		}
		if time.Now().After(end) {
			t.Fatal("the end of the call is not on record")
		}
	}
	// The record is seen a moment before the log has heard that it was written.
	err = call("acme")
	for end := time.Now().Add(30 * time.Second); skill.CodeOf(err) == skill.AuditUnavailable && time.Now().Before(end); err = call("acme") {
		time.Sleep(10 * time.Millisecond)
	}
	if err != nil {
		t.Error(err)
	}
	if r, err := records.Verify(t.Context(), s, records.VerifyOptions{Rows: true}); err != nil || !r.Whole() {
		t.Errorf("%+v, %v", r, err)
	}
	if err := l.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

// The server ends what a host that froze holds of records and counts after a second.
func TestServerEndsFrozenTransactionsOfRecords(t *testing.T) {
	t.Parallel()
	db := storetest.Open(t, pgtest.Start(t))
	err := quota.NewStore(db).Exchange(t.Context(), []string{"acme"}, func([]quota.Row) { time.Sleep(3 * time.Second) })
	if err == nil || !strings.Contains(err.Error(), "25P03") && !strings.Contains(err.Error(), "EOF") && !strings.Contains(err.Error(), "closed") {
		t.Errorf("a transaction in which nothing came for 3 seconds went on: %v", err)
	}
}

// A row of counts that another host holds is left out, and stops no others.
func TestHeldCountsStopNoOthers(t *testing.T) {
	t.Parallel()
	url := pgtest.Start(t)
	db := storetest.Open(t, url)
	q := musttest.Get(quota.New(quota.Options{Store: quota.NewStore(db), RateTenant: 60, Log: slog.New(slog.DiscardHandler)}))(t)
	enter := func(tenant string) error {
		leave, err := q.Enter(t.Context(), skill.Principal{ID: tenant, Tenant: tenant}, "", "echo", 0, 1)
		if err == nil {
			leave(skill.Usage{Fuel: 1})
		}
		return err
	}
	musttest.Do(t, enter("acme"))
	free := heldElsewhere(t, url, "SELECT 1 FROM agent.quota_counters WHERE id LIKE '%acme%' FOR UPDATE")
	refused := make(chan error, 1)
	go func() { refused <- enter("acme") }()
	for i := range 50 {
		if err := enter(fmt.Sprint("other ", i)); err != nil {
			t.Fatalf("call %d of another tenant: %v", i, err)
		}
	}
	if settle, err := q.Reserve(t.Context(), "other", 1, 1); err != nil {
		t.Errorf("a question of another tenant: %v", err)
	} else {
		settle(1, 1)
	}
	if err := <-refused; skill.CodeOf(err) != skill.AuditUnavailable {
		t.Errorf("a call of the tenant: %v", err)
	}
	if n, err := quota.NewStore(db).Sweep(t.Context(), time.Now().Add(1000*time.Hour), 1000); err != nil || n == 0 {
		t.Errorf("%d rows are deleted, %v", n, err)
	}
	free()
	if err := enter("acme"); err != nil {
		t.Errorf("with its counts free: %v", err)
	}
	if err := q.Close(); err != nil {
		t.Error(err)
	}
}
