package python

import (
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"openskill/internal/musttest"
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

// engine is the one of all tests with a real runtime, which is compiled once a machine
// and loaded once.
var engine struct {
	once   sync.Once
	opened *wasm.Engine
	err    error
}

// TestMain closes the engine.
func TestMain(m *testing.M) {
	code := m.Run()
	if e := engine.opened; e != nil {
		if err := e.Close(); err != nil {
			panic(err)
		}
	}
	os.Exit(code)
}

// warm is an engine in whose memory the runtime is compiled.
func warm(t testing.TB) (*wasm.Engine, string) {
	t.Helper()
	state := stateDir(t)
	engine.once.Do(func() {
		engine.opened, engine.err = wasm.Open(&wasm.Options{CacheDir: filepath.Join(state, "cache", "wasm")})
	})
	if engine.err != nil {
		t.Fatal(engine.err)
	}
	r := New(engine.opened, &Options{StateDir: state})
	defer r.Close()
	musttest.Do(t, runnertest.Ready(t.Context(), r))
	return engine.opened, state
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
			musttest.Do(t, runnertest.Ready(t.Context(), r))
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
