package api

import (
	"fmt"
	"maps"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"github.com/valyala/fasthttp"

	"openskill/sdk/skill"
)

// Rates bounds the requests a minute that are not calls of skills: of a principal, of its
// tenant, which has twice as many, and of the network of a client that is not known. Calls
// have rates of their own, and count here only where they are refused before they run.
// It is safe for concurrent use.
type Rates struct {
	now func() time.Time

	mu        sync.Mutex
	perMinute int64
	free      map[string]time.Time // by caller: when all of its requests are free again
	tidied    time.Time            // when callers were last forgotten
}

// mostCallers is how many callers are remembered at once. One whose requests are all free
// again is forgotten.
const mostCallers = 64 << 10

// NewRates makes Rates; at least one request a minute is allowed. now nil: the system's clock.
func NewRates(perMinute int, now func() time.Time) *Rates {
	if now == nil {
		now = time.Now
	}
	r := &Rates{now: now, free: map[string]time.Time{}}
	r.Set(perMinute)
	return r
}

// Set changes how many requests a minute a principal has.
func (r *Rates) Set(perMinute int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.perMinute = int64(max(perMinute, 1))
}

// Request takes n requests of the caller of a request that this edge has handed on; 0 only
// looks whether there is one. The error is a *skill.Error: RATE_LIMITED.
func (r *Rates) Request(req *http.Request, n int) error {
	at, _ := netip.ParseAddrPort(req.RemoteAddr) // as the edge writes it
	return r.take(PrincipalOf(req.Context()), at.Addr(), n)
}

func (r *Rates) take(p skill.Principal, from netip.Addr, n int) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.now()
	if p.ID == "" || p.Type == skill.Anonymous {
		return r.one(now, "address", network(from), r.perMinute, n)
	}
	if err := r.one(now, "principal", p.Tenant+" "+string(p.Type)+" "+p.ID, r.perMinute, n); err != nil {
		return err
	}
	return r.one(now, "tenant", p.Tenant, 2*r.perMinute, n)
}

// one takes n requests of one caller, of most a minute. r.mu is held.
func (r *Rates) one(now time.Time, what, who string, most int64, n int) error {
	key := what + " " + who
	each := time.Minute / time.Duration(most)
	at, known := r.free[key]
	if at.Before(now) {
		at = now
	}
	wait := at.Add(each).Sub(now.Add(time.Minute))
	if !known && len(r.free) >= mostCallers {
		if now.Sub(r.tidied) >= time.Second { // it looks at all of them
			maps.DeleteFunc(r.free, func(_ string, at time.Time) bool { return !at.After(now) })
			r.tidied = now
		}
		if len(r.free) >= mostCallers {
			wait = each
		}
	}
	if wait > 0 {
		ms := max(wait.Milliseconds(), 1)
		return &skill.Error{
			Op: opRate, Code: skill.RateLimited, Message: fmt.Sprintf("too many requests: the limit of the %s is %d per minute; try again in %d ms", what, most, ms),
			Details: map[string]any{
				"what": what, "unit": "requests_per_minute", "limit": most, "remaining": int64(0),
				"reset_ms": max(at.Sub(now).Milliseconds(), ms), "retry_after_ms": ms,
			},
		}
	}
	if n > 0 {
		r.free[key] = at.Add(time.Duration(n) * each)
	}
	return nil
}

// pace takes a request of its caller's. Of a call it takes none yet, since calls have rates of
// their own. Answers that say that the host is there are constant, and a balancer whose address is
// that of its clients must not be refused for them.
func (s *Server) pace(ctx *fasthttp.RequestCtx) error {
	c := callerOf(ctx)
	switch {
	case c.kind.health:
		return nil
	case c.kind.call:
		return s.opt.Rates.take(c.principal, s.clientAddress(ctx), 0)
	}
	return s.opt.Rates.take(c.principal, s.clientAddress(ctx), 1)
}

// paceRefused takes a request for a call that was refused before it ran. Those of MCP are
// the MCP server's to know.
func (s *Server) paceRefused(ctx *fasthttp.RequestCtx) {
	if c := callerOf(ctx); c.kind.call && !c.kind.own && !c.ran {
		_ = s.opt.Rates.take(c.principal, s.clientAddress(ctx), 1) // the next one is refused
	}
}
