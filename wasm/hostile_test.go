package wasm_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/tetratelabs/wazero"

	"openskill/internal/musttest"
	"openskill/wasm"
	"openskill/wasm/check"
	"openskill/wasm/guard/guardtest"
	"openskill/wasm/wasmtest"
)

// slack is how much longer than its deadline a run may take here. The true
// number is a benchmark's; this one holds on a machine that does other work.
const slack = 5 * time.Second

// hasGuardPages says whether there are guard pages here.
var _, hasGuardPages = guardtest.Compiler(wazero.NewRuntimeConfigCompiler())

// asWorkers has an engine be as worker processes have it: with guard pages, where there are any.
// What runs in a host's own process has its accesses checked, as in the tests of the runners.
func asWorkers(o *wasm.Options) *wasm.Options {
	var own wasm.Options
	if o != nil {
		own = *o
	}
	own.GuardPages = !own.Interpreter && hasGuardPages
	return &own
}

func open(t testing.TB, o *wasm.Options) *wasm.Engine {
	t.Helper()
	e := musttest.Get(wasm.Open(asWorkers(o)))(t)
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return e
}

func compile(t testing.TB, e *wasm.Engine, module []byte) *wasm.Module {
	t.Helper()
	return musttest.Get(e.Compile(context.Background(), module, nil))(t)
}

// run compiles and runs; the host must not fail.
func run(t testing.TB, e *wasm.Engine, module []byte, r *wasm.Run) *wasm.Outcome {
	t.Helper()
	return musttest.Get(compile(t, e, module).Run(context.Background(), r))(t)
}

// canary is a guest that does right, for after the hostile ones.
func canary(t testing.TB, e *wasm.Engine) {
	t.Helper()
	b := wasmtest.New()
	write := b.Import("fd_write")
	b.Memory(1)
	b.Data(0, "\x08\x00\x00\x00\x06\x00\x00\x00canary")
	b.Command(wasmtest.I32(1) + wasmtest.I32(0) + wasmtest.I32(1) + wasmtest.I32(64) + wasmtest.Call(write) + wasmtest.Drop)
	out := run(t, e, b.Bytes(), &wasm.Run{})
	if out.Ended != wasm.Returned || string(out.Stdout) != "canary" {
		t.Errorf("the canary: %v %q %q", out.Ended, out.Trap, out.Stdout)
	}
}

// hold runs one case and compares all of what came of it.
func hold(t testing.TB, e *wasm.Engine, c *wasmtest.Case) *wasm.Outcome {
	t.Helper()
	m, err := e.Compile(context.Background(), c.Module, nil)
	var refused *check.Error
	if c.Refused != "" {
		if !errors.As(err, &refused) || refused.Code != c.Refused {
			t.Errorf("compile: %v, want %s", err, c.Refused)
			return nil
		}
		clean(t, err.Error())
		return nil
	}
	if err != nil {
		t.Errorf("compile: %v", err)
		return nil
	}
	r, done := c.Run()
	defer done()
	out, err := m.Run(context.Background(), r)
	if err != nil {
		t.Errorf("the host failed: %v", err)
		return nil
	}
	if out.Ended != c.Want || out.ExitCode != c.ExitCode || c.Trap != "" && out.Trap != c.Trap {
		t.Errorf("ended %v, exit %#x, trap %q; want %v, %#x, %q", out.Ended, out.ExitCode, out.Trap, c.Want, c.ExitCode, c.Trap)
	}
	if c.Stdout != "" && string(out.Stdout) != c.Stdout {
		t.Errorf("stdout %q, want %q", out.Stdout, c.Stdout)
	}
	timeout := c.Limits.Timeout
	if timeout == 0 {
		timeout = 15 * time.Second
	}
	if out.Total > timeout+slack {
		t.Errorf("took %v, deadline %v", out.Total, timeout)
	}
	clean(t, out.Trap)
	if most := int(max(c.Limits.Output, 1<<20)); len(out.Stdout) > most || len(out.Stderr) > most {
		t.Errorf("%d and %d bytes of output", len(out.Stdout), len(out.Stderr))
	}
	if limit := c.Limits.Memory; limit > 0 && out.MemoryPeak > limit {
		t.Errorf("%d bytes of memory", out.MemoryPeak)
	}
	return out
}

// clean holds that a message has nothing of the guest, nor of the host's inside.
func clean(t testing.TB, message string) {
	t.Helper()
	if len(message) > 512 {
		t.Errorf("a message of %d bytes", len(message))
	}
	if strings.ContainsFunc(message, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		t.Errorf("control characters in %q", message)
	}
	for _, word := range []string{"goroutine", "recovered by", "wazero", ".go:"} {
		if strings.Contains(message, word) {
			t.Errorf("%q in %q", word, message)
		}
	}
}

// TestHostile holds every case against the compiler and the interpreter. After
// each the same engine still works, and what it took is given back.
func TestHostile(t *testing.T) {
	oneGoroutine(t) // TestManyAtOnce has the same cases
	for name, o := range map[string]*wasm.Options{"compiler": nil, "interpreter": {Interpreter: true}} {
		t.Run(name, func(t *testing.T) {
			if o != nil && testing.Short() {
				t.Skip("the interpreter takes its time")
			}
			e := open(t, o)
			canary(t, e)
			cases := wasmtest.Hostile()
			for i := range cases {
				// Modules stay ready, so they are no part of what must be given back.
				if c := &cases[i]; c.Refused == "" {
					compile(t, e, c.Module)
				}
			}
			before := measure()
			for _, c := range cases {
				t.Run(c.Name, func(t *testing.T) {
					if o != nil && c.Compiled {
						t.Skip("not for the interpreter")
					}
					if o != nil && c.Limits.Fuel == wasmtest.Fuel {
						c.Limits.Fuel /= 20 // it is as much slower
					}
					out := hold(t, e, &c)
					if out != nil {
						t.Logf("run %v, fuel %d, peak %d", out.Total, out.Fuel, out.MemoryPeak)
					}
					canary(t, e)
				})
			}
			before.back(t)
		})
	}
}
