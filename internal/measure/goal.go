package measure

import (
	"fmt"
	"strconv"
	"time"
)

// Goal is what is wanted of a variant. It is compared with the row that was
// measured, and with the baseline's.
type Goal struct {
	Text string
	Got  func(r, base *Row) (shown string, met bool)
}

// Verdict is a goal beside what was measured.
type Verdict struct {
	Goal     string `json:"goal"`
	Measured string `json:"measured"`
	Met      bool   `json:"met"`
}

// Of gives the verdict on a row.
func (g Goal) Of(r, base *Row) Verdict {
	v := Verdict{Goal: g.Text}
	v.Measured, v.Met = g.Got(r, base)
	return v
}

// Median wants a median of at most d.
func Median(d time.Duration) Goal {
	return Goal{"p50 at most " + d.String(), func(r, _ *Row) (string, bool) {
		return Span(r.P50NS), r.P50NS <= d.Nanoseconds()
	}}
}

// P99 wants 99 of 100 runs to take at most d; it is missed where there were too
// few runs to tell.
func P99(d time.Duration) Goal {
	return Goal{"p99 at most " + d.String(), func(r, _ *Row) (string, bool) {
		if r.P99NS == 0 {
			return "too few runs", false
		}
		return Span(r.P99NS), r.P99NS <= d.Nanoseconds()
	}}
}

// Faster wants the median of the baseline to be at least so many times as long.
func Faster(times float64) Goal {
	return Goal{fmt.Sprintf("at least %g times as fast as the baseline", times), func(r, base *Row) (string, bool) {
		if r.P50NS == 0 {
			return "no time", false
		}
		q := float64(base.P50NS) / float64(r.P50NS)
		return fmt.Sprintf("%.1f times", q), q >= times
	}}
}

// AtMost wants a ratio to the baseline of at most q.
func AtMost(q float64) Goal {
	return Goal{fmt.Sprintf("at most %g times the baseline's time", q), func(r, _ *Row) (string, bool) {
		return strconv.FormatFloat(r.Ratio, 'f', 2, 64) + " times", r.Ratio > 0 && r.Ratio <= q
	}}
}

// MinAtMost wants a ratio to the baseline of at most q between the shortest runs, which
// are what the code itself takes: others wait for the machine too.
func MinAtMost(q float64) Goal {
	return Goal{fmt.Sprintf("at most %g times the baseline's time, of minima", q), func(r, _ *Row) (string, bool) {
		return strconv.FormatFloat(r.MinRatio, 'f', 3, 64) + " times", r.MinRatio > 0 && r.MinRatio <= q
	}}
}

// Size wants at most so many bytes.
func Size(n int64) Goal {
	return Goal{"at most " + Bytes(n), func(r, _ *Row) (string, bool) { return Bytes(r.Bytes), r.Bytes <= n }}
}

// Span shows nanoseconds with four digits or so; "" for none.
func Span(ns int64) string {
	d := time.Duration(ns)
	switch {
	case ns == 0:
		return ""
	case d > time.Second:
		return d.Round(time.Millisecond).String()
	case d > time.Millisecond:
		return d.Round(time.Microsecond).String()
	}
	return d.Round(10 * time.Nanosecond).String()
}

// Bytes shows a size in MB, of a million bytes.
func Bytes(n int64) string { return strconv.FormatFloat(float64(n)/1e6, 'f', 1, 64) + " MB" }

// Ratio shows a ratio with three digits or so; "" for none.
func Ratio(q float64) string {
	switch {
	case q == 0:
		return ""
	case q < 0.1:
		return strconv.FormatFloat(q, 'f', 5, 64)
	}
	return strconv.FormatFloat(q, 'f', 3, 64)
}
