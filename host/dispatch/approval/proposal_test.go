package approval_test

import (
	"context"
	"errors"
	"testing"

	"openskill/host/dispatch/approval"
	"openskill/internal/musttest"
	"openskill/sdk/skill"
)

// TestProposals: a version is enabled by the one decision that approves it, and by no other.
func TestProposals(t *testing.T) {
	var enabled []string
	var fails error
	var s *approval.Store
	ann := skill.Principal{ID: "ann", Tenant: "acme", Scopes: []string{skill.ScopeUpload}}
	first := ""
	s = open(t, approval.Options{Record: func(ctx context.Context, _ skill.Principal, a *approval.Approval, do func() error) error {
		if a.ID == first && a.State == approval.Approved { // somebody denies it meanwhile
			first = ""
			musttest.Get(s.Decide(ctx, ann, a.ID, false))(t)
		}
		return do()
	}, Enable: func(by skill.Principal, a *approval.Approval) error {
		if fails == nil {
			enabled = append(enabled, by.ID+" "+a.Version)
		}
		return fails
	}})
	ask := func(version string) string {
		err := s.Check(t.Context(), approval.Ask{Skill: "shout", Script: "main.py", Digest: "sha256:" + version, Version: version, Tenant: "acme", Caller: "ann"})
		return approval.PendingID(skill.Failure("shout", "", skill.Meta{}, err))
	}
	state := func(id string) approval.State { return musttest.Get(s.Get(t.Context(), ann, id))(t).State }

	id := ask("1")
	fails = errors.New("no")
	if _, err := s.Decide(t.Context(), ann, id, true); !errors.Is(err, fails) || state(id) != approval.Pending {
		t.Errorf("where the version cannot be enabled: %v, %s", err, state(id))
	}
	fails = nil
	first = id
	if _, err := s.Decide(t.Context(), ann, id, true); skill.CodeOf(err) != skill.Conflict || len(enabled) != 0 || state(id) != approval.Denied {
		t.Errorf("denied while it was approved: %v, enabled %v, %s", err, enabled, state(id))
	}
	if _, err := s.Decide(t.Context(), ann, id, true); skill.CodeOf(err) != skill.Conflict || len(enabled) != 0 {
		t.Errorf("approved after it was denied: %v, enabled %v", err, enabled)
	}
	if ask("1") != "" {
		t.Error("it is asked for again although it was denied")
	}

	id = ask("2")
	musttest.Get(s.Decide(t.Context(), ann, id, true))(t)
	musttest.Get(s.Decide(t.Context(), ann, id, true))(t)
	if _, err := s.Decide(t.Context(), ann, id, false); skill.CodeOf(err) != skill.Conflict || len(enabled) != 1 || enabled[0] != "ann 2" {
		t.Errorf("denied after it was approved: %v, enabled %v", err, enabled)
	}
	if again := ask("2"); again == "" || again == id {
		t.Errorf("the approval is good for more than once: %q", again)
	}
	err := s.Check(t.Context(), approval.Ask{Skill: "shout", Script: "main.py", Digest: "sha256:1", Version: "1", Previous: "sha256:2", Tenant: "acme", Caller: "ann"})
	if other := approval.PendingID(skill.Failure("shout", "", skill.Meta{}, err)); other == "" || other == id {
		t.Errorf("to replace another version is not another question: %v", err)
	}
	for version, want := range map[string]bool{"2": true, "3": false} {
		if asked := musttest.Get(s.Asked(t.Context(), "acme", "shout", "sha256:"+version))(t); asked != want {
			t.Errorf("version %s: asked for %t", version, asked)
		}
	}

	without := open(t, approval.Options{})
	err = without.Check(t.Context(), approval.Ask{Skill: "shout", Script: "main.py", Digest: "sha256:1", Version: "1", Tenant: "acme", Caller: "ann"})
	id = approval.PendingID(skill.Failure("shout", "", skill.Meta{}, err))
	if _, err := without.Decide(t.Context(), ann, id, true); skill.CodeOf(err) != skill.Conflict || musttest.Get(without.Get(t.Context(), ann, id))(t).State != approval.Pending {
		t.Errorf("without a host: %v", err)
	}
}
