package dispatch

import (
	"container/list"
	"context"
	"fmt"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"openskill/sdk/skill"
)

// gate bounds how many calls run at once, over all and of each skill, and how
// often a skill may be called a minute. A call that finds no place waits a moment
// in a short line, first come first served; when the line is full, or the moment
// over, it is refused. There is no other queue.
type gate struct {
	global, perSkill int
	perOwner         int // of all uploads of one tenant; 0: no bound of its own
	queue            int
	maxWait          time.Duration
	now              func() time.Time

	mu      sync.Mutex
	running int
	owners  map[string]int // running, of each tenant's uploads
	each    map[place]*traffic
	line    list.List // of *waiter
}

// place names one skill: ids of uploads are a matter of each tenant.
type place struct {
	owner string
	id    skill.ID
}

// traffic is what is known of one skill. There are as many as skills.
type traffic struct {
	running int
	perMin  int
	limiter *rate.Limiter
}

type waiter struct {
	id    place
	ready chan struct{} // closed when a place was given
}

func newGate(global, perSkill, queue int, maxWait time.Duration, now func() time.Time) *gate {
	return &gate{global: global, perSkill: perSkill, queue: queue, maxWait: maxWait, now: now, owners: map[string]int{}, each: map[place]*traffic{}}
}

// enter waits for a place and gives the function that leaves it, to be called
// once. perMinute 0 is no limit of rate.
func (g *gate) enter(ctx context.Context, id place, perMinute int) (leave func(), err error) {
	g.mu.Lock()
	t := g.of(id, perMinute)
	giveBack := func() {}
	if t.limiter != nil {
		now := g.now()
		r := t.limiter.ReserveN(now, 1)
		giveBack = func() { r.CancelAt(now) }
		if wait := r.DelayFrom(now); wait > 0 {
			giveBack()
			g.mu.Unlock()
			return nil, limited(fmt.Sprintf("the skill may be called %d times a minute", perMinute), wait)
		}
	}
	if g.line.Len() == 0 && g.take(id, t) || g.skipsLine(id, t) {
		g.mu.Unlock()
		return func() { g.leave(id) }, nil
	}
	if g.line.Len() >= g.queue {
		giveBack() // a call that was refused at once is not counted
		g.mu.Unlock()
		return nil, limited("too many calls are running and waiting", g.maxWait)
	}
	w := &waiter{id: id, ready: make(chan struct{})}
	spot := g.line.PushBack(w)
	g.mu.Unlock()

	timer := time.NewTimer(g.maxWait)
	defer timer.Stop()
	var why error
	select {
	case <-w.ready:
		return func() { g.leave(id) }, nil
	case <-ctx.Done():
		why = cancelled(ctx)
	case <-timer.C:
		why = limited("too many calls are running", g.maxWait)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	select {
	case <-w.ready: // given in the same moment: keep it
		return func() { g.leave(id) }, nil
	default:
		g.line.Remove(spot)
		return nil, why
	}
}

// Load gives how many calls have a place now and how many wait for one, and how many of
// each there may be.
func (d *Dispatcher) Load() (running, waiting, places, line int) {
	d.gate.mu.Lock()
	defer d.gate.mu.Unlock()
	return d.gate.running, d.gate.line.Len(), d.gate.global, d.gate.queue
}

// skipsLine lets a call past those who wait only for their own skill.
func (g *gate) skipsLine(id place, t *traffic) bool {
	if g.running >= g.global {
		return false
	}
	for e := g.line.Front(); e != nil; e = e.Next() {
		w := waiting(e)
		if w.id == id || g.fits(w.id, g.each[w.id]) {
			return false
		}
	}
	return g.take(id, t)
}

// of finds or makes what is known of a skill; g.mu is held.
func (g *gate) of(id place, perMinute int) *traffic {
	t := g.each[id]
	if t == nil {
		t = &traffic{}
		g.each[id] = t
	}
	if t.perMin != perMinute {
		t.perMin, t.limiter = perMinute, nil
		if perMinute > 0 {
			t.limiter = rate.NewLimiter(rate.Limit(float64(perMinute)/60), perMinute)
		}
	}
	return t
}

// fits reports whether there is a place; g.mu is held.
func (g *gate) fits(id place, t *traffic) bool {
	if g.running >= g.global || t.running >= g.perSkill {
		return false
	}
	return g.perOwner == 0 || id.owner == "" || g.owners[id.owner] < g.perOwner
}

// take takes a place if there is one; g.mu is held.
func (g *gate) take(id place, t *traffic) bool {
	if !g.fits(id, t) {
		return false
	}
	g.running++
	t.running++
	if id.owner != "" {
		g.owners[id.owner]++
	}
	return true
}

// leave gives a place back.
func (g *gate) leave(id place) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.running--
	g.each[id].running--
	if id.owner != "" {
		if g.owners[id.owner]--; g.owners[id.owner] == 0 {
			delete(g.owners, id.owner)
		}
	}
	g.pass()
}

// resize changes how many may run and wait; those in line whom it lets in go in.
func (g *gate) resize(global, perSkill int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.global, g.perSkill, g.perOwner = global, perSkill, max(global/2, 1)
	if g.queue > 0 {
		g.queue = global
	}
	g.pass()
}

// pass gives free places to the first in line who can use them; g.mu is held.
func (g *gate) pass() {
	for e := g.line.Front(); e != nil && g.running < g.global; {
		next := e.Next()
		if w := waiting(e); g.take(w.id, g.each[w.id]) {
			g.line.Remove(e)
			close(w.ready)
		}
		e = next
	}
}

func waiting(e *list.Element) *waiter {
	w, _ := e.Value.(*waiter) // the line holds nothing else
	return w
}

func limited(what string, retry time.Duration) error {
	ms := max(retry.Milliseconds(), 1)
	return &skill.Error{
		Op: "dispatch.admit", Code: skill.RateLimited,
		Message: fmt.Sprintf("%s; try again in %d ms", what, ms),
		Details: map[string]any{"retry_after_ms": ms},
	}
}
