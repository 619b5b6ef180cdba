package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"openskill/cmd/openskill/internal/capability"
	"openskill/host/app/hosttest"
	"openskill/internal/musttest"
	"openskill/plugins/python/runtimes"
)

// pythonState is a state folder with the runtimes of this machine, and what earlier tests
// compiled of them; without one the test is skipped.
func pythonState(t *testing.T) string {
	t.Helper()
	state := t.TempDir()
	hosttest.Runtimes(t, filepath.Join("..", ".."), state)
	if _, err := runtimes.New(state).For(nil, nil); err != nil {
		t.Skip("no Python runtime is installed; run make runtimes")
	}
	cache := musttest.Get(filepath.Abs(filepath.Join("..", "..", ".openskill", "cache", "wasm")))(t)
	musttest.Do(t, os.MkdirAll(cache, 0o700))
	musttest.Do(t, os.Symlink(cache, filepath.Join(state, "cache")))
	return state
}

// A registry of capabilities is imported, shown as tools, and called, each by the command
// for it.
func TestCapabilityImport(t *testing.T) {
	t.Parallel()
	state, out := pythonState(t), t.TempDir()
	run := func(code int, args ...string) (string, string) {
		t.Helper()
		var stdout, stderr bytes.Buffer
		if got := Run(t.Context(), args, strings.NewReader(""), &stdout, &stderr); got != code {
			t.Fatalf("%v: exit code %d, want %d\n%s%s", args, got, code, &stdout, &stderr)
		}
		return stdout.String(), stderr.String()
	}
	registry := filepath.Join("..", "..", "examples", "capabilities", "capability_registry.json")
	text, _ := run(0, "capability", "import", registry, "--out", out, "--state", state, "--json")
	var all struct {
		Skills []struct {
			ID     string          `json:"id"`
			Folder string          `json:"folder"`
			Input  json.RawMessage `json:"input_schema"`
		} `json:"skills"`
		Problems []capability.Problem `json:"problems"`
	}
	if err := json.Unmarshal([]byte(text), &all); err != nil || len(all.Skills) != 3 || len(all.Problems) != 0 || all.Skills[0].Folder != filepath.Join(out, "add_numbers") {
		t.Fatalf("%v: %s", err, text)
	}
	if text, _ := run(0, "tools", "--skills", out, "--json"); !strings.Contains(text, `"name":"invoice_total"`) || !strings.Contains(text, "第一个数字") {
		t.Errorf("%s", text)
	}
	run(0, "skills", "validate", out)
	// What was made is made anew, and one alone may be.
	if text, _ := run(0, "capability", "import", registry, "--function", "word_counts", "--out", out, "--state", state); !strings.Contains(text, "word_counts") || strings.Contains(text, "add_numbers") {
		t.Errorf("%s", text)
	}
	if text, _ := run(0, "capability", "show", filepath.Join(filepath.Dir(registry), "code", "invoices.py"), "--state", state); !strings.Contains(text, `"format": "date"`) {
		t.Errorf("%s", text)
	}
	script := filepath.Join(t.TempDir(), "convert.py")
	musttest.Do(t, os.WriteFile(script, []byte("import argparse\np = argparse.ArgumentParser()\np.add_argument('--value', type=float, required=True)\n"), 0o600))
	want := `{"description":"","input_schema":{"type":"object","properties":{"value":{"type":"number"}},"required":["value"],"additionalProperties":false}}` + "\n"
	if text, _ := run(0, "capability", "show", script, "--arguments", "--state", state, "--json"); text != want {
		t.Errorf("%s; want %s", text, want)
	}
	run(2, "capability", "show", script, "--arguments", "--function", "f", "--state", state)
	run(2, "capability", "show", filepath.Join(out, "nope.py"), "--arguments", "--state", state)
	// What is wrong is told, with the exit code for it.
	bad := filepath.Join(t.TempDir(), "bad.py")
	musttest.Do(t, os.WriteFile(bad, []byte("def f(callback: print): ...\n"), 0o600))
	if _, said := run(1, "capability", "show", bad, "--state", state); !strings.Contains(said, "bad.py:1: the parameter callback of f cannot be given") {
		t.Errorf("%s", said)
	}
	if _, said := run(2, "capability", "show", filepath.Join(out, "nope.py"), "--state", state); !strings.Contains(said, "file not found") {
		t.Errorf("%s", said)
	}
	if _, said := run(1, "capability", "import", registry, "--function", "nope", "--out", out, "--state", state); !strings.Contains(said, "capability not found: nope") {
		t.Errorf("%s", said)
	}
	musttest.Do(t, os.WriteFile(filepath.Join(out, "word_counts", "skill.yaml"), []byte("# by hand"), 0o600))
	if _, said := run(1, "capability", "import", registry, "--function", "word_counts", "--out", out, "--state", state); !strings.Contains(said, "was not generated") {
		t.Errorf("%s", said)
	}
}
