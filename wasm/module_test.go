package wasm_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"testing/iotest"
	"time"

	"openskill/internal/musttest"
	"openskill/wasm"
	"openskill/wasm/wasmtest"
)

// exits is a module that exits with a code, and with some data to be heavy.
func exits(code int64) []byte {
	b := wasmtest.New()
	exit := b.Import("proc_exit")
	b.Memory(1)
	b.Data(0, fmt.Sprintf("%10000d", code))
	b.Command(wasmtest.I32(code) + wasmtest.Call(exit))
	return b.Bytes()
}

// TestDroppedModules runs more modules than fit, from handles that are kept: each
// run gives its own module's answer, whatever was dropped in between, also when
// not even one fits.
func TestDroppedModules(t *testing.T) {
	for _, resident := range []uint64{1, 50_000} {
		for _, dir := range []string{"", t.TempDir()} {
			e := open(t, &wasm.Options{Resident: resident, CacheDir: dir})
			var modules [8]*wasm.Module
			for i := range modules {
				modules[i] = compile(t, e, exits(int64(i)))
			}
			var wg sync.WaitGroup
			for worker := range 4 {
				wg.Go(func() {
					for i := range 40 {
						n := (i*7 + worker) % len(modules)
						m := modules[n]
						if i%2 == 0 {
							var err error
							if m, err = e.Compile(t.Context(), exits(int64(n)), nil); err != nil {
								t.Error(err)
								return
							}
						}
						out, err := m.Run(t.Context(), &wasm.Run{})
						if err != nil || out.Ended != wasm.Exited || out.ExitCode != uint32(n) {
							t.Errorf("module %d: %+v, %v", n, out, err)
							return
						}
					}
				})
			}
			wg.Wait()
		}
	}
}

// gate is an input that says when it is asked for, and waits to be let go.
type gate struct {
	asked, open chan struct{}
	once        sync.Once
}

func newGate() *gate { return &gate{asked: make(chan struct{}), open: make(chan struct{})} }

func (g *gate) Read([]byte) (int, error) {
	g.once.Do(func() { close(g.asked) })
	<-g.open
	return 0, errors.New("let go")
}

// reader is a module that reads once and exits with 9.
func reader() []byte {
	b := wasmtest.New()
	read := b.Import("fd_read")
	exit := b.Import("proc_exit")
	b.Memory(1)
	b.Data(0, "\x00\x01\x00\x00\x01\x00\x00\x00")
	b.Command(wasmtest.I32(0) + wasmtest.I32(0) + wasmtest.I32(1) + wasmtest.I32(64) + wasmtest.Call(read) + wasmtest.Drop +
		wasmtest.I32(9) + wasmtest.Call(exit))
	return b.Bytes()
}

// TestDroppedWhileItRuns drops a module in the middle of its run.
func TestDroppedWhileItRuns(t *testing.T) {
	e := open(t, &wasm.Options{Resident: 1})
	m := compile(t, e, reader())
	g := newGate()
	ended := make(chan *wasm.Outcome, 1)
	go func() {
		out, err := m.Run(context.Background(), &wasm.Run{Stdin: g})
		if err != nil {
			t.Error(err)
		}
		ended <- out
	}()
	<-g.asked
	for i := range 20 { // each pushes out what came before
		run(t, e, exits(int64(i)), &wasm.Run{})
	}
	close(g.open)
	if out := <-ended; out.Ended != wasm.Exited || out.ExitCode != 9 {
		t.Errorf("%+v", out)
	}
}

