// Package places bounds how much goes on at once in a host, and how much of that is of one
// tenant, so that none takes the places of all others. Nobody waits: who finds no place is
// told to come again.
package places

import "sync"

// Places are safe for concurrent use.
type Places struct {
	all, each int

	mu      sync.Mutex
	taken   int
	tenants map[string]int // those that have some
}

// New makes places for all, and for each tenant; both are above zero.
func New(all, each int) *Places {
	return &Places{all: all, each: each, tenants: map[string]int{}}
}

// Take takes a place, if there is one; leave gives it back, and may be called more than
// once.
func (p *Places) Take(tenant string) (leave func(), ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.taken >= p.all || p.tenants[tenant] >= p.each {
		return nil, false
	}
	p.taken++
	p.tenants[tenant]++
	return sync.OnceFunc(func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.taken--
		if p.tenants[tenant]--; p.tenants[tenant] == 0 {
			delete(p.tenants, tenant)
		}
	}), true
}
