package quota_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"openskill/host/dispatch/quota"
	"openskill/internal/musttest"
	"openskill/sdk/skill"
)

func TestRefusesQuestionsBeyondTheDay(t *testing.T) {
	at(t, func(t *testing.T) {
		s := newStore(t)
		var refusals []string
		limits := func(o *quota.Options) {
			o.DailyModelRequests, o.DailyModelTokens, o.DailyModelCost = 4, 1000, 1_000_000_000
			o.Refused = func(what, unit string) { refusals = append(refusals, what+" "+unit) }
		}
		q := open(t, s, limits)
		reserve := func(tokens, cost int64) func(int64, int64) {
			t.Helper()
			return musttest.Get(q.Reserve(t.Context(), "acme", tokens, cost))(t)
		}
		first := reserve(600, 0)
		_, err := q.Reserve(t.Context(), "acme", 401, 0)
		if e, ok := errors.AsType[*skill.Error](err); !ok || e.Code != skill.RateLimited || e.Details["unit"] != "model_tokens_per_day" || e.Details["retry_after_ms"] != (12*time.Hour).Milliseconds() {
			t.Errorf("what is reserved is not counted: %v", err)
		}
		first(100, 0)
		first(0, 0) // counts once
		second := reserve(900, 900_000_000)
		if _, err := q.Reserve(t.Context(), "beta", 1000, 1_000_000_000); err != nil {
			t.Errorf("another tenant: %v", err)
		}
		second(100, 900_000_000)
		if _, err := q.Reserve(t.Context(), "acme", 1, 100_000_001); skill.CodeOf(err) != skill.RateLimited {
			t.Errorf("money: %v", err)
		}
		reserve(1, 0)(5000, 0) // a vendor may say more than was asked for
		if _, err := q.Reserve(t.Context(), "acme", 0, 0); skill.CodeOf(err) != skill.RateLimited {
			t.Errorf("tokens are used up: %v", err)
		}
		if len(refusals) != 3 || refusals[1] != "tenant model_cost_per_day" {
			t.Errorf("%q", refusals)
		}
		time.Sleep(24 * time.Hour)
		reserve(1000, 0)
	})
}

func TestRefusesTooManyQuestionsOfADay(t *testing.T) {
	at(t, func(t *testing.T) {
		q := open(t, newStore(t), func(o *quota.Options) { o.DailyModelRequests = 3 })
		for range 3 {
			settle := musttest.Get(q.Reserve(t.Context(), "acme", 0, 0))(t)
			settle(0, 0)
		}
		_, err := q.Reserve(t.Context(), "acme", 0, 0)
		if e, ok := errors.AsType[*skill.Error](err); !ok || e.Code != skill.RateLimited || e.Details["unit"] != "model_requests_per_day" {
			t.Errorf("the fourth: %v", err)
		}
	})
}

// Two hosts on one database together let no more through than one.
func TestReservesOverHosts(t *testing.T) {
	at(t, func(t *testing.T) {
		s := newStore(t)
		limits := func(o *quota.Options) { o.DailyModelTokens = 1000 }
		hosts := []*quota.Quotas{open(t, s, limits), open(t, s, limits)}
		var all sync.WaitGroup
		var mu sync.Mutex
		in := 0
		for i := range 100 {
			all.Go(func() {
				if _, err := hosts[i%2].Reserve(t.Context(), "acme", 100, 0); err == nil {
					mu.Lock()
					in++
					mu.Unlock()
				}
			})
		}
		all.Wait()
		if in != 10 {
			t.Errorf("%d questions, want 10", in)
		}
	})
}

func TestRefusesQuestionsWithoutADatabase(t *testing.T) {
	at(t, func(t *testing.T) {
		s := newStore(t)
		s.Down(errors.New("gone"))
		q := open(t, s, nil)
		if _, err := q.Reserve(t.Context(), "acme", 1, 1); skill.CodeOf(err) != skill.AuditUnavailable {
			t.Error(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := q.Reserve(ctx, "acme", 1, 1); skill.CodeOf(err) != skill.Cancelled {
			t.Error(err)
		}
	})
}

// A request counts among the calls of a minute, and takes nothing of a day's.
func TestCountsRequests(t *testing.T) {
	at(t, func(t *testing.T) {
		q := open(t, newStore(t), func(o *quota.Options) { o.RatePrincipal, o.RateTenant, o.DailyExecutions = 2, 3, 1 })
		p := skill.Principal{ID: "alice", Tenant: "acme"}
		for i := range 3 {
			if err := q.Request(t.Context(), p); (err != nil) != (i == 2) {
				t.Errorf("%d: %v", i, err)
			}
		}
		if err := (call{id: "bob"}).run(t, q); err != nil {
			t.Error(err)
		}
		if err := q.Request(t.Context(), skill.Principal{ID: "carol", Tenant: "acme"}); skill.CodeOf(err) != skill.RateLimited {
			t.Error(err)
		}
	})
}
