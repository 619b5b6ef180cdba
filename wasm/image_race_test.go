package wasm_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"openskill/wasm"
	"openskill/wasm/image"
	"openskill/wasm/wasmtest"
)

// What a slow guest does after its one byte of input.
const (
	slowReturns = iota
	slowExits
	slowTraps
	slowSpins  // until its fuel or time is used up
	slowGrows  // memory, and returns: the instance is spoilt
	slowReads  // a second byte
	slowPrints // 64 KiB
	slows
)

// slow is a command that prints a byte, reads one, and does what that says. What
// comes out is "s", and then the byte.
func slow() []byte {
	b := wasmtest.New()
	read, write, exit := b.Import("fd_read"), b.Import("fd_write"), b.Import("proc_exit")
	const iov, count, text, input, large = 0, 8, 16, 24, 65536
	b.Memory(3)
	b.Data(text, "s")
	vector := func(at, n int64) wasmtest.Code {
		return wasmtest.I32(iov) + wasmtest.I32(at) + wasmtest.Store + wasmtest.I32(iov+4) + wasmtest.I32(n) + wasmtest.Store
	}
	io := func(f uint32, fd int64) wasmtest.Code {
		return wasmtest.I32(fd) + wasmtest.I32(iov) + wasmtest.I32(1) + wasmtest.I32(count) + wasmtest.Call(f) + wasmtest.Drop
	}
	on := func(what int64, do wasmtest.Code) wasmtest.Code {
		return wasmtest.I32(input) + wasmtest.Load8 + wasmtest.I32(what) + wasmtest.Eq + wasmtest.If(do)
	}
	b.Command(vector(text, 1) + io(write, 1) + vector(input, 1) + io(read, 0) + io(write, 1) +
		on(slowExits, wasmtest.I32(3)+wasmtest.Call(exit)) +
		on(slowTraps, wasmtest.Unreachable) +
		on(slowSpins, wasmtest.Loop(wasmtest.Br(0))) +
		on(slowGrows, wasmtest.I32(1)+wasmtest.MemoryGrow+wasmtest.Drop) +
		on(slowReads, io(read, 0)) +
		on(slowPrints, vector(large, 65536)+io(write, 1)))
	return b.Bytes()
}

func slowImage(t testing.TB, e *wasm.Engine, o *wasm.ImageOptions) *wasm.Image {
	t.Helper()
	return e.Image(&wasm.Program{Module: compile(t, e, slow())}, o)
}

// mappings counts the process's mappings; 0 where there is no /proc.
func mappings() int {
	b, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		return 0
	}
	return bytes.Count(b, []byte("\n"))
}

// mayMappings is how many mappings may remain: Go's own heap and stacks come and go.
const mayMappings = 64

// TestImageCrowd has many callers at few instances, with guests that end in every
// way, callers that go away at any moment, instances that are swept and images that
// are warmed meanwhile. Every answer is the caller's own, and after the last of it
// the process is where it was.
func TestImageCrowd(t *testing.T) {
	e := open(t, &wasm.Options{Instances: 3})
	im := slowImage(t, e, &wasm.ImageOptions{Instances: 3})
	other := slowImage(t, e, &wasm.ImageOptions{Instances: 2, Spare: -1})
	defer other.Close()
	crowd(t, im, 20)
	before, maps := measure(), mappings()

	stop := make(chan struct{})
	var sweeper sync.WaitGroup
	sweeper.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				e.Sweep(time.Now().Add(wasm.IdleTime * 2)) // all that waits is retired
				ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
				_ = im.Warm(ctx, 2)
				cancel()
			}
		}
	})
	runs := 1500
	if testing.Short() || raceDetector {
		runs = 300
	}
	var callers sync.WaitGroup
	callers.Go(func() { crowd(t, other, runs/4) })
	crowd(t, im, runs)
	callers.Wait()
	close(stop)
	sweeper.Wait()
	if err := im.Close(); err != nil {
		t.Error(err)
	}
	if live, idle := im.Instances(); live != 0 || idle != 0 {
		t.Errorf("%d instances live, %d idle after Close", live, idle)
	}
	if _, err := im.Run(context.Background(), &wasm.Call{}); !errors.Is(err, wasm.ErrClosed) {
		t.Errorf("a run after Close: %v", err)
	}
	before.back(t)
	if now := mappings(); now > maps+mayMappings {
		t.Errorf("%d mappings, %d before", now, maps)
	}
}

