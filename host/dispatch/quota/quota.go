package quota

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"sync"
	"time"

	"openskill/sdk/skill"
)

// Options of Quotas. Store is required; negative limits are refused.
type Options struct {
	Store Store

	RateTenant    int // calls of a tenant a minute; 0: no limit is set
	RatePrincipal int // calls of a principal a minute; 0: no limit is set

	DailyExecutions uint64 // calls of a tenant a day; 0: no limit is set
	DailyFuel       uint64 // fuel of a tenant a day; 0: no limit is set

	DailyModelRequests uint64 // questions of a tenant to models a day; 0: 10,000
	DailyModelTokens   uint64 // tokens of these, prompts and replies together; 0: 20,000,000
	DailyModelCost     int64  // what these may cost, in billionths of a US dollar; 0: a hundred dollars

	// Refused is told of every call, request and question that is refused: whose limit it
	// was, and of what. nil: nobody.
	Refused func(what, unit string)

	Log *slog.Logger     // nil: slog.Default()
	Now func() time.Time // nil: the system's clock
}

// The times and bounds of what a host knows of limits.
const (
	reportAfter = 100 * time.Millisecond // from a call that was let in to where it is counted
	freshFor    = time.Second            // how long what was read is good for more than one call
	askWithin   = 2 * time.Second        // the database has so long to answer
	pause       = 100 * time.Millisecond // after it did not
	comeBack    = 250 * time.Millisecond // what a caller is told who finds too many calls running
	forgetAfter = time.Minute            // of a limit that nobody uses
	sweepEvery  = 10 * time.Minute       // rows that mean nothing are deleted
	sweepRest   = 10 * time.Second       // until more of them are, where one time was not enough

	longestKey = 400     // bytes of a row's key
	mostBatch  = 256     // calls that are counted together
	mostFuel   = 1 << 50 // that one call is taken to use at most: no sum of them overflows
	hundredth  = 100     // the part of what is free that may begin before it is counted
)

// Tests lower these.
var (
	mostKnown = 100_000 // limits that a host knows of at once
	mostSweep = 5000    // rows that are deleted at once
)

// Quotas counts calls. It is safe for concurrent use.
type Quotas struct {
	o Options

	mu      sync.Mutex
	known   map[string]*limit
	running map[string]*load // by the keys of tenants; only those with calls
	dirty   map[*limit]struct{}
	waiting []*caller
	busy    bool // a settle is under way, or about to begin
	closed  bool
	timer   *time.Timer // for the next one; nil: none
	idle    *sync.Cond  // of mu: told when busy ends
	failed  time.Time   // when the database last did not answer
	tidied  time.Time   // when limits that nobody uses were last forgotten
	swept   time.Time   // when rows were last deleted
}

// load is what runs now.
type load struct {
	calls int
	fuel  uint64 // that these calls may use at most
}

// bounds fills in the limits of questions to models, and refuses what is no limit.
func (o *Options) bounds() error {
	if o.RateTenant < 0 || o.RatePrincipal < 0 || o.DailyModelCost < 0 {
		return errors.New("quota: a limit is negative")
	}
	if o.DailyModelRequests == 0 {
		o.DailyModelRequests = 10_000
	}
	if o.DailyModelTokens == 0 {
		o.DailyModelTokens = 20_000_000
	}
	if o.DailyModelCost == 0 {
		o.DailyModelCost = 100_000_000_000
	}
	o.DailyExecutions, o.DailyFuel = min(o.DailyExecutions, math.MaxInt64), min(o.DailyFuel, math.MaxInt64)
	o.DailyModelRequests, o.DailyModelTokens = min(o.DailyModelRequests, math.MaxInt64), min(o.DailyModelTokens, math.MaxInt64)
	return nil
}

