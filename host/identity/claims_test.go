package identity_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"openskill/host/identity"
	"openskill/internal/musttest"
	"openskill/sdk/skill"
)

// openClaims takes tokens of HS256 whose claims have other names.
func openClaims(t *testing.T, change func(o *identity.Options)) *harness {
	t.Helper()
	return open(t, func(o *identity.Options) {
		o.Secret, o.Issuer, o.Audience = secret, issuer, aud
		o.Claims = identity.Claims{Scopes: []string{"scp"}, Roles: []string{"roles", "realm_access.roles", "https://x.example/roles"}, Name: "username"}
		o.Tenant, o.Roles = "home", map[string][]string{"staff": {skill.ScopeRead}, "boss": {skill.ScopeHost, skill.ScopeRead}}
		if change != nil {
			change(o)
		}
	})
}

// bare is a token of a subject and these claims alone.
func bare(t *testing.T, pairs ...any) string {
	t.Helper()
	return token(t, hs, good(append([]any{"tenant", nil, "scope", nil}, pairs...)...), []byte(secret))
}

func TestReadsClaimsByTheirNames(t *testing.T) {
	h := openClaims(t, nil)
	for name, c := range map[string]struct {
		pairs []any
		want  skill.Principal
	}{
		"nothing but a subject":     {nil, skill.Principal{Tenant: "home"}},
		"scopes as a string":        {[]any{"scp", "skills:read skills:invoke:echo", "scope", "admin"}, skill.Principal{Tenant: "home", Scopes: []string{"skills:read", "skills:invoke:echo"}}},
		"scopes as a list":          {[]any{"scp", []string{"skills:read", "openid"}}, skill.Principal{Tenant: "home", Scopes: []string{"skills:read"}}},
		"a role":                    {[]any{"roles", []string{"staff", "unknown"}}, skill.Principal{Tenant: "home", Scopes: []string{"skills:read"}}},
		"a nested role":             {[]any{"realm_access", map[string]any{"roles": []string{"boss"}}}, skill.Principal{Tenant: "home", Scopes: []string{"admin", "skills:read"}}},
		"a role by an address":      {[]any{"https://x.example/roles", "staff"}, skill.Principal{Tenant: "home", Scopes: []string{"skills:read"}}},
		"a role and the same scope": {[]any{"roles", []string{"boss"}, "scp", "skills:read"}, skill.Principal{Tenant: "home", Scopes: []string{"skills:read", "admin"}}},
		"a role named as a scope":   {[]any{"roles", []string{"admin", "skills:admin"}}, skill.Principal{Tenant: "home"}},
		"a role named *":            {[]any{"roles", []string{"*"}}, skill.Principal{Tenant: "home"}},
		"a scope named as a role":   {[]any{"scp", "staff boss"}, skill.Principal{Tenant: "home"}},
		"no list of roles":          {[]any{"realm_access", map[string]any{}}, skill.Principal{Tenant: "home"}},
		"a tenant":                  {[]any{"tenant", "acme"}, skill.Principal{Tenant: "acme"}},
		"a name":                    {[]any{"username", "Ada Lovelace"}, skill.Principal{Tenant: "home", Name: "Ada Lovelace"}},
		"a name with hidden text":   {[]any{"username", "ada\u200b"}, skill.Principal{Tenant: "home"}},
		"a name that is a list":     {[]any{"username", []string{"ada"}}, skill.Principal{Tenant: "home"}},
	} {
		t.Run(name, func(t *testing.T) {
			c.want.ID, c.want.Type = "ann", skill.Human
			p, err := h.Authenticate(t.Context(), bearer(bare(t, c.pairs...)))
			p.Until = time.Time{}
			if diff := cmp.Diff(c.want, p); diff != "" || err != nil {
				t.Error(err, diff)
			}
		})
	}
}

