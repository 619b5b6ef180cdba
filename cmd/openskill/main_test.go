package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"openskill/host/app/config"
	"openskill/internal/musttest"
	"openskill/sdk/skill"
)

var flagLine = regexp.MustCompile(`--([a-z-]+) (\S+) +(\S+): `)

// Every command says what it does and shows an example; every setting has a flag
// of serve.
func TestHelpIsComplete(t *testing.T) {
	t.Parallel()
	root := (&cli{}).rootCommand()
	var walk func(*cobra.Command)
	walk = func(c *cobra.Command) {
		if c.Short == "" || !strings.Contains(c.Example, "openskill") {
			t.Errorf("%s: short %q, example %q", c.CommandPath(), c.Short, c.Example)
		}
		for _, m := range flagLine.FindAllStringSubmatch(c.LocalFlags().FlagUsages(), -1) {
			if m[2] == m[3] {
				t.Errorf("%s --%s: the help says %s twice", c.CommandPath(), m[1], m[2])
			}
		}
		for _, sub := range c.Commands() {
			walk(sub)
		}
	}
	walk(root)
	serve, _, err := root.Find([]string{"serve"})
	musttest.Do(t, err)
	for _, s := range config.Table() {
		if s.Flag == "" { // a secret, which is no flag
			continue
		}
		f := serve.Flags().Lookup(s.Flag)
		if f == nil || !strings.Contains(f.Usage, s.Env) {
			t.Errorf("serve has no flag --%s that names %s", s.Flag, s.Env)
		}
	}
}

// skillFolder is a folder with a skill that never ends.
func skillFolder(t *testing.T) string {
	t.Helper()
	folder := filepath.Join(t.TempDir(), "spin")
	musttest.Do(t, os.Mkdir(folder, 0o700))
	for name, text := range map[string]string{
		"skill.yaml": "id: spin\nversion: 0.1.0\ndescription: Never ends.\ntype: wasm\nruntime: wasi\nentry: spin.wasm\n",
		"spin.wasm":  string(named()["spin"]),
	} {
		musttest.Do(t, os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600))
	}
	return folder
}

// A command that is interrupted ends, also while it waits for input that never
// comes.
func TestInterrupted(t *testing.T) {
	t.Parallel()
	folder, state := skillFolder(t), t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for name, args := range map[string][]string{
		"a call":          {"run", folder, "--state", state},
		"reading input":   {"run", folder, "--state", state, "--input", "-"},
		"a module":        {"module", "run", filepath.Join(folder, "spin.wasm"), "--state", state},
		"a module, stats": {"module", "run", filepath.Join(folder, "spin.wasm"), "--state", state, "--stats"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			silent, never := io.Pipe()
			t.Cleanup(func() { _ = never.Close() })
			var stdout, stderr bytes.Buffer
			want := exitFailed
			if args[0] == "module" {
				want = exitEnded
			}
			if code := Run(ctx, args, silent, &stdout, &stderr); code != want {
				t.Errorf("exit code %d, want %d", code, want)
			}
			if name == "a call" {
				var r skill.Result
				if err := json.Unmarshal(stdout.Bytes(), &r); err != nil || r.Error == nil || r.Error.Code != skill.Cancelled {
					t.Errorf("%q, want CANCELLED", &stdout)
				}
			} else if text := stderr.String(); !strings.Contains(text, "interrupted") {
				t.Errorf("%q, want it to say that it was interrupted", text)
			}
		})
	}
}

// A broken standard output is the host's failure, whatever was to be printed.
func TestBrokenOutput(t *testing.T) {
	t.Parallel()
	folder := skillFolder(t)
	for _, args := range [][]string{
		{"version"},
		{"version", "--json"},
		{"skills", "list", folder},
		{"skills", "show", folder, "--json"},
		{"skills", "validate", folder},
		{"module", "check", filepath.Join(folder, "spin.wasm")},
	} {
		var stderr bytes.Buffer
		if code := Run(t.Context(), args, strings.NewReader(""), broken{}, &stderr); code != exitHost || stderr.Len() == 0 {
			t.Errorf("%v: exit code %d, %q; want %d and a reason", args, code, &stderr, exitHost)
		}
	}
}

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }
