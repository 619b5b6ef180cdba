package gate

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"openskill/internal/musttest"
	"openskill/sdk/skill"
)

// fill takes as many places as a tenant gets.
func fill(t *testing.T, g *Gate, tenant string, parts ...Part) (leave []func()) {
	t.Helper()
	for range 10_000 {
		l, err := g.TryEnter(tenant, parts...)
		if err != nil {
			if full := (*FullError)(nil); !errors.As(err, &full) || full.After <= 0 {
				t.Fatalf("refused with %v", err)
			}
			return leave
		}
		leave = append(leave, l)
	}
	t.Fatal("the gate has no bound")
	return nil
}

// empty fails if the gate holds anything of anybody.
func empty(t *testing.T, g *Gate) {
	t.Helper()
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.all.taken+len(g.all.held)+g.queued.taken+len(g.queued.held)+len(g.parts)+len(g.waiting) != 0 {
		t.Errorf("something is left: places %+v, queue %+v, %d parts, %d lines", g.all, g.queued, len(g.parts), len(g.waiting))
	}
}

func TestOneTenantCannotFillTheGate(t *testing.T) {
	for places := 1; places <= 100; places++ {
		g := New(Options{Places: places})
		many := fill(t, g, "many")
		if places > 1 && len(many) >= places || len(many) < places*3/5 && places > 2 || len(many) == 0 {
			t.Errorf("of %d places one tenant has %d", places, len(many))
		}
		for i := range places - len(many) { // every other tenant has one, while there are any
			if _, err := g.TryEnter(fmt.Sprint(i)); err != nil {
				t.Errorf("of %d places %d are held, and a tenant without one gets none: %v", places, len(many)+i, err)
			}
		}
		if held, _, _, _ := g.Load(); held != places {
			t.Errorf("%d of %d places are held", held, places)
		}
	}
}

func TestSharesFollowTheTenants(t *testing.T) {
	for _, c := range []struct{ tenants, low, high int }{{1, 66, 67}, {2, 39, 41}, {3, 27, 30}, {10, 8, 11}} {
		g := New(Options{Places: 100})
		for range 100 {
			for i := range c.tenants {
				_, _ = g.TryEnter(fmt.Sprint(i))
			}
		}
		for tenant, n := range g.all.held {
			if n < c.low || n > c.high {
				t.Errorf("tenant %s of %d holds %d of 100 places, want %d to %d", tenant, c.tenants, n, c.low, c.high)
			}
		}
		if g.all.taken >= 100 {
			t.Errorf("%d tenants hold all places", c.tenants)
		}
	}
}

func TestAloneHasAllPlaces(t *testing.T) {
	g := New(Options{Places: 3, Alone: true})
	if n := len(fill(t, g, "", Part{Key: "skill", Places: 2})) + len(fill(t, g, "")); n != 3 {
		t.Errorf("%d of 3", n)
	}
}

// A part is shared like the gate, but its owner keeps no place of it for others.
func TestPartsAreShared(t *testing.T) {
	skill := Part{Key: "slow", Places: 16}
	g := New(Options{Places: 32})
	if n := len(fill(t, g, "many", skill)); n < 9 || n > 12 {
		t.Errorf("one tenant has %d of the 16 places of a skill", n)
	}
	if _, err := g.TryEnter("other", skill); err != nil {
		t.Error(err)
	}
	g = New(Options{Places: 32})
	skill.Owner = "owner"
	if n := len(fill(t, g, "owner", skill)); n != 16 {
		t.Errorf("the owner has %d", n)
	}
	_, err := g.TryEnter("other", Part{Key: "free", Places: 1}, skill)
	if full := (*FullError)(nil); !errors.As(err, &full) || full.Part != 1 || full.Own {
		t.Errorf("%+v", err)
	}
	_, err = g.TryEnter("owner", Part{Key: "free", Places: 1})
	if err != nil {
		t.Error(err)
	}
}

func TestSaysWhatIsFull(t *testing.T) {
	g := New(Options{Places: 2, Wait: 3 * time.Second, Queue: 1})
	_, _ = g.TryEnter("a")
	for _, c := range []struct {
		tenant string
		own    bool
	}{{"a", true}, {"b", false}} {
		if c.tenant == "b" {
			_, _ = g.TryEnter("c")
		}
		_, err := g.TryEnter(c.tenant)
		if full := (*FullError)(nil); !errors.As(err, &full) || full.Part != -1 || full.Own != c.own || full.After != 3*time.Second {
			t.Errorf("%s: %+v", c.tenant, err)
		}
	}
}

func TestRefusal(t *testing.T) {
	for _, c := range []struct {
		err  error
		code skill.Code
		want string
	}{
		{&FullError{After: 1500 * time.Millisecond}, skill.RateLimited, "too many lists are read; try again in 1500 ms"},
		{fmt.Errorf("x: %w", &FullError{}), skill.RateLimited, "too many lists are read; try again in 1 ms"},
		{context.DeadlineExceeded, skill.Timeout, "the request timed out while it was queued"},
		{errors.New("it closed its connection"), skill.Cancelled, "the client disconnected while the request was queued"},
	} {
		got := Refusal(c.err, "x", "too many lists are read")
		if got.Code != c.code || got.Message != c.want || (got.Details["retry_after_ms"] != nil) != (c.code == skill.RateLimited) {
			t.Errorf("%v became %+v", c.err, got)
		}
	}
}

