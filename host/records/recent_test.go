package records

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"openskill/internal/musttest"
	"openskill/sdk/skill"
)

// clock is a time that a test moves.
type clock struct{ at time.Time }

func (c *clock) now() time.Time { return c.at }

func at() *clock { return &clock{time.Date(2026, 11, 22, 10, 30, 15, 0, time.UTC)} }

func TestFiguresOfAnHour(t *testing.T) {
	c := at()
	w := NewWindow(WindowOptions{Now: c.now})
	if f := w.All(); f.Calls != 0 || len(f.Minutes) != Minutes || f.P50 != 0 || f.Codes != nil || f.Skills != nil {
		t.Errorf("nothing has happened, and there is %+v", f)
	}
	w.Add(&EndedCall{Tenant: "a", Skill: "x", Took: time.Second, Fuel: 5, Memory: 100})
	c.at = c.at.Add(time.Minute)
	w.Add(&EndedCall{Tenant: "a", Skill: "x", Took: time.Millisecond, Fuel: 7, Memory: 300, Code: "TIMEOUT"})
	w.Add(&EndedCall{Tenant: "b", Skill: "y", Took: time.Millisecond, Code: "TIMEOUT"})
	w.Add(&EndedCall{Tenant: "b", Took: time.Millisecond, Code: "NOT_FOUND"})

	f := w.Of("a")
	if f.Calls != 2 || f.Failed != 1 || f.Fuel != 12 || f.Memory != 300 || !slices.Equal(f.Codes, []Count{{"TIMEOUT", 1}}) || !slices.Equal(f.Skills, []SkillCount{{"x", 2, 1}}) {
		t.Errorf("of a: %+v", f)
	}
	last, before := f.Minutes[Minutes-1], f.Minutes[Minutes-2]
	if last.Calls != 1 || last.Failed != 1 || last.Fuel != 7 || before.Calls != 1 || before.Failed != 0 || !last.At.Equal(c.at.Truncate(time.Minute)) {
		t.Errorf("minutes %+v, %+v", before, last)
	}
	if f := w.All(); f.Calls != 4 || !slices.Equal(f.Codes, []Count{{"TIMEOUT", 2}, {"NOT_FOUND", 1}}) {
		t.Errorf("of all: %+v", f)
	}
	if f := w.Of("c"); f.Calls != 0 {
		t.Errorf("of nobody: %+v", f)
	}
	c.at = c.at.Add(59 * time.Minute)
	if f := w.Of("a"); f.Calls != 1 || !slices.Equal(w.Tenants(), []string{"a", "b"}) {
		t.Errorf("an hour later: %+v", f)
	}
	c.at = c.at.Add(20 * time.Minute)
	if f := w.Of("a"); f.Calls != 0 || f.Skills != nil || len(w.Tenants()) != 0 {
		t.Errorf("what is old is still there: %+v, %v", f, w.Tenants())
	}
}

// Percentiles are within a sixth of the true ones, for times of any length.
func TestPercentiles(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 50 {
		var took []time.Duration
		var s times
		for range 1 + r.IntN(2000) {
			d := time.Duration(float64(20*time.Microsecond) * math.Exp2(20*r.Float64()))
			took = append(took, d)
			s.add(d)
		}
		slices.Sort(took)
		for _, p := range []uint64{1, 50, 95, 99, 100} {
			want := took[max((uint64(len(took))*p+99)/100, 1)-1]
			if got := s.percentile(p); float64(got) > 1.17*float64(want) || float64(got) < float64(want)/1.17 {
				t.Errorf("p%d of %d: %v, want %v", p, len(took), got, want)
			}
		}
	}
	var s times
	s.add(-1)
	s.add(1 << 62) // longer than the last bucket begins
	if s.percentile(100) <= s.percentile(1) || s.percentile(1) > shortest {
		t.Errorf("%v and %v", s.percentile(1), s.percentile(100))
	}
}

// However many tenants, skills and codes there are, what is kept is bounded, and nothing is
// left uncounted.
func TestBounds(t *testing.T) {
	c := at()
	w := NewWindow(WindowOptions{Now: c.now, Tenants: 5, Skills: 3})
	for i := range 100 {
		w.Add(&EndedCall{Tenant: fmt.Sprint("t", i), Skill: fmt.Sprint("s", i), Code: fmt.Sprint("C", i)})
	}
	if n := len(w.tenants); n > 6 {
		t.Errorf("%d tenants", n)
	}
	if n := len(w.all.skills); n > 4 {
		t.Errorf("%d skills", n)
	}
	f := w.All()
	if len(f.Codes) > mostCodes+1 {
		t.Errorf("%d codes", len(f.Codes))
	}
	if other := w.Of(Others); f.Calls != 100 || other.Calls != 95 {
		t.Errorf("%d calls, %d of others", f.Calls, other.Calls)
	}
	sum := uint64(0)
	for _, s := range f.Skills {
		sum += s.N
	}
	if sum != 100 {
		t.Errorf("%d calls of skills", sum)
	}
	c.at = c.at.Add(2 * time.Hour)
	w.Add(&EndedCall{Tenant: "late", Skill: "late"})
	if f := w.Of("late"); f.Calls != 1 || len(f.Skills) != 1 || f.Skills[0].Name != "late" {
		t.Errorf("who comes when others are silent has no place: %+v", f)
	}
}

