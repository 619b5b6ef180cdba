package quota

import (
	"crypto/sha256"
	"encoding/hex"
	"math"
	"strings"
	"time"
	"unicode/utf8"

	"openskill/sdk/skill"
)

// Whose limit it is, and what it bounds: the words of details.what and details.unit.
const (
	ofTenant    = "tenant"
	ofPrincipal = "principal"
	ofSkill     = "skill"

	perMinuteUnit  = "calls_per_minute"
	perDayUnit     = "calls_per_day"
	fuelUnit       = "fuel_per_day"
	concurrentUnit = "calls_at_once"
)

// limit is what this host knows of one limit; Quotas.mu guards it.
type limit struct {
	key  string
	what string
	bounds

	owed     int64 // calls that have begun and are not counted yet; below 0: counted and then refused
	owedFuel int64 // the same of fuel
	settling bool  // a transaction with it is under way
	pins     int   // calls that wait with it

	seen     time.Time // when it was last read; zero: never
	free     int64     // how many calls may still begin on what was read
	usedFuel int64     // of a day, as it was read
	shut     time.Time // there is no room before this time
	why      string    // the unit that shut it
	full     time.Time // when all of it is free again
	used     time.Time // when a call last asked for it
}

// bounds are how much there may be, of a rate or of a day.
type bounds struct {
	perMinute int64     // of a rate; 0: of a day
	calls     int64     // of a day
	fuel      int64     // of a day
	day       time.Time // of a day: its end
}

// Keys of rows. Tenants have no spaces in them (see auth.ValidTenant), so that no two
// pairs make one key.

func tenantKey(tenant string) string { return plainKey("tenant " + tenant) }

func principalKey(p skill.Principal) string { return plainKey("principal " + p.Tenant + " " + p.ID) }

// skillKey is of one tenant's calls of a skill: what tenants have together, one of them has alone.
func skillKey(tenant, owner string, id skill.ID) string {
	return plainKey("skill " + owner + " " + string(id) + " " + tenant)
}

func dayKey(tenant string, day time.Time) string {
	return plainKey("day " + day.Format(time.DateOnly) + " " + tenant)
}

// plainKey is a key that every database holds.
func plainKey(key string) string {
	if len(key) <= longestKey && utf8.ValidString(key) && strings.IndexByte(key, 0) < 0 {
		return key
	}
	sum := sha256.Sum256([]byte(key))
	return "sha256 " + hex.EncodeToString(sum[:])
}

// today is the beginning of the day (UTC) of a time.
func today(now time.Time) time.Time { return now.UTC().Truncate(24 * time.Hour) }

// limits finds the limits of a call; q.mu is held.
func (q *Quotas) limits(c *caller, p skill.Principal, owner string, id skill.ID, perMinute int, now time.Time) error {
	if perMinute > 0 {
		if err := q.limit(c, skillKey(p.Tenant, owner, id), ofSkill, int64(perMinute), now); err != nil {
			return err
		}
	}
	if err := q.rates(c, p, now); err != nil {
		return err
	}
	return q.limit(c, dayKey(p.Tenant, today(now)), ofTenant, 0, now)
}

// rates finds what p and its tenant may do a minute; q.mu is held.
func (q *Quotas) rates(c *caller, p skill.Principal, now time.Time) error {
	if n := int64(q.o.RatePrincipal); n > 0 {
		if err := q.limit(c, principalKey(p), ofPrincipal, n, now); err != nil {
			return err
		}
	}
	if n := int64(q.o.RateTenant); n > 0 {
		return q.limit(c, tenantKey(p.Tenant), ofTenant, n, now)
	}
	return nil
}

// limit finds one limit, or begins to know of it. Of a skill whose limit was changed
// nothing is known any more.
func (q *Quotas) limit(c *caller, key, what string, perMinute int64, now time.Time) error {
	l := q.known[key]
	if l == nil {
		if !q.tidy(now) {
			return tooMany()
		}
		l = q.learn(key, what, perMinute, now)
	}
	if l.perMinute != perMinute {
		l.perMinute, l.seen, l.free, l.shut = perMinute, time.Time{}, 0, time.Time{}
	}
	l.used = now
	c.limits = append(c.limits, l)
	return nil
}

func (q *Quotas) learn(key, what string, perMinute int64, now time.Time) *limit {
	l := &limit{key: key, what: what, bounds: bounds{perMinute: perMinute}, used: now}
	if perMinute == 0 {
		l.calls, l.fuel, l.day = int64(q.o.DailyExecutions), int64(q.o.DailyFuel), today(now).Add(24*time.Hour)
	}
	q.known[key] = l
	return l
}

// tidy forgets limits that nobody uses, and reports whether there is room for one more.
// What they know is in the database; q.mu is held.
func (q *Quotas) tidy(now time.Time) bool {
	crowded := len(q.known) >= mostKnown
	since, every := forgetAfter, forgetAfter
	if crowded {
		since, every = freshFor, freshFor
	}
	if now.Sub(q.tidied) < every {
		return !crowded
	}
	q.tidied = now
	for key, l := range q.known {
		if _, dirty := q.dirty[l]; !dirty && !l.settling && l.pins == 0 && l.owed == 0 && l.owedFuel == 0 && now.Sub(l.used) >= since {
			delete(q.known, key)
		}
	}
	return len(q.known) < mostKnown
}

// fits reports whether one more call may begin on what was read of l.
func (l *limit) fits(now time.Time) bool {
	if l.seen.IsZero() || l.free < 1 {
		return false
	}
	if age := now.Sub(l.seen); age < 0 || age > freshFor {
		l.free = 1 // and none after it, before it is read again
	}
	return true
}

// read takes over what a row says now, after what was owed was counted in it.
func (l *limit) read(r *Row, now time.Time) {
	l.seen, l.shut = now, time.Time{}
	if l.perMinute == 0 {
		l.usedFuel, l.full = r.Fuel, l.day
		l.free = math.MaxInt64
		if l.calls > 0 {
			l.free = max(l.calls-r.Calls, 0) / hundredth
		}
		switch {
		case l.called(r.Calls):
			l.shut, l.why = l.day, perDayUnit
		case l.burnt(r.Fuel, 0):
			l.shut, l.why = l.day, fuelUnit
		}
		return
	}
	at := now.UnixNano()
	l.free = r.room(l.perMinute, at) / hundredth
	l.full = now.Add(time.Duration(r.backlog(at)))
	if wait := r.wait(l.perMinute, at); wait > 0 {
		l.shut, l.why = now.Add(wait), perMinuteUnit
	}
}

// has reports whether a row has room for one more call, before whose fuel others may use
// some.
func (b bounds) has(r *Row, before uint64, now time.Time) bool {
	if b.perMinute > 0 {
		return r.room(b.perMinute, now.UnixNano()) >= 1
	}
	return !b.called(r.Calls) && !b.burnt(r.Fuel, before)
}

// called reports whether nothing is left of a day's calls.
func (b bounds) called(calls int64) bool { return b.calls > 0 && calls >= b.calls }

// burnt reports whether nothing is left of a day's fuel, with what calls may still use.
func (b bounds) burnt(used int64, running uint64) bool {
	return b.fuel > 0 && (used >= b.fuel || running >= uint64(b.fuel-used))
}

// count counts n calls in a row, or gives them back.
func (b bounds) count(r *Row, n int64, now time.Time) {
	if b.perMinute > 0 {
		r.take(n, b.perMinute, now.UnixNano())
		return
	}
	r.Calls = add(r.Calls, n)
	r.Ends = b.day.Add(time.Hour) // a host whose clock is late may still ask
}
