package store_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"openskill/host/records"
	"openskill/internal/musttest"

	_ "github.com/jackc/pgx/v5/stdlib" // its driver

	"openskill/host/dispatch/quota"
	"openskill/host/store/pgtest"
	"openskill/host/store/storetest"
)

// uploads is a topic.
const uploads = "uploads"

// While a row is locked for which one tenant's changes wait, others' calls are counted and
// put on record: what waits holds no connection that they need.
func TestStalledChangesHoldNoConnectionOfRecords(t *testing.T) {
	t.Parallel()
	url := pgtest.Start(t)
	db := storetest.Open(t, url)
	other := musttest.Get(sql.Open("pgx", url))(t)
	defer other.Close()
	held := musttest.Get(other.BeginTx(t.Context(), nil))(t)
	musttest.Get(held.ExecContext(t.Context(), "SELECT 1 FROM agent.revisions WHERE topic = $1 FOR UPDATE", uploads))(t)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var changes sync.WaitGroup
	for i := range 20 {
		changes.Go(func() {
			err := db.Change(ctx, uploads, "acme", func(*sql.Tx, uint64) error { return nil })
			if err != nil && !errors.Is(err, context.Canceled) {
				t.Errorf("%d: %v", i, err)
			}
		})
	}
	// All that wait for the row, wait; 19 of them here and not in the database.
	waiting := func() (n int) {
		musttest.Do(t, other.QueryRowContext(t.Context(), "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'").Scan(&n))
		return n
	}
	for waiting() == 0 {
		time.Sleep(10 * time.Millisecond)
	}
	for i := range 100 {
		one, end := context.WithTimeout(t.Context(), 10*time.Second)
		if err := quota.NewStore(db).Exchange(one, []string{fmt.Sprint("beta ", i)}, func([]quota.Row) {}); err != nil {
			t.Errorf("a call of another tenant is not counted: %v", err)
		}
		if _, err := records.NewStore(db).Tenants(one); err != nil {
			t.Errorf("a page of another tenant is not read: %v", err)
		}
		end()
		if t.Failed() {
			break
		}
	}
	if n := waiting(); n != 1 {
		t.Errorf("%d changes wait in the database, want 1", n)
	}
	stop()
	if err := held.Rollback(); err != nil {
		t.Error(err)
	}
	changes.Wait()
}

// Where changes of several tenants wait, none waits for all of another's.
func TestChangesTakeTurnsByTenant(t *testing.T) {
	t.Parallel()
	url := pgtest.Start(t)
	db := storetest.Open(t, url)
	var (
		all   sync.WaitGroup
		mu    sync.Mutex
		order []string
	)
	begun, release := make(chan struct{}), make(chan struct{})
	change := func(tenant string, wait bool) {
		err := db.Change(t.Context(), uploads, tenant, func(*sql.Tx, uint64) error {
			if wait {
				close(begun)
				<-release
			}
			mu.Lock()
			order = append(order, tenant)
			mu.Unlock()
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	}
	all.Go(func() { change("acme", true) })
	<-begun
	for range 20 {
		all.Go(func() { change("acme", false) })
	}
	time.Sleep(200 * time.Millisecond) // they wait; sooner or later makes no difference to what must hold
	all.Go(func() { change("beta", false) })
	time.Sleep(200 * time.Millisecond)
	close(release)
	all.Wait()
	for i, tenant := range order {
		if tenant == "beta" && i > 3 {
			t.Errorf("another tenant came after %d changes", i)
		}
	}
	if len(order) != 22 {
		t.Errorf("%d changes", len(order))
	}
}