func TestLeaveTwiceIsOnce(t *testing.T) {
	g := New(Options{Places: 2})
	a, _ := g.TryEnter("a", Part{Key: 1, Places: 1})
	b, _ := g.TryEnter("b")
	a()
	a()
	if held, _, _, _ := g.Load(); held != 1 {
		t.Errorf("%d held", held)
	}
	b()
	empty(t, g)
}

// waits starts a request that waits, and tells when it has gone in or been refused.
func waits(ctx context.Context, g *Gate, tenant string, told func(leave func(), err error), parts ...Part) {
	go func() { told(g.Enter(ctx, tenant, parts...)) }()
	synctest.Wait()
}

// Places go to the tenant with the fewest, and among equals in turn, however many of one
// tenant came first.
func TestTenantsTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := New(Options{Places: 1, Queue: 100})
		leave := musttest.Get(g.TryEnter("many"))(t)
		var order string
		next := make(chan func(), 1)
		for _, tenant := range []string{"m", "m", "m", "m", "a", "a", "b"} {
			waits(t.Context(), g, tenant, func(l func(), err error) {
				if err == nil {
					order += tenant
					next <- l
				}
			})
		}
		for range 7 {
			leave()
			leave = <-next
			synctest.Wait()
		}
		leave()
		if order != "mabmamm" {
			t.Errorf("the order was %s", order)
		}
		empty(t, g)
	})
}

// A request that waits for its part only does not hold up the others, not even those of
// its own tenant.
func TestAFullPartHoldsUpNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := New(Options{Places: 8, Queue: 8})
		slow := Part{Key: "slow", Places: 1}
		leave := musttest.Get(g.TryEnter("a", slow))(t)
		went := false
		waits(t.Context(), g, "b", func(l func(), err error) { went = err == nil; l() }, slow)
		for _, tenant := range []string{"a", "b", "c"} {
			l := musttest.Get(g.Enter(t.Context(), tenant))(t)
			l()
		}
		other := Part{Key: "other", Places: 1}
		free := musttest.Get(g.TryEnter("a", other))(t)
		passed := false
		waits(t.Context(), g, "b", func(l func(), err error) { passed = err == nil; l() }, other)
		free()
		synctest.Wait()
		if !passed {
			t.Error("a request waits behind one of its tenant for another part")
		}
		if went {
			t.Error("two hold a part of one place")
		}
		leave()
		synctest.Wait()
		if !went {
			t.Error("the part is free, and the one that waits has not got it")
		}
		empty(t, g)
	})
}

func TestWaitsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := New(Options{Places: 1, Queue: 3, Wait: time.Second})
		leave := musttest.Get(g.TryEnter("a"))(t)
		began := time.Now()
		var refused atomic.Int64
		told := func(_ func(), err error) {
			if full := (*FullError)(nil); errors.As(err, &full) && time.Since(began) == time.Second {
				refused.Add(1)
			}
		}
		waits(t.Context(), g, "a", told)
		waits(t.Context(), g, "a", told)
		if _, err := g.Enter(t.Context(), "a"); err == nil || time.Since(began) != 0 {
			t.Errorf("one tenant fills the queue: %v", err)
		}
		waits(t.Context(), g, "b", told)
		if _, err := g.Enter(t.Context(), "c"); err == nil || time.Since(began) != 0 {
			t.Errorf("the queue has no bound: %v", err)
		}
		why := errors.New("the caller left")
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(why)
		if _, err := g.Enter(ctx, "d"); !errors.Is(err, why) {
			t.Error(err)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if refused.Load() != 3 {
			t.Errorf("%d of 3 were refused after their time", refused.Load())
		}
		ctx, cancel = context.WithCancelCause(t.Context())
		var got error
		waits(ctx, g, "b", func(_ func(), err error) { got = err })
		cancel(why)
		synctest.Wait()
		if !errors.Is(got, why) {
			t.Error(got)
		}
		leave()
		empty(t, g)
	})
}

func TestResize(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := New(Options{Places: 1, Queue: 10})
		first, _ := g.TryEnter("a", Part{Key: "p", Places: 1})
		var in atomic.Int64
		var leaves sync.Map
		told := func(l func(), err error) {
			if err == nil {
				leaves.Store(in.Add(1), l)
			}
		}
		waits(t.Context(), g, "b", told)
		waits(t.Context(), g, "c", told, Part{Key: "p", Places: 1})
		g.Resize(5, 10)
		synctest.Wait()
		if in.Load() != 1 {
			t.Errorf("%d of those who waited are in, want the one that a larger gate has room for", in.Load())
		}
		waits(t.Context(), g, "d", told, Part{Key: "p", Places: 3})
		if in.Load() != 3 {
			t.Errorf("%d are in, want all: the part is larger", in.Load())
		}
		g.Resize(1, 0)
		if held, waiting, places, queue := g.Load(); held != 4 || waiting != 0 || places != 1 || queue != 0 {
			t.Error(held, waiting, places, queue)
		}
		if _, err := g.TryEnter("e"); err == nil {
			t.Error("a smaller gate let one more in")
		}
		first()
		leaves.Range(func(_, l any) bool { l.(func())(); return true })
		empty(t, g)
	})
}

