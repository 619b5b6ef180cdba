package quota

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"time"

	"openskill/sdk/skill"
)

// caller is a call with its limits.
type caller struct {
	tenant string // key
	fuel   uint64 // that it may use at most
	before uint64 // that those may use which run already
	limits []*limit

	done chan struct{} // closed when it was decided, if it waits
	err  error         // what was decided
	left bool          // nobody waits any more

	held time.Time // since when another host has a row of it; zero: none has
}

// errHeld says that another host has the counts of a caller in a transaction.
var errHeld = errors.New("another host has locked the caller's counts")

// heldPause is how long nothing is asked for again after something was held.
const heldPause = 10 * time.Millisecond

// shut refuses the call if it is known that there is no room; where several limits are
// reached, it tells of the one that lasts longest.
func (c *caller) shut(now time.Time) error {
	var longest *limit
	for _, l := range c.limits {
		if now.Before(l.shut) && (longest == nil || l.shut.After(longest.shut)) {
			longest = l
		}
	}
	if longest != nil {
		return longest.refused(now)
	}
	for _, l := range c.limits {
		if l.perMinute == 0 && !l.seen.IsZero() && l.burnt(add(l.usedFuel, l.owedFuel), c.before) {
			return l.promised(now)
		}
	}
	return nil
}

// free lets the call in on what is known, if that is enough.
func (c *caller) free(now time.Time) bool {
	for _, l := range c.limits {
		if !l.fits(now) {
			return false
		}
	}
	for _, l := range c.limits {
		l.free--
		l.owed++
	}
	return true
}

// report has what c owes counted soon; q.mu is held.
func (q *Quotas) report(c *caller) {
	for _, l := range c.limits {
		q.dirty[l] = struct{}{}
	}
	q.soon(reportAfter)
}

// soon begins a settle after a time, if none is about to; q.mu is held.
func (q *Quotas) soon(after time.Duration) {
	if q.busy || q.timer != nil || q.closed {
		return
	}
	q.timer = time.AfterFunc(after, func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		q.timer = nil
		q.start()
	})
}

// start begins a settle, if none is under way; q.mu is held.
func (q *Quotas) start() {
	if q.busy {
		return
	}
	q.busy = true
	go q.settle()
}

