package store_test

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"openskill/host/dispatch/approval"
	"openskill/host/store"
	"openskill/host/store/storetest"
	"openskill/internal/musttest"
	"openskill/sdk/skill"
)

// What one host decides holds on another at once, whatever the database.
func TestApprovalsOnTwoHosts(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, fresh func(t *testing.T) func() *store.DB) {
		open := fresh(t)
		var now atomic.Int64
		now.Store(time.Date(2026, 11, 26, 8, 0, 0, 0, time.UTC).Unix())
		host := func(policy approval.Policy) *approval.Store {
			s, err := approval.Open(t.Context(), approval.Options{
				DB: open(), Policy: policy, MaxPending: 3, MaxPast: 2, Now: func() time.Time { return time.Unix(now.Load(), 0) },
			})
			musttest.Do(t, err)
			return s
		}
		a, b := host(approval.PerVersion), host(approval.PerVersion)
		ask := approval.Ask{
			Skill: "unit-converter", Script: "scripts/convert.py", Digest: "sha256:aaaa", Tenant: "acme\x00", Caller: "agent-1\xff",
			Trust: skill.Trusted, Arguments: []string{"--value", "\x00 \u202e"},
		}
		asks := func(s *approval.Store, ask approval.Ask) string {
			t.Helper()
			id := approval.PendingID(skill.Failure("", "t", skill.Meta{}, s.Check(t.Context(), ask)))
			if id == "" {
				t.Fatalf("%+v does not ask", ask)
			}
			return id
		}
		// Both hosts are asked the same at the same time: it is one ask.
		var ids sync.Map
		var all sync.WaitGroup
		for i := range 8 {
			all.Go(func() { ids.Store(asks([]*approval.Store{a, b}[i%2], ask), true) })
		}
		all.Wait()
		id, n := "", 0
		ids.Range(func(k, _ any) bool { n++; id, _ = k.(string); return true })
		if n != 1 {
			t.Fatalf("%d asks", n)
		}
		musttest.Get(a.Decide(t.Context(), skill.Local(), id, true))(t)
		if err := b.Check(t.Context(), ask); err != nil {
			t.Errorf("approved on one host, the other says: %v", err)
		}
		got, err := b.Get(t.Context(), skill.Local(), id)
		if err != nil || got.State != approval.Approved || got.Arguments[1] != `"\x00 \u202e"` || !strings.HasPrefix(got.Tenant, "acme") {
			t.Errorf("%+v, %v", got, err)
		}
		// Withdrawn, and the digest that was approved is still known.
		musttest.Get(b.Decide(t.Context(), skill.Local(), id, false))(t)
		if err := a.Check(t.Context(), ask); skill.CodeOf(err) != skill.Forbidden {
			t.Errorf("withdrawn on one host, the other says: %v", err)
		}
		ask.Digest = "sha256:bbbb"
		if got, err := a.Get(t.Context(), skill.Local(), asks(b, ask)); err != nil || got.PreviousDigest != "sha256:aaaa" {
			t.Errorf("%+v, %v", got, err)
		}
		// The fourth that is pending makes the caller's oldest expire; what is over goes.
		for i := range 8 {
			ask.Skill = fmt.Sprint("skill-", i)
			asks(a, ask)
		}
		if n, most, err := b.Waiting(t.Context(), ask.Tenant); n != 3 || most != 3 || err != nil {
			t.Errorf("%d of %d, %v", n, most, err)
		}
		now.Add(3600)
		asks(b, ask)
		for state, want := range map[approval.State]int{approval.Pending: 1, approval.Expired: 2, approval.Denied: 1, approval.Approved: 0, approval.Used: 0} {
			list, _, err := a.ListState(t.Context(), skill.Local(), state, "", 100)
			if err != nil || len(list) != want {
				t.Errorf("%s: %d, want %d: %v", state, len(list), want, err)
			}
		}
		first, next, err := a.List(t.Context(), skill.Local(), "", 3)
		if err != nil || len(first) != 3 || next == "" {
			t.Fatalf("%d, %q, %v", len(first), next, err)
		}
		if rest, next, err := b.List(t.Context(), skill.Local(), next, 3); err != nil || len(rest) != 1 || next != "" || rest[0].ID != id {
			t.Errorf("%+v, %q, %v", rest, next, err)
		}
	})
}
