package capability_test

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"openskill/host/capability"
	"openskill/host/pyast"
	"openskill/plugins/python"
	"openskill/plugins/python/runtimes"
	"openskill/wasm"
)

// shared is the runner of all tests: its runtime is compiled once a machine and loaded
// once.
var shared struct {
	once   sync.Once
	engine *wasm.Engine
	runner *python.Runner
	read   *pyast.Analyzer // on one folder, so that it is started once
	dir    string
	err    error
}

func TestMain(m *testing.M) {
	code := m.Run()
	if shared.engine != nil {
		if err := shared.runner.Close(); err != nil {
			panic(err)
		}
		if err := shared.engine.Close(); err != nil {
			panic(err)
		}
		if err := os.RemoveAll(shared.dir); err != nil {
			panic(err)
		}
	}
	os.Exit(code)
}

// cpython runs the real CPython; without one the test is skipped.
func cpython(t testing.TB) *python.Runner {
	t.Helper()
	state := os.Getenv("OPENSKILL_STATE_DIR")
	if state == "" {
		state = filepath.Join("..", "..", ".openskill")
	}
	if _, err := runtimes.New(state).For(nil, nil); err != nil {
		t.Skip("no Python runtime is installed; run make runtimes")
	}
	shared.once.Do(func() {
		if shared.engine, shared.err = wasm.Open(&wasm.Options{CacheDir: filepath.Join(state, "cache", "wasm")}); shared.err != nil {
			return
		}
		shared.runner = python.New(shared.engine, &python.Options{StateDir: state})
		if shared.err = shared.runner.Warm(context.Background()); shared.err != nil { //nolint:usetesting // it is for all tests
			return
		}
		if shared.dir, shared.err = os.MkdirTemp("", "capability-"); shared.err == nil { //nolint:usetesting // it is for all tests
			shared.read = pyast.New(pyast.Options{Runner: shared.runner, Dir: shared.dir})
		}
	})
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	return shared.runner
}

func analyzer(t testing.TB) *pyast.Analyzer {
	t.Helper()
	cpython(t)
	return shared.read
}

func maker(t testing.TB) *capability.Maker {
	t.Helper()
	return capability.New(capability.Options{Analyzer: analyzer(t), Tenant: "test"})
}
