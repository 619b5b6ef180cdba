package wasm_test

import (
	"testing"

	"openskill/wasm"
	w "openskill/wasm/wasmtest"
)

// TestConstantBeyondTwoGigabytes has a guest write to a constant address of 2^31 twice,
// the second time where the compiler knows that the address is inside the memory. It
// computes one of 4 GiB below then, and the process died, or worse. Such an address is
// inside no memory, however much was asked for.
func TestConstantBeyondTwoGigabytes(t *testing.T) {
	e := open(t, nil)
	limits := wasm.Limits{Memory: 1 << 32}
	twice := func(pages uint32, before w.Code) []byte {
		b := w.New()
		exit := b.Import("proc_exit")
		b.Memory(pages)
		nop := b.Void("")
		b.Command(before + w.I32(-1<<31) + w.Set(1) + w.Get(1) + w.I32(42) + w.Store + w.Call(nop) +
			w.Get(1) + w.Load + w.Call(exit))
		return b.Bytes()
	}
	grow := w.I32(1) + w.MemoryGrow + w.I32(-1) + w.Ne + w.If(w.Unreachable)
	for name, c := range map[string]struct {
		module []byte
		ended  wasm.Ended
		trap   string
	}{
		"from the start":     {twice(32769, ""), wasm.OutOfMemory, ""},
		"grown":              {twice(32768, grow), wasm.OutOfMemory, ""},
		"as much as may be":  {twice(32768, ""), wasm.Trapped, "out of bounds memory access"},
		"and in a small one": {twice(1, ""), wasm.Trapped, "out of bounds memory access"},
	} {
		if out := run(t, e, c.module, &wasm.Run{Limits: limits}); out.Ended != c.ended || out.Trap != c.trap {
			t.Errorf("%s: %v %q, want %v %q", name, out.Ended, out.Trap, c.ended, c.trap)
		}
	}
	canary(t, e)
}
