package quota_test

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"openskill/host/dispatch/quota"
	"openskill/host/store"
	"openskill/host/store/pgtest"
	"openskill/host/store/storetest"
	"openskill/internal/musttest"
	"openskill/sdk/skill"
)

// TestTwoHostsOnOneDatabase: with real databases, calls of many goroutines on two hosts at
// once begin as often as the limits say, and not once more.
func TestTwoHostsOnOneDatabase(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, fresh func(t *testing.T) func() *store.DB) {
		for name, c := range map[string]struct {
			call
			set  func(o *quota.Options)
			want int64
			more int64 // that two hosts may begin too much
		}{
			"of a skill":       {call: call{perMinute: 50}, want: 50},
			"of a large skill": {call: call{perMinute: 1000}, want: 1000, more: 2 * 10},
			"of a principal":   {set: func(o *quota.Options) { o.RatePrincipal = 40 }, want: 40},
			"of a tenant":      {set: func(o *quota.Options) { o.RateTenant = 30 }, want: 30},
			"of a day":         {set: func(o *quota.Options) { o.DailyExecutions = 60 }, want: 60},
		} {
			t.Run(name, func(t *testing.T) {
				open2 := fresh(t)
				noon := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC) // and time stands still
				var began atomic.Int64
				var all sync.WaitGroup
				for range 2 {
					q := open(t, quota.NewStore(open2()), func(o *quota.Options) {
						o.Now = func() time.Time { return noon }
						if c.set != nil {
							c.set(o)
						}
					})
					t.Cleanup(func() {
						if err := q.Close(); err != nil {
							t.Error(err)
						}
					})
					for range 8 {
						all.Go(func() {
							for range 150 {
								err := c.run(t, q)
								switch skill.CodeOf(err) {
								case "":
									began.Add(1)
								case skill.RateLimited:
								default:
									t.Error(err)
									return
								}
							}
						})
					}
				}
				all.Wait()
				if n := began.Load(); n < c.want || n > c.want+c.more {
					t.Errorf("%d calls began, want %d and at most %d more", n, c.want, c.more)
				}
			})
		}
	})
}

// A server that stops and starts again: what must be counted first does not begin while
// it is gone, and all is well when it is back.
func TestServerGone(t *testing.T) {
	t.Parallel()
	server := pgtest.New(t, "synchronous_commit = on") // it is killed, and must know what it acknowledged
	q := open(t, quota.NewStore(storetest.Open(t, server.Database(t))), nil)
	c := call{perMinute: 50}
	musttest.Do(t, c.run(t, q))
	musttest.Do(t, server.Stop())
	for range 3 {
		if err := c.run(t, q); skill.CodeOf(err) != skill.AuditUnavailable {
			t.Errorf("while it is gone: %v", err)
		}
	}
	musttest.Do(t, server.Start())
	for begun := time.Now(); ; { // it is asked again a tenth of a second after it did not answer
		err := c.run(t, q)
		if err == nil {
			break
		}
		if skill.CodeOf(err) != skill.AuditUnavailable || time.Since(begun) > 30*time.Second {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Millisecond)
	}
	if err := q.Close(); err != nil {
		t.Error(err)
	}
}

// BenchmarkEnter: what a call waits for its limits to be counted, where there is room.
func BenchmarkEnter(b *testing.B) {
	d, err := store.Open(b.Context(), store.Options{StateDir: b.TempDir()})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = d.Close() })
	for name, perMinute := range map[string]int{"roomy": 100_000_000, "scarce": 0} {
		b.Run(name, func(b *testing.B) {
			o := quota.Options{Store: quota.NewStore(d), RatePrincipal: 100_000_000, RateTenant: 100_000_000}
			var calls atomic.Int64
			if name == "scarce" { // every call is counted before it begins
				o.RatePrincipal = 99
				begun := time.Now()
				o.Now = func() time.Time { return begun.Add(time.Duration(calls.Add(1)) * time.Second) }
			}
			q, err := quota.New(o)
			if err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				leave, err := q.Enter(b.Context(), skill.Principal{ID: "ann", Tenant: "acme"}, "", "echo", perMinute, 1)
				if err != nil {
					b.Fatal(err)
				}
				leave(skill.Usage{Fuel: 1})
			}
			if err := q.Close(); err != nil {
				b.Fatal(err)
			}
		})
	}
}
