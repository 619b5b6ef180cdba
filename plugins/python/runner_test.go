package python

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"openskill/plugins/python/runtimes"
	"openskill/plugins/runnertest"
	"openskill/sdk/skill"
	"openskill/wasm"
)

// stateDir is the state folder that has the runtime; without one the test is
// skipped.
func stateDir(t testing.TB) string {
	t.Helper()
	state := os.Getenv("OPENSKILL_STATE_DIR")
	if state == "" {
		state = filepath.Join("..", "..", ".openskill")
	}
	if _, err := runtimes.New(state).For(nil, nil); err != nil {
		t.Skip("no Python runtime is installed; run make runtimes")
	}
	return state
}

// warm is an engine in whose memory the runtime is compiled.
func warm(t testing.TB) (*wasm.Engine, string) {
	t.Helper()
	state := stateDir(t)
	// The state folder's own cache, so that the runtime is compiled once a
	// machine and not once a test.
	e, err := wasm.Open(&wasm.Options{CacheDir: filepath.Join(state, "cache", "wasm")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Errorf("closing the engine: %v", err)
		}
	})
	r := New(e, &Options{StateDir: state})
	defer r.Close() //nolint:errcheck // it has run nothing
	if err := r.Warm(t.Context()); err != nil {
		t.Fatal(err)
	}
	return e, state
}

func TestRunner(t *testing.T) {
	e, state := warm(t)
	skip := map[string]string{}
	if testing.Short() { // an interpreter for each of many calls
		for _, name := range []string{"concurrent", "leaks", "recursion", "timeout-spin", "scratch-cap"} {
			skip[name] = "takes seconds"
		}
	}
	runnertest.Run(t, runnertest.Harness{
		New: func(t testing.TB) skill.Runner {
			r := New(e, &Options{StateDir: state})
			if err := r.Warm(t.Context()); err != nil {
				t.Fatal(err)
			}
			return r
		},
		Write:   runnertest.Python,
		Skip:    skip,
		Metered: true,
		Limits:  skill.Limits{Memory: 64 << 20},
		Start:   2 * time.Second,
		Env:     []string{"TMPDIR", "HOME"},
	})
}
