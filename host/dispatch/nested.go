package dispatch

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"openskill/host/manifest"
	"openskill/sdk/skill"
)

// The bounds of nested calls.
const (
	maxNested = 100 // of a run and all runs below it
	maxDepth  = 4   // calls between the first run and the last one
)

// parent is a run that may call skills.
type parent struct {
	call   *call
	root   *parent // the first run, which is not nested
	depth  int     // calls between root and this one
	limits skill.Limits
	ends   time.Time // deadline of the run

	turn chan struct{} // capacity 1: held by the running nested call

	calls atomic.Int64  // of a root: of all runs below it
	fuel  atomic.Uint64 // used by nested calls and those below them
}

// parent registers a run as a parent until leave is called.
func (d *Dispatcher) parent(c *call, limits skill.Limits) (leave func()) {
	p := &parent{call: c, limits: limits, ends: d.o.Now().Add(limits.Timeout), turn: make(chan struct{}, 1)}
	if p.root = p; c.of != nil {
		p.root, p.depth = c.of.root, c.of.depth+1
	}
	d.parents.Store(c.executionID, p)
	return func() {
		d.parents.Delete(c.executionID)
		c.nested = p.fuel.Load()
	}
}

// only are the skills that the run may call; nil: all of its caller's.
func (p *parent) only() []skill.ID {
	if p.call.skill.Code {
		return p.call.code.skills
	}
	return p.call.skill.Permissions.Skills
}

// listed is where only is written.
func (p *parent) listed() string {
	if p.call.skill.Code {
		return "skills of the request"
	}
	return "permissions.skills of its manifest"
}

// reaches reports whether a run may call s. What a stranger wrote chooses the input of the call, so it reaches nothing
// that could carry data out of the sandbox, or that belongs to others.
func (p *parent) reaches(s *manifest.Skill) bool {
	of := p.call.skill
	if of.Code || of.Descriptor.Trust >= skill.Trusted {
		return true
	}
	asks := &s.Permissions
	return (s.Owner == "" || s.Owner == of.Owner) && manifest.Sandboxed(s.Primary.Kind) && (s.Fallback == nil || manifest.Sandboxed(s.Fallback.Kind)) &&
		len(asks.HTTP)+len(asks.Env) == 0 && (len(asks.Skills) == 0 || s.Descriptor.Trust < skill.Trusted)
}

// Caller returns the principal of an execution that may call skills while it runs, and which ones; nil: all of the
// principal's.
func (d *Dispatcher) Caller(executionID string) (who skill.Principal, only []skill.ID, ok bool) {
	v, ok := d.parents.Load(executionID)
	if !ok {
		return skill.Principal{}, nil, false
	}
	p, _ := v.(*parent) // of this map
	return p.call.principal, p.only(), true
}

// Nested calls a skill on behalf of a run: with the rights of its caller and within the remaining time of the run; all
// nested calls of a run together get at most the fuel limit of the run. Code may call all skills of its caller but
// run_code, a skill those of its permissions. The record names the parent execution. A nested call runs in the
// admission place of its root, so it never waits for a place that a parent holds.
func (d *Dispatcher) Nested(ctx context.Context, executionID string, id skill.ID, input json.RawMessage) *skill.Result {
	v, ok := d.parents.Load(executionID)
	p, _ := v.(*parent) // of this map
	if !ok {
		return skill.Failure(id, "", skill.Meta{}, &skill.Error{Op: "dispatch.Nested", Code: skill.Forbidden, Message: "skills can only be called by running code, and by skills with permissions.skills"})
	}
	of := p.call
	c := &call{
		principal: of.principal, begun: d.o.Now(), executionID: d.o.NewID(), parent: of.executionID, of: p,
		request: skill.Request{SkillID: id, Input: input, TraceID: of.request.TraceID, Turn: of.request.Turn},
	}
	c.request.Turn.Tokens, c.request.Turn.Workspace = 0, "" // the code has the workspace
	if c.request.Turn.Session == "" {
		c.request.Turn.Session = of.executionID
	}
	// One at a time: nested calls share one place and the remaining fuel.
	select {
	case p.turn <- struct{}{}:
		defer func() { <-p.turn }()
	case <-ctx.Done():
		return skill.Failure(id, of.request.TraceID, skill.Meta{}, &skill.Error{Op: "dispatch.Nested", Code: skill.Cancelled, Message: "the code has ended"})
	}
	var err error
	if c.request.Limits, err = p.enter(id, d.o.Now()); err != nil {
		return skill.Failure(id, of.request.TraceID, skill.Meta{}, err)
	}
	_ = d.handle(ctx, c) // the outermost layer has put it into the result
	if c.reply != nil {
		p.fuel.Add(c.reply.Usage.Fuel + c.nested)
	}
	return c.result
}

// enter counts a nested call and returns its limits.
func (p *parent) enter(id skill.ID, now time.Time) (left skill.Limits, err error) {
	refuse := func(code skill.Code, format string, args ...any) (skill.Limits, error) {
		return left, &skill.Error{Op: "dispatch.Nested", Code: code, Message: fmt.Sprintf(format, args...)}
	}
	left = skill.Limits{Timeout: p.ends.Sub(now), Memory: p.limits.Memory}
	only, fuel := p.only(), p.fuel.Load()
	switch {
	case id == skill.RunCode:
		return refuse(skill.Forbidden, "code cannot call run_code; put the code into this program")
	case only != nil && !slices.Contains(only, id):
		return refuse(skill.Forbidden, "%s may not call %s; %s names all that it may call", p.call.skill.Descriptor.ID, skill.CleanText(string(id), 64), p.listed())
	case p.depth >= maxDepth:
		return refuse(skill.Forbidden, "skills call each other at most %d deep", maxDepth)
	case left.Timeout <= 0:
		return refuse(skill.Timeout, "no time is left for a skill call; raise limits.timeout_ms")
	case fuel >= p.limits.Fuel:
		return refuse(skill.FuelExhausted, "the skill calls of the code used up %d units of fuel; raise limits.fuel", p.limits.Fuel)
	}
	if p.root.calls.Add(1) > maxNested {
		return refuse(skill.RateLimited, "the code has reached the maximum of %d skill calls", maxNested)
	}
	left.Fuel = p.limits.Fuel - fuel
	return left, nil
}
