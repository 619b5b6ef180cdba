package agent

import (
	"time"

	"openskill/host/agent/llm"
)

// limits are the most that a turn or a task may use; each is above zero.
type limits struct {
	iterations int
	toolCalls  int
	tokens     int
	cost       llm.Money
	fuel       uint64
	time       time.Duration
}

// budget bounds what one turn or task uses. It is asked before each step, and told
// afterwards what a step took.
type budget struct {
	limits
	now      func() time.Time
	deadline time.Time
	used     spending
}

// spending is what was used so far.
type spending struct {
	iterations int
	toolCalls  int
	usage      llm.Usage
	cost       llm.Money
	fuel       uint64
}

// newBudget begins now.
func newBudget(l limits, now func() time.Time) *budget {
	return &budget{limits: l, now: now, deadline: now().Add(l.time)}
}

// next is asked before each question to a model. It gives the limit that is reached, or
// counts the round.
func (b *budget) next() StopReason {
	if r := b.over(); r != "" {
		return r
	}
	if b.used.iterations >= b.iterations {
		return StopIterations
	}
	b.used.iterations++
	return ""
}

// over gives the limit that is reached, except for rounds and calls, which are counted
// before they are made.
func (b *budget) over() StopReason {
	switch {
	case !b.now().Before(b.deadline):
		return StopTime
	case b.used.usage.Total() >= b.tokens:
		return StopTokens
	case b.used.cost >= b.cost:
		return StopCost
	case b.used.fuel >= b.fuel:
		return StopFuel
	}
	return ""
}

// takeCalls says how many of n calls of tools may be made, and counts them.
func (b *budget) takeCalls(n int) int {
	n = max(min(n, b.toolCalls-b.used.toolCalls), 0)
	b.used.toolCalls += n
	return n
}

// spend counts what a model took.
func (b *budget) spend(u llm.Usage, cost llm.Money) {
	b.used.usage = b.used.usage.Add(u)
	b.used.cost += cost
}

// burn counts what a run of a skill took.
func (b *budget) burn(fuel uint64) { b.used.fuel += fuel }

// tokensLeft is how many are left, 0 at least.
func (b *budget) tokensLeft() int { return max(b.tokens-b.used.usage.Total(), 0) }

// fuelShare is what each of n runs that begin now may take: what is left, in equal
// shares, and 1 at least, because 0 would mean any amount.
func (b *budget) fuelShare(n int) uint64 {
	left := b.fuel - min(b.used.fuel, b.fuel)
	return max(left/uint64(max(n, 1)), 1) // at least 1
}
