package budget

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"openskill/host/agent/llm"
)

func begin(t *testing.T, l Limits) (*Budget, *time.Time) {
	t.Helper()
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	return New(l, func() time.Time { return at }), &at
}

var all = Limits{Iterations: 3, ToolCalls: 5, Tokens: 100, Cost: 10, Fuel: 1000, Time: time.Minute}

// Each limit is reached exactly, and said.
func TestLimits(t *testing.T) {
	for want, reach := range map[Reason]func(b *Budget, at *time.Time){
		Tokens: func(b *Budget, _ *time.Time) {
			if b.Spend(llm.Usage{Prompt: 60, Completion: 39}, 0); b.Over() != "" || b.TokensLeft() != 1 {
				t.Error("99 of 100 tokens are too many")
			}
			b.Spend(llm.Usage{Completion: 1}, 0)
		},
		Cost: func(b *Budget, _ *time.Time) {
			if b.Spend(llm.Usage{}, 9); b.Over() != "" {
				t.Error("9 of 10 are too much")
			}
			b.Spend(llm.Usage{}, 1)
		},
		Fuel: func(b *Budget, _ *time.Time) {
			if b.Burn(999); b.Over() != "" {
				t.Error("999 of 1000 are too much")
			}
			b.Burn(1)
		},
		Time: func(b *Budget, at *time.Time) {
			if *at = b.Deadline().Add(-1); b.Over() != "" {
				t.Error("it is over before its end")
			}
			*at = b.Deadline()
		},
		Iterations: func(b *Budget, _ *time.Time) {
			for range 3 {
				if r := b.Next(); r != "" {
					t.Errorf("ended by %s", r)
				}
			}
		},
	} {
		b, at := begin(t, all)
		reach(b, at)
		if got := b.Next(); got != want {
			t.Errorf("ended by %q, want %q", got, want)
		}
		if over := b.Over(); want != Iterations && over != want || want == Iterations && over != "" {
			t.Errorf("%s: over by %q", want, over)
		}
	}
}

func TestCallsAndFuel(t *testing.T) {
	b, _ := begin(t, all)
	for _, c := range []struct{ ask, get int }{{2, 2}, {10000, 3}, {1, 0}, {0, 0}} {
		if got := b.TakeCalls(c.ask); got != c.get {
			t.Errorf("of %d calls %d may be made, want %d", c.ask, got, c.get)
		}
	}
	if got := b.FuelShare(4); got != 250 {
		t.Errorf("each of 4 has %d", got)
	}
	b.Burn(5000) // a run may end a little over
	if got := b.FuelShare(0); got != 1 {
		t.Errorf("nothing is left, but %d is given", got)
	}
	if u := b.Used(); u.ToolCalls != 5 || u.Fuel != 5000 {
		t.Errorf("%+v", u)
	}
}

// Calls that are taken at once are never more than there are.
func TestTogether(t *testing.T) {
	b, _ := begin(t, Limits{Iterations: 1, ToolCalls: 100, Tokens: 1, Cost: 1, Fuel: 1, Time: time.Hour})
	var got atomic.Int64
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() { got.Add(int64(b.TakeCalls(7))) })
	}
	wg.Wait()
	if got.Load() != 100 {
		t.Errorf("%d calls", got.Load())
	}
}
