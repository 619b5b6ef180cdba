package dispatch

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"openskill/sdk/skill"
)

// maxNested is how many calls of skills the code of one run may make.
const maxNested = 100

// parent is a run whose code may call skills, while it runs.
type parent struct {
	call   *call
	limits skill.Limits
	ends   time.Time // by its own limit

	turn chan struct{} // has room for the nested call that runs

	mu    sync.Mutex
	calls int
	fuel  uint64 // used by nested calls
}

// parents has one for as long as its code runs.
func (d *Dispatcher) parent(c *call, limits skill.Limits) (leave func()) {
	d.parents.Store(c.executionID, &parent{call: c, limits: limits, ends: d.o.Now().Add(limits.Timeout), turn: make(chan struct{}, 1)})
	return func() { d.parents.Delete(c.executionID) }
}

// Caller is on whose behalf the code of an execution runs; false: there is none that runs.
func (d *Dispatcher) Caller(executionID string) (skill.Principal, bool) {
	v, ok := d.parents.Load(executionID)
	if !ok {
		return skill.Principal{}, false
	}
	p, _ := v.(*parent) // of this map
	return p.call.principal, true
}

// Nested makes a call of a skill for the code of an execution that runs: with its caller's rights, within
// what is left of its time and fuel, and on record with it. It has the place of its parent, which waits
// meanwhile, so that code that calls never waits for a place that code holds. Code calls no code.
func (d *Dispatcher) Nested(ctx context.Context, executionID string, id skill.ID, input json.RawMessage) *skill.Result {
	v, ok := d.parents.Load(executionID)
	p, _ := v.(*parent) // of this map
	if !ok {
		return skill.Failure(id, "", skill.Meta{}, &skill.Error{Op: "dispatch.Nested", Code: skill.Forbidden, Message: "only code may call skills while it runs"})
	}
	of := p.call
	c := &call{
		principal: of.principal, begun: d.o.Now(), executionID: d.o.NewID(), parent: of.executionID,
		request: skill.Request{SkillID: id, Input: input, TraceID: of.request.TraceID, Turn: of.request.Turn},
	}
	c.request.Turn.Tokens = 0
	if c.request.Turn.Session == "" {
		c.request.Turn.Session = of.executionID
	}
	// One at a time: together they have one place, and the fuel that is left.
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

// enter counts a call, and gives the limits that are left for it.
func (p *parent) enter(id skill.ID, now time.Time) (left skill.Limits, err error) {
	refuse := func(code skill.Code, format string, args ...any) (skill.Limits, error) {
		return left, &skill.Error{Op: "dispatch.Nested", Code: code, Message: fmt.Sprintf(format, args...)}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	left = skill.Limits{Timeout: p.ends.Sub(now), Memory: p.limits.Memory}
	switch {
	case id == skill.RunCode:
		return refuse(skill.Forbidden, "code cannot run code; put it into this program")
	case p.calls >= maxNested:
		return refuse(skill.RateLimited, "the code has called skills %d times, which is the maximum", maxNested)
	case left.Timeout <= 0:
		return refuse(skill.Timeout, "the code has no time left for a call")
	case p.fuel >= p.limits.Fuel:
		return refuse(skill.FuelExhausted, "the calls of the code have used up its %d units of fuel", p.limits.Fuel)
	}
	p.calls++
	left.Fuel = p.limits.Fuel - p.fuel
	return left, nil
}