func TestRefusesClaimsOfAnotherKind(t *testing.T) {
	h := openClaims(t, nil)
	want := refusal(t)
	for name, pairs := range map[string][]any{
		"an empty tenant":             {"tenant", ""},
		"a tenant that is a list":     {"tenant", []string{"home"}},
		"a reserved tenant":           {"tenant", "LOCAL"},
		"roles that are a number":     {"roles", 1},
		"a role that is an object":    {"roles", []any{map[string]any{}}},
		"realm_access that is a text": {"realm_access", "roles"},
		"scopes that are true":        {"scp", true},
		"Roles beside roles":          {"roles", []string{"staff"}, "Roles", []string{"boss"}},
		"another case inside":         {"realm_access", map[string]any{"Roles": []string{"boss"}}},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := h.Authenticate(t.Context(), bearer(bare(t, pairs...)))
			if diff := cmp.Diff(want, err); diff != "" || p.ID != "" {
				t.Error(p, diff)
			}
		})
	}
	for name, claims := range map[string]string{
		"tenant null":         raw("tenant", "null"),
		"roles twice, inside": raw("realm_access", `{"roles":["staff"],"roles":["boss"]}`),
		"roles null":          raw("roles", "null"),
	} {
		p, err := h.Authenticate(t.Context(), bearer(token(t, hs, claims, []byte(secret))))
		if diff := cmp.Diff(want, err); diff != "" || p.ID != "" {
			t.Error(name, p, diff)
		}
	}
}

// Without a tenant of its own and a default, a token is nobody's.
func TestNoTenantWithoutADefault(t *testing.T) {
	h := openClaims(t, func(o *identity.Options) { o.Tenant = "" })
	if _, err := h.Authenticate(t.Context(), bearer(bare(t, "scp", "admin"))); skill.CodeOf(err) != skill.Unauthorized {
		t.Error(err)
	}
}

// What every token gets, no key and nobody else gets.
func TestRolesNeverWidenKeys(t *testing.T) {
	store := newStore(t)
	_, text, err := identity.NewKeys(store).Create(t.Context(), identity.NewKey{Name: "n", Tenant: "acme", Scopes: []string{skill.ScopeRead}})
	musttest.Do(t, err)
	h := openClaims(t, func(o *identity.Options) {
		o.Keys, o.Anonymous = store, []string{skill.ScopeMetrics}
		o.Roles = map[string][]string{"*": {skill.ScopeInvoke}, skill.ScopeRead: {skill.ScopeHost}, skill.ScopeMetrics: {skill.ScopeHost}}
	})
	for scope, shown := range map[string]identity.Credentials{
		skill.ScopeInvoke: bearer(bare(t)), skill.ScopeRead: bearer(text), skill.ScopeMetrics: {},
	} {
		p, err := h.Authenticate(t.Context(), shown)
		if diff := cmp.Diff([]string{scope}, p.Scopes); diff != "" || err != nil {
			t.Error(scope, err, diff)
		}
	}
}

// With a secret of the host's own, issuer and audience may be unset, each for itself.
func TestSecretWithoutIssuerOrAudience(t *testing.T) {
	for name, c := range map[string]struct {
		issuer, audience string
		pairs            []any
		in               bool
	}{
		"neither, of none":               {"", "", []any{"iss", nil, "aud", nil}, true},
		"neither, of others":             {"", "", []any{"iss", "x", "aud", "y"}, true},
		"an issuer alone":                {issuer, "", []any{"aud", "y"}, true},
		"an issuer, of another":          {issuer, "", []any{"iss", "x"}, false},
		"an issuer, of none":             {issuer, "", []any{"iss", nil}, false},
		"an audience, of another":        {"", aud, []any{"aud", "y"}, false},
		"an audience, of none":           {"", aud, []any{"aud", nil}, false},
		"neither, and expired":           {"", "", []any{"exp", time.Now().Unix() - 60}, false},
		"neither, and it does not end":   {"", "", []any{"exp", nil}, false},
		"neither, and a malformed claim": {"", "", []any{"aud", 1}, false},
	} {
		h := openClaims(t, func(o *identity.Options) { o.Issuer, o.Audience = c.issuer, c.audience })
		if _, err := h.Authenticate(t.Context(), bearer(bare(t, c.pairs...))); (err == nil) != c.in {
			t.Errorf("%s: %v", name, err)
		}
	}
}
