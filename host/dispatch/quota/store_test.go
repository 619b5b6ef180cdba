package quota_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"openskill/host/dispatch/quota"
	"openskill/host/store"
	"openskill/host/store/storetest"
	"openskill/internal/musttest"
)

// rows are those of a database that fails, or takes as long, as a test says.
type rows struct {
	quota.Store
	db *store.DB

	mu        sync.Mutex
	down      error
	takes     time.Duration
	exchanges int
}

func newStore(t *testing.T) *rows {
	t.Helper()
	db := storetest.SQLite(t)
	return &rows{Store: quota.NewStore(db), db: db}
}

// Down makes every answer from now on err, or ends that with nil.
func (s *rows) Down(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.down = err
}

// Takes makes every answer take so long, or until its context ends.
func (s *rows) Takes(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.takes = d
}

// Exchanges is how often rows were exchanged.
func (s *rows) Exchanges() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.exchanges
}

// Rows are all of them.
func (s *rows) Rows(t *testing.T) map[string]quota.Row {
	t.Helper()
	keys := musttest.Get(store.All(t.Context(), s.db.Read, store.Column[string], "SELECT id FROM quota_counters"))(t)
	list := musttest.Get(s.Store.Read(t.Context(), keys))(t)
	all := map[string]quota.Row{}
	for _, r := range list {
		all[r.Key] = r
	}
	return all
}

func (s *rows) wait(ctx context.Context) error {
	s.mu.Lock()
	takes, down := s.takes, s.down
	s.mu.Unlock()
	if takes > 0 {
		t := time.NewTimer(takes)
		defer t.Stop()
		select {
		case <-t.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return down
}

func (s *rows) Exchange(ctx context.Context, keys []string, do func(rows []quota.Row)) error {
	err := s.wait(ctx)
	s.mu.Lock()
	s.exchanges++
	lost := s.exchanges%3 == 0
	s.mu.Unlock()
	if err != nil {
		return err
	}
	return s.Store.Exchange(ctx, keys, func(rows []quota.Row) {
		if lost { // as if the transaction had been lost to another one
			twice := append([]quota.Row(nil), rows...)
			do(twice)
		}
		do(rows)
	})
}

func (s *rows) Read(ctx context.Context, keys []string) ([]quota.Row, error) {
	if err := s.wait(ctx); err != nil {
		return nil, err
	}
	return s.Store.Read(ctx, keys)
}

func (s *rows) Sweep(ctx context.Context, before time.Time, most int) (int, error) {
	if err := s.wait(ctx); err != nil {
		return 0, err
	}
	return s.Store.Sweep(ctx, before, most)
}