// ask waits until the call was counted, or refused. It unlocks q.mu, which is held.
func (q *Quotas) ask(ctx context.Context, c *caller, now time.Time) error {
	if !q.failed.IsZero() && now.Sub(q.failed) < pause {
		q.mu.Unlock()
		return unavailable(errors.New("the database did not respond a moment ago"))
	}
	q.waiting = append(q.waiting, c)
	for _, l := range c.limits {
		l.pins++
	}
	q.start() // what is counted together is not one caller's
	q.mu.Unlock()
	select {
	case <-c.done:
	case <-ctx.Done():
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, l := range c.limits {
		l.pins--
	}
	select {
	case <-c.done:
		return c.err
	default: // whoever counts it gives it back
		c.left = true
		return left(ctx)
	}
}

// giveBack undoes the counting of a call that does not take place; q.mu is held.
func (q *Quotas) giveBack(c *caller) {
	for _, l := range c.limits {
		l.owed--
	}
	q.report(c)
}

// leave ends a call, and counts its fuel: in one step, or others would begin on fuel that
// is neither promised nor used.
func (q *Quotas) leave(c *caller, tenant string, u skill.Usage) {
	fuel := add(int64(min(u.Fuel, 1<<62)), int64(min(u.StartFuel, 1<<62)))
	now := q.o.Now()
	key := dayKey(tenant, today(now))
	q.mu.Lock()
	defer q.mu.Unlock()
	q.end(c)
	if fuel == 0 {
		return
	}
	l := q.known[key]
	if l == nil { // it ends on another day than it began, or was long
		l = q.learn(key, ofTenant, 0, now)
	}
	l.owedFuel = add(l.owedFuel, fuel)
	q.dirty[l] = struct{}{}
	q.soon(reportAfter)
}

// batch is what is counted in one transaction.
type batch struct {
	limits  map[string]*limit
	begun   map[string]asked // as it was when the batch began
	callers []*caller

	rows map[string]Row // as they were left; those that were held elsewhere are missing
	in   []bool         // for each caller: it was counted
}

// asked is what is counted of a limit.
type asked struct {
	bounds
	owed, owedFuel int64
}

// settle counts what is owed and who waits, until nobody waits.
func (q *Quotas) settle() {
	for first := true; ; first = false {
		q.mu.Lock()
		b := q.gather(first)
		now := q.o.Now()
		sweep := b == nil && q.failed.IsZero() && now.Sub(q.swept) >= sweepEvery
		switch {
		case sweep:
			q.swept = now
		case b == nil:
			q.rest()
			q.mu.Unlock()
			return
		}
		q.mu.Unlock()
		if sweep {
			q.sweep(now)
			continue
		}
		ctx, stop := context.WithTimeout(context.Background(), askWithin)
		err := q.o.Store.Exchange(ctx, slices.Sorted(maps.Keys(b.limits)), func(rows []Row) { b.decide(rows, now) })
		stop()
		q.mu.Lock()
		failing := !q.failed.IsZero()
		q.apply(b, err)
		q.mu.Unlock()
		switch {
		case err != nil && !failing:
			q.o.Log.Error("cannot count calls", slog.String("error", err.Error()))
		case err == nil && failing:
			q.o.Log.Info("counting calls works again")
		}
		if err == nil && b.held() {
			time.Sleep(heldPause)
		}
	}
}

// rest ends a settle; q.mu is held.
func (q *Quotas) rest() {
	q.busy = false
	switch failing := !q.failed.IsZero(); {
	case len(q.dirty) == 0:
	case failing:
		q.soon(freshFor)
	default:
		q.soon(reportAfter)
	}
	q.idle.Broadcast()
}

// gather takes what the next transaction counts: who waits, and what is owed. Without
// anybody who waits, only the first one of a settle counts what is owed, so that calls
// that wait for nothing are counted many together. q.mu is held.
func (q *Quotas) gather(first bool) *batch {
	b := &batch{limits: map[string]*limit{}, begun: map[string]asked{}}
	for len(q.waiting) > 0 && len(b.callers) < mostBatch {
		c := q.waiting[0]
		q.waiting = q.waiting[1:]
		if c.left {
			continue
		}
		b.callers = append(b.callers, c)
		for _, l := range c.limits {
			b.limits[l.key] = l
		}
	}
	if len(b.callers) == 0 && !first {
		return nil
	}
	for l := range q.dirty {
		if len(b.limits) >= 4*mostBatch+mostBatch {
			break
		}
		b.limits[l.key] = l
	}
	if len(b.limits) == 0 {
		return nil
	}
	for key, l := range b.limits {
		delete(q.dirty, l)
		l.settling = true
		b.begun[key] = asked{l.bounds, l.owed, l.owedFuel}
	}
	return b
}

// decide counts what is owed, whatever room there is, and then whoever waits and finds
// room in all limits.
func (b *batch) decide(rows []Row, now time.Time) {
	at := make(map[string]*Row, len(rows))
	for i := range rows {
		r := &rows[i]
		at[r.Key] = r
		a := b.begun[r.Key]
		a.count(r, a.owed, now)
		r.Fuel = add(r.Fuel, a.owedFuel)
	}
	b.in = make([]bool, len(b.callers))
	for i, c := range b.callers {
		if c.holds(at) {
			continue
		}
		b.in[i] = !slices.ContainsFunc(c.limits, func(l *limit) bool { return !b.begun[l.key].has(at[l.key], c.before, now) })
		if !b.in[i] {
			continue
		}
		for _, l := range c.limits {
			b.begun[l.key].count(at[l.key], 1, now)
		}
	}
	b.rows = make(map[string]Row, len(rows))
	for _, r := range rows {
		b.rows[r.Key] = r
	}
}

// holds reports whether a row of the caller is held elsewhere.
func (c *caller) holds(at map[string]*Row) bool {
	return slices.ContainsFunc(c.limits, func(l *limit) bool { return at[l.key] == nil })
}

// held reports whether a row that was asked for is held elsewhere.
func (b *batch) held() bool { return b.rows != nil && len(b.rows) < len(b.limits) }

// apply takes over what was decided; q.mu is held.
func (q *Quotas) apply(b *batch, err error) {
	now := q.o.Now()
	for key, l := range b.limits {
		l.settling = false
		r, got := b.rows[key]
		if err != nil || !got {
			if l.owed != 0 || l.owedFuel != 0 {
				q.dirty[l] = struct{}{}
			}
			continue
		}
		l.owed -= b.begun[key].owed
		l.owedFuel -= b.begun[key].owedFuel
		l.read(&r, now)
		l.free = max(l.free-max(l.owed, 0), 0) // what began in the meantime
	}
	q.failed = time.Time{}
	if err != nil {
		q.failed = now
		b.callers = append(b.callers, q.waiting...) // who would wait as long again
		q.waiting = nil
	}
	for i, c := range b.callers {
		held := err == nil && slices.ContainsFunc(c.limits, func(l *limit) bool { _, got := b.rows[l.key]; return !got })
		if held && c.held.IsZero() {
			c.held = now
		}
		switch {
		case err != nil:
			c.err = unavailable(err)
		case held && !c.left && now.Sub(c.held) < askWithin:
			q.waiting = append(q.waiting, c)
			continue
		case held:
			c.err = unavailable(errHeld)
		case !b.in[i]:
			c.err = c.noRoom(now)
		case c.left:
			q.giveBack(c)
		}
		close(c.done)
	}
}

// noRoom is what a call is told that was not counted.
func (c *caller) noRoom(now time.Time) error {
	if err := c.shut(now); err != nil {
		return err
	}
	return c.limits[len(c.limits)-1].promised(now) // it came free in this moment
}

// sweep deletes rows that mean nothing any more.
func (q *Quotas) sweep(now time.Time) {
	ctx, stop := context.WithTimeout(context.Background(), askWithin)
	defer stop()
	n, err := q.o.Store.Sweep(ctx, now, mostSweep)
	switch {
	case err != nil:
		q.o.Log.Warn("cannot delete old call counts", slog.String("error", err.Error()))
	case n >= mostSweep: // there are more
		q.mu.Lock()
		q.swept = now.Add(sweepRest - sweepEvery)
		q.mu.Unlock()
	}
}
