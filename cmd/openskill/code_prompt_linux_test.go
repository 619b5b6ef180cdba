package main

import (
	"os"
	"path/filepath"
	"testing"

	"openskill/internal/musttest"
)

// TestCodePrompt is a person at the prompt: entries find the variables of those before, Ctrl-C ends an entry or its run, and
// nothing that is typed is lost.
func TestCodePrompt(t *testing.T) {
	repo := musttest.Get(filepath.Abs("../.."))(t)
	if _, err := os.Stat(filepath.Join(repo, ".openskill", "runtimes", "slim", "python.wasm")); err != nil {
		t.Skip("the Python runtime is not installed: ", err)
	}
	p := sits(t, 100, []string{"OPENSKILL_STATE_DIR=" + filepath.Join(repo, ".openskill")}, "code")
	p.sees("\n>>>")
	does := func(line, then string) {
		t.Helper()
		p.types(line + "\r")
		p.sees(then)
	}
	does("x = 20", "\n>>>")
	does("def double(n):", "\n...")
	does("    return 2 * n", "\n...")
	does("", "\n>>>")
	does("double(x) + 1", "41\n>>>")
	does("y = [", "\n...")
	p.types("\x03")
	does("", "\n>>>")
	does("1 / 0", "ZeroDivisionError: division by zero\n>>>")
	p.types("\x04")
	p.leaves(0)
}
