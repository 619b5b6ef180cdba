package wasi_test

import (
	"os"
	"testing"

	"openskill/internal/musttest"
	"openskill/wasm/wasi"
)

// However a run ends, no descriptor of the host stays open.
func TestNoDescriptorIsLeft(t *testing.T) {
	open := func() int {
		entries, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Skip(err)
		}
		return len(entries)
	}
	root, _ := worldRoot(t, dataFolder(t))
	g := newGuest(t, wasi.Config{Root: root})
	before := open()
	for range 3 {
		g.mustOpen("data/a.txt", 0, rightRead)
	}
	g.listDir(g.mustOpen("data/sub", oDirectory, 0), 4096)
	saved := g.w.Save()
	g.mustOpen("data/sub/b.txt", 0, rightRead)
	if got := open(); got != before+5 {
		t.Fatalf("%d descriptors are open, want 5", got-before)
	}
	g.want(0, "fd_close", 4) // kept for the saved state
	musttest.Do(t, g.w.Restore(saved, wasi.Config{}))
	if got := open(); got != before+4 {
		t.Errorf("%d descriptors after Restore, want 4", got-before)
	}
	if got := g.read(4, 10); got != "alpha" {
		t.Errorf("read %q", got)
	}
	g.want(0, "fd_renumber", 5, 6)
	g.wantStop(wasi.ReasonExit, "proc_exit", 0)
	if err := g.w.Close(); err != nil {
		t.Error(err)
	}
	if got := open(); got != before+4 {
		t.Errorf("%d descriptors belong to the saved state, want 4", got-before)
	}
	if err := saved.Release(); err != nil {
		t.Error(err)
	}
	if got := open(); got != before {
		t.Errorf("%d descriptors are left", got-before)
	}
}
