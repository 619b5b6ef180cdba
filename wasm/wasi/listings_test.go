package wasi_test

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"openskill/internal/musttest"
	"openskill/wasm/wasi"
)

// TestListingsAreFew: the entries of directories that a guest has open are the host's memory,
// which no limit of the guest counts. A directory whose entries were dropped is read on.
func TestListingsAreFew(t *testing.T) {
	dir := t.TempDir()
	for i := range 900 {
		musttest.Do(t, os.WriteFile(filepath.Join(dir, fmt.Sprintf("%03d%s", i, strings.Repeat("x", 240))), nil, 0o600))
	}
	root, _ := worldRoot(t, dir)
	g := newGuest(t, wasi.Config{Root: root})
	held := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := held()
	first := g.mustOpen("data", oDirectory, 0)
	g.want(0, "fd_readdir", first, atData, 600, 0, atResult)
	for range 100 {
		g.want(0, "fd_readdir", g.mustOpen("data", oDirectory, 0), atData, 600, 0, atResult)
	}
	if after := held(); after > before+8<<20 {
		t.Errorf("the host keeps %d KiB more", (after-before)>>10)
	}
	g.want(0, "fd_readdir", first, atData, 600, 4, atResult) // the third name, behind the dots
	if got := g.text(atData+24, 3); got != "002" {
		t.Errorf("behind cookie 4 is %q", got)
	}
}