func TestWatching(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tail := NewTail(false)
		w := musttest.Get(tail.Watch(skill.Principal{ID: "ann"}, func(c *EndedCall) bool { return c.Tenant == "a" }))(t)
		got := make(chan []EndedCall)
		go func() {
			calls, _, _ := w.Next(t.Context())
			got <- calls
		}()
		synctest.Wait() // it waits
		tail.Add(&EndedCall{ID: "1", Tenant: "b"})
		tail.Add(&EndedCall{ID: "2", Tenant: "a"})
		if calls := <-got; len(calls) != 1 || calls[0].ID != "2" {
			t.Errorf("%+v", calls)
		}
		// Who is slow loses the oldest, and is told how many; nobody waits for it.
		for i := range mostWaiting + 7 {
			tail.Add(&EndedCall{ID: fmt.Sprint(i), Tenant: "a"})
		}
		calls, lost, err := w.Next(t.Context())
		if err != nil || lost != 7 || len(calls) != mostWaiting || calls[0].ID != "7" {
			t.Errorf("%d calls from %s, %d lost, %v", len(calls), calls[0].ID, lost, err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, _, err := w.Next(ctx); err == nil {
			t.Error("there is more")
		}
		w.Close()
		w.Close()
		tail.Add(&EndedCall{Tenant: "a"})
		if len(w.waiting) > 0 {
			t.Error("it is told after its end")
		}
	})
}

func TestMostWatchers(t *testing.T) {
	tail := NewTail(false)
	watch := func(tenant, id string) (*Watcher, error) {
		return tail.Watch(skill.Principal{Tenant: tenant, ID: id}, func(*EndedCall) bool { return true })
	}
	var mine []*Watcher
	for range mostOfOne {
		w := musttest.Get(watch("acme", "ann"))(t)
		mine = append(mine, w)
	}
	if _, err := watch("acme", "ann"); skill.CodeOf(err) != skill.RateLimited {
		t.Errorf("one more of one: %v", err)
	}
	for i := range mostWatchers - mostOfOne {
		musttest.Get(watch(fmt.Sprint(i), "x"))(t)
	}
	if _, err := watch("beta", "bob"); skill.CodeOf(err) != skill.RateLimited {
		t.Errorf("one more: %v", err)
	}
	mine[0].Close()
	mine[0].Close()
	if _, err := watch("beta", "bob"); err != nil {
		t.Errorf("after one has left: %v", err)
	}
	if _, err := watch("beta", "eve"); skill.CodeOf(err) != skill.RateLimited {
		t.Errorf("one that closes twice leaves two places: %v", err)
	}
}

// Sixteen keys of one tenant opened all the live views that a host has.
func TestOneTenantCannotHaveAllLiveViews(t *testing.T) {
	tail, n := NewTail(false), 0
	for i := range 2 * mostWatchers {
		if _, err := tail.Watch(skill.Principal{Tenant: "acme", ID: fmt.Sprint(i % 40)}, func(*EndedCall) bool { return true }); err == nil {
			n++
		}
	}
	if n < mostWatchers/2 || n > mostWatchers*3/4 {
		t.Errorf("one tenant has %d of %d views", n, mostWatchers)
	}
	if _, err := tail.Watch(skill.Principal{Tenant: "beta", ID: "bob"}, func(*EndedCall) bool { return true }); err != nil {
		t.Errorf("another tenant has none: %v", err)
	}
}

func TestAllAtOnce(t *testing.T) {
	w, tail := NewWindow(WindowOptions{}), NewTail(false)
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			watcher, err := tail.Watch(skill.Principal{Tenant: fmt.Sprint(i)}, func(*EndedCall) bool { return true })
			if err != nil {
				t.Error(err)
				return
			}
			defer watcher.Close()
			for range 200 {
				c := &EndedCall{Tenant: fmt.Sprint(i), Skill: "x", Took: time.Millisecond}
				w.Add(c)
				tail.Add(c)
				if _, _, err := watcher.Next(t.Context()); err != nil {
					t.Error(err)
				}
				w.Of(fmt.Sprint(i))
			}
		})
	}
	all.Wait()
	if f := w.All(); f.Calls != 1600 {
		t.Errorf("%d calls", f.Calls)
	}
}

func TestDeniedRequestsAreCountedBySkill(t *testing.T) {
	now := time.Date(2026, 11, 25, 12, 0, 30, 0, time.UTC)
	w := NewWindow(WindowOptions{Skills: 2, Now: func() time.Time { return now }})
	for _, d := range [][2]string{{"acme", "a"}, {"acme", "b"}, {"beta", "a"}, {"acme", "b"}, {"acme", "c"}, {"acme", "d"}} {
		w.Denied(d[0], d[1])
	}
	want := func(of Figures, list ...Count) {
		t.Helper()
		if !slices.Equal(of.Denied, list) {
			t.Errorf("%v, want %v", of.Denied, list)
		}
	}
	want(w.Of("acme"), Count{Others, 2}, Count{"b", 2}, Count{"a", 1})
	want(w.Of("beta"), Count{"a", 1})
	want(w.Of("gamma"))
	want(w.All(), Count{Others, 2}, Count{"a", 2}, Count{"b", 2})
	now = now.Add(time.Hour)
	want(w.All())
}
