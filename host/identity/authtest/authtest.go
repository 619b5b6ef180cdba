// Package authtest is a store of API keys for tests, in memory.
package authtest

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"openskill/host/identity"
)

// Keys is an [identity.KeyStore] in memory. The zero value is empty. It is safe for
// concurrent use.
type Keys struct {
	mu       sync.Mutex
	rows     map[string]*row
	revision uint64
	down     error
	block    chan struct{}
	asked    map[string]int
}

type row struct {
	key      identity.Key
	revision uint64
}

var _ identity.KeyStore = (*Keys)(nil)

// Down makes every answer from now on err, or ends that with nil.
func (s *Keys) Down(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.down = err
}

// Block makes every question wait until the function is called that it gives, or until
// its context ends.
func (s *Keys) Block() (release func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	block := make(chan struct{})
	s.block = block
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.block = nil
		close(block)
	}
}

// Asked is how often a method was called.
func (s *Keys) Asked(method string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked[method]
}

// Put writes a row as it is, past all rules.
func (s *Keys) Put(k identity.Key) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.set(&k)
}

func (s *Keys) set(k *identity.Key) {
	if s.rows == nil {
		s.rows = map[string]*row{}
	}
	s.revision++
	c := *k
	c.Scopes = slices.Clone(k.Scopes)
	s.rows[k.ID] = &row{c, s.revision}
}

// enter begins a method: it takes the lock.
func (s *Keys) enter(ctx context.Context, method string) error {
	s.mu.Lock()
	if s.asked == nil {
		s.asked = map[string]int{}
	}
	s.asked[method]++
	if block := s.block; block != nil {
		s.mu.Unlock()
		select {
		case <-block:
		case <-ctx.Done():
		}
		s.mu.Lock()
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return s.down
}

// Key implements [identity.Lookup].
func (s *Keys) Key(ctx context.Context, id string) (*identity.Key, error) {
	err := s.enter(ctx, "Key")
	defer s.mu.Unlock()
	if err != nil {
		return nil, err
	}
	r := s.rows[id]
	if r == nil {
		return nil, identity.ErrNoKey
	}
	return r.copied(), nil
}

func (r *row) copied() *identity.Key {
	k := r.key
	k.Scopes = slices.Clone(k.Scopes)
	return &k
}

// Changes implements [identity.Lookup].
func (s *Keys) Changes(ctx context.Context, after uint64, most int) (ids []string, now uint64, err error) {
	err = s.enter(ctx, "Changes")
	defer s.mu.Unlock()
	if err != nil {
		return nil, 0, err
	}
	var changed []*row
	for _, r := range s.rows {
		if r.revision > after {
			changed = append(changed, r)
		}
	}
	slices.SortFunc(changed, func(a, b *row) int { return cmp.Compare(b.revision, a.revision) })
	for _, r := range changed[:min(len(changed), most)] {
		ids = append(ids, r.key.ID)
	}
	return ids, max(s.revision, after), nil
}

// Touch implements [identity.Lookup].
func (s *Keys) Touch(ctx context.Context, used map[string]time.Time) error {
	err := s.enter(ctx, "Touch")
	defer s.mu.Unlock()
	if err != nil {
		return err
	}
	for id, at := range used {
		if r := s.rows[id]; r != nil && at.After(r.key.LastUsedAt) {
			r.key.LastUsedAt = at
		}
	}
	return nil
}

// Now implements [identity.KeyStore].
func (s *Keys) Now(ctx context.Context) (time.Time, error) {
	err := s.enter(ctx, "Now")
	defer s.mu.Unlock()
	return time.Now(), err
}

// Create implements [identity.KeyStore].
func (s *Keys) Create(ctx context.Context, k *identity.Key) error {
	err := s.enter(ctx, "Create")
	defer s.mu.Unlock()
	if err != nil {
		return err
	}
	if s.rows[k.ID] != nil {
		return errors.New("authtest: there is a key of this id")
	}
	s.set(k)
	return nil
}

// Keys implements [identity.KeyStore].
func (s *Keys) Keys(ctx context.Context, q identity.KeyQuery) ([]*identity.Key, string, error) {
	err := s.enter(ctx, "Keys")
	defer s.mu.Unlock()
	if err != nil {
		return nil, "", err
	}
	var all []*identity.Key
	for _, r := range s.rows {
		all = append(all, r.copied())
	}
	newest := func(a, b *identity.Key) int {
		return cmp.Or(b.CreatedAt.Compare(a.CreatedAt), cmp.Compare(b.ID, a.ID))
	}
	slices.SortFunc(all, newest)
	if q.Cursor != "" {
		i := slices.IndexFunc(all, func(k *identity.Key) bool { return k.ID == q.Cursor })
		if i < 0 {
			return nil, "", identity.ErrNoKey
		}
		all = all[i+1:]
	}
	all = slices.DeleteFunc(all, func(k *identity.Key) bool { return q.Tenant != "" && k.Tenant != q.Tenant })
	if len(all) <= q.Limit {
		return all, "", nil
	}
	return all[:q.Limit], all[q.Limit-1].ID, nil
}

// Rotate implements [identity.KeyStore].
func (s *Keys) Rotate(ctx context.Context, id string, hash [32]byte, oldUntil, now time.Time) (bool, error) {
	err := s.enter(ctx, "Rotate")
	defer s.mu.Unlock()
	if err != nil {
		return false, err
	}
	r := s.rows[id]
	if r == nil {
		return false, identity.ErrNoKey
	}
	if r.key.State(now) != "active" {
		return false, nil
	}
	k := r.key
	k.OldHash, k.OldUntil, k.Hash, k.RotatedAt = k.Hash, oldUntil, hash, now
	s.set(&k)
	return true, nil
}

// Revoke implements [identity.KeyStore].
func (s *Keys) Revoke(ctx context.Context, id string, now time.Time) error {
	err := s.enter(ctx, "Revoke")
	defer s.mu.Unlock()
	if err != nil {
		return err
	}
	r := s.rows[id]
	if r == nil {
		return identity.ErrNoKey
	}
	if r.key.RevokedAt.IsZero() {
		k := r.key
		k.RevokedAt = now
		s.set(&k)
	}
	return nil
}
