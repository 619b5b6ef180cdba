package console

import (
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"openskill/host/internal/gate"
	"openskill/host/internal/table"
)

// attempts slows down sign-ins that fail, by the address of the client. What is good is never
// held up: others who come from the same address, or pretend to, keep nobody out.
type attempts struct {
	now     func() time.Time
	late    time.Duration // how long the answer to one too many takes
	waiting *gate.Gate    // those that are answered late

	mu    sync.Mutex
	each  map[string]*failures
	owned *table.Table[*failures] // the same ones
}

// failures are those of one address.
type failures struct {
	address string
	limit   *rate.Limiter
	last    time.Time
}

// The limits of sign-ins that fail: so many of an address at once, and then one in so long;
// how many addresses are remembered, and how many answers are held back.
const (
	triesEach   = 10
	trySeconds  = 6
	mostTracked = 1024
	mostWaiting = 64
)

func newAttempts(now func() time.Time) *attempts {
	limits := table.Limits{Total: mostTracked, Tenant: table.Share(mostTracked, 4), Principal: 1}
	return &attempts{
		now: now, late: 2 * time.Second, waiting: gate.New(gate.Options{Places: mostWaiting}), each: map[string]*failures{},
		owned: table.New(limits, func(f *failures) (uint64, bool) { return uint64(f.last.UnixNano()), true }),
	}
}

// networks gives what a client's failures are counted by, and the wider network whose
// addresses share a part of what is remembered: one site has many addresses of IPv6.
func networks(r *http.Request) (own, wide string) {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		host = r.RemoteAddr
	}
	a, err := netip.ParseAddr(host)
	if err != nil {
		return host, host
	}
	few, many := 32, 16
	if a.Is6() {
		few, many = 64, 32
	}
	small, _ := a.Prefix(few) // both fit
	large, _ := a.Prefix(many)
	return small.String(), large.String()
}

// failed counts one that failed, and reports whether it is one too many. The answer to that
// has waited by then, unless many do.
func (a *attempts) failed(r *http.Request) (tooMany bool) {
	own, wide := networks(r)
	if a.count(own, wide) {
		return false
	}
	leave, err := a.waiting.TryEnter(own)
	if err != nil {
		return true
	}
	defer leave()
	timer := time.NewTimer(a.late)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-r.Context().Done():
	}
	return true
}

// count reports whether one more is within the limit of an address.
func (a *attempts) count(own, wide string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := a.now()
	f := a.each[own]
	if f == nil {
		f = &failures{address: own, limit: rate.NewLimiter(rate.Every(trySeconds*time.Second), triesEach), last: now}
		gone, _ := a.owned.Add(f, table.Owner{Tenant: wide, Principal: own}) // all may go, so there is room
		for _, old := range gone {
			delete(a.each, old.address)
		}
		a.each[own] = f
	}
	f.last = now
	return f.limit.AllowN(now, 1)
}
