package identity_test

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"openskill/host/identity"
	"openskill/internal/musttest"
	"openskill/sdk/skill"
)

// FuzzCredentials: whatever is shown, nobody is let in but who shows the key or a token
// that was signed, everybody else reads the same, and the log repeats nothing.
func FuzzCredentials(f *testing.F) {
	store := newStore(f)
	k, text, err := identity.NewKeys(store).Create(f.Context(), identity.NewKey{Name: "n", Tenant: "acme", Scopes: []string{skill.ScopeRead}})
	musttest.Do(f, err)
	file := writeSet(f, wholeSet(f))
	want := refusal(f)
	signed := token(f, hs, good(), []byte(secret))
	f.Add("Bearer "+text, "", 1)
	f.Add("Bearer "+signed, "", 1)
	f.Add("Bearer "+token(f, `{"alg":"RS256","kid":"rsa"}`, good(), issuerKeys().rsa), "", 1)
	f.Add("", text, 2)
	f.Add("Bearer "+text, text, 3)
	f.Add("Bearer a.b.c", "osk_"+k.ID+"_", 0)
	f.Add("bearer  eyJhbGciOiJub25lIn0.e30.", "", 1)
	f.Fuzz(func(t *testing.T, authorization, apiKey string, which int) {
		h := open(t, func(o *identity.Options) {
			o.Keys, o.Secret, o.KeySet, o.Issuer, o.Audience = store, secret, file, issuer, aud
		})
		var c identity.Credentials
		if which&1 != 0 {
			c.Authorization = []string{authorization}
		}
		if which&2 != 0 {
			c.APIKey = []string{apiKey}
		}
		c.Query = which&4 != 0
		p, err := h.Authenticate(t.Context(), c)
		if err == nil {
			if p.Tenant != "acme" || which&4 != 0 || which&3 == 3 {
				t.Fatalf("%+v was let in by %q %q", p, authorization, apiKey)
			}
			shown := authorization + apiKey
			if p.Type == skill.Agent && !strings.Contains(shown, text) {
				t.Fatalf("a key was made up: %q", shown)
			}
			return
		}
		if diff := cmp.Diff(want, err); diff != "" || p.ID != "" {
			t.Fatalf("%+v, another answer: %s", p, diff)
		}
		if log := h.log.String(); len(apiKey) > 24 && strings.Contains(log, apiKey) || len(authorization) > 24 && strings.Contains(log, authorization) {
			t.Fatalf("the log repeats what was shown: %s", log)
		}
	})
}

// The goals: 10 us for a key that is known, 30 us for a token of HS256, whether it is
// known or not.
func BenchmarkAuthenticate(b *testing.B) {
	store := newStore(b)
	_, text, err := identity.NewKeys(store).Create(b.Context(), identity.NewKey{Name: "n", Tenant: "acme", Scopes: []string{skill.ScopeRead}})
	if err != nil {
		b.Fatal(err)
	}
	k := issuerKeys()
	file := writeSet(b, wholeSet(b))
	var mu sync.Mutex
	var ahead time.Duration
	now := func() time.Time {
		mu.Lock()
		defer mu.Unlock()
		return time.Now().Add(ahead)
	}
	h := open(b, func(o *identity.Options) {
		o.Keys, o.Secret, o.KeySet, o.Issuer, o.Audience, o.Now = store, secret, file, issuer, aud, now
	})
	longLived := good("exp", time.Now().Unix()+1<<32)
	for _, c := range []struct {
		name, shown string
		forget      time.Duration // of the clock, for each call
	}{
		{"key", text, 0},
		{"HS256/known", token(b, hs, longLived, []byte(secret)), 0},
		{"HS256/new", token(b, hs, longLived, []byte(secret)), 10 * time.Second},
		{"RS256/new", token(b, `{"alg":"RS256","kid":"rsa"}`, longLived, k.rsa), 10 * time.Second},
		{"ES256/new", token(b, `{"alg":"ES256","kid":"ec"}`, longLived, k.ec), 10 * time.Second},
		{"EdDSA/new", token(b, `{"alg":"EdDSA","kid":"ed"}`, longLived, k.ed), 10 * time.Second},
	} {
		b.Run(c.name, func(b *testing.B) {
			shown := bearer(c.shown)
			for b.Loop() {
				if c.forget > 0 {
					mu.Lock()
					ahead += c.forget
					mu.Unlock()
				}
				if _, err := h.Authenticate(b.Context(), shown); err != nil {
					b.Fatal(err, h.log)
				}
			}
		})
	}
}
