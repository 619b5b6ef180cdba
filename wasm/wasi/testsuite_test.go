package wasi_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tetratelabs/wazero"

	"openskill/internal/musttest"
	"openskill/wasm/guestfs"
	"openskill/wasm/wasi"
)

// expectedFailures reads testdata/testsuite.md: test name to reason.
func expectedFailures(t *testing.T) map[string]string {
	t.Helper()
	data := musttest.Get(os.ReadFile("testdata/testsuite.md"))(t)
	out := map[string]string{}
	for line := range strings.Lines(string(data)) {
		if cells := strings.Split(line, "|"); len(cells) == 4 && !strings.HasPrefix(cells[1], "-") {
			out[strings.TrimSpace(cells[1])] = strings.TrimSpace(cells[2])
		}
	}
	delete(out, "test")
	return out
}

// TestWASITestsuite runs the programs of the official wasi-testsuite (branch
// prod/testsuite-base, with prebuilt modules), if OPENSKILL_TEST_WASI_SUITE names
// its folder. What fails must be in testdata/testsuite.md, and nothing else may be.
func TestWASITestsuite(t *testing.T) {
	dir := os.Getenv("OPENSKILL_TEST_WASI_SUITE")
	if dir == "" {
		t.Skip("OPENSKILL_TEST_WASI_SUITE is not set")
	}
	modules, err := filepath.Glob(filepath.Join(dir, "tests/*/testsuite/wasm32-wasip1/*.wasm"))
	if err != nil || len(modules) == 0 {
		t.Fatalf("%d modules, %v", len(modules), err)
	}
	expected := expectedFailures(t)
	passed := 0
	for _, path := range modules {
		name := strings.TrimSuffix(filepath.Base(path), ".wasm")
		problem := runSuiteModule(t, path)
		switch reason := expected[name]; {
		case problem == "" && reason == "":
			passed++
		case problem == "":
			t.Errorf("%s passes, but is listed as failing: %s", name, reason)
		case reason == "":
			t.Errorf("%s: %s", name, problem)
		}
	}
	t.Logf("%d of %d pass", passed, len(modules))
}

// runSuiteModule returns what went wrong, or nothing.
func runSuiteModule(t *testing.T, path string) (problem string) {
	t.Helper()
	var config struct {
		Root     string            `json:"root"`
		Args     []string          `json:"args"`
		Env      map[string]string `json:"env"`
		ExitCode uint32            `json:"exit_code"`
		Stdout   *string           `json:"stdout"`
	}
	if data, err := os.ReadFile(strings.TrimSuffix(path, ".wasm") + ".json"); err == nil {
		musttest.Do(t, json.Unmarshal(data, &config))
	} else if !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	binary := musttest.Get(os.ReadFile(path))(t)
	var out, errs bytes.Buffer
	cfg := wasi.Config{Args: append([]string{"test.wasm"}, config.Args...), Stdout: &out, Stderr: &errs}
	for k, v := range config.Env {
		cfg.Env = append(cfg.Env, k+"="+v)
	}
	if config.Root != "" {
		cfg.Root = scratchFrom(t, filepath.Join(filepath.Dir(path), config.Root))
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	r := newRuntime(t)
	defer r.Close(ctx)
	w := wasi.NewWorld(cfg)
	defer w.Close()
	mod, err := r.InstantiateWithConfig(wasi.WithWorld(ctx, w), binary, wazero.NewModuleConfig())
	if mod != nil {
		mod.Close(ctx)
	}
	code := uint32(0)
	if stop := w.Stopped(); stop != nil {
		code = stop.ExitCode
		if stop.Reason != wasi.ReasonExit {
			return stop.Error()
		}
	} else if err != nil {
		first, _, _ := strings.Cut(err.Error(), "\n")
		return first + ": " + errs.String()
	}
	switch {
	case code != config.ExitCode:
		return errs.String()
	case config.Stdout != nil && out.String() != *config.Stdout:
		return "stdout " + out.String()
	}
	return ""
}

// scratchFrom is writable memory with a copy of a host folder.
func scratchFrom(t *testing.T, dir string) *guestfs.Memory {
	t.Helper()
	m := guestfs.NewMemory(guestfs.Limits{})
	err := fs.WalkDir(os.DirFS(dir), ".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case path == ".":
			return nil
		case d.IsDir():
			if errno := m.Mkdir(path); errno != 0 {
				return errno
			}
			return nil
		}
		data, err := os.ReadFile(filepath.Join(dir, path))
		if err != nil {
			return err
		}
		return m.WriteFile(path, data)
	})
	musttest.Do(t, err)
	return m
}
