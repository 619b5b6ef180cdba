package meter

import (
	"errors"
	"sync"
)

// What [Tank.Refuel] ends a run with.
var (
	ErrFuel  = errors.New("fuel exhausted")
	ErrTable = errors.New("table grown beyond its cap")
)

// Tank is the host's side of the fuel of one instance. It is not safe for
// concurrent use; an instance runs on one goroutine.
type Tank struct {
	Budget  uint64 // units that the run may use in all
	Slice   uint64 // units that are handed out at once
	Granted uint64 // units that were handed out
	// MemoryRefused is set when the guest asked for more memory than there can be.
	MemoryRefused bool

	host uint64 // units that host functions charged
	pool *Pool  // nil: the budget is the instance's own
}

// Pool is a budget that the instances of a run have together.
type Pool struct {
	mu     sync.Mutex
	budget uint64
	taken  uint64 // granted to instances, or charged
}

// Join has a tank take from a pool. The first one brings its budget, and what it has used of
// it; those that come later have none of their own.
func (t *Tank) Join(p *Pool) {
	if p.budget == 0 {
		p.budget, p.taken = t.Spent(), t.host+t.Granted
	}
	t.pool = p
}

// Leave gives back to the pool what the instance has left of what it was granted.
func (t *Tank) Leave(fuel int64) {
	if t.pool == nil {
		return
	}
	t.pool.mu.Lock()
	defer t.pool.mu.Unlock()
	t.pool.taken = t.pool.taken - t.host - t.Granted + t.Used(fuel)
}

// Used is what was taken and not given back, in units.
func (p *Pool) Used() uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.taken
}

// Left is what can be granted or charged still.
func (t *Tank) Left() uint64 {
	if p := t.pool; p != nil {
		p.mu.Lock()
		defer p.mu.Unlock()
		return p.budget - min(p.taken, p.budget)
	}
	return t.Budget - t.Granted
}

func (t *Tank) take(units uint64) {
	if p := t.pool; p != nil {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.taken += units
	}
}

// Charge takes units for work that a host function does.
func (t *Tank) Charge(units uint64) error {
	if units > t.Left() {
		return ErrFuel
	}
	t.take(units)
	if t.pool == nil {
		t.Budget -= units
	}
	t.host += units
	return nil
}

// Refuel answers a call of the guest: fuel is what it has left, below zero if it
// charged without a test, and need what a failed test would have taken, or 0. It
// gives the fuel to go on with.
func (t *Tank) Refuel(fuel, need int64) (int64, error) {
	switch need {
	case needTable:
		return 0, ErrTable
	case needMemory:
		t.MemoryRefused = true
		return fuel, nil
	}
	missing := need - fuel
	if missing <= 0 {
		return fuel, nil
	}
	grant := min(max(t.Slice, uint64(missing)), t.Left())
	if grant < uint64(missing) {
		return 0, ErrFuel
	}
	t.take(grant)
	t.Granted += grant
	return fuel + int64(grant), nil
}

// Used gives the fuel that was used by guest and host functions together, from
// what the instance has left.
func (t *Tank) Used(fuel int64) uint64 {
	if fuel < 0 {
		return t.host + t.Granted + uint64(-fuel)
	}
	return t.host + t.Granted - min(uint64(fuel), t.Granted)
}

// Spent gives the fuel of a run that ended because there was no more of it: the
// budget that it was given at first.
func (t *Tank) Spent() uint64 {
	if t.pool != nil {
		return t.pool.budget
	}
	return t.host + t.Budget
}
