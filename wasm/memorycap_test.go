package wasm_test

import (
	"fmt"
	"testing"

	"openskill/wasm"
	w "openskill/wasm/wasmtest"
)

// TestRefusesMemoryOver2GiB tries each way to a memory of more than 32,768 pages of
// 64 KiB: in a larger one the compiler takes constant addresses for negative ones, and
// the guest gets at what lies below its memory.
func TestRefusesMemoryOver2GiB(t *testing.T) {
	const most = 32_768
	// The guest grows by so many pages, and exits with 0 if it could.
	grown := func(begin uint32, by int64) []byte {
		b := w.New()
		exit := b.Import("proc_exit")
		b.Memory(begin)
		b.Command(w.I32(by) + w.MemoryGrow + w.I32(-1) + w.Eq + w.Call(exit))
		return b.Bytes()
	}
	e := open(t, &wasm.Options{CacheDir: t.TempDir()})
	slow := open(t, &wasm.Options{Interpreter: true})
	limits := wasm.Limits{Memory: 1 << 40}
	for _, c := range []struct {
		begin uint32
		by    int64
		code  int32
	}{
		{1, most - 1, 0},
		{1, most, 1},
		{0, most + 1, 1},
		{0, 65536, 1},
		{most / 2, most/2 + 1, 1},
		{most, 0, 0},
		{most, 1, 1},
	} {
		t.Run(fmt.Sprintf("%d and %d pages", c.begin, c.by), func(t *testing.T) {
			m := grown(c.begin, c.by)
			for _, e := range []*wasm.Engine{e, slow} {
				if e == slow && c.code == 0 {
					continue // it zeroes all of it
				}
				if out := run(t, e, m, &wasm.Run{Limits: limits}); out.Ended != wasm.Exited && c.code == 0 || out.Ended == wasm.Exited && int32(out.ExitCode) != c.code {
					t.Errorf("%v %d", out.Ended, out.ExitCode)
				}
			}
		})
	}
	t.Run("declared", func(t *testing.T) {
		for _, pages := range []uint32{most + 1, 65536} {
			if out := run(t, e, grown(pages, 0), &wasm.Run{Limits: limits}); out.Ended != wasm.OutOfMemory {
				t.Errorf("%d pages: %v", pages, out.Ended)
			}
		}
	})
	// What TestRefusesMemoryOver2GiB is about: the address is known to the compiler.
	t.Run("a constant address of 2 GiB", func(t *testing.T) {
		b := w.New()
		b.Memory(1)
		nothing := b.Func(nil, nil, nil, "")
		b.Command(w.I32(most-1) + w.MemoryGrow + w.Drop + w.I32(-1<<31) + w.Set(0) + w.Get(0) + w.Load + w.Drop + w.Call(nothing) + w.Get(0) + w.Load + w.Drop)
		if out := run(t, e, b.Bytes(), &wasm.Run{Limits: limits}); out.Ended != wasm.Trapped {
			t.Errorf("%v", out.Ended)
		}
	})
}
