package measure

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"openskill/internal/musttest"
)

// fake is a variant whose runs take what a list says, in turn, and that notes the
// order of all runs.
func fake(name string, order *[]string, ns ...time.Duration) Variant {
	runs := 0
	return Variant{
		Name: name,
		Run: func(context.Context) (time.Duration, error) {
			*order = append(*order, name)
			d := ns[runs%len(ns)]
			runs++
			return d, nil
		},
	}
}

func TestMeasure(t *testing.T) {
	var order []string
	c := Case{Suite: "s", Name: "c", N: 3, Variants: []Variant{
		fake("base", &order, 1, 30, 10, 20), // the 1 is the round that does not count
		fake("other", &order, 1, 25, 35, 45),
	}}
	c.Variants[1].Note = func() string { return "noted" }
	got := musttest.Get(c.Measure(t.Context()))(t)
	want := []Row{
		{Suite: "s", Case: "c", Variant: "base", Baseline: "base", MinNS: 10, P50NS: 20, Ratio: 1, MinRatio: 1, N: 3},
		{Suite: "s", Case: "c", Variant: "other", Baseline: "base", MinNS: 25, P50NS: 35, Ratio: 1.75, MinRatio: 2.5, N: 3, Note: "noted"},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("rows (-want +got):\n%s", d)
	}
	// Interleaved, each round beginning with another one.
	if d := cmp.Diff([]string{"base", "other", "base", "other", "other", "base", "base", "other"}, order); d != "" {
		t.Errorf("order of runs (-want +got):\n%s", d)
	}
}

// TestMeasureStopsEarly: after its time, but not before five runs of each.
func TestMeasureStopsEarly(t *testing.T) {
	var order []string
	c := Case{Suite: "s", Name: "c", Most: time.Nanosecond, Variants: []Variant{fake("a", &order, 5), fake("b", &order, 5)}}
	got := musttest.Get(c.Measure(t.Context()))(t)
	for _, r := range got {
		if r.N != 5 {
			t.Errorf("%s: %d runs, want 5", r.Variant, r.N)
		}
	}
}

// TestMeasureDefault: 20 runs where a case says nothing.
func TestMeasureDefault(t *testing.T) {
	var order []string
	c := Case{Variants: []Variant{fake("a", &order, 0)}}
	got := musttest.Get(c.Measure(t.Context()))(t)
	// Nothing can be said in relation to no time at all.
	if d := cmp.Diff([]Row{{Variant: "a", Baseline: "a", N: 20}}, got); d != "" {
		t.Errorf("rows (-want +got):\n%s", d)
	}
}

func TestMeasureFails(t *testing.T) {
	broken := errors.New("broken")
	var order []string
	c := Case{Suite: "s", Name: "c", Variants: []Variant{
		fake("a", &order, 1),
		{Name: "b", Run: func(context.Context) (time.Duration, error) { return 0, broken }},
	}}
	rows, err := c.Measure(t.Context())
	if !errors.Is(err, broken) || rows != nil || err.Error() != "s/c, b: broken" {
		t.Errorf("%v, %v; want the error with its case and variant", rows, err)
	}
}

func TestMean(t *testing.T) {
	rows := []Row{
		{Suite: "s", Case: "a", Variant: "v", Baseline: "base", Ratio: 2, MinRatio: 1},
		{Suite: "s", Case: "b", Variant: "v", Baseline: "base", Ratio: 8, MinRatio: 4},
		{Suite: "s", Case: "c", Variant: "v", Baseline: "base"}, // nothing to relate to
		{Suite: "s", Case: "a", Variant: "base", Baseline: "base", Ratio: 1, MinRatio: 1},
		{Suite: "other", Case: "a", Variant: "v", Baseline: "base", Ratio: 100, MinRatio: 100},
	}
	got, ok := Mean(rows, "s", "v")
	want := Row{Suite: "s", Case: "geometric mean", Variant: "v", Baseline: "base", Ratio: 4, MinRatio: 2, N: 2}
	if d := cmp.Diff(want, got); d != "" || !ok {
		t.Errorf("%t (-want +got):\n%s", ok, d)
	}
	if _, ok := Mean(rows, "s", "none"); ok {
		t.Error("a mean of nothing")
	}
}
