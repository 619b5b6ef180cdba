package quota_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"openskill/host/dispatch/quota"
	"openskill/internal/musttest"
	"openskill/sdk/skill"
)

// at runs a test that begins at noon of a day.
func at(t *testing.T, test func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(12 * time.Hour) // the clock begins at midnight
		test(t)
	})
}

func open(t *testing.T, s quota.Store, change func(o *quota.Options)) *quota.Quotas {
	t.Helper()
	o := quota.Options{Store: s, Log: slog.New(slog.DiscardHandler)}
	if change != nil {
		change(&o)
	}
	return musttest.Get(quota.New(o))(t)
}

// call is a call that ends at once.
type call struct {
	tenant, id, owner string
	skill             skill.ID
	perMinute         int
	limit, uses       uint64 // fuel
}

func (c call) enter(ctx context.Context, q *quota.Quotas) (leave func(skill.Usage), err error) {
	if c.tenant == "" {
		c.tenant = "acme"
	}
	if c.id == "" {
		c.id = "ann"
	}
	if c.skill == "" {
		c.skill = "echo"
	}
	return q.Enter(ctx, skill.Principal{ID: c.id, Tenant: c.tenant}, c.owner, c.skill, c.perMinute, c.limit)
}

func (c call) run(t *testing.T, q *quota.Quotas) error {
	t.Helper()
	leave, err := c.enter(t.Context(), q)
	if err == nil {
		leave(skill.Usage{Fuel: c.uses})
		leave(skill.Usage{Fuel: c.uses}) // once is all that counts
	}
	return err
}

// begins makes calls until one is refused, at most so many.
func (c call) begins(t *testing.T, q *quota.Quotas, most int) int {
	t.Helper()
	for n := range most {
		if err := c.run(t, q); err != nil {
			if skill.CodeOf(err) != skill.RateLimited {
				t.Fatal(err)
			}
			return n
		}
	}
	return most
}

// refuses checks a refusal to its last word.
func refuses(t *testing.T, err error, message string, details map[string]any) {
	t.Helper()
	var e *skill.Error
	if !errors.As(err, &e) || e.Code != skill.RateLimited || e.Message != message {
		t.Errorf("got %v, want %s", err, message)
		return
	}
	if diff := cmp.Diff(details, e.Details); diff != "" {
		t.Error(diff)
	}
}

func details(what, unit string, limit, reset, retry int64) map[string]any {
	return map[string]any{"what": what, "unit": unit, "limit": limit, "remaining": int64(0), "reset_ms": reset, "retry_after_ms": retry}
}

