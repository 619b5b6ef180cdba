package quota

import (
	"context"
	"fmt"
	"time"

	"openskill/sdk/skill"
)

// refused is a call for which there is no room.
func (l *limit) refused(now time.Time) error {
	wait := max(l.shut.Sub(now), 0)
	switch l.why {
	case fuelUnit:
		return limited(l.what, l.why, l.fuel, wait, l.full.Sub(now), "fuel quota exceeded: the tenant has %d units a day (UTC)", l.fuel)
	case perDayUnit:
		return limited(l.what, l.why, l.calls, wait, l.full.Sub(now), "call quota exceeded: the tenant has %d calls a day (UTC)", l.calls)
	}
	return limited(l.what, l.why, l.perMinute, wait, l.full.Sub(now), "the %s %s %d times a minute", l.what, map[string]string{
		ofSkill: "may be called by a tenant", ofPrincipal: "may call", ofTenant: "may call",
	}[l.what], l.perMinute)
}

// promised is a call for which there is fuel only if those that run leave some.
func (l *limit) promised(now time.Time) error {
	return limited(l.what, fuelUnit, l.fuel, comeBack, l.day.Sub(now), "running calls may use the rest of the tenant's fuel for today (UTC), %d units", l.fuel)
}

// tooMany is a call for whose limits there is no room in memory.
func tooMany() error {
	return limited(ofPrincipal, concurrentUnit, int64(mostKnown), comeBack, comeBack, "too many callers are active on this host")
}

func limited(what, unit string, most int64, wait, reset time.Duration, format string, args ...any) error {
	ms := inMS(wait)
	return &skill.Error{
		Op: "quota.Enter", Code: skill.RateLimited,
		Message: fmt.Sprintf(format+"; try again in %d ms", append(args, ms)...),
		Details: map[string]any{
			"what": what, "unit": unit, "limit": most, "remaining": int64(0), "reset_ms": max(inMS(reset), ms), "retry_after_ms": ms,
		},
	}
}

// inMS rounds up: whoever comes back then finds room.
func inMS(d time.Duration) int64 {
	return max(int64((d+time.Millisecond-1)/time.Millisecond), 1)
}

// unavailable is a database that does not answer.
func unavailable(err error) error {
	return &skill.Error{
		Op: "quota.Enter", Code: skill.AuditUnavailable, Err: err,
		Message: "quota check failed: database unavailable; retry",
	}
}

// left is a caller who did not wait.
func left(ctx context.Context) error {
	return &skill.Error{Op: "quota.Enter", Code: skill.Cancelled, Message: "the client disconnected before the call was counted", Err: context.Cause(ctx)}
}
