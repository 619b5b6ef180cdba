// Package measure measures variants of the same work against each other: ratios taken
// in one run, variants interleaved, minimum and median, since machines are shared
// and noisy.
package measure

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"
)

// Row is one line of `openskill bench --json`. Ratio is this variant's median over
// the baseline's, both from the same interleaved run; 1 for the baseline itself.
type Row struct {
	Suite    string  `json:"suite"`
	Case     string  `json:"case"`
	Variant  string  `json:"variant"`
	Baseline string  `json:"baseline"`
	MinNS    int64   `json:"min_ns"`
	P50NS    int64   `json:"p50_ns"`
	Ratio    float64 `json:"ratio"`
	N        int     `json:"n"`
	// MinRatio is the ratio of the minima, which noise touches least.
	MinRatio float64 `json:"min_ratio"`
	// P99NS is the time that 99 of 100 runs stay below; 0 where there were fewer runs
	// than that.
	P99NS int64 `json:"p99_ns,omitempty"`
	// Bytes is memory, for rows that measure that and no time.
	Bytes int64 `json:"bytes,omitempty"`
	// Goals are what was wanted of this row, and whether it came.
	Goals []Verdict `json:"goals,omitempty"`
	// Note says what the numbers are when they are not times of one run, or what
	// else was measured (fuel, bytes).
	Note string `json:"note,omitempty"`
}

// Variant is one way to do the same work. Run does it once and gives the time
// that counts.
type Variant struct {
	Name  string
	Run   func(ctx context.Context) (time.Duration, error)
	Note  func() string // asked after the last run; may be nil
	Times int           // runs in a round; 0 means one
	Goals []Goal
}

// Case is variants of the same work; the first one is the baseline.
type Case struct {
	Suite, Name string
	Variants    []Variant
	N           int           // rounds; 0 means 20
	Most        time.Duration // stop early after this much, but not before 5 runs; 0 means 30 s
}

// Measure runs the variants in turn, each round beginning with another one, after
// one round that does not count.
func (c *Case) Measure(ctx context.Context) ([]Row, error) {
	n, most := c.N, c.Most
	if n == 0 {
		n = 20
	}
	if most == 0 {
		most = 30 * time.Second
	}
	times := make([][]time.Duration, len(c.Variants))
	began := time.Now()
	for round := -1; round < n; round++ {
		if round >= 5 && time.Since(began) > most {
			break
		}
		for i := range c.Variants {
			k := (i + max(round, 0)) % len(c.Variants)
			for range max(c.Variants[k].Times, 1) {
				d, err := c.Variants[k].Run(ctx)
				if err != nil {
					return nil, fmt.Errorf("%s/%s, %s: %w", c.Suite, c.Name, c.Variants[k].Name, err)
				}
				if round >= 0 {
					times[k] = append(times[k], d)
				}
			}
		}
	}
	rows := make([]Row, len(c.Variants))
	for k, v := range c.Variants {
		ts := times[k]
		slices.Sort(ts)
		rows[k] = Row{
			Suite: c.Suite, Case: c.Name, Variant: v.Name, Baseline: c.Variants[0].Name,
			MinNS: ts[0].Nanoseconds(), P50NS: ts[len(ts)/2].Nanoseconds(), N: len(ts),
		}
		if n := len(ts); n >= 100 {
			rows[k].P99NS = ts[(99*n+99)/100-1].Nanoseconds()
		}
		if v.Note != nil {
			rows[k].Note = v.Note()
		}
		rows[k].Ratio = ratio(rows[k].P50NS, rows[0].P50NS)
		rows[k].MinRatio = ratio(rows[k].MinNS, rows[0].MinNS)
	}
	for k, v := range c.Variants {
		for _, g := range v.Goals {
			rows[k].Goals = append(rows[k].Goals, g.Of(&rows[k], &rows[0]))
		}
	}
	return rows, nil
}

func ratio(a, b int64) float64 {
	if b == 0 {
		return 0
	}
	q := float64(a) / float64(b)
	if q < 0.1 { // three digits, whatever the size
		return math.Round(1e5*q) / 1e5
	}
	return math.Round(1000*q) / 1000
}

// Mean gives a row with the geometric mean of the ratios of one variant over the
// cases of a suite.
func Mean(rows []Row, suite, variant string) (Row, bool) {
	out := Row{Suite: suite, Case: "geometric mean", Variant: variant}
	sum, sumMin := 0.0, 0.0
	for _, r := range rows {
		if r.Suite == suite && r.Variant == variant && r.Ratio > 0 && r.MinRatio > 0 {
			sum += math.Log(r.Ratio)
			sumMin += math.Log(r.MinRatio)
			out.Baseline = r.Baseline
			out.N++
		}
	}
	if out.N == 0 {
		return out, false
	}
	out.Ratio = math.Round(1000*math.Exp(sum/float64(out.N))) / 1000
	out.MinRatio = math.Round(1000*math.Exp(sumMin/float64(out.N))) / 1000
	return out, true
}