// crowd has eight callers share n runs.
func crowd(t *testing.T, im *wasm.Image, n int) {
	t.Helper()
	var left atomic.Int64
	left.Store(int64(n))
	var wg sync.WaitGroup
	for caller := range 8 {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(caller), uint64(n)))
			for left.Add(-1) >= 0 && !t.Failed() {
				slowRun(t, im, rng)
			}
		})
	}
	wg.Wait()
}

// slowRun is one run of a random kind, with a caller of a random kind.
func slowRun(t *testing.T, im *wasm.Image, rng *rand.Rand) {
	t.Helper()
	what := byte(rng.IntN(slows))
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	c := &wasm.Call{Stdin: bytes.NewReader([]byte{what}), Limits: wasm.Limits{Fuel: 200_000, Timeout: 10 * time.Second, Output: 1000}}
	gone := false
	switch rng.IntN(6) {
	case 0: // a caller that goes away
		gone = true
		time.AfterFunc(time.Duration(rng.IntN(2000))*time.Microsecond, cancel)
	case 1: // one with little time
		gone = true
		c.Limits.Timeout = time.Duration(1+rng.IntN(2000)) * time.Microsecond
	case 2: // an input that never comes; the run ends by its deadline
		gone = true
		r, w := io.Pipe()
		defer w.Close()
		c.Stdin, c.Limits.Timeout = r, time.Duration(1+rng.IntN(5))*time.Millisecond
	case 3:
		c.Stdin = io.MultiReader(c.Stdin) // not read directly
	}
	done := 0
	c.Done = func(wasm.Files) { done++ }
	out, err := im.Run(ctx, c)
	if err != nil {
		t.Error(err)
		return
	}
	if gone && (out.Ended == wasm.OutOfTime || out.Ended == wasm.Cancelled) {
		return
	}
	want := map[byte]wasm.Ended{slowExits: wasm.Exited, slowTraps: wasm.Trapped, slowSpins: wasm.OutOfFuel, slowPrints: wasm.OutputOverflow}[what]
	if out.Ended != want || done != 1 || !strings.HasPrefix(string(out.Stdout), "s"+string(rune(what))) || (what != slowPrints && len(out.Stdout) != 2) {
		t.Errorf("kind %d: %v, Done called %d times, %d bytes of output %.4q", what, out.Ended, done, len(out.Stdout), out.Stdout)
	}
}

// TestImageDonePanics lets a caller's own function fail: the caller is told by the
// same panic, and neither it nor the next one waits for ever.
func TestImageDonePanics(t *testing.T) {
	im := slowImage(t, open(t, nil), nil)
	defer im.Close()
	for i := range 5 {
		for what := range byte(slows) {
			told := make(chan any, 1)
			go func() {
				defer func() { told <- recover() }()
				_, _ = im.Run(context.Background(), &wasm.Call{
					Stdin: bytes.NewReader([]byte{what}), Limits: wasm.Limits{Fuel: 100_000, Output: 1000},
					Done: func(wasm.Files) { panic("Done fails") },
				})
			}()
			select {
			case p := <-told:
				if p != "Done fails" {
					t.Fatalf("kind %d, try %d: the caller saw %v", what, i, p)
				}
			case <-time.After(10 * time.Second):
				t.Fatalf("kind %d, try %d: the caller still waits", what, i)
			}
			slowRun(t, im, rand.New(rand.NewPCG(uint64(i), uint64(what))))
		}
	}
}

// panics is a reader and a writer that fails in the worst way.
type panics struct{}

func (panics) Write([]byte) (int, error) { panic("Write fails") }

