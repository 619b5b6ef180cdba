package selftest

import (
	"fmt"
	"strings"
	"time"
)

// Verdict is how a row ended.
type Verdict string

// The verdicts.
const (
	Pass Verdict = "pass"
	Fail Verdict = "fail"
	Late Verdict = "late" // a bound on time was missed and nothing else; such a row is tried again, and then fails
	Skip Verdict = "skip" // it cannot be held here, and the row says why
)

// Row is one line of the table.
type Row struct {
	Promise  int      `json:"promise"` // 1 to 7; 0: a protection
	Case     string   `json:"case"`
	Limit    string   `json:"limit"`    // what must hold it
	Happened string   `json:"happened"` // in a few words
	Verdict  Verdict  `json:"verdict"`
	Problems []string `json:"problems,omitempty"` // what the oracle found, of rows that fail
	Measured Measured `json:"measured"`
}

// Measured are the numbers behind a row; zero where they were not measured.
type Measured struct {
	Calls       int     `json:"calls,omitempty"`
	MS          float64 `json:"ms,omitempty"`      // of the longest call, or of the upload
	OverMS      float64 `json:"over_ms,omitempty"` // of the longest call beyond its deadline
	HealthP99MS float64 `json:"health_p99_ms,omitempty"`
	CanaryP99MS float64 `json:"canary_p99_ms,omitempty"`
	CanaryCalls int     `json:"canary_calls,omitempty"`
	CPUMS       float64 `json:"cpu_ms,omitempty"`    // of judging the upload
	UploadMB    float64 `json:"upload_mb,omitempty"` // that judging the upload took
	MemoryMB    float64 `json:"memory_mb,omitempty"` // of the runs, above what the host had before
	LimitMB     float64 `json:"limit_mb,omitempty"`  // the memory limit of the run
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

func mb(n int64) float64 { return float64(n) / (1 << 20) }

// fault adds a problem, which fails the row.
func (r *Row) fault(format string, args ...any) {
	r.Problems = append(r.Problems, fmt.Sprintf(format, args...))
	r.Verdict = Fail
}

// slow adds a problem that is only one of time: a row without any other is tried
// again, since a machine may be busy with something else for a moment.
func (r *Row) slow(format string, args ...any) {
	r.Problems = append(r.Problems, fmt.Sprintf(format, args...))
	if r.Verdict == Pass {
		r.Verdict = Late
	}
}

// Promises are the seven, in order; the numbers are those of the page on security.
var Promises = [...]string{
	"nothing is read or changed that was not granted",
	"every run ends within its deadline and 250 ms",
	"others are served: /healthz within 100 ms at p99, canaries answer",
	"a run takes its memory limit and 64 MiB at most",
	"an upload is judged within 10 s of processor time and 512 MiB",
	"what was acknowledged survives the end of the host",
	"real skills are not refused",
}

// happened shortens a code and its place for the table.
func happened(words ...string) string {
	var some []string
	for _, w := range words {
		if w != "" {
			some = append(some, w)
		}
	}
	return strings.Join(some, ", ")
}
