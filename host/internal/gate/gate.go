// Package gate bounds how much goes on at once, and shares it between tenants. It is
// the only kind of gate in a host: calls, compilations, uploads, MCP requests and agent
// turns all pass one.
//
// # Shares
//
// A tenant that holds no place may take any free one. A tenant that holds some may take
// one more only while
//
//	held+1 <= 2 × (free-1)
//
// where free counts the places that nobody holds. This is the dynamic threshold of
// Choudhury and Hahne for shared memory switches, computed after the place is taken. One
// busy tenant gets two thirds of the places, two get two fifths each, and some are always
// left for a tenant that has none. It needs no setting: shares follow the tenants that
// are there.
//
// # Turns
//
// What finds no place may wait in a queue. The queue has places too, shared by the same
// rule. A place that becomes free goes to the waiting tenant that holds the fewest, and
// among equals to the one whose turn was longest ago; within a tenant to the first that
// can use it. A request that cannot use it, because the part of the gate that it needs is
// full, does not hold up the others.
package gate

import (
	"cmp"
	"container/list"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"openskill/sdk/skill"
)

// alpha is how many places a tenant may hold for each free one.
const alpha = 2

// Options of a Gate.
type Options struct {
	Places int           // that can be held at once; at least 1
	Queue  int           // requests that may wait; 0: none
	Wait   time.Duration // how long each may wait; 0: as long as its context
	Retry  time.Duration // what refused callers are told; 0: Wait, or a second
	// Alone says that all callers are one tenant, so that there is nobody to keep places
	// for.
	Alone bool
}

// Part is a part of a gate, with a bound of its own: the calls of one skill, say. Tenants
// share it by the same rule as the gate.
type Part struct {
	Key    any // comparable; parts with one key are one part
	Places int // that can be held at once; what the last request says holds
	// Owner is the tenant whose part it is, which keeps no place of it for others; "": nobody.
	Owner string
}

// FullError says that there was no place.
type FullError struct {
	After time.Duration // when to try again
	// Part is the index of the part without a place for the tenant, or -1: the gate.
	Part int
	// Own says that there are free places, but that the tenant has its share.
	Own bool
}

// Error implements error. Callers get better words from [Refusal].
func (f *FullError) Error() string { return "the queue is full" }

// Refusal is the error of a gate as a caller gets it: RATE_LIMITED with the time to come
// back, or what ended its context. what says what there is too much of.
func Refusal(err error, op, what string) *skill.Error {
	if full := (*FullError)(nil); errors.As(err, &full) {
		ms := max(full.After.Milliseconds(), 1)
		return &skill.Error{
			Op: op, Code: skill.RateLimited, Details: map[string]any{"retry_after_ms": ms},
			Message: fmt.Sprintf("%s; try again in %d ms", what, ms),
		}
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return &skill.Error{Op: op, Code: skill.Timeout, Message: "the request timed out while it was queued", Err: err}
	}
	return &skill.Error{Op: op, Code: skill.Cancelled, Message: "the client disconnected while the request was queued", Err: err}
}

// Gate is safe for concurrent use.
type Gate struct {
	o Options

	mu      sync.Mutex
	all     pool
	queued  pool
	parts   map[any]*pool
	waiting map[string]*line // by tenant; none is empty
	turns   uint64           // that were given
}

// pool is a number of places, and who holds them.
type pool struct {
	places, taken int
	held          map[string]int // by tenant; none is 0
	users         int            // of a part: requests that hold or wait for a place
}

// line is what waits of one tenant.
type line struct {
	first list.List // of *request
	turn  uint64    // the lower one comes first
}

// request is one that holds places, or waits for them.
type request struct {
	tenant string
	parts  []Part
	pools  []*pool       // of parts
	ready  chan struct{} // closed when it holds them; nil: it did not wait
}

// New makes a gate.
func New(o Options) *Gate {
	g := &Gate{o: o, parts: map[any]*pool{}, waiting: map[string]*line{}}
	g.all.held, g.queued.held = map[string]int{}, map[string]int{}
	g.all.places, g.queued.places = max(o.Places, 1), max(o.Queue, 0)
	return g
}

