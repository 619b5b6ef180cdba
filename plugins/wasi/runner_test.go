package wasi

import (
	"path/filepath"
	"testing"

	"openskill/plugins/runnertest"
	"openskill/sdk/skill"
	"openskill/wasm"
)

// engine is shared by the tests of a test, so that each module compiles once.
func engine(t testing.TB) *wasm.Engine {
	t.Helper()
	e, err := wasm.Open(&wasm.Options{CacheDir: filepath.Join(t.TempDir(), "cache")})
	if err != nil {
		t.Fatal(err)
	}
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
