package storetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"openskill/host/identity"
	"openskill/internal/musttest"
)

// Keys holds a store of API keys to its contract. open gives a new, empty one for each
// call; another gives the same one as another process would open it.
func Keys(t *testing.T, open func(t *testing.T) (store, another identity.KeyStore)) {
	t.Helper()
	for name, test := range map[string]func(t *testing.T, s, another identity.KeyStore){
		"what is written is read": keysRoundTrip,
		"pages":                   keysPages,
		"rotation":                keysRotate,
		"revocation":              keysRevoke,
		"changes":                 keysChanges,
		"changes of many at once": keysManyChanges,
		"uses":                    keysTouch,
		"hostile text":            keysHostile,
		"context":                 keysContext,
	} {
		t.Run(name, func(t *testing.T) {
			s, another := open(t)
			test(t, s, another)
		})
	}
}

// day is a time as databases keep it.
var day = time.Date(2026, 11, 22, 10, 0, 0, 123456000, time.UTC)

func aKey(id string) *identity.Key {
	k := &identity.Key{ID: (id + strings.Repeat("a", 16))[:16], Name: "robot " + id, Tenant: "acme", Scopes: []string{"skills:invoke", "skills:read"}, CreatedAt: day, CreatedBy: "local"}
	copy(k.Hash[:], "hash of "+k.ID)
	return k
}

func create(t *testing.T, s identity.KeyStore, keys ...*identity.Key) {
	t.Helper()
	for _, k := range keys {
		musttest.Do(t, s.Create(t.Context(), k))
	}
}

func get(t *testing.T, s identity.KeyStore, id string) *identity.Key {
	t.Helper()
	return musttest.Get(s.Key(t.Context(), id))(t)
}

func keysRoundTrip(t *testing.T, s, another identity.KeyStore) {
	t.Helper()
	least := aKey("least")
	full := aKey("full")
	full.ExpiresAt, full.RotatedAt, full.RevokedAt, full.LastUsedAt, full.OldUntil = day.Add(1), day.Add(2e3), day.Add(3e3), day.Add(4e3), day.Add(5e3)
	full.ExpiresAt = day.Add(1000)
	full.OldHash = [32]byte{1, 2, 31: 0xff}
	create(t, s, least, full)
	for _, want := range []*identity.Key{least, full} {
		if diff := cmp.Diff(want, get(t, another, want.ID)); diff != "" {
			t.Error(diff)
		}
	}
	if _, err := s.Key(t.Context(), "missing"); !errors.Is(err, identity.ErrNoKey) {
		t.Errorf("a key that is not there: %v", err)
	}
	again := aKey("least")
	again.Tenant = "other"
	if err := s.Create(t.Context(), again); err == nil || errors.Is(err, identity.ErrNoKey) {
		t.Errorf("an id that is taken: %v", err)
	}
	if got := get(t, s, least.ID); got.Tenant != "acme" {
		t.Errorf("it was overwritten: %+v", got)
	}
}

func keysPages(t *testing.T, s, _ identity.KeyStore) {
	t.Helper()
	var want []string
	for i := range 9 {
		k := aKey(string(rune('a' + i)))
		k.CreatedAt = day.Add(time.Duration(i/3) * time.Hour) // three at a time
		if i%2 == 1 {
			k.Tenant = "other"
		}
		create(t, s, k)
		want = append(want, k.ID)
	}
	slices.Reverse(want)
	pages := func(q identity.KeyQuery) (ids []string) {
		t.Helper()
		for {
			list, next, err := s.Keys(t.Context(), q)
			if err != nil || len(list) > q.Limit || len(ids) > 100 {
				t.Fatal(err, len(list), len(ids))
			}
			for _, k := range list {
				ids = append(ids, k.ID)
			}
			if q.Cursor = next; next == "" {
				return ids
			}
		}
	}
	for limit := 1; limit <= 10; limit++ {
		if diff := cmp.Diff(want, pages(identity.KeyQuery{Limit: limit})); diff != "" {
			t.Errorf("in pages of %d: %s", limit, diff)
		}
	}
	if got := pages(identity.KeyQuery{Tenant: "other", Limit: 3}); len(got) != 4 {
		t.Errorf("of a tenant: %v", got)
	}
	if got := pages(identity.KeyQuery{Tenant: "nobody", Limit: 3}); len(got) != 0 {
		t.Errorf("of a tenant without keys: %v", got)
	}
	if _, _, err := s.Keys(t.Context(), identity.KeyQuery{Cursor: "zzz", Limit: 1}); !errors.Is(err, identity.ErrNoKey) {
		t.Errorf("a cursor that was made up: %v", err)
	}
}

