package wasm_test

import (
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"openskill/internal/musttest"
	"openskill/wasm"
	"openskill/wasm/wasmtest"
)

// busyStart is a command that computes before it reads one byte, and then does after.
func busyStart(after wasmtest.Code) []byte {
	b := wasmtest.New()
	read := b.Import("fd_read")
	b.Memory(1)
	b.Data(0, "\x10\x00\x00\x00\x01\x00\x00\x00")
	b.Command(wasmtest.Times(100_000, 0, wasmtest.I32(1)+wasmtest.Drop) +
		wasmtest.I32(0) + wasmtest.I32(0) + wasmtest.I32(1) + wasmtest.I32(8) + wasmtest.Call(read) + wasmtest.Drop + after)
	return b.Bytes()
}

var growsAfter = wasmtest.I32(1) + wasmtest.MemoryGrow + wasmtest.Drop // which spoils the instance

// What start-ups use is counted once, for the runs that they were begun for: the first
// one, those that take the place of a spoilt instance, and those of one run alone.
func TestStartUpsAreCountedOnce(t *testing.T) {
	for _, c := range []struct {
		name   string
		module []byte
		o      wasm.ImageOptions
		atOnce int
		starts int // at least
	}{
		{"shared by all runs", busyStart(""), wasm.ImageOptions{}, 1, 1},
		{"spoilt by each run", busyStart(growsAfter), wasm.ImageOptions{Spare: -1}, 1, 12},
		{"replaced ahead", busyStart(growsAfter), wasm.ImageOptions{}, 1, 12},
		{"many runs at once", busyStart(growsAfter), wasm.ImageOptions{}, 8, 12},
		{"one for each run", busyStart(""), wasm.ImageOptions{Once: true}, 2, 12},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := open(t, nil)
			im := e.Image(&wasm.Program{Module: compile(t, e, c.module)}, &c.o)
			var counted atomic.Uint64
			var each atomic.Uint64 // what one start-up uses
			var wg sync.WaitGroup
			for range c.atOnce {
				wg.Go(func() {
					for range (12 + c.atOnce - 1) / c.atOnce {
						out, err := im.Run(t.Context(), &wasm.Call{Stdin: strings.NewReader("x"), StartFuel: &counted, Limits: wasm.Limits{Timeout: time.Minute}})
						if err != nil || out.Ended != wasm.Returned || out.StartFuel < 100_000 || out.Fuel > out.StartFuel/10 {
							t.Errorf("%+v, %v", out, err)
							return
						}
						each.Store(out.StartFuel)
					}
				})
			}
			wg.Wait()
			calm(t, im)
			_ = im.Close()
			n := im.Starts()
			if got, want := counted.Load(), uint64(n)*each.Load(); n < c.starts || got != want { // not negative
				t.Errorf("%d start-ups of %d units: %d are counted, want %d", n, each.Load(), got, want)
			}
		})
	}
}

// A start-up that is begun ahead of all runs is no run's.
func TestStartUpsAheadAreNobodys(t *testing.T) {
	e := open(t, nil)
	im := e.Image(&wasm.Program{Module: compile(t, e, busyStart(""))}, nil)
	musttest.Do(t, im.Warm(t.Context(), 1))
	var counted atomic.Uint64
	out, err := im.Run(t.Context(), &wasm.Call{Stdin: strings.NewReader("x"), StartFuel: &counted})
	if err != nil || out.Ended != wasm.Returned || counted.Load() != 0 {
		t.Errorf("%+v, %v; %d units are counted", out, err, counted.Load())
	}
}

// A run that ends while it waits for its start-up has used what that used by then; what
// it uses afterwards is counted as well.
func TestStartUpsOfRunsThatEnd(t *testing.T) {
	spin := wasmtest.New()
	spin.Command(wasmtest.Loop(wasmtest.Br(0)))
	traps := wasmtest.New()
	traps.Command(wasmtest.Times(100_000, 0, wasmtest.I32(1)+wasmtest.Drop) + wasmtest.Unreachable)

	t.Run("by their deadline", func(t *testing.T) {
		e := open(t, nil)
		im := e.Image(&wasm.Program{Module: compile(t, e, spin.Bytes()), Limits: wasm.Limits{Fuel: 1 << 62, Timeout: time.Minute}}, nil)
		var counted atomic.Uint64
		out, err := im.Run(t.Context(), &wasm.Call{StartFuel: &counted, Limits: wasm.Limits{Fuel: 1 << 62, Timeout: 100 * time.Millisecond}})
		if err != nil || out.Ended != wasm.OutOfTime || out.Fuel == 0 {
			t.Errorf("%+v, %v", out, err)
		}
		for began := time.Now(); counted.Load() == 0; { // the start-up goes on for a while
			if time.Since(began) > 10*time.Second {
				t.Fatal("what the start-up used after its run had ended is not counted")
			}
			time.Sleep(time.Millisecond)
		}
	})
	t.Run("before their start-up does", func(t *testing.T) {
		e := open(t, nil)
		const all = 30_000_000
		im := e.Image(&wasm.Program{Module: compile(t, e, spin.Bytes()), Limits: wasm.Limits{Fuel: all, Timeout: time.Minute}}, nil)
		var counted atomic.Uint64
		out, err := im.Run(t.Context(), &wasm.Call{StartFuel: &counted, Limits: wasm.Limits{Fuel: all, Timeout: time.Nanosecond}})
		if err != nil || out.Ended != wasm.OutOfTime {
			t.Fatalf("%+v, %v", out, err)
		}
		calm(t, im)
		_ = im.Close()
		if got := out.Fuel + counted.Load(); got == 0 || got > all {
			t.Errorf("%d units are counted of a start-up of up to %d", got, all)
		}
	})
	// The first start-up is shared, and ends; then each run has one of its own, which is in
	// its outcome and nowhere else.
	t.Run("by a trap", func(t *testing.T) {
		e := open(t, nil)
		im := e.Image(&wasm.Program{Module: compile(t, e, traps.Bytes())}, nil)
		var counted atomic.Uint64
		fuel := uint64(0)
		for range 3 {
			out, err := im.Run(t.Context(), &wasm.Call{StartFuel: &counted, Limits: wasm.Limits{Timeout: time.Minute}})
			if err != nil || out.Ended != wasm.Trapped || out.Fuel < 100_000 {
				t.Fatalf("%+v, %v", out, err)
			}
			fuel = out.Fuel
		}
		if counted.Load() != fuel {
			t.Errorf("%d units are counted beside the outcomes, want those of the one start-up, %d", counted.Load(), fuel)
		}
	})
}
