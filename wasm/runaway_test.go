package wasm_test

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"openskill/wasm"
	"openskill/wasm/wasmtest"
)

func find(t testing.TB, name string) *wasmtest.Case {
	t.Helper()
	c, ok := wasmtest.Find(name)
	if !ok {
		t.Fatalf("no case %s", name)
	}
	return &c
}

// peak is the largest resident memory while do runs, above what it was before. It
// looks once a millisecond, for a peak that lasts shorter costs nobody anything.
func peak(t testing.TB, do func()) int64 {
	t.Helper()
	before := measure().memory
	var most int64
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		tick := time.NewTicker(time.Millisecond)
		defer tick.Stop()
		for {
			_, now := statm()
			most = max(most, now-before)
			select {
			case <-stop:
				return
			case <-tick.C:
			}
		}
	}()
	do()
	close(stop)
	<-stopped
	return most
}

// mayExceed is how much more than its memory limit a run may cost the host.
const mayExceed = 64 << 20

// TestMemoryOfOneRun holds that a run costs the host no more than its limit and
// 64 MiB, for the cases that try.
func TestMemoryOfOneRun(t *testing.T) {
	e := open(t, nil)
	for _, name := range []string{
		"E07 endless recursion", "E07 endless recursion with 5,000 locals", "E07 endless recursion through a table", "E07 endless recursion with instructions that are rewritten",
		"E09 memory grown and touched page by page", "E10 references to functions without end", "E11 table.grow 2^32-2", "E14 print forever", "E15 one fd_write with 1,024 vectors of 1 MiB",
		"E17 4294967295 bytes at 0x1 of 32768 pages", "E18 close and renumber every descriptor", "E20 256 MiB of randomness",
	} {
		t.Run(name, func(t *testing.T) {
			c := find(t, name)
			compile(t, e, c.Module)
			limit := int64(256 << 20)
			if c.Limits.Memory != 0 {
				limit = int64(c.Limits.Memory) // at most 4 GiB
			}
			if got := peak(t, func() { hold(t, e, c) }); got > limit+mayExceed && !raceDetector {
				t.Errorf("%d MiB more, limit %d MiB", got>>20, limit>>20)
			} else {
				t.Logf("%d MiB more", got>>20)
			}
		})
	}
}

// TestEightRecursions has eight guests recurse at once. Their stacks are the
// host's, 10 MiB each by Limits.Stack, and grow by doubling.
func TestEightRecursions(t *testing.T) {
	e := open(t, nil)
	before := measure()
	for _, name := range []string{"E07 endless recursion", "E07 endless recursion with 5,000 locals", "E07 endless mutual recursion", "E07 endless recursion with instructions that are rewritten"} {
		c := find(t, name)
		compile(t, e, c.Module)
		got := peak(t, func() {
			var wg sync.WaitGroup
			for range 8 {
				wg.Go(func() { hold(t, e, c) })
			}
			wg.Wait()
		})
		t.Logf("%s, eight at once: %d MiB more", name, got>>20)
		if got > 8*mayExceed && !raceDetector {
			t.Errorf("%s, eight at once: %d MiB more", name, got>>20)
		}
		canary(t, e)
	}
	before.back(t)
}

// compilesLong names the one module whose compiling takes half a minute under the
// race detector: TestHostile runs it, and that is enough there.
func compilesLong(name string) bool {
	return raceDetector && strings.HasPrefix(name, "E05 straight line of memory.copy")
}

// TestTwoHundredRunaways runs one runaway after the other (E24), of all the kinds
// that end quickly.
func TestTwoHundredRunaways(t *testing.T) {
	e := open(t, nil)
	var cases []wasmtest.Case
	for _, c := range wasmtest.Hostile() {
		if c.Refused != "" || c.Limits.Timeout == wasmtest.Short || c.Name == "E20 256 MiB of randomness" || compilesLong(c.Name) {
			continue
		}
		if c.Limits.Fuel == wasmtest.Fuel {
			c.Limits.Fuel /= 100
		}
		compile(t, e, c.Module)
		cases = append(cases, c)
	}
	canary(t, e)
	before := measure()
	times := 200
	if raceDetector {
		times = 60 // each takes ten times as long
	}
	for i := range times {
		hold(t, e, &cases[i%len(cases)])
	}
	canary(t, e)
	before.back(t)
}

