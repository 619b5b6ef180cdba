package workers

import (
	"errors"
	"fmt"
	"log/slog"
	"math"
	"time"

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
			if p.short() {
				p.evict(tenant, false)
			}
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
// one: of a tenant with at least as many, the most first, and of those the one that is worth
// least. With own, the tenant's own go before all others. P.mu is held.
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
		if s.w == nil || s.w.cause() != nil || s.w.asked > 0 || !s.w.idle() || has[s.w.tenant] < has[tenant] {
			continue
		}
		rank := has[s.w.tenant]
		if own && s.w.tenant == tenant {
			rank = math.MaxInt
		}
		if victim == nil || rank > most || rank == most && (s.worth < victim.worth || s.worth == victim.worth && s.used.Before(victim.used)) {
			victim, most = s, rank
		}
	}
	if victim == nil {
		return false
	}
	delete(p.slots, victim.key)
	p.forget(victim.w)
	victim.w.retire()
	p.evicted.add(p, victim.worth)
	return true
}

// mostCost bounds the cost of a worker.
const mostCost = 2 * time.Second

// worth notes that a worker is used, and what a call had to wait for. What a worker is worth is what it costs
// to have it again, plus what the last one was worth that was ended: so those that are cheap to start go first, and an
// expensive one does not stay for ever without a call. P.mu is held.
func (p *Pool) worth(s *slot, more time.Duration) {
	s.cost = min(max(s.cost, more), mostCost)
	s.worth = p.evicted.age + s.cost
}

// relieve ends an eighth of the workers without a call when memory is short: some have more than they are counted with,
// as those with the scientific runtime. P.mu is held.
func (p *Pool) relieve() {
	if !p.short() {
		return
	}
	for range len(p.slots)/8 + 1 {
		if !p.evict("", false) {
			return
		}
	}
}

// evictions counts workers that ended to make room for others.
type evictions struct {
	count  uint64
	age    time.Duration // what the last one was worth
	recent int           // since then, at most a minute ago
	since  time.Time
}

// crowded is how many workers make room within a minute before the log says so: the next call of each waits for a
// process and a start-up again.
const crowded = 10

// add counts one that was worth so much. P.mu is held.
func (e *evictions) add(p *Pool, worth time.Duration) {
	e.count++
	e.age = max(e.age, worth)
	if now := time.Now(); now.Sub(e.since) >= time.Minute {
		e.recent, e.since = 0, now
	}
	if e.recent++; e.recent == crowded {
		p.o.Log.Warn("worker processes end to make room for others, whose calls are slow to start; raise OPENSKILL_WORKERS_MAX or add memory", slog.Int("evictions", e.recent),
			slog.Duration("within", time.Since(e.since).Round(time.Millisecond)), slog.Int("max", p.o.Max))
	}
}

// perWorker is the memory that a worker with Python is counted with: 32 MB when it waits, and more while it begins.
const perWorker = 40 << 20

// threadsOfWorker is how many threads a worker is counted with: it has 5 to 9.
const threadsOfWorker = 16

// fitting is how many workers fit into half of a memory in bytes, with so many threads in all.
func fitting(memory, threads uint64) int {
	return int(min(max(memory/2/perWorker, 8), max(threads/threadsOfWorker, 1), 1024))
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
