package wasm_test

import (
	"errors"
	"os"
	"strings"
	"testing"

	"openskill/internal/musttest"
	"openskill/wasm"
	"openskill/wasm/check"
	"openskill/wasm/wasmtest"
)

// TestOnlyAWorker holds testdata/only-a-worker.md to the truth: it lists no module.
func TestOnlyAWorker(t *testing.T) {
	text := musttest.Get(os.ReadFile("testdata/only-a-worker.md"))(t)
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "## ") {
			t.Errorf("listed, and no test holds what is said of it: %q", line)
		}
	}
}

// TestBombs holds that what the compiler would take minutes for is refused, with
// what is wrong and what to do. How long that takes, TestThreats measures.
func TestBombs(t *testing.T) {
	oneGoroutine(t)
	for _, c := range wasmtest.Bombs() {
		t.Run(c.Name, func(t *testing.T) {
			report, err := wasm.Check(c.Module, nil)
			var refused *check.Error
			if !errors.As(err, &refused) || refused.Code != c.Refused {
				t.Fatalf("%v: %+v", err, report.Counts)
			}
			if !strings.Contains(refused.Msg, "to compile, at most") || !strings.Contains(refused.Msg, "-Os") {
				t.Errorf("the message does not help: %s", refused.Msg)
			}
			clean(t, refused.Msg)
			t.Logf("%d bytes: %v", len(c.Module), err)
		})
	}
}