// TestCancelled cancels runs from outside (E25), in every way that a guest can
// spend its time.
func TestCancelled(t *testing.T) {
	e := open(t, nil)
	for _, name := range []string{
		"E01 endless loop until the deadline", "E03 exponential calls until the deadline", "E02 endless start function until the deadline",
		"E05 straight line of memory.copy until the deadline", "E06 tree of memory.fill until the deadline",
		"E12 sleep four days", "E13 input that never comes", "E13 input that never ends until the deadline",
	} {
		t.Run(name, func(t *testing.T) {
			if compilesLong(name) {
				t.Skip("TestHostile compiles it under the race detector, which takes half a minute")
			}
			c := find(t, name)
			c.Limits.Timeout = time.Minute
			m := compile(t, e, c.Module)
			r, done := c.Run()
			defer done()
			ctx, cancel := context.WithCancel(context.Background())
			ended := make(chan *wasm.Outcome, 1)
			go func() {
				out, err := m.Run(ctx, r)
				if err != nil {
					t.Error(err)
				}
				ended <- out
			}()
			runtime.Gosched()
			cancel()
			began := time.Now()
			out := <-ended
			if out == nil || out.Ended != wasm.Cancelled {
				t.Errorf("%+v", out)
			}
			if took := time.Since(began); took > slack {
				t.Errorf("ended %v after it was cancelled", took)
			}

			// A deadline of the caller's counts like the limit.
			r, done = c.Run()
			defer done()
			ctx, cancel = context.WithTimeout(context.Background(), 50*time.Millisecond)
			defer cancel()
			if out, err := m.Run(ctx, r); err != nil || out.Ended != wasm.OutOfTime {
				t.Errorf("%+v, %v", out, err)
			}
			if out, err := m.Run(ctx, &wasm.Run{}); err != nil || out.Ended != wasm.OutOfTime {
				t.Errorf("run with a context that has ended: %+v, %v", out, err)
			}
			canary(t, e)
		})
	}
}

// TestSameRandomness gives two runs the same source (E20): they see the same
// bytes, and others with the real one.
func TestSameRandomness(t *testing.T) {
	b := wasmtest.New()
	random := b.Import("random_get")
	write := b.Import("fd_write")
	b.Memory(2)
	b.Data(0, "\x00\x01\x00\x00\x00\x10\x00\x00")
	b.Command(wasmtest.I32(256) + wasmtest.I32(4096) + wasmtest.Call(random) + wasmtest.Drop +
		wasmtest.I32(1) + wasmtest.I32(0) + wasmtest.I32(1) + wasmtest.I32(64) + wasmtest.Call(write) + wasmtest.Drop)
	e := open(t, nil)
	seeded := func() []byte {
		return run(t, e, b.Bytes(), &wasm.Run{Random: rand.NewChaCha8([32]byte{1})}).Stdout
	}
	one, two := seeded(), seeded()
	if len(one) != 4096 || !bytes.Equal(one, two) {
		t.Errorf("%d and %d bytes that differ", len(one), len(two))
	}
	if own := run(t, e, b.Bytes(), &wasm.Run{}).Stdout; bytes.Equal(own, one) || bytes.Equal(own, make([]byte, 4096)) {
		t.Error("the real source is not random")
	}
}

