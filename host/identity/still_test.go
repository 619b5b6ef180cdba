package identity_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"openskill/host/identity"
	"openskill/internal/musttest"
	"openskill/sdk/skill"
)

// Whoever had a call queued is looked at again when its turn comes.
func TestStill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := openKeys(t)
		_, text := h.create(t, time.Hour)
		p := musttest.Get(h.Authenticate(t.Context(), bearer(text)))(t)
		still := func(a *identity.Authenticator, p skill.Principal, good bool) {
			t.Helper()
			now, err := a.Still(context.Background(), p, time.Now())
			if good != (err == nil) || good && (now.ID != p.ID || now.Tenant != p.Tenant) || !good && (skill.CodeOf(err) != skill.Unauthorized || now.ID != "") {
				t.Errorf("%+v: %+v, %v", p, now, err)
			}
		}
		still(h.Authenticator, p, true)
		more := p
		more.Scopes = skill.Scopes()
		if now := musttest.Get(h.Still(t.Context(), more, time.Now()))(t); len(now.Scopes) != len(p.Scopes) {
			t.Errorf("the scopes are those of the row of the queue: %v", now.Scopes)
		}
		other := p
		other.Tenant = "other"
		still(h.Authenticator, other, false)
		other = p
		other.Key = "0123456789abcdef"
		still(h.Authenticator, other, false)
		for _, p := range []skill.Principal{skill.Local(), {ID: "anonymous", Type: skill.Anonymous, Tenant: "anonymous"}, {ID: "ann", Type: skill.Human, Tenant: "acme", Until: time.Now().Add(time.Hour)}} {
			if _, err := h.Still(t.Context(), p, time.Now()); skill.CodeOf(err) != skill.AuditUnavailable {
				t.Errorf("%s, whom another host let in: %v", p.Type, err)
			}
		}
		_, second := h.create(t, 0)
		revoked := musttest.Get(h.Authenticate(t.Context(), bearer(second)))(t)
		musttest.Get(h.keys.Revoke(t.Context(), revoked.Key))(t)
		time.Sleep(2 * time.Second)
		still(h.Authenticator, revoked, false)
		rotated, third := h.create(t, 0)
		before := musttest.Get(h.Authenticate(t.Context(), bearer(third)))(t)
		accepted := time.Now()
		time.Sleep(time.Second)
		_, fourth, err := h.keys.Rotate(t.Context(), rotated.ID, 10*time.Second)
		musttest.Do(t, err)
		time.Sleep(2 * time.Second)
		old, current := musttest.Get(h.Authenticate(t.Context(), bearer(third)))(t), musttest.Get(h.Authenticate(t.Context(), bearer(fourth)))(t)
		during := time.Now()
		musttest.Get(h.Still(t.Context(), before, accepted))(t)
		time.Sleep(10 * time.Second)
		if _, err := h.Still(t.Context(), old, during); skill.CodeOf(err) != skill.Unauthorized {
			t.Errorf("accepted with the secret before, in the overlap: %v", err)
		}
		musttest.Get(h.Still(t.Context(), current, during))(t)
		if _, err := h.Still(t.Context(), before, accepted); skill.CodeOf(err) != skill.Unauthorized {
			t.Errorf("accepted with the key before: %v", err)
		}
		musttest.Get(h.Still(t.Context(), before, time.Now()))(t)
		time.Sleep(time.Hour)
		still(h.Authenticator, p, false)

		open := open(t, func(o *identity.Options) { o.Anonymous = []string{skill.ScopeRead} })
		still(open.Authenticator, skill.Principal{ID: "anonymous", Type: skill.Anonymous, Tenant: "anonymous", Scopes: skill.Scopes()}, true)
		if _, err := open.Still(t.Context(), p, time.Now()); skill.CodeOf(err) != skill.AuditUnavailable {
			t.Errorf("a key, on a host without keys: %v", err)
		}
	})
	h := openTokens(t)
	ann := musttest.Get(h.Authenticate(t.Context(), bearer(token(t, hs, good(), []byte(secret)))))(t)
	musttest.Get(h.Still(t.Context(), ann, time.Now()))(t)
	ann.Until = time.Now().Add(-time.Second)
	if _, err := h.Still(t.Context(), ann, time.Now()); skill.CodeOf(err) != skill.Unauthorized {
		t.Errorf("an expired token: %v", err)
	}
}