// TestImageBrokenOutputs has outputs that fail, or panic, while start-up's output is
// put out and while the guest's own is: the run ends, and the next one is right.
func TestImageBrokenOutputs(t *testing.T) {
	im := slowImage(t, open(t, nil), nil)
	defer im.Close()
	rng := rand.New(rand.NewPCG(1, 2))
	for range 10 {
		for _, w := range []io.Writer{brokenWriter{}, panics{}} {
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				defer func() { _ = recover() }()
				_, _ = im.Run(context.Background(), &wasm.Call{Stdin: bytes.NewReader([]byte{0}), Stdout: w})
			}()
			select {
			case <-ended:
			case <-time.After(10 * time.Second):
				t.Fatalf("%T: the caller still waits", w)
			}
			slowRun(t, im, rng)
		}
	}
}

// TestImageClosedUnderRuns closes an image while guests run, start and wait. Runs
// under way end as they would; the others are refused. Nothing hangs.
func TestImageClosedUnderRuns(t *testing.T) {
	e := open(t, nil)
	for round := range 20 {
		im := slowImage(t, e, &wasm.ImageOptions{Instances: 2})
		var wg sync.WaitGroup
		for i := range 6 {
			wg.Go(func() {
				what := byte([]int{slowReturns, slowSpins, slowGrows}[i%3])
				out, err := im.Run(context.Background(), &wasm.Call{
					Stdin: bytes.NewReader([]byte{what}), Limits: wasm.Limits{Fuel: 1_000_000},
				})
				if err != nil && !errors.Is(err, wasm.ErrClosed) || err == nil && out.Ended != wasm.Returned && out.Ended != wasm.OutOfFuel {
					t.Errorf("%+v, %v", out, err)
				}
			})
		}
		if round%2 == 0 {
			_ = im.Warm(context.Background(), 1)
		}
		im.Close()
		wg.Wait()
		if live, idle := im.Instances(); live != 0 || idle != 0 {
			t.Fatalf("%d instances live, %d idle", live, idle)
		}
	}
}

// TestImageClosedWhileStarting closes while a start-up that has no end is under way:
// it is not waited for until its own time is over.
func TestImageClosedWhileStarting(t *testing.T) {
	b := wasmtest.New()
	b.Memory(1)
	b.Command(wasmtest.Loop(wasmtest.Br(0)))
	e := open(t, nil)
	im := e.Image(&wasm.Program{Module: compile(t, e, b.Bytes()), Limits: wasm.Limits{Fuel: 1 << 60, Timeout: time.Minute}}, nil)
	refused := make(chan error, 1)
	go func() {
		_, err := im.Run(context.Background(), &wasm.Call{Limits: wasm.Limits{Timeout: time.Minute}})
		refused <- err
	}()
	for im.Starts() == 0 {
		time.Sleep(time.Millisecond) // polling; the run tells nobody that it waits
	}
	began := time.Now()
	im.Close()
	if d := time.Since(began); d > 10*time.Second {
		t.Errorf("Close took %v", d)
	}
	if err := <-refused; !errors.Is(err, wasm.ErrClosed) {
		t.Errorf("the run that waited: %v", err)
	}
}

// TestManyImages makes and closes images one after the other: nothing of them stays.
func TestManyImages(t *testing.T) {
	if !image.Supported {
		t.Skip("images hold nothing on this platform")
	}
	e := open(t, nil)
	m := compile(t, e, slow())
	one := func() {
		im := e.Image(&wasm.Program{Module: m}, nil)
		out, err := im.Run(context.Background(), &wasm.Call{Stdin: bytes.NewReader([]byte{slowReturns})})
		if err != nil || out.Ended != wasm.Returned {
			t.Fatalf("%+v, %v", out, err)
		}
		im.Close()
	}
	for range 10 {
		one()
	}
	before, maps := measure(), mappings()
	n := 500
	if raceDetector {
		n = 100
	}
	for range n {
		one()
	}
	before.back(t)
	if now := mappings(); now > maps+mayMappings {
		t.Errorf("%d mappings, %d before", now, maps)
	}
	if grown := measure().space - before.space; grown > 1<<30 {
		t.Errorf("the address space grew by %d MiB", grown>>20)
	}
}