func keysRotate(t *testing.T, s, _ identity.KeyStore) {
	t.Helper()
	k, expired := aKey("a"), aKey("b")
	expired.ExpiresAt = day
	create(t, s, k, expired)
	next := [32]byte{7}
	now := day.Add(time.Hour)
	if done, err := s.Rotate(t.Context(), k.ID, next, now.Add(time.Minute), now); !done || err != nil {
		t.Fatal(done, err)
	}
	want := *k
	want.OldHash, want.Hash, want.OldUntil, want.RotatedAt = k.Hash, next, now.Add(time.Minute), now
	if diff := cmp.Diff(&want, get(t, s, k.ID)); diff != "" {
		t.Error(diff)
	}
	if done, err := s.Rotate(t.Context(), expired.ID, next, now, now); done || err != nil {
		t.Errorf("an expired key: %v, %v", done, err)
	}
	musttest.Do(t, s.Revoke(t.Context(), k.ID, now))
	if done, err := s.Rotate(t.Context(), k.ID, [32]byte{8}, now, now); done || err != nil {
		t.Errorf("a revoked key: %v, %v", done, err)
	}
	if got := get(t, s, k.ID); got.Hash != next {
		t.Error("a revoked key was rotated all the same")
	}
	if _, err := s.Rotate(t.Context(), "missing", next, now, now); !errors.Is(err, identity.ErrNoKey) {
		t.Errorf("a key that is not there: %v", err)
	}
}

func keysRevoke(t *testing.T, s, another identity.KeyStore) {
	t.Helper()
	k := aKey("a")
	create(t, s, k)
	for i := range 3 {
		musttest.Do(t, s.Revoke(t.Context(), k.ID, day.Add(time.Duration(i+1)*time.Hour)))
		if got := get(t, another, k.ID); !got.RevokedAt.Equal(day.Add(time.Hour)) {
			t.Errorf("revoked at %v", got.RevokedAt)
		}
	}
	if err := s.Revoke(t.Context(), "missing", day); !errors.Is(err, identity.ErrNoKey) {
		t.Errorf("a key that is not there: %v", err)
	}
}

func keysChanges(t *testing.T, s, another identity.KeyStore) {
	t.Helper()
	changes := func(after uint64, most int, want ...string) uint64 {
		t.Helper()
		ids, now, err := another.Changes(t.Context(), after, most)
		if err != nil || now < after || !slices.Equal(ids, want) {
			t.Errorf("%v, %d, %v, want %v after %d", ids, now, err, want, after)
		}
		return now
	}
	a, b, c := aKey("a"), aKey("b"), aKey("c")
	at := changes(0, 10)
	create(t, s, a, b)
	at = changes(at, 10, b.ID, a.ID)
	at = changes(at, 10)
	create(t, s, c)
	musttest.Do(t, s.Revoke(t.Context(), a.ID, day))
	changes(at, 1, a.ID)
	at = changes(at, 10, a.ID, c.ID)
	if err := s.Revoke(t.Context(), a.ID, day); err != nil { // nothing changes
		t.Fatal(err)
	}
	musttest.Do(t, s.Touch(t.Context(), map[string]time.Time{b.ID: day}))
	at = changes(at, 10)
	musttest.Get(s.Rotate(t.Context(), b.ID, [32]byte{1}, day, day))(t)
	at = changes(at, 10, b.ID)
	changes(at+1000, 10)
	changes(1<<63, 10)
}