// TestCloseWaits closes an engine under a run, and holds that the run ends well
// and that everything after it is refused.
func TestCloseWaits(t *testing.T) {
	e := musttest.Get(wasm.Open(nil))(t)
	m := compile(t, e, reader())
	g := newGate()
	ended := make(chan struct{})
	go func() {
		out, err := m.Run(context.Background(), &wasm.Run{Stdin: g})
		if err != nil || out.Ended != wasm.Exited || out.ExitCode != 9 {
			t.Errorf("%+v, %v", out, err)
		}
		close(ended)
	}()
	<-g.asked
	closed := make(chan error, 1)
	go func() { closed <- e.Close() }()
	for { // until Close has begun
		if _, err := e.Compile(context.Background(), exits(1), nil); errors.Is(err, wasm.ErrClosed) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	select {
	case <-closed:
		t.Fatal("Close did not wait for the run")
	default:
	}
	close(g.open)
	<-ended
	if err := <-closed; err != nil {
		t.Errorf("close: %v", err)
	}
	if err := e.Close(); err != nil {
		t.Errorf("close again: %v", err)
	}
	if _, err := m.Run(context.Background(), &wasm.Run{}); !errors.Is(err, wasm.ErrClosed) {
		t.Errorf("run after close: %v", err)
	}
	if _, err := e.Compile(context.Background(), reader(), nil); !errors.Is(err, wasm.ErrClosed) {
		t.Errorf("compile after close, of a module that was in memory: %v", err)
	}
	if _, ok := e.Lookup(wasm.Digest(reader()), nil); ok {
		t.Error("a closed engine finds a module")
	}
}

// TestCloseWhileCompiling closes an engine in the middle of compilations: each
// gives a module or ErrClosed, and nothing is left running.
func TestCloseWhileCompiling(t *testing.T) {
	before := measure()
	for range 5 {
		e := musttest.Get(wasm.Open(nil))(t)
		var wg sync.WaitGroup
		for i := range 8 {
			wg.Go(func() {
				m, err := e.Compile(context.Background(), wasmtest.OneLine(100+i), nil)
				if err == nil {
					_, err = m.Run(context.Background(), &wasm.Run{Limits: wasm.Limits{Fuel: 1000}})
				}
				if err != nil && !errors.Is(err, wasm.ErrClosed) {
					t.Error(err)
				}
			})
		}
		if err := e.Close(); err != nil {
			t.Error(err)
		}
		wg.Wait()
	}
	before.back(t)
}

// TestCompileTogether asks for one module fifty times at once: all get the same,
// so it was compiled once.
func TestCompileTogether(t *testing.T) {
	e := open(t, nil)
	module := wasmtest.OneLine(500)
	var got [50]*wasm.Module
	var wg sync.WaitGroup
	for i := range got {
		wg.Go(func() {
			m, err := e.Compile(context.Background(), module, nil)
			if err != nil {
				t.Error(err)
			}
			got[i] = m
		})
	}
	wg.Wait()
	for _, m := range got {
		if m != got[0] {
			t.Fatal("compiled more than once")
		}
	}
	if m, ok := e.Lookup(wasm.Digest(module), nil); !ok || m != got[0] {
		t.Error("not found in memory")
	}
	trusted, err := e.Compile(context.Background(), module, &wasm.CompileOptions{Trusted: true})
	if err != nil || trusted == got[0] {
		t.Errorf("a trusted module shares the entry of a stranger's: %v", err)
	}
}

// TestCompileGivesUpWaiting cancels some of those who wait; the others get the
// module, and those that were cancelled can ask again.
func TestCompileGivesUpWaiting(t *testing.T) {
	e := open(t, &wasm.Options{Resident: 1})
	module := wasmtest.OneLine(1500)
	reason := errors.New("changed my mind")
	ctx, cancel := context.WithCancelCause(context.Background())
	var wg sync.WaitGroup
	for range 5 {
		wg.Go(func() {
			if _, err := e.Compile(ctx, module, nil); err != nil && !errors.Is(err, reason) {
				t.Errorf("cancelled: %v", err)
			}
		})
		wg.Go(func() {
			m, err := e.Compile(context.Background(), module, nil)
			if err != nil {
				t.Error(err)
				return
			}
			out, err := m.Run(context.Background(), &wasm.Run{Limits: wasm.Limits{Fuel: 1000}})
			if err != nil || out.Ended != wasm.OutOfFuel {
				t.Errorf("%+v, %v", out, err)
			}
		})
	}
	cancel(reason)
	wg.Wait()
	if _, err := e.Compile(ctx, module, nil); !errors.Is(err, reason) {
		t.Errorf("cancelled before: %v", err)
	}
	// A run that finds its module dropped waits for it no longer than its deadline.
	m := compile(t, e, module)
	run(t, e, exits(3), &wasm.Run{})
	out, err := m.Run(context.Background(), &wasm.Run{Limits: wasm.Limits{Timeout: time.Nanosecond}})
	if err != nil || out.Ended != wasm.OutOfTime {
		t.Errorf("%+v, %v", out, err)
	}
	out, err = m.Run(ctx, &wasm.Run{})
	if err != nil || out.Ended != wasm.Cancelled {
		t.Errorf("%+v, %v", out, err)
	}
}

// TestNoEntry runs modules that have nothing to run, or not what was asked for.
func TestNoEntry(t *testing.T) {
	e := open(t, nil)
	b := wasmtest.New()
	b.Export("other", b.Void(""))
	m := compile(t, e, b.Bytes())
	var none *wasm.NoEntryError
	if _, err := m.Run(context.Background(), &wasm.Run{}); !errors.As(err, &none) || none.Name != "_start" || none.Error() == "" {
		t.Errorf("%v", err)
	}
	if _, err := m.Run(context.Background(), &wasm.Run{Entry: "more"}); !errors.As(err, &none) || none.Name != "more" {
		t.Errorf("%v", err)
	}
	if out, err := m.Run(context.Background(), &wasm.Run{Entry: "other"}); err != nil || out.Ended != wasm.Returned {
		t.Errorf("%+v, %v", out, err)
	}
	if !m.Exports("other") || m.Exports("_start") {
		t.Error("Exports is wrong")
	}
}

// TestBrokenInput fails in the middle of standard input: the guest gets an error
// number, and the host does not fail.
func TestBrokenInput(t *testing.T) {
	out := run(t, open(t, nil), reader(), &wasm.Run{Stdin: iotest.ErrReader(errors.New("broken"))})
	if out.Ended != wasm.Exited || out.ExitCode != 9 {
		t.Errorf("%+v", out)
	}
}

// TestCompiledModulesAreSmall: a module that is loaded from compiled code does not hold the bytecode of its functions.
func TestCompiledModulesAreSmall(t *testing.T) {
	if len(wasm.CompilerEdits()) == 0 {
		t.Skip("wazero without edits keeps the bytecode")
	}
	b := wasmtest.New()
	b.Command("")
	const functions, size = 400, 10_000
	for range functions {
		b.Void(wasmtest.Repeat(size, "\x01")) // nop
	}
	module, dir := b.Bytes(), t.TempDir()
	held := func() uint64 {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	musttest.Get(open(t, &wasm.Options{CacheDir: dir}).Compile(t.Context(), module, nil))(t)
	e := open(t, &wasm.Options{CacheDir: dir, CompiledOnly: true})
	before := held()
	m := musttest.Get(e.Compile(t.Context(), module, nil))(t)
	after := held()
	runtime.KeepAlive(m)
	if grown := int64(after) - int64(before); grown > functions*size/4 {
		t.Errorf("%d bytes for a module of %d", grown, len(module))
	}
}

// manyExports exports one function under n names.
func manyExports(n int) []byte {
	b := wasmtest.New()
	b.Command("")
	for i := range n {
		b.Export(fmt.Sprint(i), 0)
	}
	return b.Bytes()
}