// Enter takes a place of the gate and of each part, waiting for them in the queue, and
// gives the function that gives them back, which may be called more than once. The error
// is a [*FullError], or the cause of ctx.
func (g *Gate) Enter(ctx context.Context, tenant string, parts ...Part) (leave func(), err error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	g.mu.Lock()
	r := g.request(tenant, parts)
	if g.fits(r) {
		defer g.mu.Unlock()
		return g.take(r), nil
	}
	if full := g.full(r); !g.wait(r) {
		defer g.mu.Unlock()
		g.drop(r)
		return nil, full
	}
	g.mu.Unlock()

	var over <-chan time.Time
	if g.o.Wait > 0 {
		timer := time.NewTimer(g.o.Wait)
		defer timer.Stop()
		over = timer.C
	}
	select {
	case <-r.ready:
	case <-ctx.Done():
		err = context.Cause(ctx)
	case <-over:
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	select {
	case <-r.ready: // perhaps in the same moment: keep it
		return g.leaver(r), nil
	default:
	}
	if err == nil {
		err = g.full(r)
	}
	g.leaveLine(r)
	g.drop(r)
	return nil, err
}

// TryEnter is Enter for those who do not wait.
func (g *Gate) TryEnter(tenant string, parts ...Part) (leave func(), err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	r := g.request(tenant, parts)
	if g.fits(r) {
		return g.take(r), nil
	}
	defer g.drop(r)
	return nil, g.full(r)
}

// Resize changes how many places there are, and how many may wait. Where more are held
// already, they stay held.
func (g *Gate) Resize(places, queue int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.all.places, g.queued.places = max(places, 1), max(queue, 0)
	g.pass()
}

// Load gives how many places are held and how many requests wait, and how many of each
// there may be.
func (g *Gate) Load() (held, waiting, places, queue int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.all.taken, g.queued.taken, g.all.places, g.queued.places
}

// All methods below are called with g.mu held.

// request finds or makes the pools of the parts.
func (g *Gate) request(tenant string, parts []Part) *request {
	r := &request{tenant: tenant, parts: parts, pools: make([]*pool, len(parts))}
	grown := false
	for i, part := range parts {
		p := g.parts[part.Key]
		if p == nil {
			p = &pool{held: map[string]int{}}
			g.parts[part.Key] = p
		}
		grown = grown || p.places < part.Places
		p.places = part.Places
		p.users++
		r.pools[i] = p
	}
	if grown {
		g.pass()
	}
	return r
}

// drop forgets a request, and the parts that nobody uses any more.
func (g *Gate) drop(r *request) {
	for i, p := range r.pools {
		if p.users--; p.users == 0 {
			delete(g.parts, r.parts[i].Key)
		}
	}
}

// share reports whether a tenant may take one more place of a pool that has a free one.
func (g *Gate) share(p *pool, tenant string) bool {
	held := p.held[tenant]
	return g.o.Alone || held == 0 || held+1 <= alpha*(p.places-p.taken-1)
}

// room reports whether a tenant may take one more place of a pool, whose owner is given.
func (g *Gate) room(p *pool, tenant, owner string) bool {
	return p.taken < p.places && (owner != "" && owner == tenant || g.share(p, tenant))
}

// fits reports whether there is a place in the gate, and in each part.
func (g *Gate) fits(r *request) bool {
	if !g.room(&g.all, r.tenant, "") {
		return false
	}
	for i, p := range r.pools {
		if !g.room(p, r.tenant, r.parts[i].Owner) {
			return false
		}
	}
	return true
}

// full says why a request does not fit.
func (g *Gate) full(r *request) *FullError {
	f := &FullError{After: cmp.Or(g.o.Retry, g.o.Wait, time.Second), Part: -1}
	short := &g.all
	if g.room(&g.all, r.tenant, "") {
		for i, p := range r.pools {
			if !g.room(p, r.tenant, r.parts[i].Owner) {
				short, f.Part = p, i
				break
			}
		}
	}
	f.Own = short.taken < short.places
	return f
}

func (p *pool) add(tenant string, n int) {
	p.taken += n
	if p.held[tenant] += n; p.held[tenant] == 0 {
		delete(p.held, tenant)
	}
}

// take gives a request its places, and what gives them back.
func (g *Gate) take(r *request) func() {
	g.all.add(r.tenant, 1)
	for _, p := range r.pools {
		p.add(r.tenant, 1)
	}
	return g.leaver(r)
}

func (g *Gate) leaver(r *request) func() {
	return sync.OnceFunc(func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.all.add(r.tenant, -1)
		for _, p := range r.pools {
			p.add(r.tenant, -1)
		}
		g.drop(r)
		g.pass()
	})
}

// wait puts a request into the queue, if it has room.
func (g *Gate) wait(r *request) bool {
	if !g.room(&g.queued, r.tenant, "") {
		return false
	}
	g.queued.add(r.tenant, 1)
	l := g.waiting[r.tenant]
	if l == nil {
		l = &line{}
		g.waiting[r.tenant] = l
		g.last(l)
	}
	r.ready = make(chan struct{})
	l.first.PushBack(r)
	return true
}

// last makes the turn of a tenant the last one.
func (g *Gate) last(l *line) {
	g.turns++
	l.turn = g.turns
}

// leaveLine takes a request out of the queue.
func (g *Gate) leaveLine(r *request) {
	g.queued.add(r.tenant, -1)
	l := g.waiting[r.tenant]
	for e := l.first.Front(); e != nil; e = e.Next() {
		if e.Value == r {
			l.first.Remove(e)
			break
		}
	}
	if l.first.Len() == 0 {
		delete(g.waiting, r.tenant)
	}
}

// pass gives free places to those who wait. After it, nothing that waits fits; so what
// comes and fits overtakes nobody.
func (g *Gate) pass() {
	for {
		var next *request
		var of *line
		for tenant, l := range g.waiting {
			if of != nil && !g.before(tenant, l, next.tenant, of) {
				continue
			}
			if r := g.firstFit(tenant, l); r != nil {
				next, of = r, l
			}
		}
		if next == nil {
			return
		}
		g.last(of)
		g.leaveLine(next)
		g.take(next)
		close(next.ready)
	}
}

// firstFit is the first request of a tenant that can go.
func (g *Gate) firstFit(tenant string, l *line) *request {
	if !g.room(&g.all, tenant, "") {
		return nil
	}
	for e := l.first.Front(); e != nil; e = e.Next() {
		if r, _ := e.Value.(*request); g.fits(r) { // the line holds nothing else
			return r
		}
	}
	return nil
}

// before reports whether it is a's turn and not yet b's.
func (g *Gate) before(a string, la *line, b string, lb *line) bool {
	x, y := g.all.held[a], g.all.held[b]
	return x < y || x == y && la.turn < lb.turn
}