// keysManyChanges: whoever follows changes while many write misses none of them.
func keysManyChanges(t *testing.T, s, another identity.KeyStore) {
	t.Helper()
	const writers, each = 4, 15
	var writing sync.WaitGroup
	for w := range writers {
		writing.Go(func() {
			for i := range each {
				k := aKey(fmt.Sprintf("w%ci%c", 'a'+w, 'a'+i))
				to := s
				if i%2 == 1 {
					to = another
				}
				if err := to.Create(t.Context(), k); err != nil {
					t.Error(err)
				}
			}
		})
	}
	done := make(chan struct{})
	go func() { writing.Wait(); close(done) }()
	seen := map[string]bool{}
	var at uint64
	for over := false; ; {
		ids, now, err := another.Changes(t.Context(), at, 1000)
		musttest.Do(t, err)
		for _, id := range ids {
			seen[id] = true
		}
		at = now
		if over {
			break
		}
		select {
		case <-done:
			over = true // one more look
		default:
		}
	}
	if len(seen) != writers*each {
		t.Errorf("%d of %d changes were seen", len(seen), writers*each)
	}
}

func keysTouch(t *testing.T, s, another identity.KeyStore) {
	t.Helper()
	a, b := aKey("a"), aKey("b")
	create(t, s, a, b)
	for _, step := range []struct {
		used map[string]time.Time
		want time.Time // of a
	}{
		{nil, time.Time{}},
		{map[string]time.Time{a.ID: day, "missing": day}, day},
		{map[string]time.Time{a.ID: day.Add(-time.Hour), b.ID: day}, day},
		{map[string]time.Time{a.ID: day.Add(time.Hour)}, day.Add(time.Hour)},
	} {
		musttest.Do(t, s.Touch(t.Context(), step.used))
		if got := get(t, another, a.ID).LastUsedAt; !got.Equal(step.want) {
			t.Errorf("last used %v, want %v", got, step.want)
		}
	}
	// More than go at once, and each with its own time.
	used := map[string]time.Time{}
	for i := range 250 {
		k := aKey(fmt.Sprintf("many%da", i))
		create(t, s, k)
		used[k.ID] = day.Add(time.Duration(i) * time.Second)
	}
	musttest.Do(t, s.Touch(t.Context(), used))
	for id, want := range used {
		if got := get(t, another, id).LastUsedAt; !got.Equal(want) {
			t.Errorf("%s was last used %v, want %v", id, got, want)
		}
	}
	if got := get(t, another, a.ID).LastUsedAt; !got.Equal(day.Add(time.Hour)) {
		t.Errorf("one that was not touched was last used %v", got)
	}
}

// keysHostile: ids come from strangers, before anything is known of them.
func keysHostile(t *testing.T, s, _ identity.KeyStore) {
	t.Helper()
	for _, id := range []string{"", "\x00", "a\x00b", "\xff\xfe", "' OR 1=1 --", strings.Repeat("x", 1<<20), "%", "?", "??", "?0"} {
		if _, err := s.Key(t.Context(), id); !errors.Is(err, identity.ErrNoKey) {
			t.Errorf("%.20q: %v", id, err)
		}
		if err := s.Revoke(t.Context(), id, day); !errors.Is(err, identity.ErrNoKey) {
			t.Errorf("revoking %.20q: %v", id, err)
		}
		if err := s.Touch(t.Context(), map[string]time.Time{id: day}); err != nil {
			t.Errorf("touching %.20q: %v", id, err)
		}
	}
	k := aKey("a")
	k.Name, k.Tenant, k.CreatedBy = `'"\?0 ?`, "te'na?nt", "x\x00y\xff"
	create(t, s, k)
	got := get(t, s, k.ID)
	if got.Name != k.Name || got.Tenant != k.Tenant || !strings.HasPrefix(got.CreatedBy, "x") {
		t.Errorf("%+v", got)
	}
}

func keysContext(t *testing.T, s, _ identity.KeyStore) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	k := aKey("a")
	if err := s.Create(ctx, k); err == nil {
		t.Error("created after the end")
	}
	if _, err := s.Key(ctx, k.ID); err == nil || errors.Is(err, identity.ErrNoKey) {
		t.Errorf("read after the end: %v", err)
	}
	if _, _, err := s.Changes(ctx, 0, 1); err == nil {
		t.Error("changes after the end")
	}
	if _, err := s.Now(ctx); err == nil {
		t.Error("a time after the end")
	}
	if now, err := s.Now(t.Context()); err != nil || time.Since(now).Abs() > time.Minute {
		t.Errorf("the time is %s, %v", now, err)
	}
	create(t, s, k)
}