// TestRandomly does anything in any order, and looks after each step whether all holds
// that the gate promises.
func TestRandomly(t *testing.T) {
	for seed := range uint64(60) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { synctest.Test(t, func(t *testing.T) { randomly(t, seed) }) })
	}
}

func randomly(t *testing.T, seed uint64) {
	t.Helper()
	rnd := rand.New(rand.NewPCG(seed, 1))
	g := New(Options{Places: 1 + rnd.IntN(12), Queue: rnd.IntN(12), Wait: time.Second, Alone: seed%10 == 9})
	var mu sync.Mutex
	var leaves []func()
	cancels := map[int]context.CancelFunc{}
	for step := range 600 {
		tenant := string(rune('a' + rnd.IntN(1+rnd.IntN(6))))
		var parts []Part
		if rnd.IntN(2) == 0 {
			id := rnd.IntN(3)
			parts = append(parts, Part{Key: id, Places: 1 + id, Owner: []string{"", "a", "b"}[id]})
		}
		switch rnd.IntN(7) {
		case 0, 1, 2:
			ctx, cancel := context.WithCancel(t.Context())
			cancels[step] = cancel
			go func() {
				if l, err := g.Enter(ctx, tenant, parts...); err == nil {
					mu.Lock()
					leaves = append(leaves, l)
					mu.Unlock()
				}
			}()
		case 3, 4:
			mu.Lock()
			if len(leaves) > 0 {
				i := rnd.IntN(len(leaves))
				leaves[i]()
				leaves = append(leaves[:i], leaves[i+1:]...)
			}
			mu.Unlock()
		case 5:
			for n, cancel := range cancels {
				cancel()
				delete(cancels, n)
				break
			}
		case 6:
			if rnd.IntN(10) == 0 {
				g.Resize(1+rnd.IntN(12), rnd.IntN(12))
			} else {
				time.Sleep(time.Duration(rnd.IntN(400)) * time.Millisecond)
			}
		}
		synctest.Wait()
		promises(t, g, len(leaves))
	}
	for _, cancel := range cancels {
		cancel()
	}
	synctest.Wait()
	for _, l := range leaves {
		l()
	}
	synctest.Wait()
	for _, l := range leaves { // again, and those who went in meanwhile
		l()
	}
	empty(t, g)
}

// promises fails if the gate breaks one of its promises.
func promises(t *testing.T, g *Gate, entered int) {
	t.Helper()
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.all.taken != entered {
		t.Fatalf("%d are in, and the gate counts %d", entered, g.all.taken)
	}
	for key, p := range g.parts {
		if p.taken > p.places {
			t.Fatalf("part %v of %d places: %d are held", key, p.places, p.taken)
		}
	}
	waiting := 0
	for tenant, l := range g.waiting {
		waiting += l.first.Len()
		if l.first.Len() != g.queued.held[tenant] || l.first.Len() == 0 {
			t.Fatalf("%d of %s wait, and %d are counted", l.first.Len(), tenant, g.queued.held[tenant])
		}
		for e := l.first.Front(); e != nil; e = e.Next() {
			r := e.Value.(*request)
			switch {
			case g.fits(r):
				t.Fatalf("a request of %s waits for nothing", tenant)
			case len(r.parts) == 0 && g.all.held[tenant] == 0 && g.all.taken < g.all.places:
				t.Fatalf("%s holds nothing and waits, while %d of %d places are held", tenant, g.all.taken, g.all.places)
			}
		}
	}
	if waiting != g.queued.taken {
		t.Fatalf("%d wait, and %d are counted", waiting, g.queued.taken)
	}
}

// Whoever comes, from however many goroutines: never more at once than there are places.
func TestNeverMoreThanPlaces(t *testing.T) {
	g := New(Options{Places: 10, Queue: 20, Wait: time.Millisecond})
	var now, most, entered atomic.Int64
	var wg sync.WaitGroup
	for i := range 64 {
		wg.Go(func() {
			for range 100 {
				leave, err := g.Enter(t.Context(), string(rune('a'+i%8)), Part{Key: i % 3, Places: 2})
				if err != nil {
					continue
				}
				entered.Add(1)
				n := now.Add(1)
				for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
				}
				now.Add(-1)
				leave()
			}
		})
	}
	wg.Wait()
	if most.Load() > 6 || entered.Load() == 0 {
		t.Errorf("%d at once in three parts of two places, %d in all", most.Load(), entered.Load())
	}
	empty(t, g)
}