// TestGuestsRefusedMemory holds how a run ends that was refused memory: whatever
// it does about it, unless it does well.
func TestGuestsRefusedMemory(t *testing.T) {
	e := open(t, nil)
	grow := wasmtest.I32(60_000) + wasmtest.MemoryGrow + wasmtest.Drop
	build := func(body func(exit uint32) wasmtest.Code) []byte {
		b := wasmtest.New()
		exit := b.Import("proc_exit")
		b.Memory(1)
		b.Command(grow + body(exit))
		return b.Bytes()
	}
	for name, c := range map[string]struct {
		body func(exit uint32) wasmtest.Code
		want wasm.Ended
	}{
		"returns":      {func(uint32) wasmtest.Code { return "" }, wasm.Returned},
		"exits with 0": {func(exit uint32) wasmtest.Code { return wasmtest.I32(0) + wasmtest.Call(exit) }, wasm.Exited},
		"exits with 2": {func(exit uint32) wasmtest.Code { return wasmtest.I32(2) + wasmtest.Call(exit) }, wasm.OutOfMemory},
		"traps":        {func(uint32) wasmtest.Code { return wasmtest.Unreachable }, wasm.OutOfMemory},
	} {
		if out := run(t, e, build(c.body), &wasm.Run{}); out.Ended != c.want || out.ExitCode != 0 || out.Trap != "" {
			t.Errorf("%s: %+v", name, out)
		}
	}
	// More than there can be at all is answered by the instruction, and told too.
	b := wasmtest.New()
	b.Memory(1)
	b.Command(wasmtest.I32(-1) + wasmtest.MemoryGrow + wasmtest.Drop + wasmtest.Unreachable)
	if out := run(t, e, b.Bytes(), &wasm.Run{}); out.Ended != wasm.OutOfMemory {
		t.Errorf("grown by 2^32-1 pages: %+v", out)
	}
}

// TestTinyLimits runs with the smallest limits of each kind.
func TestTinyLimits(t *testing.T) {
	e := open(t, nil)
	c := find(t, "E14 print forever")
	for name, x := range map[string]struct {
		limits wasm.Limits
		want   wasm.Ended
	}{
		"fuel":               {wasm.Limits{Fuel: 1}, wasm.OutOfFuel},
		"memory":             {wasm.Limits{Memory: 1}, wasm.OutOfMemory},
		"one page too few":   {wasm.Limits{Memory: 31 << 16}, wasm.OutOfMemory},
		"time":               {wasm.Limits{Timeout: 1}, wasm.OutOfTime},
		"time in the past":   {wasm.Limits{Timeout: -1}, wasm.OutOfTime},
		"output":             {wasm.Limits{Output: 1}, wasm.OutputOverflow},
		"output below zero":  {wasm.Limits{Output: -1}, wasm.OutputOverflow},
		"more than there is": {wasm.Limits{Memory: 1 << 62}, wasm.OutputOverflow},
	} {
		out := run(t, e, c.Module, &wasm.Run{Limits: x.limits})
		if out.Ended != x.want {
			t.Errorf("%s: %v", name, out.Ended)
		}
		if most := max(x.limits.Output, 0); x.limits.Output != 0 && int64(len(out.Stdout)) != most {
			t.Errorf("%s: %d bytes kept", name, len(out.Stdout))
		}
	}
	nothing := wasmtest.New()
	nothing.Memory(0)
	nothing.Command("")
	if out := run(t, e, nothing.Bytes(), &wasm.Run{Limits: wasm.Limits{Memory: 1}}); out.Ended != wasm.Returned {
		t.Errorf("no memory at all: %+v", out)
	}
	for stack, want := range map[uint64]wasm.Ended{1: wasm.OutOfStack, 64 << 20: wasm.OutOfStack} {
		c := find(t, "E07 endless recursion")
		if out := run(t, e, c.Module, &wasm.Run{Limits: wasm.Limits{Stack: stack}}); out.Ended != want {
			t.Errorf("stack of %d: %+v", stack, out)
		}
	}
}

// TestWriters gives the output to writers of the caller, and to one that fails.
func TestWriters(t *testing.T) {
	e := open(t, nil)
	c := find(t, "E14 print forever")
	var to bytes.Buffer
	out := run(t, e, c.Module, &wasm.Run{Stdout: &to, Limits: wasm.Limits{Output: 100}})
	if out.Ended != wasm.OutputOverflow || to.Len() != 100 || out.Stdout != nil {
		t.Errorf("%+v, %d bytes", out, to.Len())
	}
	out = run(t, e, c.Module, &wasm.Run{Stdout: brokenWriter{}})
	if out.Ended != wasm.Exited || out.ExitCode != 29 { // EIO
		t.Errorf("%+v", out)
	}
}

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, errors.New("broken") }

// TestEndedNames holds that every way to end has a name of its own.
func TestEndedNames(t *testing.T) {
	seen := map[string]bool{}
	for e := wasm.Returned; e <= wasm.Diverged; e++ {
		if e.String() == "" || seen[e.String()] {
			t.Errorf("%d is called %q", e, e)
		}
		seen[e.String()] = true
	}
}
