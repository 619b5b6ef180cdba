package hosttest_test

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"openskill/host/app/hosttest"
	"openskill/internal/musttest"
)

func write(t *testing.T, text string, path ...string) {
	t.Helper()
	file := filepath.Join(path...)
	musttest.Write(t, file, text)
}

func there(path ...string) bool {
	_, err := os.Stat(filepath.Join(path...))
	return err == nil
}

// What one test had compiled of a runtime, or of the repository's skills, the next one
// finds: whole, and nothing of strangers' modules or of what was half made.
func TestRuntimesAreCompiledOnce(t *testing.T) {
	t.Setenv("OPENSKILL_STATE_DIR", "")
	root := t.TempDir()
	write(t, "module", root, ".openskill", "runtimes", "slim", "python.wasm")
	write(t, "ours", root, "skills", "echo", "echo.wasm")
	ours := fmt.Sprintf("%x", sha256.Sum256([]byte("ours")))
	first, second := t.TempDir(), t.TempDir()
	t.Run("first", func(t *testing.T) {
		hosttest.Runtimes(t, root, first)
		if !there(first, "runtimes", "slim", "python.wasm") || there(first, "modules", "v") {
			t.Error("a test begins with something else than the runtimes")
		}
		write(t, "code", first, "modules", "v", "aa-trusted", "code", "x")
		write(t, "{}", first, "modules", "v", "aa-trusted", "report.json")
		write(t, "{}", first, "modules", "v", "bb", "report.json")
		write(t, "{}", first, "modules", "v", ours, "report.json")
		write(t, "half", first, "modules", "v", "new-1", "code", "x")
		write(t, "half", first, "modules", "v", "cc-trusted", "code", "x")
	})
	hosttest.Runtimes(t, root, second)
	if b, err := os.ReadFile(filepath.Join(second, "modules", "v", "aa-trusted", "code", "x")); err != nil || string(b) != "code" {
		t.Errorf("%q, %v", b, err)
	}
	if !there(second, "modules", "v", ours, "report.json") {
		t.Error("a skill of the repository was not kept")
	}
	for _, name := range []string{"bb", "cc-trusted", "new-1"} {
		if there(second, "modules", "v", name) {
			t.Errorf("%s was kept", name)
		}
	}
}

func TestNothingInstalledIsNoFailure(t *testing.T) {
	t.Setenv("OPENSKILL_STATE_DIR", "")
	state := t.TempDir()
	hosttest.Runtimes(t, t.TempDir(), state)
	if there(state, "runtimes") {
		t.Error("runtimes out of nothing")
	}
}

// An operator may keep the runtimes elsewhere, and a link to them in the state folder:
// tests have them all the same, and are not left out as if there were none.
func TestLinkedRuntimes(t *testing.T) {
	t.Setenv("OPENSKILL_STATE_DIR", "")
	root, elsewhere, state := t.TempDir(), t.TempDir(), t.TempDir()
	write(t, "module", elsewhere, "slim", "python.wasm")
	write(t, "", root, ".openskill", "other")
	if err := os.Symlink(elsewhere, filepath.Join(root, ".openskill", "runtimes")); err != nil {
		t.Skipf("there are no links to be had here: %v", err)
	}
	hosttest.Runtimes(t, root, state)
	if !there(state, "runtimes", "slim", "python.wasm") {
		t.Error("runtimes behind a link were left out")
	}
}
