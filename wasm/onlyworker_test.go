package wasm_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"openskill/wasm"
	"openskill/wasm/wasmtest"
)

// TestOnlyAWorker holds testdata/only-a-worker.md to the truth: it lists exactly
// the cases that there are, and each does what it says of it.
func TestOnlyAWorker(t *testing.T) {
	text, err := os.ReadFile("testdata/only-a-worker.md")
	if err != nil {
		t.Fatal(err)
	}
	var listed, made []string
	for line := range strings.Lines(string(text)) {
		if name, ok := strings.CutPrefix(line, "## "); ok {
			listed = append(listed, strings.TrimSpace(name))
		}
	}
	cases := wasmtest.OnlyWorker()
	for _, c := range cases {
		made = append(made, c.Name)
	}
	if !slices.Equal(listed, made) {
		t.Errorf("listed %q, made %q", listed, made)
	}
	if testing.Short() {
		return
	}
	e := open(t, nil)
	for _, c := range cases {
		t.Run(c.Name, func(t *testing.T) {
			report, err := e.Check(c.Module, nil)
			if err != nil || !report.Accepted {
				// Then it belongs among the cases that one process survives.
				t.Fatalf("the checker refuses it: %v", err)
			}
			path := filepath.Join(t.TempDir(), "module.wasm")
			if err := os.WriteFile(path, c.Module, 0o600); err != nil {
				t.Fatal(err)
			}
			cmd := child(t, "compile", path)
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			ended := make(chan error, 1)
			go func() { ended <- cmd.Wait() }()
			select {
			case err := <-ended:
				t.Fatalf("it was compiled within a second: %v", err)
			case <-time.After(time.Second):
			}
			if err := cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			select {
			case err := <-ended:
				if err == nil {
					t.Error("it ended by itself")
				}
			case <-time.After(settle):
				t.Error("still there after it was killed")
			}
		})
	}
}

// compileFile compiles the module in a file, in a process that may be killed.
func compileFile(path string) error {
	b, err := os.ReadFile(path) //nolint:gosec // of the test's own
	if err != nil {
		return err
	}
	e, err := wasm.Open(nil)
	if err != nil {
		return err
	}
	defer e.Close() //nolint:errcheck // the process ends
	_, err = e.Compile(context.Background(), b, nil)
	return err
}
