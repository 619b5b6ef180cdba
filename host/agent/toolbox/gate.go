package toolbox

import (
	"context"
	"sync"

	"golang.org/x/sync/semaphore"
)

// gate lets so many calls run at once, and so many of one tenant, so that none keeps all
// others waiting. Who waits is served in order.
type gate struct {
	all  *semaphore.Weighted
	each int64

	mu      sync.Mutex
	tenants map[string]*share // of those with calls that run or wait
}

// share is what one tenant has of the gate.
type share struct {
	places *semaphore.Weighted
	users  int // that run or wait
}

func newGate(all, each int) *gate {
	return &gate{all: semaphore.NewWeighted(int64(all)), each: int64(each), tenants: map[string]*share{}}
}

// enter takes a place for a call of a tenant, and waits for one as long as ctx allows.
func (g *gate) enter(ctx context.Context, tenant string) (leave func(), err error) {
	g.mu.Lock()
	s := g.tenants[tenant]
	if s == nil {
		s = &share{places: semaphore.NewWeighted(g.each)}
		g.tenants[tenant] = s
	}
	s.users++
	g.mu.Unlock()
	gone := func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		if s.users--; s.users == 0 {
			delete(g.tenants, tenant)
		}
	}
	// First the tenant's own place: who waits for that takes none of the others'.
	if err := s.places.Acquire(ctx, 1); err != nil {
		gone()
		return nil, err
	}
	if err := g.all.Acquire(ctx, 1); err != nil {
		s.places.Release(1)
		gone()
		return nil, err
	}
	return func() {
		g.all.Release(1)
		s.places.Release(1)
		gone()
	}, nil
}
