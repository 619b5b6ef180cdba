package pyast_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"openskill/host/pyast"
	"openskill/sdk/skill"
)

func analyze(t *testing.T, a *pyast.Analyzer, source string) *pyast.Module {
	t.Helper()
	m, err := a.Analyze(t.Context(), "test", []byte(source))
	if err != nil {
		t.Fatal(err)
	}
	return m
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

LEVELS = ["a", "b"]
type Name = str | None

@sp.decorate
async def f(x: Optional["int"], /, y: list[str] = ["a"], *rest: int, z: float = -1.5, **more) -> dict[str, int]:
    """Doc.

        Deep.
    """
    import json
    sp.run(["ls", x])
    for line in sys.stdin:
        yield line

class A(Exception):
    field: int = 3
    "what it is"
    def m(self): open("/etc/passwd")

if __name__ == "__main__":
    input()
`)
	if m.Problem != nil {
		t.Fatal(m.Problem)
	}
	f := m.Function("f")
	if f == nil || !f.Async || !f.Generator || f.Line != 16 || f.EndLine != 24 || f.Docstring != "Doc.\n\nDeep." {
		t.Fatalf("%+v", f)
	}
	var got []string
	for _, p := range f.Parameters {
		got = append(got, fmt.Sprintf("%s %s %s %s", p.Name, p.Kind, show(p.Annotation), show(p.Default)))
	}
	want := []string{
		`x positional_only {"kind":"generic","name":"typing.Optional","of":[{"kind":"name","name":"int"}]} null`,
		`y positional_or_keyword {"kind":"generic","name":"list","of":[{"kind":"name","name":"str"}]} {"kind":"list","value":["a"]}`,
		`rest var_positional {"kind":"name","name":"int"} null`,
		`z keyword_only {"kind":"name","name":"float"} {"kind":"value","value":-1.5}`,
		"more var_keyword null " + "null",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	got = nil
	for _, i := range m.Imports {
		got = append(got, fmt.Sprintf("%d %s as %q level %d optional %v function %v checking %v", i.Line, i.Module, i.As, i.Level, i.Optional, i.Function, i.TypeChecking))
	}
	want = []string{
		`2 subprocess as "sp" level 0 optional false function false checking false`,
		`2 sys as "" level 0 optional false function false checking false`,
		`2 os.path as "" level 0 optional false function false checking false`,
		`3 typing as "" level 0 optional false function false checking false`,
		`4  as "" level 1 optional false function false checking false`,
		`6 numpy as "np" level 0 optional true function false checking false`,
		`10 pandas as "" level 0 optional false function false checking true`,
		`21 json as "" level 0 optional false function true checking false`,
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	got = nil
	for _, u := range m.Uses {
		args := ""
		for _, a := range u.Args {
			args += " " + show(a)
		}
		got = append(got, fmt.Sprintf("%d %s in %q call %v%s", u.Line, u.Name, u.Function, u.Call, args))
	}
	want = []string{
		`15 subprocess.decorate in "" call false`,
		`22 subprocess.run in "f" call true {"kind":"list","of":[{"kind":"value","value":"ls"},{"kind":"name","name":"x"}]}`,
		`23 sys.stdin in "f" call false`,
		`29 open in "A.m" call true {"kind":"value","value":"/etc/passwd"}`,
		`32 input in "" call true`,
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if c := m.Class("A"); c == nil || len(c.Fields) != 1 || c.Fields[0].Docstring != "what it is" || c.Bases[0].Name != "Exception" {
		t.Errorf("%+v", c)
	}
	if a := m.Alias("LEVELS"); a == nil || string(a.Value.Value) != `["a","b"]` {
		t.Errorf("%+v", a)
	}
	if a := m.Alias("Name"); a == nil || !a.Type || a.Value.Kind != pyast.KindUnion {
		t.Errorf("%+v", a)
	}
	if !m.Main || m.Docstring != "About." || m.Cut {
		t.Errorf("main %v, docstring %q, cut %v", m.Main, m.Docstring, m.Cut)
	}
}

func show(e *pyast.Expr) string {
	b, err := json.Marshal(e)
	if err != nil {
		return err.Error()
	}
	return string(b)
}

func TestParsers(t *testing.T) {
	m := analyze(t, analyzer(t), `
import argparse
common = argparse.ArgumentParser(add_help=False)
common.add_argument("--verbose", action="store_true")

class Parser(argparse.ArgumentParser): pass

def build():
    parser = Parser(description="does things", parents=[common])
    group = parser.add_argument_group("more")
    group.add_argument("path")
    either = parser.add_mutually_exclusive_group(required=True)
    either.add_argument("--a")
    either.add_argument("--b", "-b", type=int)
    commands = parser.add_subparsers(dest="command")
    add = commands.add_parser("add", help="adds")
    add.add_argument("n", type=int, nargs="+", choices=range(3))
    commands.add_parser("rm").add_argument("-f")
    return parser

class App:
    def __init__(self):
        self.p = argparse.ArgumentParser()
    def more(self):
        self.p.add_argument("--own")

def onto(p):
    p.add_argument("--elsewhere")
`)
	var got []string
	for i, p := range m.Parsers {
		line := fmt.Sprintf("%d parent %d command %q parents %v", i, p.Parent, p.Command, p.Parents)
		for _, a := range p.Arguments {
			name, _ := a.Call.Args[0].Text()
			line += " " + name
			if a.Group != nil {
				line += fmt.Sprint(" exclusive, required ", a.Group.Required)
			}
		}
		got = append(got, line)
	}
	want := []string{
		`0 parent -1 command "" parents [] --verbose`,
		`1 parent -1 command "" parents [0] path --a exclusive, required true --b exclusive, required true`,
		`2 parent 1 command "add" parents [] n`,
		`3 parent 1 command "rm" parents [] -f`,
		`4 parent -1 command "" parents [] --own`,
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if !m.UnknownParser {
		t.Error("an argument of a parser that is not known is not told")
	}
	if text, ok := m.Parsers[1].Keyword("description").Text(); !ok || text != "does things" {
		t.Errorf("%q", text)
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
		"too large":               {strings.Repeat("#", pyast.MaxSource+1), "refused", 0},
		"imports of everything":   {strings.Repeat("import a.b.c as d\n", 20_000), "", 0},
		"a name of 100 KB":        {"import " + strings.Repeat("a", 100_000) + " as x\ndef f(" + strings.Repeat("p: x = x, ", 0) + "): return x" + strings.Repeat(" + x.y(x)", 3000), "any", 0},
		"a table of 60,000":       {"TABLE = {" + strings.Repeat("'k': [1, -2, f(3)], ", 20_000) + "}", "any", 0},
		"its own scan":            {scanText(t), "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			m, err := a.Analyze(t.Context(), "test", []byte(c.source))
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
			if m := analyze(t, a, "def after(): pass"); m.Function("after") == nil {
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
	b, err := os.ReadFile("scan.py")
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// Lists are cut, and that is told.
func TestListsAreCut(t *testing.T) {
	m := analyze(t, analyzer(t), strings.Repeat("def f(): pass\n", 6000))
	if len(m.Functions) != 5000 || !m.Cut {
		t.Errorf("%d functions, cut %v", len(m.Functions), m.Cut)
	}
}

// Many may ask at once, and the program in the folder is put right where it was changed.
func TestAtOnceAndMended(t *testing.T) {
	analyzer(t) // skips
	dir := t.TempDir()
	path := filepath.Join(dir, "pyast-"+strings.TrimPrefix(pyast.Digest(), "sha256:")[:16], "scan.py")
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("print('{}')"), 0o600); err != nil {
		t.Fatal(err)
	}
	a := pyast.New(pyast.Options{Runner: shared.Python(), Dir: dir})
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			m, err := a.Analyze(t.Context(), "test", []byte("def f(): pass"))
			if err != nil || m.Function("f") == nil {
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
