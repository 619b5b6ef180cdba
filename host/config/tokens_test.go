package config

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestClaimsAndRoles(t *testing.T) {
	s, err := Load(Sources{Dir: t.TempDir(), Flags: map[string]string{
		"jwt-claims": "tenant = tid ;\n scopes=scp, permissions\nroles=https://x.example/roles,realm_access.roles;name=preferred_username;",
		"jwt-roles":  "CN=Skill Users,OU=x = skills:read, skills:invoke\n* = skills:invoke:echo",
	}})
	if err != nil {
		t.Fatal(err)
	}
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
