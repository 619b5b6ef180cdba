package pysource_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"openskill/host/pysource"
	"openskill/internal/musttest"
	"openskill/sdk/skill"
)

func analyze(t *testing.T, a *pysource.Analyzer, source string) *pysource.Module {
	t.Helper()
	return musttest.Get(a.Analyze(t.Context(), "test", []byte(source)))(t)
}

func TestModule(t *testing.T) {
	m := analyze(t, analyzer(t), `"""About."""
import subprocess as sp, sys, os.path
from typing import Optional, TYPE_CHECKING
from . import near
try:
    import numpy as np
except ImportError:
    np = None
if TYPE_CHECKING:
    import pandas

@sp.decorate
async def f(x: Optional["int"], /, y: list[str] = ["a"], *rest: int, z: float = -1.5, **more) -> dict[str, int]:
    import json
    sp.run(["ls", x], "a" "b", "c" + "d", env={}, cwd="/")
    for line in sys.stdin:
        yield line

class A(Exception):
    def m(self): open("/etc/passwd")

if __name__ == "__main__":
    input()
`)
	if m.Problem != nil {
		t.Fatal(m.Problem)
	}
	var got []string
	for _, i := range m.Imports {
		got = append(got, fmt.Sprintf("%d %s as %q level %d optional %v function %v checking %v", i.Line, i.Module, i.As, i.Level, i.Optional, i.Function, i.TypeChecking))
	}
	want := []string{
		`2 subprocess as "sp" level 0 optional false function false checking false`,
		`2 sys as "" level 0 optional false function false checking false`,
		`2 os.path as "" level 0 optional false function false checking false`,
		`3 typing as "" level 0 optional false function false checking false`,
		`4  as "" level 1 optional false function false checking false`,
		`6 numpy as "np" level 0 optional true function false checking false`,
		`10 pandas as "" level 0 optional false function false checking true`,
		`14 json as "" level 0 optional false function true checking false`,
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	got = nil
	for _, u := range m.Uses {
		got = append(got, fmt.Sprintf("%d %s in %q call %v %q %q", u.Line, u.Name, u.Function, u.Call, u.Args, u.Keywords))
	}
	want = []string{
		`12 subprocess.decorate in "" call false [] map[]`,
		`15 subprocess.run in "f" call true ["" "ab" "cd"] map["cwd":"/" "env":""]`,
		`16 sys.stdin in "f" call false [] map[]`,
		`20 open in "A.m" call true ["/etc/passwd"] map[]`,
		`23 input in "" call true [] map[]`,
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if !m.Main || m.Cut {
		t.Errorf("main %v, cut %v", m.Main, m.Cut)
	}
}

// What cannot be read says why, and the next program is read as if nothing had been.
func TestHostileSources(t *testing.T) {
	a := analyzer(t)
	deep := func(open, end string, n int) string { return strings.Repeat(open, n) + "1" + strings.Repeat(end, n) }
	for name, c := range map[string]struct {
		source string
		kind   string // of the problem; "" for none, refused for an error, any for whichever
		line   int
	}{
		"empty":                   {"", "", 0},
		"syntax error":            {"x = 1\ny = = 2\n", "syntax", 2},
		"null byte":               {"x = 1\n\x00", "syntax", 0},
		"not UTF-8":               {"x = '\xff'", "encoding", 1},
		"an encoding of its own":  {"# -*- coding: latin-1 -*-\nx = '\xe4'", "", 0},
		"an unknown encoding":     {"# -*- coding: klingon -*-\n", "encoding", 1},
		"an encoding of no text":  {"# -*- coding: base64 -*-\nAAAA", "encoding", 1},
		"byte order mark":         {"\xef\xbb\xbfx = 1", "", 0},
		"Windows line ends":       {"def f():\r\n    '''a\r\n    b'''\r\n", "", 0},
		"200 brackets":            {deep("(", ")", 200), "any", 0},
		"100,000 brackets":        {deep("[", "]", 100_000), "any", 0},
		"100,000 minuses":         {strings.Repeat("-", 100_000) + "1", "any", 0},
		"100,000 additions":       {"x = 1" + strings.Repeat("+1", 100_000), "any", 0},
		"100,000 attributes":      {"x" + strings.Repeat(".a", 100_000), "any", 0},
		"50,000 types in a union": {"def f(x: int" + strings.Repeat("|int", 50_000) + "): pass", "any", 0},
		"20,000 elifs":            {"if a: pass\n" + strings.Repeat("elif a: pass\n", 20_000), "any", 0},
		"99 functions deep":       {nested(99), "any", 0},
		"a literal of 1 MB":       {"x = '" + strings.Repeat("a", 1_000_000) + "'", "", 0},
		"a number of 10,000":      {"def f(x=" + strings.Repeat("9", 10_000) + "): pass", "syntax", 1},
		"a number in hexadecimal": {"def f(x=0x" + strings.Repeat("f", 100_000) + ", y=1e999): pass", "", 0},
		"half a surrogate pair":   {"def f(x='\\ud800'):\n    '\\udfff'", "", 0},
		"a hint in a hint":        {"def f(x: \"'\\\"int\\\"'\"): pass", "", 0},
		"a hint that is no type":  {"def f(x: 'a b c', y: '" + strings.Repeat("[", 1000) + "'): pass", "", 0},
		"escapes that are wrong":  {"x = '\\d'", "", 0},
		"too large":               {strings.Repeat("#", pysource.MaxSource+1), "refused", 0},
		"imports of everything":   {strings.Repeat("import a.b.c as d\n", 20_000), "", 0},
		"a name of 100 KB":        {"import " + strings.Repeat("a", 100_000) + " as x\ndef f(" + strings.Repeat("p: x = x, ", 0) + "): return x" + strings.Repeat(" + x.y(x)", 3000), "any", 0},
		"a table of 60,000":       {"TABLE = {" + strings.Repeat("'k': [1, -2, f(3)], ", 20_000) + "}", "any", 0},
		"its own text":            {scanText(t), "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			function := ""
			m, err := a.Ask(t.Context(), "test", []byte(c.source), pysource.Question{Uses: true, Function: &function, CommandLine: true})
			var e *skill.Error
			switch {
			case c.kind == "refused" || c.kind == "any" && err != nil:
				if !errors.As(err, &e) || e.Code != skill.InvalidArgument || e.Message == "" {
					t.Errorf("%v; want INVALID_ARGUMENT", err)
				}
			case err != nil:
				t.Fatal(err)
			case c.kind == "any":
			case c.kind == "" && m.Problem != nil:
				t.Errorf("%+v; want no problem", m.Problem)
			case c.kind != "" && (m.Problem == nil || m.Problem.Kind != c.kind || c.line > 0 && m.Problem.Line != c.line):
				t.Errorf("%+v; want %s at line %d", m.Problem, c.kind, c.line)
			}
			if m := analyze(t, a, "import after"); len(m.Imports) != 1 {
				t.Error("the next program is not read")
			}
		})
	}
}

func nested(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "%sdef f():\n", strings.Repeat(" ", i))
	}
	return b.String() + strings.Repeat(" ", n) + "pass\n"
}

