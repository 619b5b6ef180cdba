package javascript

import (
	"os"
	"path/filepath"
	"testing"

	"openskill/internal/musttest"
	"openskill/plugins/runnertest"
	"openskill/sdk/skill"
	"openskill/wasm"
)

// shared is one engine for all tests, so that the runtime is loaded once; it is compiled
// once a machine.
var shared *wasm.Engine

func TestMain(m *testing.M) {
	state := os.Getenv("OPENSKILL_STATE_DIR")
	if state == "" {
		state = filepath.Join("..", "..", ".openskill")
	}
	var err error
	if shared, err = wasm.Open(&wasm.Options{CacheDir: filepath.Join(state, "cache", "wasm")}); err != nil {
		panic(err)
	}
	code := m.Run()
	if err := shared.Close(); err != nil {
		panic(err)
	}
	os.Exit(code)
}

// warm is an engine in whose memory the runtime is compiled.
func warm(t testing.TB) *wasm.Engine {
	t.Helper()
	r := New(shared, nil)
	defer r.Close()
	musttest.Do(t, runnertest.Ready(t.Context(), r))
	return shared
}

func TestRunner(t *testing.T) {
	program := musttest.Get(os.ReadFile(filepath.Join("testdata", "conformance.js")))(t)
	e := warm(t)
	runnertest.Run(t, runnertest.Harness{
		New: func(testing.TB) skill.Runner { return New(e, nil) },
		Write: func(t testing.TB, dir string, _ runnertest.Program) string {
			t.Helper()
			musttest.Do(t, os.WriteFile(filepath.Join(dir, "main.js"), program, 0o600))
			return "main.js"
		},
		Metered: true,
	})
}
