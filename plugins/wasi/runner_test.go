package wasi

import (
	"os"
	"path/filepath"
	"testing"

	"openskill/internal/musttest"
	"openskill/plugins/runnertest"
	"openskill/sdk/skill"
	"openskill/wasm"
)

// engine is shared by the tests of a test. What it compiles is kept in the state folder:
// the guests of these tests are built from the same sources every time, and the race
// detector makes compiling take ten times as long.
func engine(t testing.TB) *wasm.Engine {
	t.Helper()
	state := os.Getenv("OPENSKILL_STATE_DIR")
	if state == "" {
		state = filepath.Join("..", "..", ".openskill")
	}
	e := musttest.Get(wasm.Open(&wasm.Options{CacheDir: filepath.Join(state, "cache", "wasm")}))(t)
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Errorf("closing the engine: %v", err)
		}
	})
	return e
}

func TestRunner(t *testing.T) {
	e := engine(t)
	runnertest.Run(t, runnertest.Harness{
		New:     func(testing.TB) skill.Runner { return New(e, nil) },
		Write:   runnertest.GoWASI,
		Metered: true,
	})
}
