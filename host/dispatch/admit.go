package dispatch

import (
	"context"
	"errors"
	"fmt"
	"time"

	"openskill/host/internal/gate"
	"openskill/host/manifest"
	"openskill/sdk/skill"
)

// Bounds are how many calls run at once. Tenants share Global and PerSkill, so that none
// keeps the others out.
type Bounds struct {
	Global       int // 0: 32
	PerSkill     int // 0: 16
	PerTenant    int // 0: as many as its share
	PerPrincipal int // 0: as many as its tenant's share
}

// The parts of the gate of calls.
type (
	ofSkill struct { // ids of uploads are a matter of each tenant
		owner string
		id    skill.ID
	}
	ofUploads   struct{ owner string } // all uploads of a tenant, so that they never fill the host
	ofTenant    struct{ tenant string }
	ofPrincipal struct{ tenant, id string }
)

// Load gives how many calls have a place now and how many wait for one, and how many of
// each there may be.
func (d *Dispatcher) Load() (running, waiting, places, queue int) { return d.gate.Load() }

// Admit changes how many calls run at once. Where more run already, they go on.
func (d *Dispatcher) Admit(b Bounds) {
	b.fill()
	d.bounds.Store(&b)
	queue := 0
	if d.o.Queue >= 0 {
		queue = b.Global
	}
	d.gate.Resize(b.Global, queue)
}

func (b *Bounds) fill() {
	if b.Global <= 0 {
		b.Global = 32
	}
	if b.PerSkill <= 0 {
		b.PerSkill = 16
	}
}

// How long a call that was queued tries to find a place before it waits in the database again.
const (
	queuedTry  = 20 * time.Millisecond
	queuedWait = 5 * time.Second
)

// enterLater waits for a place for a queued call. Calls whose clients wait come first; after queuedWait it waits in the same queue as they do.
func (d *Dispatcher) enterLater(ctx context.Context, tenant string, parts ...gate.Part) (leave func(), err error) {
	again := time.NewTicker(queuedTry)
	defer again.Stop()
	end := time.NewTimer(queuedWait)
	defer end.Stop()
	for {
		if leave, err = d.gate.TryEnter(tenant, parts...); err == nil {
			return leave, nil
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-end.C:
			return d.gate.Enter(ctx, tenant, parts...) // else a busy skill could delay it without end
		case <-again.C:
		}
	}
}

// enter waits for a place for a call, and gives the function that leaves it.
func (d *Dispatcher) enter(ctx context.Context, p skill.Principal, s *manifest.Skill, queued bool) (leave func(), err error) {
	b := d.bounds.Load()
	var parts []gate.Part
	if b.PerTenant > 0 {
		parts = append(parts, gate.Part{Key: ofTenant{p.Tenant}, Places: b.PerTenant, Owner: p.Tenant})
	}
	if b.PerPrincipal > 0 {
		parts = append(parts, gate.Part{Key: ofPrincipal{p.Tenant, p.ID}, Places: b.PerPrincipal, Owner: p.Tenant})
	}
	if s.Owner != "" {
		parts = append(parts, gate.Part{Key: ofUploads{s.Owner}, Places: max(b.Global/2, 1), Owner: s.Owner})
	}
	parts = append(parts, gate.Part{Key: ofSkill{s.Owner, s.Descriptor.ID}, Places: b.PerSkill, Owner: s.Owner})
	enter := d.gate.Enter
	if queued {
		enter = d.enterLater
	}
	leave, err = enter(ctx, p.Tenant, parts...)
	if full := (*gate.FullError)(nil); errors.As(err, &full) {
		return nil, tooMany(full, parts)
	}
	if err != nil {
		return nil, cancelled(ctx)
	}
	return leave, nil
}

// tooMany says of what there are too many calls.
func tooMany(full *gate.FullError, parts []gate.Part) error {
	const op = "dispatch.admit"
	if full.Part < 0 {
		if full.Own {
			return gate.Refusal(full, op, "the tenant has used its share of concurrent calls")
		}
		return gate.Refusal(full, op, "too many calls are running")
	}
	var whose string
	switch parts[full.Part].Key.(type) {
	case ofUploads:
		return gate.Refusal(full, op, "too many calls to this tenant's uploaded skills are running")
	case ofTenant:
		whose = "tenant"
	case ofPrincipal:
		whose = "principal"
	default:
		return gate.Refusal(full, op, "too many calls to this skill are running")
	}
	most := parts[full.Part].Places
	e := gate.Refusal(full, op, fmt.Sprintf("%d calls of the %s are running, which is the maximum", most, whose))
	for k, v := range map[string]any{"what": whose, "unit": "calls_at_once", "limit": int64(most), "remaining": int64(0), "reset_ms": e.Details["retry_after_ms"]} {
		e.Details[k] = v
	}
	return e
}
