package soak

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

// series makes a point every two seconds of ten minutes; of is told the share of the
// time that is over.
func series(of func(share float64) float64) (out []Point) {
	const n = 300
	for i := range n + 1 {
		out = append(out, Point{time.Duration(i) * 2 * time.Second, of(float64(i) / n)})
	}
	return out
}

func TestJudge(t *testing.T) {
	t.Parallel()
	chance := rand.New(rand.NewPCG(7, 7))
	memory, count := Bound{Share: MemoryShare}, Bound{}
	saw := func(at, period float64) float64 { return math.Mod(at, period) / period }
	for _, c := range []struct {
		name    string
		bound   Bound
		of      func(at float64) float64
		growing bool
	}{
		{"memory that is flat", memory, func(float64) float64 { return 100e6 }, false},
		{"memory with noise", memory, func(float64) float64 { return 100e6 + chance.NormFloat64()*5e6 }, false},
		{"memory that leaks 3 % in the second half", memory, func(at float64) float64 { return 100e6 * (1 + 0.06*at) }, true},
		{"memory that leaks 1 %", memory, func(at float64) float64 { return 100e6 * (1 + 0.02*at) }, false},
		{"memory that leaks 10 % below noise", memory, func(at float64) float64 { return 100e6*(1+0.2*at) + chance.NormFloat64()*2e6 }, true},
		{"memory that shrinks", memory, func(at float64) float64 { return 100e6 * (1 - 0.2*at) }, false},
		{"memory that grows while warming up", memory, func(at float64) float64 { return 100e6 * min(0.5+2*at, 1) }, false},
		{"a step of memory while warming up", memory, func(at float64) float64 { return 100e6 + 50e6*step(at, 0.3) }, false},
		{"a step of memory, once", memory, func(at float64) float64 { return 100e6 + 10e6*step(at, 0.6) }, false},
		{"a step of memory late, once", memory, func(at float64) float64 { return 100e6 + 10e6*step(at, 0.9) }, false},
		{"stairs of memory", memory, func(at float64) float64 { return 100e6 + 1e6*math.Floor(at*20) }, true},
		{"a heap between collections", memory, func(at float64) float64 { return 100e6 + 50e6*saw(at, 0.023) }, false},
		{"a tooth as long as the half", memory, func(at float64) float64 { return 100e6 + 50e6*saw(at+0.25, 0.5) }, false},
		{"a heap between collections that leaks", memory, func(at float64) float64 { return 100e6*(1+0.2*at) + 50e6*saw(at, 0.023) }, true},
		{"one peak", memory, func(at float64) float64 { return 100e6 + 900e6*(step(at, 0.8)-step(at, 0.82)) }, false},
		{"descriptors that are flat", count, func(float64) float64 { return 40 }, false},
		{"descriptors with noise", count, func(float64) float64 { return math.Round(40 + chance.NormFloat64()*3) }, false},
		{"one descriptor more every minute", count, func(at float64) float64 { return 40 + math.Floor(at*10) }, true},
		{"one descriptor more every minute below noise", count, func(at float64) float64 { return math.Round(40 + at*10 + chance.Float64()*2) }, true},
		{"threads, one of them once", count, func(at float64) float64 { return 12 + step(at, 0.65) }, false},
		{"processes that come and go", count, func(at float64) float64 { return 2 + math.Round(saw(at, 0.01)) }, false},
	} {
		v := Judge(series(c.of), c.bound)
		if !v.Judged || v.Growing != c.growing {
			t.Errorf("%s: %+v, want growing %v", c.name, v, c.growing)
		}
	}
}

func step(at, when float64) float64 {
	if at >= when {
		return 1
	}
	return 0
}

// TestTooShort: what is not enough is not judged, and nothing breaks it.
func TestTooShort(t *testing.T) {
	t.Parallel()
	leak := series(func(at float64) float64 { return 100 + 100*at })
	for name, s := range map[string][]Point{
		"nothing": nil, "one point": leak[:1], "two": leak[:2], "less than five minutes of second half": leak[:len(leak)-1],
		"few points": {leak[0], leak[50], leak[100], leak[150], leak[200], leak[300]},
		"one moment": {{0, 1}, {0, 2}, {0, 3}, {0, 4}},
	} {
		if v := Judge(s, Bound{}); v.Judged || v.Growing {
			t.Errorf("%s: %+v, want no judgement", name, v)
		} else if len(s) > 0 && (v.First == 0 || v.Last == 0) {
			t.Errorf("%s: %+v, and no values to show", name, v)
		}
	}
	if v := Judge(leak, Bound{}); !v.Judged || !v.Growing {
		t.Errorf("five minutes of second half: %+v", v)
	}
	// A day of samples every 100 ms is thinned out, not multiplied.
	long := make([]Point, 864_000)
	for i := range long {
		long[i] = Point{time.Duration(i) * 100 * time.Millisecond, float64(i)}
	}
	if v := Judge(long, Bound{}); !v.Growing {
		t.Errorf("a long leak: %+v", v)
	}
}
