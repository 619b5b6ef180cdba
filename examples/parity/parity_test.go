// Package parity holds what openskill skills check and parity print of the skills
// beside it: the tables are files that a person can read.
package parity

import (
	"bytes"
	"errors"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"openskill/host/app/hosttest"
)

var update = flag.Bool("update", false, "write the tables anew")

var (
	spaces = regexp.MustCompile(`[ \t]+`)
	times  = regexp.MustCompile(`\b\d+ ms\b`)
	sizes  = regexp.MustCompile(`\b\d+ B\b`) // of what has a time in it
	python = regexp.MustCompile(`Python 3\.[0-9.]+[a-z0-9]*`)
)

// plain takes out of a table what differs from run to run: times, and so the width of
// columns.
func plain(b []byte) string {
	var out strings.Builder
	for line := range strings.Lines(string(b)) {
		line = times.ReplaceAllString(strings.TrimSpace(line), "… ms")
		line = sizes.ReplaceAllString(line, "… B")
		line = python.ReplaceAllString(line, "Python 3")
		out.WriteString(spaces.ReplaceAllString(line, " ") + "\n")
	}
	return out.String()
}

func TestTables(t *testing.T) {
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	state := t.TempDir()
	hosttest.Runtimes(t, root, state)
	if _, err := os.Stat(filepath.Join(state, "runtimes", "slim", "python.wasm")); err != nil {
		t.Skip("slim Python is not installed: openskill runtime install slim")
	}
	binary := hosttest.Program(t, root)
	tests := []struct {
		file string
		args []string
		exit int
	}{
		{"check.txt", []string{"skills", "check", "."}, 1},
		{"check-quiet.txt", []string{"skills", "check", "--quiet", "csv-report", "word-stats"}, 0},
		{"word-stats.txt", []string{"skills", "parity", "word-stats", "--cases", "word-stats.cases.yaml"}, 0},
		{"csv-report.txt", []string{"skills", "parity", "csv-report", "--cases", "csv-report.cases.yaml"}, 0},
		{"programs.txt", []string{"skills", "parity", "programs", "--cases", "programs.cases.yaml"}, 0},
		{"needs-more.txt", []string{"skills", "parity", "needs-more", "--cases", "needs-more.cases.yaml"}, 0},
	}
	for _, test := range tests {
		t.Run(strings.TrimSuffix(test.file, ".txt"), func(t *testing.T) {
			if _, err := exec.LookPath("python3"); err != nil && test.args[1] == "parity" {
				t.Skip("there is no python3 to compare with")
			}
			cmd := exec.CommandContext(t.Context(), binary, test.args...)
			cmd.Env = append(os.Environ(), "OPENSKILL_STATE_DIR="+state)
			var stdout, stderr bytes.Buffer
			cmd.Stdout, cmd.Stderr = &stdout, &stderr
			err := cmd.Run()
			var ended *exec.ExitError
			if err != nil && !errors.As(err, &ended) || cmd.ProcessState.ExitCode() != test.exit {
				t.Fatalf("%v\n%s%s", err, stdout.Bytes(), stderr.Bytes())
			}
			got := plain(stdout.Bytes())
			path := filepath.Join("testdata", test.file)
			if *update {
				if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(string(want), got); d != "" {
				t.Error(d)
			}
		})
	}
}
