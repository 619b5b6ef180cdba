package wasm_test

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"openskill/internal/musttest"
	"openskill/wasm"
)

// TestCompilerVersion holds that compiled code is kept by the version of wazero and the digest
// of its edits, and that a binary of tests says the same of them as a program: make writes both.
func TestCompilerVersion(t *testing.T) {
	version := wasm.CompilerVersion()
	if len(wasm.CompilerEdits()) > 0 {
		work := musttest.Get(os.ReadFile(filepath.Join("..", "go.work")))(t)
		mod := musttest.Get(os.ReadFile(filepath.Join("..", "go.mod")))(t)
		_, wazero, _ := strings.Cut(string(mod), "github.com/tetratelabs/wazero ")
		if want := strings.Fields(wazero)[0] + "-" + filepath.Base(strings.TrimSpace(string(work))); version != want {
			t.Errorf("%q, want %q", version, want)
		}
	}
	if version == "unknown" {
		version = "dev" // wazero calls it so
	}
	dir := t.TempDir()
	open(t, &wasm.Options{CacheDir: dir})
	want := "wazero-" + version + "-" + runtime.GOARCH + "-" + runtime.GOOS
	if kept, err := os.ReadDir(filepath.Join(dir, "code")); err != nil || len(kept) != 1 || kept[0].Name() != want {
		t.Errorf("%v, %v, want %s", kept, err, want)
	}
}
