package wasm_test

import (
	"testing"

	"openskill/wasm"
	w "openskill/wasm/wasmtest"
)

// TestZeroBelowBits branches on a comparison that the compiler gets wrong by itself.
func TestZeroBelowBits(t *testing.T) {
	e := open(t, &wasm.Options{CacheDir: t.TempDir()})
	b := w.New()
	exit := b.Import("proc_exit")
	b.Memory(1)
	b.Command(w.I32(63) + w.Set(0) + w.I32(0) + w.Get(0) + w.Get(0) + w.And + w.LtU + w.If(w.I32(7)+w.Call(exit)))
	for range 2 { // the second comes from memory
		if out := run(t, e, b.Bytes(), &wasm.Run{}); out.Ended != wasm.Exited || out.ExitCode != 7 {
			t.Errorf("%v %d: 0 is not below 63", out.Ended, out.ExitCode)
		}
	}
}
