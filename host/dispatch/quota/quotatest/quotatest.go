// Package quotatest is a store of quotas for tests, in memory.
package quotatest

import (
	"context"
	"sync"
	"time"

	"openskill/host/dispatch/quota"
)

// Store is a [quota.Store] in memory. The zero value is empty. It is safe for concurrent
// use.
type Store struct {
	mu        sync.Mutex
	rows      map[string]quota.Row
	down      error
	takes     time.Duration
	exchanges int
}

var _ quota.Store = (*Store)(nil)

// Down makes every answer from now on err, or ends that with nil.
func (s *Store) Down(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.down = err
}

// Takes makes every answer take so long, or until its context ends.
func (s *Store) Takes(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.takes = d
}

// Exchanges is how often rows were exchanged.
func (s *Store) Exchanges() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.exchanges
}

// Rows are all of them.
func (s *Store) Rows() map[string]quota.Row {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := map[string]quota.Row{}
	for key, r := range s.rows {
		all[key] = r
	}
	return all
}

func (s *Store) wait(ctx context.Context) error {
	s.mu.Lock()
	takes := s.takes
	s.mu.Unlock()
	if takes > 0 {
		t := time.NewTimer(takes)
		defer t.Stop()
		select {
		case <-t.C:
		case <-ctx.Done():
		}
	}
	return ctx.Err()
}

// read is called with s.mu held.
func (s *Store) read(keys []string) []quota.Row {
	rows := make([]quota.Row, len(keys))
	for i, key := range keys {
		rows[i] = s.rows[key]
		rows[i].Key = key
	}
	return rows
}

// Read implements [quota.Store].
func (s *Store) Read(ctx context.Context, keys []string) ([]quota.Row, error) {
	if err := s.wait(ctx); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.read(keys), s.down
}

// Exchange implements [quota.Store].
func (s *Store) Exchange(ctx context.Context, keys []string, do func(rows []quota.Row)) error {
	if err := s.wait(ctx); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.exchanges++
	if s.down != nil {
		return s.down
	}
	if s.rows == nil {
		s.rows = map[string]quota.Row{}
	}
	read := func() []quota.Row { return s.read(keys) }
	if s.exchanges%3 == 0 { // as if the transaction had been lost
		do(read())
	}
	rows := read()
	do(rows)
	for _, r := range rows {
		s.rows[r.Key] = r
	}
	return nil
}

// Sweep implements [quota.Store].
func (s *Store) Sweep(ctx context.Context, before time.Time, most int) (int, error) {
	if err := s.wait(ctx); err != nil {
		return 0, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for key, r := range s.rows {
		if n < most && r.Ends.Before(before) {
			delete(s.rows, key)
			n++
		}
	}
	return n, s.down
}