// Change sets other limits, those of o; what else o has is left alone. They hold for the
// calls that come then, also of callers who were refused a moment ago.
func (q *Quotas) Change(o Options) error {
	if err := o.bounds(); err != nil {
		return err
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.o.RateTenant, q.o.RatePrincipal = o.RateTenant, o.RatePrincipal
	q.o.DailyExecutions, q.o.DailyFuel = o.DailyExecutions, o.DailyFuel
	q.o.DailyModelRequests, q.o.DailyModelTokens, q.o.DailyModelCost = o.DailyModelRequests, o.DailyModelTokens, o.DailyModelCost
	for _, l := range q.known {
		if l.day.IsZero() {
			continue // a rate, which finds out by itself
		}
		l.calls, l.fuel = int64(o.DailyExecutions), int64(o.DailyFuel)
		l.seen, l.free, l.shut = time.Time{}, 0, time.Time{}
	}
	return nil
}

// New makes Quotas.
func New(o Options) (*Quotas, error) {
	if o.Store == nil {
		return nil, errors.New("quota.New: Store is required")
	}
	if err := o.bounds(); err != nil {
		return nil, err
	}
	if o.Log == nil {
		o.Log = slog.Default()
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	q := &Quotas{o: o, known: map[string]*limit{}, running: map[string]*load{}, dirty: map[*limit]struct{}{}, tidied: o.Now(), swept: o.Now()}
	q.idle = sync.NewCond(&q.mu)
	return q, nil
}

// Enter counts a call of p, and gives the function that is called once when the call is
// over, with what it used. owner is the tenant that uploaded the skill, or ""; perMinute
// is how often a tenant may call the skill (0 or less: it has no limit of its own), fuel the
// most that the call may use. The error is an *skill.Error: RATE_LIMITED with details that
// say which limit it was and when to come back, AUDIT_UNAVAILABLE where the database does
// not answer, or that the caller left. A call that is refused is not counted.
func (q *Quotas) Enter(ctx context.Context, p skill.Principal, owner string, id skill.ID, perMinute int, fuel uint64) (leave func(skill.Usage), err error) {
	now := q.o.Now()
	c := &caller{tenant: tenantKey(p.Tenant), fuel: min(fuel, mostFuel), done: make(chan struct{})}
	q.mu.Lock()
	if err := q.begin(c, p, owner, id, perMinute, now); err != nil {
		q.mu.Unlock()
		return nil, q.refused(err)
	}
	if err := q.count(ctx, c, now); err != nil { // which unlocks
		q.mu.Lock()
		defer q.mu.Unlock()
		q.end(c)
		return nil, q.refused(err)
	}
	var once sync.Once
	return func(u skill.Usage) { once.Do(func() { q.leave(c, p.Tenant, u) }) }, nil // what is counted together is not one caller's
}

// count counts what was begun: at once where what is known has room, else in the database.
// It unlocks q.mu, which is held.
func (q *Quotas) count(ctx context.Context, c *caller, now time.Time) error {
	if !c.free(now) {
		return q.ask(ctx, c, now)
	}
	q.report(c)
	q.mu.Unlock()
	return nil
}

// refused tells who wants to know of an error of a limit, and gives it.
func (q *Quotas) refused(err error) error {
	if e := (*skill.Error)(nil); q.o.Refused != nil && errors.As(err, &e) && e.Code == skill.RateLimited {
		what, _ := e.Details["what"].(string)
		unit, _ := e.Details["unit"].(string)
		q.o.Refused(what, unit)
	}
	return err
}

// open reports that calls can still be counted; q.mu is held.
func (q *Quotas) open() error {
	if q.closed {
		return unavailable(errors.New("this host ends"))
	}
	return nil
}

// begin has the call run, if nothing that is known already speaks against it.
// q.mu is held.
func (q *Quotas) begin(c *caller, p skill.Principal, owner string, id skill.ID, perMinute int, now time.Time) error {
	if err := q.open(); err != nil {
		return err
	}
	tenant := load{}
	if l := q.running[c.tenant]; l != nil {
		tenant = *l
	}
	if err := q.limits(c, p, owner, id, perMinute, now); err != nil {
		return err
	}
	c.before = tenant.fuel
	if err := c.shut(now); err != nil {
		return err
	}
	q.running[c.tenant] = &load{tenant.calls + 1, tenant.fuel + c.fuel}
	return nil
}

// end forgets a call that ran; q.mu is held.
func (q *Quotas) end(c *caller) {
	l := q.running[c.tenant]
	l.calls--
	l.fuel -= c.fuel
	if l.calls == 0 {
		delete(q.running, c.tenant)
	}
}

// Close reports what was not reported yet. It may be called twice. Calls do not enter
// after it.
func (q *Quotas) Close() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	if q.timer != nil {
		q.timer.Stop()
		q.timer = nil
	}
	for tried := false; ; tried = true {
		for q.busy {
			q.idle.Wait()
		}
		switch {
		case len(q.dirty) == 0:
			return nil
		case tried && !q.failed.IsZero():
			return unavailable(errors.New("cannot count the last calls"))
		}
		q.start() // one transaction may not hold all of it
	}
}
