package dispatch

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"openskill/sdk/skill"
)

// maxNested is the maximum number of nested calls of one run.
const maxNested = 100

// parent is running code, which may call skills.
type parent struct {
	call   *call
	limits skill.Limits
	ends   time.Time // deadline of the run

	turn chan struct{} // capacity 1: held by the running nested call

	mu    sync.Mutex
	calls int
	fuel  uint64 // used by nested calls
}

// parent registers a run as a parent until leave is called.
func (d *Dispatcher) parent(c *call, limits skill.Limits) (leave func()) {
	d.parents.Store(c.executionID, &parent{call: c, limits: limits, ends: d.o.Now().Add(limits.Timeout), turn: make(chan struct{}, 1)})
	return func() { d.parents.Delete(c.executionID) }
}

// Caller returns the principal of an execution whose code is running.
func (d *Dispatcher) Caller(executionID string) (skill.Principal, bool) {
	v, ok := d.parents.Load(executionID)
	if !ok {
		return skill.Principal{}, false
	}
	p, _ := v.(*parent) // of this map
	return p.call.principal, true
}

// Nested calls a skill on behalf of running code: with the rights of the code's caller and within the remaining
// time of the run; all nested calls of a run together get at most the fuel limit of the run. The record names the
// parent execution. A nested call runs in the admission place of its parent, so it never waits for a place that a
// parent holds. Code cannot call run_code.
func (d *Dispatcher) Nested(ctx context.Context, executionID string, id skill.ID, input json.RawMessage) *skill.Result {
	v, ok := d.parents.Load(executionID)
	p, _ := v.(*parent) // of this map
	if !ok {
		return skill.Failure(id, "", skill.Meta{}, &skill.Error{Op: "dispatch.Nested", Code: skill.Forbidden, Message: "skills can only be called by running code"})
	}
	of := p.call
	c := &call{
		principal: of.principal, begun: d.o.Now(), executionID: d.o.NewID(), parent: of.executionID,
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
		p.mu.Lock()
		p.fuel += c.reply.Usage.Fuel
		p.mu.Unlock()
	}
	return c.result
}

// enter counts a nested call and returns its limits.
func (p *parent) enter(id skill.ID, now time.Time) (left skill.Limits, err error) {
	refuse := func(code skill.Code, format string, args ...any) (skill.Limits, error) {
		return left, &skill.Error{Op: "dispatch.Nested", Code: code, Message: fmt.Sprintf(format, args...)}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	left = skill.Limits{Timeout: p.ends.Sub(now), Memory: p.limits.Memory}
	switch {
	case id == skill.RunCode:
		return refuse(skill.Forbidden, "code cannot call run_code; put the code into this program")
	case p.calls >= maxNested:
		return refuse(skill.RateLimited, "the code has reached the maximum of %d skill calls", maxNested)
	case left.Timeout <= 0:
		return refuse(skill.Timeout, "no time is left for a skill call; raise limits.timeout_ms")
	case p.fuel >= p.limits.Fuel:
		return refuse(skill.FuelExhausted, "the skill calls of the code used up %d units of fuel; raise limits.fuel", p.limits.Fuel)
	}
	p.calls++
	left.Fuel = p.limits.Fuel - p.fuel
	return left, nil
}
