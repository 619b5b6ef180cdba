package wasm_test

import (
	"context"
	"runtime"
	"runtime/metrics"
	"slices"
	"sync"
	"testing"
	"time"

	"openskill/wasm"
)

// spin has n guests loop without an end until stop is called, each in a way of
// its own kind. It returns when all of them run.
func spin(t testing.TB, e *wasm.Engine, n int, names ...string) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var wg, running sync.WaitGroup
	running.Add(n)
	for i := range n {
		c := find(t, names[i%len(names)])
		m := compile(t, e, c.Module)
		wg.Go(func() {
			running.Done()
			out, err := m.Run(ctx, &wasm.Run{Limits: wasm.Limits{Fuel: 1 << 60, Timeout: time.Minute}})
			if err != nil || out.Ended != wasm.Cancelled {
				t.Errorf("%+v, %v", out, err)
			}
		})
	}
	running.Wait()
	return func() {
		cancel()
		wg.Wait()
	}
}

// pauses collects n times, and gives how long the world took to stop for it: from
// the wish to the moment at which the last guest has stopped, as Go itself counts
// it, in the buckets of its histogram. Waiting for a turn on a loaded machine is
// no part of it.
func pauses(n int) (p50, p99 time.Duration) {
	const name = "/sched/pauses/stopping/gc:seconds"
	read := func() *metrics.Float64Histogram {
		s := []metrics.Sample{{Name: name}}
		metrics.Read(s)
		return s[0].Value.Float64Histogram()
	}
	before := slices.Clone(read().Counts)
	for range n {
		runtime.GC()
	}
	after := read()
	var total, seen uint64
	for i := range before {
		after.Counts[i] -= before[i]
		total += after.Counts[i]
	}
	quantile := func(q float64) time.Duration {
		seen = 0
		for i, c := range after.Counts {
			if seen += c; float64(seen) >= q*float64(total) {
				return time.Duration(after.Buckets[i+1] * float64(time.Second)) // the upper bound
			}
		}
		return 0
	}
	return quantile(0.5), quantile(0.99)
}

var spinning = []string{
	"E01 endless loop until the deadline", "E03 exponential calls until the deadline",
	"E05 straight line of memory.copy until the deadline", "E06 tree of memory.fill until the deadline",
}

// TestGuestsArePreempted collects garbage while guests spin. Without preemption
// the first collection would wait until the guests' deadline has come, and they
// could not be cancelled any more.
func TestGuestsArePreempted(t *testing.T) {
	e := open(t, nil)
	stop := spin(t, e, 2, spinning[:2]...)
	p50, p99 := pauses(2)
	stop()
	t.Logf("the world stopped within %v, and 99 in 100 times within %v", p50, p99)
}

// BenchmarkGCPause measures how long stopping the world takes while eight guests
// spin: in loops, in calls, and in bulk operations of eight megabytes, which
// cannot be interrupted. The aim is 2 ms for 99 in 100.
func BenchmarkGCPause(b *testing.B) {
	for _, c := range []struct {
		name   string
		guests []string
		slice  uint64
	}{
		{"none", nil, 100_000}, // the machine alone, for comparison
		{"loops", spinning[:1], 100_000},
		{"loops, a tenth of the slice", spinning[:1], 10_000},
		{"calls", spinning[1:2], 100_000},
		{"bulk operations", spinning[2:], 100_000},
	} {
		b.Run(c.name, func(b *testing.B) {
			e := open(b, &wasm.Options{Slice: c.slice})
			stop := func() {}
			if c.guests != nil {
				stop = spin(b, e, 8, c.guests...)
			}
			b.ResetTimer()
			p50, p99 := pauses(b.N)
			b.StopTimer()
			stop()
			b.ReportMetric(float64(p50.Nanoseconds())/1e3, "p50-us")
			b.ReportMetric(float64(p99.Nanoseconds())/1e3, "p99-us")
		})
	}
}
