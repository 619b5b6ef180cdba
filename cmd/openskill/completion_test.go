package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"openskill/internal/musttest"
)

// Every command that people see has a manual page with its example.
func TestManPages(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var stderr bytes.Buffer
	if code := Run(t.Context(), []string{"man", dir}, strings.NewReader(""), &stderr, &stderr); code != 0 {
		t.Fatalf("exit code %d: %s", code, &stderr)
	}
	pages := 0
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		if c.Hidden {
			return
		}
		for _, sub := range c.Commands() {
			walk(sub)
		}
		name := strings.ReplaceAll(c.CommandPath(), " ", "-") + ".1"
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			if c.Name() != "help" { // which no page is about
				t.Error(err)
			}
			return
		}
		pages++
		if !bytes.Contains(b, []byte(".SH EXAMPLE")) || !bytes.HasPrefix(b, []byte(".nh\n.TH")) {
			t.Errorf("%s has no example, or is no page", name)
		}
	}
	walk((&cli{}).rootCommand())
	if pages < 30 {
		t.Errorf("%d pages", pages)
	}
	if code := Run(t.Context(), []string{"man", filepath.Join(dir, "nowhere")}, strings.NewReader(""), &stderr, &stderr); code != exitHost {
		t.Errorf("a folder that is not there: exit code %d", code)
	}
}

// Shells take the scripts that are made for them, and skills are completed by their ids.
func TestCompletion(t *testing.T) {
	t.Parallel()
	for shell, check := range map[string][]string{"bash": {"bash", "-n"}, "zsh": {"zsh", "-n"}, "fish": {"fish", "-n"}, "powershell": nil} {
		var stdout, stderr bytes.Buffer
		if code := Run(t.Context(), []string{"completion", shell}, strings.NewReader(""), &stdout, &stderr); code != 0 || !strings.Contains(stdout.String(), "openskill") {
			t.Errorf("%s: exit code %d: %s", shell, code, &stderr)
		}
		if check == nil {
			continue // there is no way to check one without running it
		}
		if _, err := exec.LookPath(check[0]); err != nil {
			continue // its own test is that of cobra
		}
		file := filepath.Join(t.TempDir(), "script")
		musttest.Do(t, os.WriteFile(file, stdout.Bytes(), 0o600))
		if out, err := exec.Command(check[0], check[1], file).CombinedOutput(); err != nil {
			t.Errorf("%s: %v: %s", shell, err, out)
		}
	}
	skills := filepath.Dir(skillFolder(t))
	for typed, want := range map[string]bool{"s": true, "q": false} {
		var stdout, stderr bytes.Buffer
		if code := Run(t.Context(), []string{"__complete", "run", "--skills", skills, typed}, strings.NewReader(""), &stdout, &stderr); code != 0 {
			t.Errorf("exit code %d: %s", code, &stderr)
		}
		if got := strings.HasPrefix(stdout.String(), "spin\n"); got != want {
			t.Errorf("%q is completed to %q", typed, &stdout)
		}
	}
	var stderr bytes.Buffer
	if code := Run(t.Context(), []string{"completion", "tcsh"}, strings.NewReader(""), &stderr, &stderr); code != exitUsage {
		t.Errorf("an unknown shell: exit code %d", code)
	}
}
