package config

import (
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"openskill/internal/musttest"
)

func TestClaimsAndRoles(t *testing.T) {
	s, err := Load(Sources{Dir: t.TempDir(), Flags: map[string]string{
		"jwt-claims": "tenant = tid ;\n scopes=scp, permissions\nroles=https://x.example/roles,realm_access.roles;name=preferred_username;",
		"jwt-roles":  "CN=Skill Users,OU=x = skills:read, skills:invoke\n* = skills:invoke:echo",
	}})
	musttest.Do(t, err)
	want := Claims{Tenant: "tid", Scopes: []string{"scp", "permissions"}, Roles: []string{"https://x.example/roles", "realm_access.roles"}, Name: "preferred_username"}
	if diff := cmp.Diff(want, s.JWTClaimNames()); diff != "" {
		t.Error(diff)
	}
	roles := map[string][]string{"CN=Skill Users,OU=x": {"skills:read", "skills:invoke"}, "*": {"skills:invoke:echo"}}
	if diff := cmp.Diff(roles, s.JWTRoleScopes()); diff != "" {
		t.Error(diff)
	}
}

// Where the key is a secret of the host's own, issuer and audience may be unset; host.Warnings
// tells of it.
func TestSecretNeedsNoIssuer(t *testing.T) {
	if _, err := Load(Sources{Dir: t.TempDir(), Environ: []string{"OPENSKILL_JWT_SECRET=0123456789abcdef0123456789abcdef"}}); err != nil {
		t.Error(err)
	}
}

// The console signs people in where all that it takes is set, and says what is missing.
func TestSigningInNeedsAProvider(t *testing.T) {
	good := map[string]string{
		"auth": "required", "oidc-client-id": "console", "jwt-issuer": "https://login.example.com", "jwt-jwks": "https://login.example.com/keys",
		"jwt-audience": "console", "http-base-url": "https://skills.example.com/host/",
	}
	s := musttest.Get(Load(Sources{Dir: t.TempDir(), Flags: good}))(t)
	if s.Provider() != "https://login.example.com" || s.PublicURL() != "https://skills.example.com/host" {
		t.Errorf("%q at %q", s.PublicURL(), s.Provider())
	}
	for flag, c := range map[string]struct{ value, want string }{
		"jwt-issuer":    {"login.example.com", "https address"},
		"jwt-jwks":      {"", "needs OPENSKILL_JWT_JWKS"},
		"http-base-url": {"", "OPENSKILL_HTTP_BASE_URL"},
		"auth":          {"none", "OPENSKILL_AUTH=required"},
	} {
		flags := maps.Clone(good)
		flags[flag] = c.value
		if _, err := Load(Sources{Dir: t.TempDir(), Flags: flags}); err == nil || !strings.Contains(err.Error(), "OPENSKILL_OIDC_CLIENT_ID") || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s=%s: %v", flag, c.value, err)
		}
	}
	flags := maps.Clone(good)
	flags["jwt-issuer"] = "http://127.0.0.1:5556/dex"
	if _, err := Load(Sources{Dir: t.TempDir(), Flags: flags}); err != nil {
		t.Error(err)
	}
}
