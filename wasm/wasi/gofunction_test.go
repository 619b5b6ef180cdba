package wasi_test

import (
	"strings"
	"testing"

	"openskill/wasm/guestfs"
	"openskill/wasm/wasi"
)

// An embedder's own function in front of one of ours sees the same World.
func TestGoFunction(t *testing.T) {
	g := newGuest(t, wasi.Config{Stdin: strings.NewReader("through"), Root: guestfs.NewMemory(guestfs.Limits{})})
	if wasi.GoFunction("fd_none") != nil {
		t.Error("a function of no name")
	}
	ptr, n := g.iovs(atData, 20)
	stack := []uint64{0, ptr, n, atResult}
	wasi.GoFunction("fd_read").Call(g.ctx, g.mod, stack)
	if stack[0] != 0 || g.text(atData, g.u32(atResult)) != "through" {
		t.Errorf("errno %d, %q", stack[0], g.text(atData, g.u32(atResult)))
	}
	if !g.w.IsStdin(0) || g.w.IsStdin(1) || g.w.IsStdin(77) {
		t.Error("standard input is not where it is")
	}
	g.want(0, "fd_renumber", 3, 0)
	if g.w.IsStdin(0) {
		t.Error("a folder is standard input")
	}
}