func scanText(t *testing.T) string {
	t.Helper()
	b := musttest.Get(os.ReadFile("python/answer.py"))(t)
	return string(b)
}

// Lists are cut, and that is told.
func TestListsAreCut(t *testing.T) {
	m := analyze(t, analyzer(t), strings.Repeat("import a\na.b\n", 6000))
	if len(m.Imports) != 5000 || len(m.Uses) != 5000 || !m.Cut {
		t.Errorf("%d imports, %d uses, cut %v", len(m.Imports), len(m.Uses), m.Cut)
	}
}

// Many may ask at once, and the program in the folder is put right where it was changed.
func TestAtOnceAndMended(t *testing.T) {
	analyzer(t) // skips
	dir := t.TempDir()
	path := filepath.Join(dir, "pyast-"+strings.TrimPrefix(pysource.Digest(), "sha256:")[:16], "answer.py")
	musttest.Write(t, path, "print('{}')")
	a := pysource.New(pysource.Options{Runner: shared.Python(), Dir: dir})
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			m, err := a.Analyze(t.Context(), "test", []byte("import a"))
			if err != nil || len(m.Imports) != 1 {
				t.Error(m, err)
			}
		})
	}
	all.Wait()
	if b, err := os.ReadFile(path); err != nil || string(b) != scanText(t) {
		t.Errorf("the changed program is still there: %v", err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
}

func BenchmarkAnalyze(b *testing.B) {
	a := analyzer(b)
	source := []byte("import json\n\ndef f(x: int, y: str = 'a') -> dict[str, int]:\n    \"\"\"Doc.\"\"\"\n    return json.loads(y)\n")
	if _, err := a.Analyze(b.Context(), "test", source); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := a.Analyze(b.Context(), "test", source); err != nil {
			b.Fatal(err)
		}
	}
}
