package dispatch

import (
	"context"

	"openskill/host/records"
	"openskill/sdk/skill"
)

// Idempotent reports whether a call is one of an idempotent skill.
func (d *Dispatcher) Idempotent(q *records.QueuedCall) bool {
	if q.Script != nil {
		return false
	}
	s, err := d.o.Skills.Get(q.Principal.Tenant, q.Request.SkillID, q.Request.Version)
	return err == nil && s.Descriptor.Idempotent
}

// Check gives the result of a call that is refused before it can wait for a place; nil: it may wait. When its turn
// comes it passes all layers.
func (d *Dispatcher) Check(ctx context.Context, q *records.QueuedCall) *skill.Result {
	mayWait := func(_ context.Context, c *call) error {
		c.admission.End()
		if c.code != nil && c.code.session != "" && c.code.session != skill.NewSession {
			return &skill.Error{
				Op: "dispatch.Check", Code: skill.Conflict, Subject: "session",
				Message: "calls of a session are not queued, since another host may not have the session; leave out the session, or the webhook or schedule",
			}
		}
		return nil
	}
	var c *call
	var check handler
	if q.Script != nil {
		c, check = d.newScript(q.Principal, *q.Script), d.lineChecked(d.scriptFound(mayWait))
	} else {
		c, check = d.newCall(&call{principal: q.Principal, request: *q.Request}), d.found(d.checked(mayWait))
	}
	err := d.recovered(d.authorized(check))(ctx, c)
	if err == nil {
		return nil
	}
	_ = d.answered(func(context.Context, *call) error { return err })(ctx, c) // which puts it into the result
	return c.result
}
