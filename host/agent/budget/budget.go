// Package budget bounds what one turn of an agent may use: rounds of its model, calls of
// tools, tokens, money, fuel of skills, and time. It is asked before each step, and what
// a step took is told to it afterwards.
package budget

import (
	"sync"
	"time"

	"openskill/host/agent/llm"
)

// Limits are the most that a turn may use; each is above zero.
type Limits struct {
	Iterations int
	ToolCalls  int
	Tokens     int
	Cost       llm.Money
	Fuel       uint64
	Time       time.Duration
}

// Reason is the limit that ended a turn; "" is none.
type Reason string

// The reasons.
const (
	Iterations Reason = "max_iterations"
	ToolCalls  Reason = "max_tool_calls"
	Tokens     Reason = "max_tokens"
	Cost       Reason = "max_cost"
	Fuel       Reason = "max_fuel"
	Time       Reason = "timeout"
)

// Used is what a turn has used so far.
type Used struct {
	Iterations int
	ToolCalls  int
	Usage      llm.Usage
	Cost       llm.Money
	Fuel       uint64
}

// Budget is one turn's. It is safe for concurrent use.
type Budget struct {
	limits   Limits
	now      func() time.Time
	deadline time.Time

	mu   sync.Mutex
	used Used
}

// New begins a turn now.
func New(l Limits, now func() time.Time) *Budget {
	return &Budget{limits: l, now: now, deadline: now().Add(l.Time)}
}

// Deadline is when its time is over.
func (b *Budget) Deadline() time.Time { return b.deadline }

// Next is asked before each question to a model. It gives the limit that is reached, or
// counts the round.
func (b *Budget) Next() Reason {
	b.mu.Lock()
	defer b.mu.Unlock()
	if r := b.over(); r != "" {
		return r
	}
	if b.used.Iterations >= b.limits.Iterations {
		return Iterations
	}
	b.used.Iterations++
	return ""
}

// Over gives the limit that is reached, but for rounds and calls, which are counted
// before they are made.
func (b *Budget) Over() Reason {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.over()
}

func (b *Budget) over() Reason {
	switch {
	case !b.now().Before(b.deadline):
		return Time
	case b.used.Usage.Total() >= b.limits.Tokens:
		return Tokens
	case b.used.Cost >= b.limits.Cost:
		return Cost
	case b.used.Fuel >= b.limits.Fuel:
		return Fuel
	}
	return ""
}

// TakeCalls says how many of n calls of tools may be made, and counts them.
func (b *Budget) TakeCalls(n int) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	n = max(min(n, b.limits.ToolCalls-b.used.ToolCalls), 0)
	b.used.ToolCalls += n
	return n
}

// Spend counts what a model took.
func (b *Budget) Spend(u llm.Usage, cost llm.Money) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.used.Usage = b.used.Usage.Add(u)
	b.used.Cost += cost
}

// Burn counts what a run of a skill took.
func (b *Budget) Burn(fuel uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.used.Fuel += fuel
}

// TokensLeft is how many are left, 0 at least.
func (b *Budget) TokensLeft() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return max(b.limits.Tokens-b.used.Usage.Total(), 0)
}

// FuelShare is what each of n runs that begin now may take: what is left, in equal
// shares, and 1 at least, because 0 would mean any amount.
func (b *Budget) FuelShare(n int) uint64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	left := b.limits.Fuel - min(b.used.Fuel, b.limits.Fuel)
	return max(left/uint64(max(n, 1)), 1) // at least 1
}

// Used is what was used so far.
func (b *Budget) Used() Used {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.used
}
