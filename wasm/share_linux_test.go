package wasm_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"openskill/wasm"
	"openskill/wasm/wasmtest"
)

// TestSharedCode holds that an engine that compiles nothing runs the code of another
// one's pages, and that pages which are not the same are not taken.
func TestSharedCode(t *testing.T) {
	wasm.LowerShareFrom(t, 1)
	dir := t.TempDir()
	module := wasmtest.OneLine(2000)
	maker, err := wasm.Open(&wasm.Options{CacheDir: dir, ShareCode: true})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := maker.Compile(t.Context(), module, nil); err != nil {
		t.Fatal(err)
	}
	if err := maker.Close(); err != nil {
		t.Fatal(err)
	}
	pages, _ := filepath.Glob(filepath.Join(dir, "pages", "*"))
	if len(pages) != 1 {
		t.Fatalf("left for others: %q", pages)
	}
	for _, c := range []struct {
		name  string
		spoil func()
		taken bool
	}{
		{"the same", func() {}, true},
		{"other bytes", func() {
			b, err := os.ReadFile(pages[0])
			if err != nil {
				t.Fatal(err)
			}
			for i := 0; i < len(b); i += 1000 {
				b[i] ^= 1
			}
			if err := os.WriteFile(pages[0], b, 0o600); err != nil {
				t.Fatal(err)
			}
		}, false},
		{"cut off", func() {
			if err := os.Truncate(pages[0], 10); err != nil {
				t.Fatal(err)
			}
		}, false},
		{"gone", func() { _ = os.Remove(pages[0]) }, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.spoil()
			own := filepath.Join(t.TempDir(), "cache") // what another one mapped goes when Go's collector says so
			if err := os.CopyFS(own, os.DirFS(dir)); err != nil {
				t.Fatal(err)
			}
			e, err := wasm.Open(&wasm.Options{CacheDir: own, ShareCode: true, CompiledOnly: true})
			if err != nil {
				t.Fatal(err)
			}
			defer e.Close()
			m, err := e.Compile(t.Context(), module, nil)
			if err != nil {
				t.Fatal(err)
			}
			maps, err := os.ReadFile("/proc/self/maps")
			if err != nil {
				t.Fatal(err)
			}
			if taken := strings.Contains(string(maps), filepath.Join(own, "pages")); taken != c.taken {
				t.Errorf("taken: %t", taken)
			}
			out, err := m.Run(t.Context(), &wasm.Run{})
			if err != nil || out.Ended != wasm.Returned {
				t.Errorf("%+v, %v", out, err)
			}
		})
	}
}
