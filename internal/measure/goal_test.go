package measure

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"openskill/internal/musttest"
)

// TestGoals: each at what is just enough, and just beyond.
func TestGoals(t *testing.T) {
	base := &Row{P50NS: 50_000_000}
	for _, c := range []struct {
		goal Goal
		row  Row
		want Verdict
	}{
		{Median(time.Millisecond), Row{P50NS: 1_000_000}, Verdict{"p50 at most 1ms", "1ms", true}},
		{Median(time.Millisecond), Row{P50NS: 1_000_010}, Verdict{"p50 at most 1ms", "1ms", false}},
		{P99(2 * time.Millisecond), Row{P99NS: 2_000_000}, Verdict{"p99 at most 2ms", "2ms", true}},
		{P99(2 * time.Millisecond), Row{P99NS: 2_100_000}, Verdict{"p99 at most 2ms", "2.1ms", false}},
		{P99(2 * time.Millisecond), Row{}, Verdict{"p99 at most 2ms", "too few runs", false}},
		{Faster(50), Row{P50NS: 1_000_000}, Verdict{"at least 50 times as fast as the baseline", "50.0 times", true}},
		{Faster(50), Row{P50NS: 1_010_000}, Verdict{"at least 50 times as fast as the baseline", "49.5 times", false}},
		{Faster(50), Row{}, Verdict{"at least 50 times as fast as the baseline", "no time", false}},
		{AtMost(3.6), Row{Ratio: 3.6}, Verdict{"at most 3.6 times the baseline's time", "3.60 times", true}},
		{AtMost(3.6), Row{Ratio: 3.7}, Verdict{"at most 3.6 times the baseline's time", "3.70 times", false}},
		{AtMost(3.6), Row{}, Verdict{"at most 3.6 times the baseline's time", "0.00 times", false}},
		{MinAtMost(1.08), Row{MinRatio: 1.08, Ratio: 2}, Verdict{"at most 1.08 times the baseline's time, of minima", "1.080 times", true}},
		{MinAtMost(1.08), Row{MinRatio: 1.081, Ratio: 1}, Verdict{"at most 1.08 times the baseline's time, of minima", "1.081 times", false}},
		{MinAtMost(1.08), Row{Ratio: 1}, Verdict{"at most 1.08 times the baseline's time, of minima", "0.000 times", false}},
		{Size(20e6), Row{Bytes: 20e6}, Verdict{"at most 20.0 MB", "20.0 MB", true}},
		{Size(20e6), Row{Bytes: 21e6}, Verdict{"at most 20.0 MB", "21.0 MB", false}},
	} {
		if d := cmp.Diff(c.want, c.goal.Of(&c.row, base)); d != "" {
			t.Errorf("(-want +got):\n%s", d)
		}
	}
}

// TestMeasureManyTimes: a quick variant runs several times a round, and its row
// tells the slowest of a hundred; goals stand in the row of their variant.
func TestMeasureManyTimes(t *testing.T) {
	var order []string
	quick := make([]time.Duration, 100)
	for i := range quick {
		quick[i] = time.Duration(1 + i)
	}
	c := Case{Suite: "s", Name: "c", N: 5, Variants: []Variant{fake("slow", &order, 5000), fake("quick", &order, quick...)}}
	c.Variants[1].Times = 100
	c.Variants[1].Goals = []Goal{P99(99), Faster(98)}
	got := musttest.Get(c.Measure(t.Context()))(t)
	want := []Row{
		{Suite: "s", Case: "c", Variant: "slow", Baseline: "slow", MinNS: 5000, P50NS: 5000, Ratio: 1, MinRatio: 1, N: 5},
		{
			Suite: "s", Case: "c", Variant: "quick", Baseline: "slow", MinNS: 1, P50NS: 51, P99NS: 99, Ratio: 0.0102, MinRatio: 0.0002, N: 500,
			Goals: []Verdict{{"p99 at most 99ns", "100ns", true}, {"at least 98 times as fast as the baseline", "98.0 times", true}},
		},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}
