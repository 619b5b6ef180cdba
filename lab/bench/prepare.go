package bench

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"time"

	"openskill/internal/measure"

	"openskill/wasm"
	"openskill/wasm/check"
	"openskill/wasm/meter"
)

// Prepare are the cases of checking and metering, with the memory that it takes.
// There is no peer: the baseline is checking alone.
func Prepare(e *wasm.Engine, gs []Guest) []measure.Case {
	var cases []measure.Case
	for i := range gs {
		g := &gs[i]
		if g.Name != "gojson" && g.Name != "cpython" {
			continue
		}
		var bytes uint64
		cases = append(cases, measure.Case{Suite: "prepare", Name: fmt.Sprintf("%s, %.1f MB", g.Name, float64(len(g.Module))/1e6), N: 7, Variants: []measure.Variant{
			{Name: "check", Run: func(context.Context) (time.Duration, error) {
				began := time.Now()
				_, err := e.Check(g.Module, nil)
				return time.Since(began), err
			}},
			{
				Name: "check, strip, meter, encode",
				Run: func(context.Context) (time.Duration, error) {
					runtime.GC()
					var before, after runtime.MemStats
					runtime.ReadMemStats(&before)
					began := time.Now()
					res, err := check.Module(g.Module, &check.Options{Imports: e.Import})
					if err != nil {
						return 0, err
					}
					rw, err := meter.Rewrite(res.Module, res.MaxStack, nil)
					if err != nil {
						return 0, err
					}
					rw.Module.Encode()
					d := time.Since(began)
					runtime.ReadMemStats(&after)
					bytes = after.TotalAlloc - before.TotalAlloc
					return d, nil
				},
				Note: func() string { return measure.Bytes(int64(bytes)) + " allocated in all" },
				// Whatever the size: CPython is the largest module there is.
				Goals: []measure.Goal{measure.Median(time.Second), {Text: "at most " + measure.Bytes(500e6) + " allocated", Got: func(*measure.Row, *measure.Row) (string, bool) {
					return measure.Bytes(int64(bytes)), bytes <= 500e6
				}}},
			},
		}})
	}
	return cases
}

// GCPause measures how long a garbage collection waits for eight guests that
// spin: without a place to be preempted, a guest stops it until its own end.
func GCPause(ctx context.Context, e *wasm.Engine) ([]measure.Row, error) {
	// (func (export "_start") (loop (br 0)))
	spin := []byte("\x00asm\x01\x00\x00\x00\x01\x04\x01\x60\x00\x00\x03\x02\x01\x00\x07\x0a\x01\x06_start\x00\x00\x0a\x09\x01\x07\x00\x03\x40\x0c\x00\x0b\x0b")
	m, err := e.Compile(ctx, spin, nil)
	if err != nil {
		return nil, err
	}
	// A hundred are needed for a p99, and each takes about a second beside the guests.
	const guests, most = 8, 3 * time.Minute
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan error, guests)
	for range guests {
		go func() {
			_, err := m.Run(ctx, &wasm.Run{Limits: wasm.Limits{Fuel: 1 << 60, Timeout: time.Minute}})
			ended <- err
		}()
	}
	var stats runtime.MemStats
	var pauses []time.Duration
	for began := time.Now(); time.Since(began) < most && len(pauses) < 101; {
		runtime.GC()
		runtime.ReadMemStats(&stats)
		pauses = append(pauses, time.Duration(stats.PauseNs[(stats.NumGC+255)%256]))
	}
	cancel()
	for range guests {
		if e := <-ended; e != nil {
			err = e
		}
	}
	if err != nil {
		return nil, err
	}
	return []measure.Row{pauseRow(pauses)}, nil
}

func pauseRow(p []time.Duration) measure.Row {
	slices.Sort(p)
	r := measure.Row{
		Suite: "gc", Case: "pause while eight guests spin", Variant: "openskill", Baseline: "openskill", Ratio: 1, MinRatio: 1,
		MinNS: p[0].Nanoseconds(), P50NS: p[len(p)/2].Nanoseconds(), N: len(p),
		P99NS: p[len(p)*99/100].Nanoseconds(),
	}
	r.Goals = []measure.Verdict{measure.P99(2*time.Millisecond).Of(&r, &r)}
	return r
}
