package identity_test

import (
	"strings"
	"testing"
	"time"

	"openskill/host/identity"
	"openskill/internal/musttest"
	"openskill/sdk/skill"
)

func TestNewKeys(t *testing.T) {
	keys := identity.NewKeys(newStore(t))
	read := []string{skill.ScopeRead}
	many := make([]string, 65)
	for i := range many {
		many[i] = "skills:invoke:s" + strings.Repeat("a", i)[:min(i, 60)] + string(rune('0'+i%10))
	}
	for name, c := range map[string]struct {
		key identity.NewKey
		why string // "": it is made
	}{
		"as it should be":     {identity.NewKey{Name: "n", Tenant: "acme", Scopes: read}, ""},
		"of the operator":     {identity.NewKey{Name: "n", Tenant: "local", Scopes: []string{"admin"}}, ""},
		"for one skill":       {identity.NewKey{Name: "n", Tenant: "a", Scopes: []string{"skills:invoke:echo"}}, ""},
		"for ever":            {identity.NewKey{Name: "n", Tenant: "a", Scopes: read, Life: identity.Never}, ""},
		"of a long name":      {identity.NewKey{Name: strings.Repeat("ä", 50), Tenant: "a", Scopes: read}, ""},
		"no name":             {identity.NewKey{Tenant: "a", Scopes: read}, "invalid key name"},
		"101 bytes":           {identity.NewKey{Name: strings.Repeat("n", 101), Tenant: "a", Scopes: read}, "invalid key name"},
		"invisible":           {identity.NewKey{Name: "n\u202e", Tenant: "a", Scopes: read}, "invalid key name"},
		"no tenant":           {identity.NewKey{Name: "n", Scopes: read}, "invalid tenant"},
		"tenant of a pattern": {identity.NewKey{Name: "n", Tenant: "*", Scopes: read}, "invalid tenant"},
		"tenant with a slash": {identity.NewKey{Name: "n", Tenant: "a/b", Scopes: read}, "invalid tenant"},
		"tenant of nobody":    {identity.NewKey{Name: "n", Tenant: "Anonymous", Scopes: read}, "invalid tenant"},
		"65 bytes":            {identity.NewKey{Name: "n", Tenant: strings.Repeat("t", 65), Scopes: read}, "invalid tenant"},
		"no scopes":           {identity.NewKey{Name: "n", Tenant: "a"}, "1 to 64 scopes"},
		"unknown scope":       {identity.NewKey{Name: "n", Tenant: "a", Scopes: []string{"skills:reed"}}, `unknown scope "skills:reed": use skills:read,`},
		"scope of no skill":   {identity.NewKey{Name: "n", Tenant: "a", Scopes: []string{"skills:invoke:../x"}}, "unknown scope"},
		"65 scopes":           {identity.NewKey{Name: "n", Tenant: "a", Scopes: many}, "1 to 64 scopes"},
		"eleven years":        {identity.NewKey{Name: "n", Tenant: "a", Scopes: read, Life: 11 * 365 * 24 * time.Hour}, "at most 87600 h"},
		"ended before":        {identity.NewKey{Name: "n", Tenant: "a", Scopes: read, Life: -1}, "at most"},
	} {
		k, text, err := keys.Create(t.Context(), c.key)
		if c.why == "" {
			if err != nil || !strings.HasPrefix(text, "osk_"+k.ID+"_") || c.key.Life == identity.Never != k.ExpiresAt.IsZero() {
				t.Errorf("%s: %+v, %v", name, k, err)
			}
			if strings.Contains(string(k.Hash[:]), text) {
				t.Errorf("%s: the key itself is kept", name)
			}
			continue
		}
		if skill.CodeOf(err) != skill.InvalidArgument || !strings.Contains(err.Error(), c.why) || text != "" {
			t.Errorf("%s: %v, want %q", name, err, c.why)
		}
	}
}

func TestManage(t *testing.T) {
	store := newStore(t)
	keys := identity.NewKeys(store)
	for name, err := range map[string]error{
		"get":    second(keys.Get(t.Context(), "aaaaaaaaaaaaaaaa")),
		"revoke": second(keys.Revoke(t.Context(), "aaaaaaaaaaaaaaaa")),
		"rotate": third(keys.Rotate(t.Context(), "aaaaaaaaaaaaaaaa", 0)),
	} {
		if skill.CodeOf(err) != skill.NotFound {
			t.Errorf("%s of a key that is not there: %v", name, err)
		}
	}
	for name, err := range map[string]error{
		"overlap": third(keys.Rotate(t.Context(), "aaaaaaaaaaaaaaaa", identity.LongestOverlap+1)),
		"before":  third(keys.Rotate(t.Context(), "aaaaaaaaaaaaaaaa", -1)),
		"page":    third(keys.List(t.Context(), identity.KeyQuery{})),
		"cursor":  third(keys.List(t.Context(), identity.KeyQuery{Cursor: "x", Limit: 1})),
	} {
		if skill.CodeOf(err) != skill.InvalidArgument {
			t.Errorf("%s: %v", name, err)
		}
	}
	k, _, err := keys.Create(t.Context(), identity.NewKey{Name: "n", Tenant: "a", Scopes: []string{skill.ScopeRead}})
	musttest.Do(t, err)
	once, err := keys.Revoke(t.Context(), k.ID)
	if err != nil || once.State(time.Now()) != "revoked" {
		t.Fatalf("%+v, %v", once, err)
	}
	twice, err := keys.Revoke(t.Context(), k.ID)
	if err != nil || !twice.RevokedAt.Equal(once.RevokedAt) {
		t.Errorf("revoked twice: %+v, %v", twice, err)
	}
	if _, _, err := keys.Rotate(t.Context(), k.ID, 0); skill.CodeOf(err) != skill.Conflict {
		t.Errorf("revoked key: %v", err)
	}
}

func second[A any](_ A, err error) error        { return err }
func third[A, B any](_ A, _ B, err error) error { return err }

func TestParseKeyID(t *testing.T) {
	const id = "abcdefghijklmnop"
	for s, want := range map[string]bool{
		id: true, "key:" + id: true, "osk_" + id + "_secret": true, "osk_" + id: true,
		"": false, "abc": false, strings.ToUpper(id): false, id + "q": false, "key:": false, "osk__" + id: false,
	} {
		got, ok := identity.ParseKeyID(s)
		if ok != want || ok && got != id {
			t.Errorf("%q: %q, %v", s, got, ok)
		}
	}
}
