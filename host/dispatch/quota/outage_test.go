package quota_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"openskill/host/dispatch/quota"
	"openskill/internal/musttest"
	"openskill/sdk/skill"
)

// Without the database nothing begins that would have to be counted first; it comes back
// without a restart, and what was owed is counted then.
func TestDatabaseGone(t *testing.T) {
	at(t, func(t *testing.T) {
		s := newStore(t)
		q := open(t, s, func(o *quota.Options) { o.RatePrincipal = 1000 })
		musttest.Do(t, (call{}).run(t, q))
		s.Down(errors.New("gone"))
		began := 1
		for range 200 {
			err := call{}.run(t, q)
			switch e, ok := errors.AsType[*skill.Error](err); {
			case err == nil:
				began++
			case !ok || e.Code != skill.AuditUnavailable || strings.Contains(e.Message, "gone"):
				t.Fatal(err)
			}
		}
		if began > 1+10 {
			t.Errorf("%d calls began, which is more than a hundredth", began)
		}
		n := s.Exchanges()
		for range 100 {
			_ = call{id: "bob"}.run(t, q)
		}
		if s.Exchanges() > n+1 {
			t.Errorf("a database that is gone was asked %d times", s.Exchanges()-n)
		}
		if err := q.Close(); skill.CodeOf(err) != skill.AuditUnavailable {
			t.Errorf("closing: %v", err)
		}
		q = open(t, s, func(o *quota.Options) { o.RatePrincipal = 1000 })
		s.Down(nil)
		if n := (call{}).begins(t, q, 2000); n > 1000-1+10 || n < 900 {
			t.Errorf("%d calls began", n)
		}
	})
}

func TestComesBack(t *testing.T) {
	at(t, func(t *testing.T) {
		s := newStore(t)
		q := open(t, s, nil)
		_ = call{}.run(t, q)
		s.Down(errors.New("gone"))
		for range 5 {
			_ = call{uses: 3}.run(t, q)
		}
		time.Sleep(time.Minute)
		s.Down(nil)
		time.Sleep(2 * time.Second)
		if row := s.Rows(t)["day 2000-01-01 acme"]; row.Calls != 6 || row.Fuel != 15 {
			t.Errorf("%+v", row)
		}
		if err := (call{id: "bob"}).run(t, q); err != nil {
			t.Error(err)
		}
	})
}

// A database that hangs keeps nobody for longer than its time; whoever leaves before is
// not counted, or given back.
func TestDatabaseHangs(t *testing.T) {
	at(t, func(t *testing.T) {
		s := newStore(t)
		q := open(t, s, func(o *quota.Options) { o.RatePrincipal = 50 })
		s.Takes(time.Hour)
		var all sync.WaitGroup
		for range 100 {
			all.Go(func() {
				begun := time.Now()
				if err := (call{}).run(t, q); skill.CodeOf(err) != skill.AuditUnavailable || time.Since(begun) > 2*time.Second {
					t.Errorf("%v after %v", err, time.Since(begun))
				}
			})
		}
		all.Wait()
		s.Takes(10 * time.Millisecond)
		time.Sleep(time.Second)
		ctx, leave := context.WithCancel(t.Context())
		for range 20 {
			all.Go(func() {
				if _, err := (call{}).enter(ctx, q); skill.CodeOf(err) != skill.Cancelled {
					t.Error(err)
				}
			})
		}
		time.Sleep(5 * time.Millisecond)
		leave()
		all.Wait()
		time.Sleep(time.Second)
		if row := s.Rows(t)["day 2000-01-01 acme"]; row.Calls != 0 {
			t.Errorf("%+v", row)
		}
		if n := (call{}).begins(t, q, 100); n != 50 {
			t.Errorf("%d calls began", n)
		}
	})
}

// A million principals fill neither this host nor the database.
func TestManyPrincipals(t *testing.T) {
	quota.LowerBounds(t, 1000, 50)
	at(t, func(t *testing.T) {
		s := newStore(t)
		q := open(t, s, func(o *quota.Options) { o.RateTenant, o.RatePrincipal = 10_000_000, 6_000_000 })
		full := -1
		for i := range 1100 {
			if err := (call{id: fmt.Sprint("p", i)}).run(t, q); err != nil {
				refuses(t, err, "too many callers are active on this host; try again in 250 ms", details("principal", "calls_at_once", 1000, 250, 250))
				full = i
				break
			}
		}
		if full < 900 {
			t.Errorf("full after %d", full)
		}
		if err := (call{}).run(t, q); skill.CodeOf(err) != skill.RateLimited {
			t.Error(err)
		}
		if err := (call{id: "p1"}).run(t, q); err != nil {
			t.Errorf("one that is known: %v", err)
		}
		time.Sleep(2 * time.Second)
		if err := (call{}).run(t, q); err != nil {
			t.Errorf("when the others are idle: %v", err)
		}
		for range 20 * 6 {
			time.Sleep(10 * time.Minute)
			_ = call{}.run(t, q)
			_ = call{id: "bob"}.run(t, q)
		}
		time.Sleep(24 * time.Hour)
		_ = call{}.run(t, q)
		synctest.Wait()
		if n := len(s.Rows(t)); n > 50 {
			t.Errorf("%d rows are left", n)
		}
	})
}

// Rows that mean nothing go as fast as they come, also where they are many.
func TestManyRowsGo(t *testing.T) {
	quota.LowerBounds(t, 10_000, 50)
	at(t, func(t *testing.T) {
		s := newStore(t)
		q := open(t, s, func(o *quota.Options) { o.RateTenant = 10_000_000 })
		for i := range 300 {
			musttest.Do(t, (call{id: fmt.Sprint("p", i)}).run(t, q))
		}
		time.Sleep(time.Hour)
		for range 12 {
			_ = call{}.run(t, q)
			time.Sleep(10 * time.Second)
		}
		if n := len(s.Rows(t)); n > 50 {
			t.Errorf("%d rows are left", n)
		}
	})
}
