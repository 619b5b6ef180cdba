package agent

import (
	"testing"
	"time"

	"openskill/host/agent/llm"
)

func startBudget(t *testing.T, l limits) (*budget, *time.Time) {
	t.Helper()
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	return newBudget(l, func() time.Time { return at }), &at
}

var smallLimits = limits{iterations: 3, toolCalls: 5, tokens: 100, cost: 10, fuel: 1000, time: time.Minute}

// Each limit is reached exactly, and said.
func TestBudgetLimits(t *testing.T) {
	for want, reach := range map[StopReason]func(b *budget, at *time.Time){
		StopTokens: func(b *budget, _ *time.Time) {
			if b.spend(llm.Usage{Prompt: 60, Completion: 39}, 0); b.over() != "" || b.tokensLeft() != 1 {
				t.Error("99 of 100 tokens are too many")
			}
			b.spend(llm.Usage{Completion: 1}, 0)
		},
		StopCost: func(b *budget, _ *time.Time) {
			if b.spend(llm.Usage{}, 9); b.over() != "" {
				t.Error("9 of 10 are too much")
			}
			b.spend(llm.Usage{}, 1)
		},
		StopFuel: func(b *budget, _ *time.Time) {
			if b.burn(999); b.over() != "" {
				t.Error("999 of 1000 are too much")
			}
			b.burn(1)
		},
		StopTime: func(b *budget, at *time.Time) {
			if *at = b.deadline.Add(-1); b.over() != "" {
				t.Error("it is over before its end")
			}
			*at = b.deadline
		},
		StopIterations: func(b *budget, _ *time.Time) {
			for range 3 {
				if r := b.next(); r != "" {
					t.Errorf("ended by %s", r)
				}
			}
		},
	} {
		b, at := startBudget(t, smallLimits)
		reach(b, at)
		if got := b.next(); got != want {
			t.Errorf("ended by %q, want %q", got, want)
		}
		if over := b.over(); want != StopIterations && over != want || want == StopIterations && over != "" {
			t.Errorf("%s: over by %q", want, over)
		}
	}
}

func TestCallsAndFuel(t *testing.T) {
	b, _ := startBudget(t, smallLimits)
	for _, c := range []struct{ ask, get int }{{2, 2}, {10000, 3}, {1, 0}, {0, 0}} {
		if got := b.takeCalls(c.ask); got != c.get {
			t.Errorf("of %d calls %d may be made, want %d", c.ask, got, c.get)
		}
	}
	if got := b.fuelShare(4); got != 250 {
		t.Errorf("each of 4 has %d", got)
	}
	b.burn(5000) // a run may end a little over
	if got := b.fuelShare(0); got != 1 {
		t.Errorf("nothing is left, but %d is given", got)
	}
	if u := b.used; u.toolCalls != 5 || u.fuel != 5000 {
		t.Errorf("%+v", u)
	}
}
