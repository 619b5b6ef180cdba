// Package agentskills_test builds the examples of Agent Skills and runs them.
package agentskills_test

import (
	"bytes"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write what the examples print to testdata")

// Paths of this machine, digests and dates are no part of what an example shows.
var volatile = regexp.MustCompile(`time=\S+ |sha256:[0-9a-f]{64}`)

// TestExamples: every folder here is a program that runs, and prints what is in
// testdata.
func TestExamples(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds programs")
	}
	bin := t.TempDir()
	build := exec.Command("go", "build", "-o", bin, "./...")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	mains, err := filepath.Glob("*/main.go")
	if err != nil || len(mains) < 6 {
		t.Fatal(mains, err)
	}
	for _, m := range mains {
		name := filepath.Base(filepath.Dir(m))
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cmd := exec.Command(filepath.Join(bin, name), "skills/unit-converter")
			cmd.Dir = filepath.Join("..", "..")
			var stderr bytes.Buffer
			cmd.Stderr = &stderr
			out, err := cmd.Output()
			if err != nil {
				t.Fatalf("%v: %s", err, &stderr)
			}
			got := string(volatile.ReplaceAll(out, nil))
			golden := filepath.Join("testdata", name+".txt")
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o600); err != nil {
					t.Fatal(err)
				}
				return
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("(-%s +printed)\n%s", golden, diff)
			}
		})
	}
}