func TestRateOfASkill(t *testing.T) {
	at(t, func(t *testing.T) {
		q := open(t, newStore(t), nil)
		c := call{perMinute: 2}
		if n := c.begins(t, q, 10); n != 2 {
			t.Fatalf("%d calls began", n)
		}
		refuses(t, c.run(t, q), "the skill may be called by a tenant 2 times a minute; try again in 30000 ms", details("skill", "calls_per_minute", 2, 60_000, 30_000))
		time.Sleep(30*time.Second - time.Millisecond)
		refuses(t, c.run(t, q), "the skill may be called by a tenant 2 times a minute; try again in 1 ms", details("skill", "calls_per_minute", 2, 30_001, 1))
		time.Sleep(time.Millisecond)
		if n := c.begins(t, q, 10); n != 1 {
			t.Errorf("after the time that it was told, %d calls began", n)
		}
		for name, other := range map[string]call{
			"another tenant":        {perMinute: 2, tenant: "beta"},
			"another skill":         {perMinute: 2, skill: "other"},
			"another owner's skill": {perMinute: 2, owner: "acme"},
			"one without a limit":   {skill: "free"},
		} {
			if err := other.run(t, q); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		c.perMinute = 600 // of another release: what is empty fills up faster
		if n := c.begins(t, q, 10); n != 0 {
			t.Errorf("%d calls began", n)
		}
		time.Sleep(time.Second)
		if n := c.begins(t, q, 100); n != 10 {
			t.Errorf("%d calls began", n)
		}
	})
}

// Two releases of a skill with two limits are called at once.
func TestLimitsThatDiffer(t *testing.T) {
	at(t, func(t *testing.T) {
		s := newStore(t)
		s.Takes(time.Millisecond)
		q := open(t, s, nil)
		var began atomic.Int64
		var all sync.WaitGroup
		for i := range 8 {
			all.Go(func() {
				for range 200 {
					if (call{perMinute: 60 + 40*(i%2)}).run(t, q) == nil {
						began.Add(1)
					}
				}
			})
		}
		all.Wait()
		if n := began.Load(); n < 60 || n > 101 {
			t.Errorf("%d calls began", n)
		}
	})
}

func TestRatesOfCallers(t *testing.T) {
	at(t, func(t *testing.T) {
		q := open(t, newStore(t), func(o *quota.Options) { o.RatePrincipal, o.RateTenant = 20, 30 })
		if n := (call{}).begins(t, q, 100); n != 20 {
			t.Errorf("%d calls of the first principal", n)
		}
		refuses(t, call{}.run(t, q), "the principal may call 20 times a minute; try again in 3000 ms", details("principal", "calls_per_minute", 20, 60_000, 3000))
		if n := (call{id: "bob"}).begins(t, q, 100); n != 10 {
			t.Errorf("%d calls of the second one", n)
		}
		refuses(t, call{id: "bob"}.run(t, q), "the tenant may call 30 times a minute; try again in 2000 ms", details("tenant", "calls_per_minute", 30, 60_000, 2000))
		refuses(t, call{}.run(t, q), "the principal may call 20 times a minute; try again in 3000 ms", details("principal", "calls_per_minute", 20, 60_000, 3000))
		if n := (call{tenant: "other"}).begins(t, q, 100); n != 20 {
			t.Errorf("%d calls of the same name in another tenant", n)
		}
	})
}

// Limits that change hold at once, upwards for those who were refused, and downwards.
func TestChange(t *testing.T) {
	at(t, func(t *testing.T) {
		q := open(t, newStore(t), func(o *quota.Options) { o.DailyExecutions = 5 })
		if n := (call{}).begins(t, q, 100); n != 5 {
			t.Errorf("%d calls of five a day", n)
		}
		musttest.Do(t, q.Change(quota.Options{DailyExecutions: 8}))
		if n := (call{}).begins(t, q, 100); n != 3 {
			t.Errorf("%d calls more of eight a day", n)
		}
		musttest.Do(t, q.Change(quota.Options{RatePrincipal: 2}))
		if n := (call{id: "bob"}).begins(t, q, 100); n != 2 {
			t.Errorf("%d calls of two a minute", n)
		}
		if err := q.Change(quota.Options{RateTenant: -1}); err == nil {
			t.Error("a negative limit is taken")
		}
	})
}

// Two hosts on one store: in any time they begin together what a bucket holds, and what
// flows into it; of a limit from 100 on each host may begin a hundredth more.
func TestTwoHosts(t *testing.T) {
	const seconds = 6
	for _, limit := range []int{1, 7, 60, 99, 600, 6000, 60_000} {
		t.Run(fmt.Sprint(limit), func(t *testing.T) {
			at(t, func(t *testing.T) {
				s := newStore(t)
				s.Takes(time.Millisecond)
				hosts := []*quota.Quotas{open(t, s, nil), open(t, s, nil)}
				var began [2]atomic.Int64
				var all sync.WaitGroup
				end := time.Now().Add(seconds * time.Second)
				for i, q := range hosts {
					for range 8 {
						all.Go(func() {
							for time.Now().Before(end) {
								if err := (call{perMinute: limit}).run(t, q); err == nil {
									began[i].Add(1)
								}
								time.Sleep(3 * time.Millisecond)
							}
						})
					}
				}
				all.Wait()
				got, flow := began[0].Load()+began[1].Load(), int64(limit)*seconds/60
				tried := int64(2 * 8 * seconds * 1000 / 3)
				most, least := int64(limit)+flow+int64(2*(limit/100)), min(int64(limit)+flow*95/100, tried*8/10)
				if got > most || got < least {
					t.Errorf("%d calls began, want %d to %d", got, least, most)
				}
				if limit >= 60 && min(began[0].Load(), began[1].Load()) < got/10 {
					t.Errorf("one host had nearly all: %d and %d", began[0].Load(), began[1].Load())
				}
			})
		})
	}
}

// A tenth of a second after a call it is counted, and where there is room enough no call
// waits for that: ten transactions a second, whatever the number of calls.
func TestRoundTrips(t *testing.T) {
	at(t, func(t *testing.T) {
		s := newStore(t)
		q := open(t, s, nil)
		musttest.Do(t, (call{perMinute: 60_000}).run(t, q))
		s.Takes(20 * time.Millisecond)
		const calls = 1000
		for i := range calls {
			begun := time.Now()
			musttest.Do(t, (call{perMinute: 60_000, uses: 5}).run(t, q))
			if time.Since(begun) != 0 {
				t.Fatalf("call %d waited", i)
			}
			time.Sleep(10 * time.Millisecond)
		}
		if n := s.Exchanges(); n > 101 {
			t.Errorf("%d transactions in ten seconds", n)
		}
		musttest.Do(t, q.Close())
		row := s.Rows(t)["day 2000-01-01 acme"]
		if row.Calls != calls+1 || row.Fuel != calls*5 {
			t.Errorf("%+v", row)
		}
		time.Sleep(time.Minute)
		begun := time.Now()
		if err := (call{}).run(t, q); skill.CodeOf(err) != skill.AuditUnavailable {
			t.Errorf("after the end: %v", err)
		}
		if err := q.Close(); err != nil || time.Since(begun) != 0 {
			t.Error(err)
		}
	})
}

// What no limit is set for is counted, and not refused.
func TestUnsetLimitsRefuseNothing(t *testing.T) {
	at(t, func(t *testing.T) {
		s := newStore(t)
		err := s.Exchange(t.Context(), []string{"day 2000-01-01 acme"}, func(rows []quota.Row) {
			rows[0].Calls, rows[0].Fuel, rows[0].Ends = 1<<60, 1<<62, time.Now().Add(time.Hour)
		})
		musttest.Do(t, err)
		q := open(t, s, nil)
		for range 3 {
			if err := (call{}).run(t, q); err != nil {
				t.Error(err)
			}
		}
		if today, err := q.Today(t.Context(), "acme"); err != nil || today.Calls < 1<<60 || today.CallLimit != 0 || today.FuelLimit != 0 {
			t.Errorf("%+v, %v", today, err)
		}
	})
}

// Who comes after a pause does not wait either; the second one does.
func TestCloseCountsAll(t *testing.T) {
	at(t, func(t *testing.T) {
		s := newStore(t)
		q := open(t, s, func(o *quota.Options) { o.RatePrincipal = 6_000_000 })
		const principals = 4000 // more than one transaction counts
		for range 2 {
			for i := range principals { // the first time, each is counted before it begins
				musttest.Do(t, (call{id: fmt.Sprint("p", i)}).run(t, q))
			}
		}
		if err := q.Close(); err != nil {
			t.Errorf("with a database that works: %v", err)
		}
		rows := s.Rows(t)
		if row := rows["day 2000-01-01 acme"]; row.Calls != 2*principals {
			t.Errorf("%d calls were counted", row.Calls)
		}
		for i := range principals {
			// Until a bucket is full again says how many calls were counted.
			row := rows[fmt.Sprint("principal acme p", i)]
			if n := (row.Until - time.Now().UnixNano()) / 10_000; n != 2 {
				t.Fatalf("%d calls of the %dth principal were counted", n, i)
			}
		}
	})
}

func TestAfterAPause(t *testing.T) {
	at(t, func(t *testing.T) {
		s := newStore(t)
		q := open(t, s, nil)
		_ = call{}.run(t, q)
		s.Takes(20 * time.Millisecond)
		time.Sleep(10 * time.Second)
		for i, want := range []time.Duration{0, 20 * time.Millisecond, 0} {
			begun := time.Now()
			if err := (call{}).run(t, q); err != nil || time.Since(begun) != want {
				t.Errorf("call %d waited %v: %v", i, time.Since(begun), err)
			}
		}
	})
}

// Calls of a day are those of all hosts, and of this day alone.
func TestDay(t *testing.T) {
	at(t, func(t *testing.T) {
		s := newStore(t)
		first := open(t, s, func(o *quota.Options) { o.DailyExecutions = 50 })
		second := open(t, s, func(o *quota.Options) { o.DailyExecutions = 50 })
		for i := range 50 {
			if err := (call{}).run(t, []*quota.Quotas{first, second}[i%2]); err != nil {
				t.Fatal(i, err)
			}
		}
		for _, q := range []*quota.Quotas{first, second} {
			refuses(t, call{}.run(t, q), "call quota exceeded: the tenant has 50 calls a day (UTC); try again in 43200000 ms", details("tenant", "calls_per_day", 50, 43_200_000, 43_200_000))
		}
		if err := (call{tenant: "other"}).run(t, first); err != nil {
			t.Error(err)
		}
		n := s.Exchanges()
		for range 1000 {
			if err := (call{}).run(t, first); err == nil {
				t.Fatal("it began")
			}
		}
		if s.Exchanges() != n {
			t.Error("what is refused is asked again and again")
		}
		time.Sleep(12 * time.Hour)
		if n := (call{}).begins(t, second, 100); n != 50 {
			t.Errorf("on the next day %d calls began", n)
		}
	})
}

// A day's fuel is exceeded by the limit of one call of each host, and what ends after
// midnight is of the new day.
func TestFuel(t *testing.T) {
	at(t, func(t *testing.T) {
		s := newStore(t)
		set := func(o *quota.Options) { o.DailyFuel = 1000 }
		first, second := open(t, s, set), open(t, s, set)
		c := call{limit: 300, uses: 100}
		used := 0
		for i := range 100 {
			if c.run(t, []*quota.Quotas{first, second}[i%2]) == nil {
				used += 100
			}
			time.Sleep(200 * time.Millisecond)
		}
		if used < 1000 || used > 1000+2*300 {
			t.Errorf("%d units were used", used)
		}
		refuses(t, c.run(t, first), "fuel quota exceeded: the tenant has 1000 units a day (UTC); try again in 43180000 ms", details("tenant", "fuel_per_day", 1000, 43_180_000, 43_180_000))
		if err := (call{tenant: "other"}).run(t, first); err != nil {
			t.Error(err)
		}
		time.Sleep(12 * time.Hour)
		leave := musttest.Get(c.enter(t.Context(), first))(t)
		time.Sleep(24 * time.Hour)
		leave(skill.Usage{Fuel: 2000})
		time.Sleep(time.Second)
		for _, q := range []*quota.Quotas{first, second} {
			if err := c.run(t, q); skill.CodeOf(err) != skill.RateLimited {
				t.Errorf("after a call that ended today: %v", err)
			}
		}
	})
}

// Of calls that run at once, those begin that leave some fuel to the ones before.
func TestFuelOfRunningCalls(t *testing.T) {
	at(t, func(t *testing.T) {
		q := open(t, newStore(t), func(o *quota.Options) { o.DailyFuel = 1000 })
		c := call{limit: 400}
		var leaves []func(skill.Usage)
		for {
			leave, err := c.enter(t.Context(), q)
			if err != nil {
				refuses(t, err, "running calls may use the rest of the tenant's fuel for today (UTC), 1000 units; try again in 250 ms", details("tenant", "fuel_per_day", 1000, 43_200_000, 250))
				break
			}
			leaves = append(leaves, leave)
		}
		if len(leaves) != 3 {
			t.Errorf("%d calls of 400 run within 1000", len(leaves))
		}
		for _, leave := range leaves {
			leave(skill.Usage{Fuel: 10})
		}
		time.Sleep(time.Second)
		if err := (call{limit: 1 << 63}).run(t, q); err != nil {
			t.Errorf("one whose limit is more than there is begins while nothing runs: %v", err)
		}
	})
}

// What a call may use becomes what it did use in one step: in between, others would find
// fuel that is not there.
func TestFuelOfCallsThatEnd(t *testing.T) {
	for range 20 {
		q := open(t, newStore(t), func(o *quota.Options) { o.DailyFuel = 1000 })
		var used atomic.Int64
		var all sync.WaitGroup
		for range 16 {
			all.Go(func() {
				for range 100 {
					if leave, err := (call{limit: 10}).enter(context.Background(), q); err == nil {
						used.Add(10)
						leave(skill.Usage{Fuel: 10})
					}
				}
			})
		}
		all.Wait()
		if n := used.Load(); n > 1000+10 {
			t.Fatalf("%d of 1000 units were used", n)
		}
		musttest.Do(t, q.Close())
	}
}

// A call that is refused by one limit is not counted in the others.
func TestRefusedCallsAreNotCounted(t *testing.T) {
	at(t, func(t *testing.T) {
		s := newStore(t)
		q := open(t, s, nil)
		for range 500 {
			_ = call{perMinute: 5}.run(t, q)
		}
		time.Sleep(time.Second)
		if row := s.Rows(t)["day 2000-01-01 acme"]; row.Calls != 5 {
			t.Errorf("%+v", row)
		}
	})
}

func TestOptions(t *testing.T) {
	if _, err := quota.New(quota.Options{}); err == nil {
		t.Error("without a store")
	}
	if _, err := quota.New(quota.Options{Store: newStore(t), RateTenant: -1}); err == nil {
		t.Error("a negative limit")
	}
}
