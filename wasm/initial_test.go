package wasm_test

import (
	"os"
	"path/filepath"
	"testing"

	"openskill/internal/musttest"
	"openskill/wasm"
	w "openskill/wasm/wasmtest"
)

// TestSparseContent has a byte at the end of 64 MiB. It is there when the module runs,
// and takes no 64 MiB in the cache.
func TestSparseContent(t *testing.T) {
	for name, at := range map[string]int64{"one byte at the end of 64 MiB": 64<<20 - 1, "one byte at the end of 2 MiB": 2<<20 - 1} {
		dir := t.TempDir()
		e := open(t, &wasm.Options{CacheDir: dir})
		b := w.New()
		exit := b.Import("proc_exit")
		b.Memory(1024)
		b.Data(at, "\x2a")
		b.Command(w.I32(at) + w.Load8 + w.Call(exit))
		for range 2 { // the second comes from memory
			if out := run(t, e, b.Bytes(), &wasm.Run{}); out.Ended != wasm.Exited || out.ExitCode != 42 {
				t.Errorf("%s: %v %d", name, out.Ended, out.ExitCode)
			}
		}
		var size int64
		for _, path := range files(t, filepath.Join(dir, "metered")) {
			info := musttest.Get(os.Stat(path))(t)
			size += info.Size()
		}
		if size == 0 || size > 3<<20 {
			t.Errorf("%s: %d bytes in the cache", name, size)
		}
	}
}
