package approval_test

import (
	"testing"

	"openskill/host/dispatch/approval"
	"openskill/sdk/skill"
)

// TestWhoSeesArguments: what a call gave its script is nobody's who only finds the skill.
func TestWhoSeesArguments(t *testing.T) {
	s := open(t, approval.Options{Policy: approval.PerCall})
	id := asks(t, s, ask(), "pending").ID
	for _, tc := range []struct {
		name string
		p    skill.Principal
		sees bool
	}{
		{"who asked", skill.Principal{ID: "agent-1", Tenant: "acme", Scopes: []string{skill.ScopeRead}}, true},
		{"who decides", skill.Principal{ID: "x", Tenant: "other", Scopes: []string{skill.ScopeAdmin}}, true},
		{"who reads all calls of the tenant", skill.Principal{ID: "x", Tenant: "acme", Scopes: []string{skill.ScopeRead, skill.ScopeAllExecutions}}, true},
		{"the operator", skill.Local(), true},
		{"who reads its own calls", skill.Principal{ID: "x", Tenant: "acme", Scopes: []string{skill.ScopeRead, skill.ScopeInvoke, skill.ScopeExecutions}}, false},
		{"who finds skills", skill.Principal{ID: "x", Tenant: "acme", Scopes: []string{skill.ScopeRead}}, false},
	} {
		got, err := s.Get(t.Context(), tc.p, id)
		list, _, listErr := s.List(t.Context(), tc.p, "", 10)
		if err != nil || listErr != nil || len(list) != 1 {
			t.Fatalf("%s: %v, %v, %d", tc.name, err, listErr, len(list))
		}
		for _, a := range []approval.Approval{got, list[0]} {
			if len(a.Arguments) > 0 != tc.sees || a.Arguments == nil || a.CallHash != "" != tc.sees || a.ArgumentsCut == tc.sees {
				t.Errorf("%s: %q, cut %v, %q", tc.name, a.Arguments, a.ArgumentsCut, a.CallHash)
			}
		}
	}
}

func TestWhoMay(t *testing.T) {
	s := open(t, approval.Options{Policy: approval.PerVersion})
	id := asks(t, s, ask(), "pending").ID
	all := []string{skill.ScopeRead, skill.ScopeInvoke, skill.ScopeUpload, skill.ScopeAdmin}
	for _, tc := range []struct {
		name        string
		p           skill.Principal
		see, decide skill.Code // "": may
	}{
		{"nobody", skill.Principal{}, skill.Unauthorized, skill.Unauthorized},
		{"scopes and no name", skill.Principal{Tenant: "acme", Scopes: all}, skill.Unauthorized, skill.Unauthorized},
		{"no scope", skill.Principal{ID: "x", Tenant: "acme"}, skill.Forbidden, skill.Forbidden},
		{"invoke alone", skill.Principal{ID: "x", Tenant: "acme", Scopes: []string{skill.ScopeInvoke}}, skill.Forbidden, skill.Forbidden},
		{"the owner", skill.Principal{ID: "x", Tenant: "acme", Type: skill.Human, Scopes: all[:3]}, "", skill.Forbidden},
		{"another tenant", skill.Principal{ID: "x", Tenant: "rival", Scopes: all[:3]}, skill.NotFound, skill.NotFound},
		{"who asked", skill.Principal{ID: "agent-1", Tenant: "acme", Type: skill.Agent, Scopes: all}, "", skill.Forbidden},
		{"who asked, as a person", skill.Principal{ID: "agent-1", Tenant: "acme", Type: skill.Human, Scopes: all}, "", skill.Forbidden},
		{"one of that name elsewhere", skill.Principal{ID: "agent-1", Tenant: "rival", Type: skill.Human, Scopes: all}, "", ""},
		{"admin alone", skill.Principal{ID: "x", Tenant: "other", Type: skill.Human, Scopes: all[3:]}, "", ""},
		{"the operator", skill.Local(), "", ""},
	} {
		_, err := s.Get(t.Context(), tc.p, id)
		if skill.CodeOf(err) != tc.see {
			t.Errorf("%s: Get = %v, want %q", tc.name, err, tc.see)
		}
		list, _, err := s.List(t.Context(), tc.p, "", 10)
		if seen := err == nil && len(list) == 1; seen != (tc.see == "") {
			t.Errorf("%s: List = %v, %v", tc.name, list, err)
		}
		for range 2 { // the second time it is decided already
			if _, err := s.Decide(t.Context(), tc.p, id, true); skill.CodeOf(err) != tc.decide {
				t.Errorf("%s: Decide = %v, want %q", tc.name, err, tc.decide)
			}
		}
		if _, err := s.Decide(t.Context(), tc.p, "no-such-id", true); skill.CodeOf(err) != skill.NotFound && tc.see == "" {
			t.Errorf("%s: Decide on nothing = %v", tc.name, err)
		}
	}
}
