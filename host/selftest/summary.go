package selftest

import (
	"fmt"

	"openskill/examples/hostile"
)

func (r *Report) add(row Row) {
	r.Rows = append(r.Rows, row)
	switch row.Verdict {
	case Pass:
		r.Passed++
	case Skip:
		r.Skipped++
	default:
		r.Failed++
	}
}

// summarize says of each promise what was measured over all rows.
func (r *Report) summarize() {
	for i, words := range Promises {
		promise := i + 1
		row := Row{Promise: promise, Case: words, Verdict: Skip}
		var held, failed int
		for _, x := range r.Rows {
			if x.Promise != promise {
				continue
			}
			switch x.Verdict {
			case Pass:
				held++
			case Skip:
			default:
				failed++
			}
		}
		number, known := r.number(promise)
		switch {
		case held+failed == 0 && !known:
			row.Happened = "not tried"
		default:
			row.Verdict = Pass
			if failed > 0 {
				row.Verdict = Fail
			}
			row.Happened = fmt.Sprintf("%d of %d rows hold", held, held+failed)
			row.Happened = happened(number, row.Happened)
		}
		r.Promises = append(r.Promises, row)
	}
}

// number is the largest that was measured for a promise, in words.
func (r *Report) number(promise int) (words string, known bool) {
	var most, second float64
	var n int
	var kept string
	for _, x := range r.Rows {
		m := x.Measured
		switch promise {
		case hostile.Ends:
			n += m.Calls
			most = max(most, m.OverMS)
		case hostile.Responsive:
			n += m.CanaryCalls
			most, second = max(most, m.HealthP99MS), max(second, m.CanaryP99MS)
		case hostile.Bounded:
			if over := m.MemoryMB - m.LimitMB; m.LimitMB > 0 && (n == 0 || over > most) {
				most = over
				n++
			}
		case hostile.Durable:
			if x.Promise == promise && m.Calls > 0 {
				n, kept = n+1, x.Happened
			}
		case hostile.Admission:
			if m.CPUMS > 0 || m.UploadMB > 0 {
				n++
				most, second = max(most, m.CPUMS), max(second, m.UploadMB)
			}
		}
	}
	if n == 0 {
		return "", false
	}
	switch promise {
	case hostile.Durable:
		return kept, true
	case hostile.Ends:
		return fmt.Sprintf("%d calls, the latest ended %.0f ms after its deadline", n, most), true
	case hostile.Responsive:
		return fmt.Sprintf("/healthz p99 at most %.1f ms and the canary's %.1f ms beside any row", most, second), true
	case hostile.Bounded:
		return fmt.Sprintf("limit %+.0f MiB at most", most), true
	case hostile.Admission:
		return fmt.Sprintf("at most %.0f ms of processor time and %.0f MiB", most, second), true
	}
	return "", false
}
