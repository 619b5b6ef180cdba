package workers

import (
	"errors"
	"fmt"
	"math"

	"openskill/host/internal/gate"
	"openskill/sdk/skill"
)

// place gives a tenant a place for one more worker, until leave is called. Workers without
// a call make room: the tenant's own where it has its share, else those of the tenant with
// most. P.mu is held.
func (p *Pool) place(tenant string) (leave func(), err error) {
	for {
		leave, err = p.places.TryEnter(tenant)
		var full *gate.FullError
		switch {
		case err == nil:
			p.yield()
			return leave, nil
		case !errors.As(err, &full):
			return nil, err
		case !p.evict(tenant, full.Own):
			message := fmt.Sprintf("all %d worker processes are busy; retry shortly", p.o.Max)
			if full.Own {
				message = fmt.Sprintf("this tenant's share of the %d worker processes is busy; retry shortly", p.o.Max)
			}
			return nil, &skill.Error{
				Op: "worker.acquire", Code: skill.RateLimited, Message: message,
				Details: map[string]any{"retry_after_ms": full.After.Milliseconds()},
			}
		}
	}
}

// evict ends a worker without a call for the sake of a tenant, and reports whether there was
// one: of a tenant with at least as many, the most first, and of those the longest unused.
// With own, the tenant's own go before all others. P.mu is held.
func (p *Pool) evict(tenant string, own bool) bool {
	has := map[string]int{}
	for w := range p.live {
		if w.leave != nil {
			has[w.tenant]++
		}
	}
	var victim *slot
	most := 0
	for _, s := range p.slots {
		if s.w == nil || s.w.cause() != nil || !s.w.idle() || has[s.w.tenant] < has[tenant] {
			continue
		}
		rank := has[s.w.tenant]
		if own && s.w.tenant == tenant {
			rank = math.MaxInt
		}
		if victim == nil || rank > most || rank == most && s.used.Before(victim.used) {
			victim, most = s, rank
		}
	}
	if victim == nil {
		return false
	}
	delete(p.slots, victim.key)
	p.forget(victim.w)
	victim.w.retire()
	return true
}

// yield ends a spare worker where one more would be too many, unless it can be the one. P.mu
// is held.
func (p *Pool) yield() {
	n := len(p.spares)
	if len(p.live)+p.begun < p.o.Max || n == 0 || p.o.FoldersOf == nil || p.spares[n-1].hello.Narrows {
		return
	}
	w := p.spares[n-1]
	p.spares = p.spares[:n-1]
	p.forget(w)
	w.retire()
}

// forget takes a worker that ends from the pool's count, with its place. P.mu is held.
func (p *Pool) forget(w *process) {
	delete(p.live, w)
	if w.leave != nil {
		w.leave()
	}
}
