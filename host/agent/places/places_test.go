package places

import (
	"sync"
	"sync/atomic"
	"testing"
)

func TestPlaces(t *testing.T) {
	p := New(3, 2)
	take := func(tenant string, want bool) func() {
		t.Helper()
		leave, ok := p.Take(tenant)
		if ok != want {
			t.Fatalf("%s has a place: %v", tenant, ok)
		}
		return leave
	}
	first := take("a", true)
	take("a", true)
	take("a", false) // its share is taken
	b := take("b", true)
	take("c", false) // all are
	first()
	first() // gives nothing more back
	c := take("c", true)
	take("b", false)
	b()
	c()
	take("b", true)
	if p.taken != 2 || len(p.tenants) != 2 {
		t.Errorf("%d are taken, by %v", p.taken, p.tenants)
	}
}

// Never more at once than there are, whoever comes.
func TestTogether(t *testing.T) {
	p := New(10, 4)
	var now, most, refused atomic.Int64
	var wg sync.WaitGroup
	for i := range 64 {
		wg.Go(func() {
			for range 200 {
				leave, ok := p.Take(string(rune('a' + i%8)))
				if !ok {
					refused.Add(1)
					continue
				}
				n := now.Add(1)
				for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
				}
				now.Add(-1)
				leave()
			}
		})
	}
	wg.Wait()
	if most.Load() > 10 || p.taken != 0 || len(p.tenants) != 0 {
		t.Errorf("%d at once, %d are taken, by %v", most.Load(), p.taken, p.tenants)
	}
}
