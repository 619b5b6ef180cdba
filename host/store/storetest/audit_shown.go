package storetest

import (
	"bytes"
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"openskill/host/records"
	"openskill/sdk/skill"
)

// Chains are listed with the number of executions that ended.
func shownBeside(t *testing.T, open func() records.Store) {
	t.Helper()
	s := open()
	for range 3 {
		ran(t, s, begun("acme", noon), records.Success)
	}
	write(t, s, entryOf(begun("acme", noon)), entryOf(begun("other", noon)))
	heads, err := s.Tenants(t.Context())
	if err != nil || len(heads) != 2 {
		t.Fatal(heads, err)
	}
	for tenant, want := range map[string][]records.Shown{
		"": {{Head: heads[0], Ended: 3}, {Head: heads[1]}}, "acme": {{Head: heads[0], Ended: 3}}, "other": {{Head: heads[1]}}, "nobody": nil, "a\x00": nil,
	} {
		if got, err := s.Shown(t.Context(), tenant); err != nil || !slices.Equal(got, want) {
			t.Errorf("%q: %+v, %v, want %+v", tenant, got, err, want)
		}
	}
}

// Changes are records of a chain, and are listed newest first.
func changes(t *testing.T, open func() records.Store) {
	t.Helper()
	s := open()
	ran(t, s, begun("acme", noon), records.Success)
	by := skill.Principal{ID: "key:root", Type: skill.Human, Tenant: "ops"}
	do := func(tenant, subject string, err error) {
		c := records.Change{Tenant: tenant, Action: "key.create", Subject: subject, Details: map[string]string{"name": "a \x00 name"}}
		if got := records.Around(t.Context(), s, by, c, func() error { return err }); !errors.Is(got, err) {
			t.Fatal(got)
		}
	}
	do("acme", "k1", nil)
	do("other", "k2", nil)
	do("acme", "k3", errors.New("no"))
	for tenant, want := range map[string]string{"": "k3 INTERNAL,k3 ,k2 ,k1 ", "acme": "k3 INTERNAL,k3 ,k1 ", "nobody": "", "a\x00": ""} {
		all, err := s.Changes(t.Context(), records.ChangeQuery{Tenant: tenant, Limit: 10})
		var got []string
		for _, c := range all {
			got = append(got, c.Subject+" "+string(c.Failed))
			if c.Principal != by.ID || c.PrincipalType != by.Type || c.Of != "ops" || c.Details["name"] != "a \x00 name" {
				t.Errorf("%+v", c)
			}
		}
		if err != nil || strings.Join(got, ",") != want {
			t.Errorf("%q: %q, %v, want %q", tenant, got, err, want)
		}
	}
	if all, err := s.Changes(t.Context(), records.ChangeQuery{Until: noon, Limit: 10}); err != nil || len(all) != 0 {
		t.Errorf("of before: %v, %v", all, err)
	}
	if all, err := s.Changes(t.Context(), records.ChangeQuery{Since: noon, Limit: 2}); err != nil || len(all) != 2 {
		t.Errorf("two: %v, %v", all, err)
	}
	first, err := s.Changes(t.Context(), records.ChangeQuery{Limit: 3})
	if err != nil || len(first) != 3 {
		t.Fatalf("%v, %v", first, err)
	}
	for after, want := range map[string]int{first[2].ID: 1, first[0].ID: 3, "01a202dd-0000-7000-8000-000000000000": 0} {
		if all, err := s.Changes(t.Context(), records.ChangeQuery{After: after, Limit: 10}); err != nil || len(all) != want {
			t.Errorf("after %s: %v, %v", after, all, err)
		}
	}
	chain(t, s, "acme")
	r, err := records.Verify(t.Context(), s, records.VerifyOptions{Rows: true})
	if err != nil || !r.Whole() {
		t.Errorf("%+v, %v", r, err)
	}
	// What is not on record is not done.
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err = records.Around(ctx, s, by, records.Change{Action: "key.create", Subject: "k4"}, func() error { t.Error("the change was made"); return nil })
	if skill.CodeOf(err) != skill.AuditUnavailable {
		t.Errorf("without a record: %v", err)
	}
}

// What a skill says of its tokens is shown as it is on record, beside what the host counted.
func reportedTokens(t *testing.T, open func() records.Store) {
	t.Helper()
	s := open()
	for i, n := range []int{0, 1, math.MaxInt32} {
		began := begun("acme", noon.Add(time.Duration(i)*time.Second))
		ended := over(began, records.Success)
		ended.Tokens, ended.Reported = 12, n
		ended.Artifacts = []records.ArtifactInfo{{Name: "a.csv", Size: 5, SHA256: strings.Repeat("d", 64)}}
		end := endOf(began, ended)
		if bytes.Contains(end.Body, []byte("reported")) != (n > 0) {
			t.Errorf("%d: %s: records of hosts before had no such field", n, end.Body)
		}
		write(t, s, entryOf(began), end)
		same(t, one(t, open(), "acme", began.ExecutionID), &records.Execution{Started: *began, Finished: ended})
	}
	if r, err := records.Verify(t.Context(), s, records.VerifyOptions{Rows: true}); err != nil || !r.Whole() {
		t.Errorf("%+v, %v", r, err)
	}
}
