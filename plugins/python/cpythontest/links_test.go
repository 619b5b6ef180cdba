package cpythontest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"openskill/internal/musttest"
)

// TestLinks has a script make, follow, move and remove symbolic links at random, here
// and on wasmtime with the same module: each call has the same answer, to the number
// and words of the error.
func TestLinks(t *testing.T) {
	python := os.Getenv("OPENSKILL_TEST_CPYTHON_WASMTIME")
	if python == "" {
		t.Skip("OPENSKILL_TEST_CPYTHON_WASMTIME names no Python that has wasmtime")
	}
	state := stateDir(t)
	none := t.TempDir()
	ours, theirs := newHere(t, state, none), newThere(t, python, state, none)
	text := musttest.Get(os.ReadFile(filepath.Join("testdata", "links.py")))(t)
	for _, folder := range []string{ours.skill, filepath.Join(theirs.root, "skill")} {
		musttest.Do(t, os.WriteFile(filepath.Join(folder, "links.py"), text, 0o600))
	}
	for _, seed := range []string{"1\n", "2\n", "3\n"} {
		there, stderr, said, err := theirs.script(t.Context(), "links.py", []byte(seed))
		musttest.Do(t, err)
		reply := musttest.Get(ours.script(t.Context(), "links.py", []byte(seed)))(t)
		if reply.Code != "" || reply.ExitCode != 0 || len(stderr) > 0 || strings.Count(string(there), "\n") < 4000 {
			t.Fatalf("here %s %s, exit code %d\n%s\nthere %s\n%s", reply.Code, reply.Message, reply.ExitCode, reply.Stderr, said, stderr)
		}
		if d := cmp.Diff(strings.Split(string(there), "\n"), strings.Split(string(reply.Stdout), "\n")); d != "" {
			t.Errorf("seed %q, on wasmtime and here:\n%.6000s", seed, d)
		}
	}
}
