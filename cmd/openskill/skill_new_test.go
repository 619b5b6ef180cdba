package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"openskill/host/app/hosttest"
	"openskill/internal/musttest"
)

// What skill new begins in a language that is compiled builds and passes as it is, and in
// another folder it is the same, byte for byte. Python compiled ahead is on docs/author-python.md,
// whose commands are run too: it takes a quarter of a minute of two processors.
func TestNewSkillsBuild(t *testing.T) {
	if testing.Short() {
		t.Skip("it compiles")
	}
	// The toolchains and caches of this checkout, so that nothing is fetched twice.
	state := musttest.Get(filepath.Abs(filepath.Join("..", "..", ".openskill")))(t)
	musttest.Do(t, os.MkdirAll(state, 0o700))
	run := func(t *testing.T, args ...string) (stdout string) {
		t.Helper()
		var out, errs bytes.Buffer
		if code := Run(t.Context(), args, strings.NewReader(""), &out, &errs); code != 0 {
			t.Fatalf("%s: exit code %d\n%s%s", strings.Join(args, " "), code, &out, &errs)
		}
		return out.String()
	}
	for language, needs := range map[string]string{"go": "go", "extism-go": "go", "rust": "cargo", "extism-rust": "cargo"} {
		t.Run(language, func(t *testing.T) {
			if _, err := exec.LookPath(needs); err != nil {
				t.Skipf("%s is not here: openskill skill build says how to get it", needs)
			}
			if needs == "go" {
				hosttest.NoRace(t)
			}
			var digest string
			for range 2 {
				dir := t.TempDir()
				run(t, "skill", "new", "hello", "--lang", language, "--in", dir)
				var built struct{ Digest string }
				musttest.Do(t, json.Unmarshal([]byte(run(t, "skill", "build", filepath.Join(dir, "hello"), "--json", "--state", state)), &built))
				if digest == "" {
					digest = built.Digest
					if got := run(t, "skill", "test", filepath.Join(dir, "hello"), "--state", t.TempDir()); !strings.Contains(got, "5 passed, 0 failed: hello 0.1.0 by wasm:") {
						t.Error(got)
					}
				}
				if digest != built.Digest || digest == "" {
					t.Errorf("digest %s, and %s in another folder", digest, built.Digest)
				}
			}
		})
	}
}

// What is no plug-in is not put in place of one.
func TestBuildOfNoPlugin(t *testing.T) {
	if testing.Short() {
		t.Skip("it compiles")
	}
	dir := t.TempDir()
	var out, errs bytes.Buffer
	if code := Run(t.Context(), []string{"skill", "new", "plug", "--lang", "extism-go", "--in", dir}, strings.NewReader(""), &out, &errs); code != 0 {
		t.Fatal(code, &errs)
	}
	main := filepath.Join(dir, "plug", "main.go")
	musttest.Do(t, os.WriteFile(main, []byte("package main\n\nfunc main() {}\n"), 0o600))
	errs.Reset()
	code := Run(t.Context(), []string{"skill", "build", filepath.Join(dir, "plug"), "--state", t.TempDir()}, strings.NewReader(""), &out, &errs)
	if code != 1 || !strings.Contains(errs.String(), "exports no function invoke") {
		t.Errorf("exit code %d, %s", code, &errs)
	}
	if _, err := os.Stat(filepath.Join(dir, "plug", "main.wasm")); err == nil {
		t.Error("it is in place")
	}
}
