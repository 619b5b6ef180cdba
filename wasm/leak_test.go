package wasm_test

import (
	"runtime"
	"testing"

	"openskill/wasm"
	"openskill/wasm/wasmtest"
)

// TestMemoryIsGivenBack runs modules that fail at every stage, and holds that no
// address space is left behind: a mapping of 256 MiB a run would soon be all.
func TestMemoryIsGivenBack(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the address space is read from /proc")
	}
	e := open(t, nil)
	for _, name := range []string{
		"E10 data beyond the memory", "E17 1 bytes at 0x10000 of 1 pages", "X02 take the name env", "E15 one fd_write with 32,768 vectors",
	} {
		c, ok := wasmtest.Find(name)
		if !ok {
			t.Fatalf("no case %s", name)
		}
		c.Limits = wasm.Limits{Memory: 256 << 20}
		hold(t, e, &c)
		before := measure()
		for range 100 {
			hold(t, e, &c)
		}
		before.back(t)
		if grown := measure().space - before.space; grown > 1<<30 {
			t.Errorf("%s: the address space grew by %d MiB in a hundred runs", name, grown>>20)
		}
	}
}
