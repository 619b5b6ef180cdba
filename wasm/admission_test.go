package wasm_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"openskill/internal/musttest"
	"openskill/wasm"
	"openskill/wasm/check"
	"openskill/wasm/image"
	"openskill/wasm/meter"
	"openskill/wasm/wasmtest"
)

// TestRefusedAndAnswered holds that what the checker refuses is refused the same
// with and without an engine, in memory and by the cache, and stays so.
func TestRefusedAndAnswered(t *testing.T) {
	e := open(t, &wasm.Options{CacheDir: t.TempDir()})
	for name, module := range map[string][]byte{
		"nothing": nil, "no module": []byte("#!/bin/sh"), "cut": exits(1)[:60], "W01": []byte("\x00asm\x01\x00\x00\x00\x02\x05\xff\xff\xff\xff\x0f"),
	} {
		var refused *check.Error
		report, err := e.Check(module, nil)
		if !errors.As(err, &refused) || report.Accepted || report.Error == nil {
			t.Errorf("%s: check gives %v", name, err)
		}
		for range 2 {
			if _, err := e.Compile(context.Background(), module, nil); !errors.As(err, &refused) || refused.Code != check.InvalidModule {
				t.Errorf("%s: compile gives %v", name, err)
			} else {
				clean(t, err.Error())
			}
		}
	}
	if report, err := e.Check(exits(1), nil); err != nil || !report.Accepted || report.Digest != wasm.Digest(exits(1)) {
		t.Errorf("%+v, %v", report, err)
	}
	module := manyExports(2000)
	if report, err := e.Check(module, &wasm.CompileOptions{Trusted: true}); err != nil || !report.Accepted {
		t.Errorf("%+v, %v", report, err)
	}
	canary(t, e)
}

// TestRoom holds that real programs stay at a third of what the compiler may spend
// on a stranger's module, so that the caps refuse none that is somewhat larger.
func TestRoom(t *testing.T) {
	oneGoroutine(t)
	programs := map[string]string{
		"CPython": filepath.Join("..", ".openskill", "runtimes", "python-3.12", "python.wasm"),
		"echo":    filepath.Join("..", "skills", "echo", "echo.wasm"),
	}
	for name, path := range programs {
		t.Run(name, func(t *testing.T) {
			b, err := os.ReadFile(path)
			if err != nil {
				t.Skip("make has not built it yet")
			}
			room(t, b)
		})
	}
	t.Run("net/http", func(t *testing.T) { room(t, goGuest(t, "testdata/nethttp")) })
}

func room(t *testing.T, module []byte) {
	t.Helper()
	report := musttest.Get(wasm.Check(module, nil))(t)
	found := 0
	for _, c := range report.Counts {
		if !strings.HasPrefix(c.Property, "estimated") {
			continue
		}
		found++
		t.Logf("%s: %d of %d", c.Property, c.Value, c.Cap)
		if 3*c.Value > c.Cap {
			t.Errorf("%s: %d, more than a third of %d", c.Property, c.Value, c.Cap)
		}
	}
	if found != 3 {
		t.Errorf("%d estimates in the report: %+v", found, report.Counts)
	}
}

// TestTraps holds the kind of each trap that a guest can bring about, in words of
// the host's own.
func TestTraps(t *testing.T) {
	type c = wasmtest.Code
	div := func(a, b int64) c { return wasmtest.I32(a) + wasmtest.I32(b) + "\x6d" + wasmtest.Drop }
	for name, o := range map[string]*wasm.Options{"compiler": nil, "interpreter": {Interpreter: true}} {
		e := open(t, o)
		for body, want := range map[c]string{
			wasmtest.Unreachable: "unreachable",
			div(1, 0):            "integer divide by zero",
			div(-1<<31, -1):      "integer overflow",
			wasmtest.I32(1<<16) + wasmtest.Load + wasmtest.Drop:                        "out of bounds memory access",
			wasmtest.I32(-1) + wasmtest.I32(0) + wasmtest.I32(2) + wasmtest.MemoryFill: "out of bounds memory access",
			wasmtest.I32(9) + wasmtest.TableGet(0) + wasmtest.Drop:                     "invalid table access",
			wasmtest.I32(1) + wasmtest.CallIndirect(0):                                 "invalid table access",
			wasmtest.I32(0) + wasmtest.I32(1) + wasmtest.I32(9) + "\xfc\x0e\x00\x00":   "invalid table access", // table.copy
			"\x43\x00\x00\xc0\x7f\xa8" + wasmtest.Drop:                                 "invalid conversion to integer",
		} {
			b := wasmtest.New()
			b.Memory(1)
			b.Table(2)
			b.Command(body)
			out := run(t, e, b.Bytes(), &wasm.Run{})
			if out.Ended != wasm.Trapped || out.Trap != want {
				t.Errorf("%s, %x: %v %q, want %q", name, string(body), out.Ended, out.Trap, want)
			}
		}
		canary(t, e)
	}
}

// TestSegmentsThatDoNotFit instantiates element segments beyond their table, with
// offsets of every kind: by the specification that traps, and wazero lets it pass.
func TestSegmentsThatDoNotFit(t *testing.T) {
	e := open(t, &wasm.Options{CacheDir: t.TempDir()})
	for offset, fits := range map[wasmtest.Code]bool{
		wasmtest.I32(0): true, wasmtest.I32(2): true, wasmtest.I32(3): false, wasmtest.I32(-1): false,
		wasmtest.I32(1) + wasmtest.I32(1) + wasmtest.Add: true, wasmtest.I32(2) + wasmtest.I32(2) + wasmtest.Mul: false,
		wasmtest.I32(9) + wasmtest.I32(7) + wasmtest.Sub: true, wasmtest.I32(1) + wasmtest.I32(2) + wasmtest.Sub: false,
	} {
		b := wasmtest.New()
		b.Table(3)
		b.Elem(0, offset, b.Command(""))
		for range 2 { // the second comes from memory
			out := run(t, e, b.Bytes(), &wasm.Run{})
			if fits && out.Ended != wasm.Returned || !fits && (out.Ended != wasm.Trapped || !strings.Contains(out.Trap, "table")) {
				t.Errorf("offset %x: %v %q", string(offset), out.Ended, out.Trap)
			}
		}
	}
}

// TestRefusesReservedExports holds that no module exports a name that the host looks for: by
// one that was its own it would set its fuel, or how much of it was touched.
func TestRefusesReservedExports(t *testing.T) {
	e := open(t, nil)
	for _, name := range []string{meter.ExportFuel, meter.ExportMain, meter.ExportStart, image.ExportTouched, image.GlobalName(0), meter.Reserved} {
		b := wasmtest.New()
		b.Memory(1)
		b.Export(name, b.Command(""))
		var refused *check.Error
		if _, err := e.Compile(context.Background(), b.Bytes(), nil); !errors.As(err, &refused) || refused.Code != check.InvalidModule {
			t.Errorf("an export %s: %v", name, err)
		}
	}
}
