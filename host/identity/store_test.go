package identity_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"openskill/host/identity"
	"openskill/host/store"
	"openskill/host/store/storetest"
	"openskill/internal/musttest"
)

// keyStore is that of a database that fails, or takes as long, as a test says.
type keyStore struct {
	identity.KeyStore
	db *store.DB

	mu    sync.Mutex
	down  error
	block chan struct{}
	asked map[string]int
}

func newStore(t testing.TB) *keyStore {
	t.Helper()
	db := storetest.SQLite(t)
	return &keyStore{KeyStore: identity.NewKeyStore(db), db: db, asked: map[string]int{}}
}

// Down makes every answer from now on err, or ends that with nil.
func (s *keyStore) Down(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.down = err
}

// Block makes every question wait until the function is called that it gives, or until
// its context ends.
func (s *keyStore) Block() (release func()) {
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
func (s *keyStore) Asked(method string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked[method]
}

// Put writes a row as it is, past all rules.
func (s *keyStore) Put(t *testing.T, k identity.Key) {
	t.Helper()
	musttest.Get(s.db.Exec(t.Context(), "DELETE FROM api_keys WHERE id = $1", k.ID))(t)
	musttest.Do(t, s.Create(t.Context(), &k))
}

func (s *keyStore) enter(ctx context.Context, method string) error {
	s.mu.Lock()
	s.asked[method]++
	block := s.block
	s.mu.Unlock()
	if block != nil {
		select {
		case <-block:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.down
}

func (s *keyStore) Key(ctx context.Context, id string) (*identity.Key, error) {
	if err := s.enter(ctx, "Key"); err != nil {
		return nil, err
	}
	return s.KeyStore.Key(ctx, id)
}

func (s *keyStore) Changes(ctx context.Context, after uint64, most int) ([]string, uint64, error) {
	if err := s.enter(ctx, "Changes"); err != nil {
		return nil, 0, err
	}
	return s.KeyStore.Changes(ctx, after, most)
}

func (s *keyStore) Touch(ctx context.Context, used map[string]time.Time) error {
	if err := s.enter(ctx, "Touch"); err != nil {
		return err
	}
	return s.KeyStore.Touch(ctx, used)
}
