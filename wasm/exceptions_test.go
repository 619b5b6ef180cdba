package wasm_test

import (
	"errors"
	"slices"
	"testing"

	"openskill/internal/musttest"
	"openskill/wasm"
	"openskill/wasm/binary"
	"openskill/wasm/check"
	w "openskill/wasm/wasmtest"
)

// withTag gives a module a tag that carries nothing, as tag 0.
func withTag(t *testing.T, b *w.Builder) []byte {
	t.Helper()
	typ := b.Type(nil, nil)
	m := musttest.Get(binary.Decode(b.Bytes(), nil))(t)
	m.Tags = []uint32{typ}
	return m.Encode()
}

const throwZero w.Code = "\x08\x00"

// catching is a block that body's exceptions leave.
func catching(body w.Code) w.Code { return w.Block("\x1f\x40\x01\x02\x00" + body + "\x0b") }

// TestExceptions runs modules of strangers that use exceptions: one that is
// caught is nothing special, and one that is not ends the run as a trap, also in
// the start function, behind which nothing may run.
func TestExceptions(t *testing.T) {
	e := open(t, &wasm.Options{CacheDir: t.TempDir()})
	module := func(start bool, body w.Code) []byte {
		b := w.New()
		exit := b.Import("proc_exit")
		b.Memory(1)
		throws := b.Void(throwZero)
		if start {
			b.Start(throws)
		}
		b.Command(catching(w.Call(throws)) + body + w.I32(3) + w.Call(exit))
		return withTag(t, b)
	}
	for name, c := range map[string]struct {
		module []byte
		ended  wasm.Ended
		trap   string
		code   uint32
	}{
		"caught":                {module(false, ""), wasm.Exited, "", 3},
		"uncaught":              {module(false, throwZero), wasm.Trapped, "uncaught exception", 0},
		"in the start function": {module(true, ""), wasm.Trapped, "uncaught exception", 0},
	} {
		t.Run(name, func(t *testing.T) {
			for range 2 { // the second time from the cache
				out := run(t, e, c.module, &wasm.Run{})
				if out.Ended != c.ended || out.Trap != c.trap || out.ExitCode != c.code {
					t.Errorf("%v, %q, %d; want %v, %q, %d", out.Ended, out.Trap, out.ExitCode, c.ended, c.trap, c.code)
				}
			}
			report, err := wasm.Check(c.module, nil)
			if err != nil || !report.Accepted || !slices.Contains(report.Features, string(binary.FeatureExceptions)) {
				t.Errorf("%+v, %v", report, err)
			}
		})
	}
}

// TestEndlessThrowing catches exceptions for ever: fuel ends it.
func TestEndlessThrowing(t *testing.T) {
	b := w.New()
	throws := b.Void(throwZero)
	b.Command(w.Loop(catching(w.Call(throws)) + w.Br(0)))
	out := run(t, open(t, nil), withTag(t, b), &wasm.Run{Limits: wasm.Limits{Fuel: 10_000_000}})
	if out.Ended != wasm.OutOfFuel {
		t.Errorf("%+v", out)
	}
}

// TestDeepThrow throws out of a recursion that is as deep as the stack allows.
func TestDeepThrow(t *testing.T) {
	b := w.New()
	at := b.Next()
	b.Func([]binary.ValType{binary.I32}, nil, nil, w.Get(0)+w.Eqz+w.If(throwZero)+w.Get(0)+w.I32(1)+w.Sub+w.Call(at))
	b.Command(w.Times(3, 0, catching(w.I32(100_000)+w.Call(at))))
	out := run(t, open(t, nil), withTag(t, b), &wasm.Run{})
	if out.Ended != wasm.Returned {
		t.Errorf("%+v", out)
	}
}

// TestRefusedExceptions asks for the verdict on exceptions that cannot be
// lowered: it is that of the check and of the compilation alike.
func TestRefusedExceptions(t *testing.T) {
	b := w.New()
	b.Command("")
	m := musttest.Get(binary.Decode(withTag(t, b), nil))(t)
	m.Tables = []binary.TableType{{Elem: binary.ExnRef}}
	report, err := wasm.Check(m.Encode(), nil)
	var v *check.Error
	if !errors.As(err, &v) || v.Code != check.FeatureDisabled || report.Accepted || report.Error == nil || report.Error.Message != v.Msg {
		t.Errorf("%+v, %v", report, err)
	}
	if _, err := open(t, nil).Compile(t.Context(), m.Encode(), nil); !errors.As(err, &v) || v.Code != check.FeatureDisabled {
		t.Errorf("compiled: %v", err)
	}
}
