package store_test

import (
	"context"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"openskill/host/identity"
	"openskill/host/store"
	"openskill/host/store/pgtest"
	"openskill/host/store/storetest"
	"openskill/internal/musttest"
	"openskill/sdk/skill"
)

func TestKeys(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, fresh func(t *testing.T) func() *store.DB) {
		storetest.Keys(t, func(t *testing.T) (identity.KeyStore, identity.KeyStore) {
			t.Helper()
			open := fresh(t)
			return identity.NewKeyStore(open()), identity.NewKeyStore(open())
		})
	})
}

// What is changed on one host holds on another within half a second: that is how old
// what a host knows may be, and the clock here goes on by that much.
func TestKeysOnTwoHosts(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, fresh func(t *testing.T) func() *store.DB) {
		open := fresh(t)
		here, there := identity.NewKeys(identity.NewKeyStore(open())), newHost(t, open())
		k, text, err := here.Create(t.Context(), identity.NewKey{Name: "robot", Tenant: "acme", Scopes: []string{skill.ScopeRead}})
		musttest.Do(t, err)
		there.is(t, text, "")
		_, next, err := here.Rotate(t.Context(), k.ID, 0)
		musttest.Do(t, err)
		there.is(t, text, skill.Unauthorized)
		there.is(t, next, "")
		musttest.Get(here.Revoke(t.Context(), k.ID))(t)
		there.is(t, next, skill.Unauthorized)
	})
}

// A server that stops and starts again: keys are believed for half a second, then their
// holders are told that it is not they who are wrong, and then all is well again.
func TestKeysOfAServerThatIsGone(t *testing.T) {
	t.Parallel()
	server := pgtest.New(t, "synchronous_commit = on") // it is killed, and must know what it acknowledged
	db := storetest.Open(t, server.Database(t))
	h := newHost(t, db)
	_, text, err := identity.NewKeys(identity.NewKeyStore(db)).Create(t.Context(), identity.NewKey{Name: "robot", Tenant: "acme", Scopes: []string{skill.ScopeRead}})
	musttest.Do(t, err)
	h.is(t, text, "")
	musttest.Do(t, server.Stop())
	if p, err := h.Authenticate(t.Context(), identity.Credentials{APIKey: []string{text}}); err != nil {
		t.Errorf("within half a second: %+v, %v", p, err)
	}
	for range 3 {
		h.is(t, text, skill.AuditUnavailable)
	}
	musttest.Do(t, server.Start())
	h.is(t, text, "")
}

// host is one whose clock the test moves.
type host struct {
	*identity.Authenticator
	now atomic.Pointer[time.Time]
}

func newHost(t *testing.T, db *store.DB) *host {
	t.Helper()
	h := &host{}
	begun := time.Now()
	h.now.Store(&begun)
	var err error
	h.Authenticator, err = identity.New(identity.Options{Keys: identity.NewKeyStore(db), Now: func() time.Time { return *h.now.Load() }, Log: slog.New(slog.DiscardHandler)})
	musttest.Do(t, err)
	return h
}

// is checks how a key is answered half a second later.
func (h *host) is(t *testing.T, text string, want skill.Code) {
	t.Helper()
	later := h.now.Load().Add(500 * time.Millisecond)
	h.now.Store(&later)
	p, err := h.Authenticate(t.Context(), identity.Credentials{APIKey: []string{text}})
	if skill.CodeOf(err) != want || (want == "") != (p.Tenant == "acme") {
		t.Errorf("%+v, %v, want %q", p, err, want)
	}
}

// TestListsHoldUpNoKeys: while lists have every connection that they may have, keys are looked up.
func TestListsHoldUpNoKeys(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, fresh func(t *testing.T) func() *store.DB) {
		db := fresh(t)()
		key, _, err := identity.NewKeys(identity.NewKeyStore(db)).Create(t.Context(), identity.NewKey{Name: "robot", Tenant: "acme", Scopes: []string{skill.ScopeRead}})
		musttest.Do(t, err)
		release := musttest.Get(db.HoldReaders(t.Context()))(t)
		defer release()
		ctx, stop := context.WithTimeout(t.Context(), 20*time.Second)
		defer stop()
		if _, err := identity.NewKeyStore(db).Key(ctx, key.ID); err != nil {
			t.Errorf("a key: %v", err)
		}
		if _, _, err := identity.NewKeyStore(db).Changes(ctx, 0, 10); err != nil {
			t.Errorf("which keys were changed: %v", err)
		}
	})
}
