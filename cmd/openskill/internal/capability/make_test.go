package capability_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"openskill/cmd/openskill/internal/capability"
	"openskill/host/manifest"
	"openskill/internal/musttest"
	"openskill/plugins/python/runtimes"
	"openskill/plugins/runnertest"
	"openskill/sdk/skill"
)

// limits are those of calls in these tests.
var limits = skill.Limits{Timeout: 20 * time.Second, Memory: 128 << 20, Fuel: 1e11, Output: 1 << 20, Scratch: 1 << 20}

// written makes a skill, puts it into a folder, and reads it as a host does.
func written(t *testing.T, mk *capability.Maker, s *capability.Source) *manifest.Skill {
	t.Helper()
	made, problems, err := mk.Make(t.Context(), s)
	if err != nil || len(problems) > 0 {
		t.Fatal(err, problems)
	}
	dir := t.TempDir()
	musttest.Get(made.Write(dir))(t)
	return loaded(t, dir, made.ID)
}

func loaded(t *testing.T, dir string, id skill.ID) *manifest.Skill {
	t.Helper()
	r, err := manifest.Open(manifest.Options{
		Roots: []manifest.Root{{Path: dir, Trust: skill.Trusted}}, Defaults: limits, Caps: limits, Packages: runtimes.CheckRequires,
	})
	musttest.Do(t, err)
	if p := r.Problems(); len(p) > 0 {
		t.Fatal(p)
	}
	return musttest.Get(r.Get(id, ""))(t)
}

// call runs a skill as the door does: its input and its data are held to the schemas.
func call(t *testing.T, s *manifest.Skill, input string) (data string, said *skill.ResultError) {
	t.Helper()
	if err := s.CheckInput(value(t, input), manifest.MaxSteps); err != nil {
		var e *skill.Error
		errors.As(err, &e)
		return "", &skill.ResultError{Code: e.Code, Message: e.Message}
	}
	reply, err := runnertest.Do(t.Context(), cpython(t), &skill.Call{
		SkillID: s.Descriptor.ID, TraceID: "t", ExecutionID: "e", Tenant: "test", Folder: s.Folder, Entry: s.Primary.Entry,
		Digest: s.Descriptor.Digest, Stdin: []byte(`{"input":` + input + `,"skill_id":"x","trace_id":"t"}`), Limits: limits,
	}, s.Descriptor.Requires...)
	musttest.Do(t, err)
	var r struct {
		Success bool               `json:"success"`
		Data    json.RawMessage    `json:"data"`
		Error   *skill.ResultError `json:"error"`
	}
	if err := json.Unmarshal(reply.Stdout, &r); err != nil || reply.Code != "" || reply.ExitCode != 0 {
		t.Fatalf("%v: %s, exit code %d, %s\n%s", err, reply.Code, reply.ExitCode, reply.Stdout, reply.Stderr)
	}
	if !r.Success {
		return "", r.Error
	}
	if err := s.CheckOutput(value(t, string(r.Data))); err != nil {
		t.Errorf("%s is not what the schema says: %v", r.Data, err)
	}
	return string(r.Data), nil
}

func value(t *testing.T, text string) any {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return v
}

// The capabilities of the example become skills that are called, from their registry.
func TestExample(t *testing.T) {
	mk := maker(t)
	sources, problems, err := mk.Import(t.Context(), "../../../../examples/capabilities/capability_registry.json", "")
	if err != nil || len(problems) > 0 || len(sources) != 3 {
		t.Fatal(sources, problems, err)
	}
	skills := map[string]*manifest.Skill{}
	for _, s := range sources {
		r := written(t, mk, s)
		skills[string(r.Descriptor.ID)] = r
	}
	for _, c := range []struct{ id, input, want string }{
		{"add_numbers", `{"num1": 3, "num2": 5}`, `{"result": 8}`},
		{"add_numbers", `{"num1": 0.5, "num2": 5}`, `{"result": 5.5}`},
		{"add_numbers", `{"num1": 3}`, `INVALID_ARGUMENT`},
		{
			"invoice_total", `{"lines": [{"text": "pen", "price": "1.20", "count": 3}, {"text": "book", "price": 19.9}], "issued": "2026-01-31"}`,
			`{"result": {"total": "25.40", "tax": "1.90", "currency": "EUR", "due": "2026-03-02"}}`,
		},
		{"invoice_total", `{"lines": [], "issued": "2026-01-31", "currency": "CHF", "days": 1}`, `{"result": {"total": "0.00", "tax": "0.00", "currency": "CHF", "due": "2026-02-01"}}`},
		{"invoice_total", `{"lines": [], "issued": "yesterday"}`, `INVALID_ARGUMENT`},
		{"invoice_total", `{"lines": [{"price": 1}], "issued": "2026-01-31"}`, `INVALID_ARGUMENT`},
		{"invoice_total", `{"lines": [{"text": "x", "price": "much"}], "issued": "2026-01-31"}`, `INVALID_ARGUMENT lines[0].price must be a decimal number`},
		{"word_counts", `{"text": "To be or not to be", "ignore": ["or"]}`, `{"result": {"to": 2, "be": 2, "not": 1}}`},
		{"word_counts", `{"text": "a a b", "most": 1}`, `{"result": {"a": 2}}`},
	} {
		got, said := call(t, skills[c.id], c.input)
		if said != nil {
			got = string(said.Code) + " " + said.Message
		}
		if got != c.want && (said == nil || !strings.HasPrefix(got, c.want)) {
			t.Errorf("%s of %s: %s; want %s", c.id, c.input, got, c.want)
		}
	}
	// What the registry says of parameters is what models read.
	want := `{"type":"object","properties":{"num1":{"type":"number","description":"第一个数字"},"num2":{"type":"number","description":"第二个数字"}},"required":["num1","num2"],"additionalProperties":false}`
	if got := string(skills["add_numbers"].Descriptor.InputSchema); got != want {
		t.Errorf("%s; want %s", got, want)
	}
}

// Arguments of every type arrive as the function wants them, and results as JSON.
func TestTypesArrive(t *testing.T) {
	mk := maker(t)
	for name, c := range map[string]struct{ code, input, want string }{
		"words":        {`def f(a: int, b: float, c: str, d: bool, e: None): return [type(x).__name__ for x in (a, b, c, d, e)]`, `{"a": 1, "b": 2, "c": "x", "d": true, "e": null}`, `["int", "float", "str", "bool", "NoneType"]`},
		"whole number": {`def f(a: int): return [a, type(a).__name__]`, `{"a": 3.0}`, `[3, "int"]`},
		"containers": {
			"from collections import deque\ndef f(a: tuple[int, str], b: set[int], c: frozenset, d: deque[int], e: dict[int, float], g: list[tuple[int, ...]]):\n  return [type(x).__name__ for x in (a, b, c, d, e, g[0])] + [list(e.items()), a]",
			`{"a": [1, "x"], "b": [1], "c": [1], "d": [1], "e": {"2": 3}, "g": [[1, 2]]}`, `["tuple", "set", "frozenset", "deque", "dict", "tuple", [[2, 3.0]], [1, "x"]]`,
		},
		"texts": {
			"import datetime as dt, uuid, decimal, pathlib, re, ipaddress, fractions\ndef f(a: dt.datetime, b: dt.date, c: dt.time, d: dt.timedelta, e: uuid.UUID, g: decimal.Decimal, h: pathlib.Path, i: bytes, j: re.Pattern, k: ipaddress.IPv4Address, l: fractions.Fraction):\n  assert a.tzinfo is not None and d.total_seconds() == 5400 and i == b'abc' and j.match('aa') and h.name == 'x'\n  return [a, b, c, d, e, g, h, i, j, k, l]",
			`{"a": "2026-01-31T12:00:00Z", "b": "2026-01-31", "c": "12:00:00Z", "d": "PT1H30M", "e": "12345678-1234-5678-1234-567812345678", "g": 0.1, "h": "a/x", "i": "YWJj", "j": "a+", "k": "127.0.0.1", "l": "3/4"}`,
			`["2026-01-31T12:00:00+00:00", "2026-01-31", "12:00:00+00:00", "PT5400S", "12345678-1234-5678-1234-567812345678", "0.1", "a/x", "YWJj", "a+", "127.0.0.1", "3/4"]`,
		},
		"classes": {
			"import enum\nfrom dataclasses import dataclass, field, InitVar\nfrom typing import *\nclass C(enum.Enum):\n  A = 'a'\n  B = (1, 2)\nclass N(NamedTuple):\n  x: int\n  y: C = C.A\nclass T(TypedDict):\n  n: NotRequired[N]\n@dataclass\nclass D:\n  t: T\n  more: 'list[D]' = field(default_factory=list)\n  k: InitVar[int] = 0\n  def __post_init__(self, k): self.sum = k\n" +
				"def f(d: D, c: C, o: Optional[D] = None, u: Union[int, D, list[C]] = 1):\n  assert isinstance(d.more[0], D) and isinstance(d.t['n'], N) and d.t['n'].y is C.A and d.sum == 7\n  return [d, c, o, u]",
			`{"d": {"t": {"n": {"x": 1}}, "more": [{"t": {}}], "k": 7}, "c": "B", "u": ["A"]}`,
			`[{"t": {"n": {"x": 1, "y": "a"}}, "more": [{"t": {}, "more": []}]}, [1, 2], null, ["a"]]`,
		},
		"unions take what fits first": {"def f(a: str | int, b: int | str, c: float | None, d: list[int] | dict[str, int]): return [a, b, c, d]", `{"a": "1", "b": "1", "c": 1, "d": {"x": 1}}`, `["1", "1", 1.0, {"x": 1}]`},
		"annotated and named":         {"from typing import Annotated, NewType, Literal\nfrom enum import Enum\nU = NewType('U', int)\ntype L = list[float]\nclass E(Enum):\n  X = 'x'\ndef f(a: Annotated[float, 'text'], b: U, c: L, d: Literal[E.X]): return [a, b, c, d is E.X]", `{"a": 1, "b": 2, "c": [1], "d": "x"}`, `[1.0, 2, [1.0], true]`},
		"places and names":            {"def f(a: int, b: int = 2, /, c: int = 3, *more: float, d: int = 4, **rest: float): return [a, b, c, more, d, rest]", `{"a": 1, "c": 5, "more": [6], "d": 7, "e": 8}`, `[1, 2, 5, [6.0], 7, {"e": 8.0}]`},
		"defaults":                    {"def f(a: int = 1, *more: int, b: int = 2): return [a, more, b]", `{"more": [5]}`, `[1, [5], 2]`},
		"unpacked":                    {"from typing import *\nclass O(TypedDict, total=False):\n  x: float\ndef f(**o: Unpack[O]): return o", `{"x": 1}`, `{"x": 1.0}`},
		"hints that do not resolve":   {"from __future__ import annotations\nfrom typing import TYPE_CHECKING\nif TYPE_CHECKING:\n  from elsewhere import Thing\ndef f(a: list[int], b: 'Thing' = None): return a", `{"a": [1]}`, `[1]`},
		"generator":                   {"def f(n: int):\n  yield from range(n)", `{"n": 3}`, `[0, 1, 2]`},
		"async":                       {"import asyncio\nasync def one(i):\n  await asyncio.sleep(0.001)\n  return i\nasync def f(n: int): return await asyncio.gather(*(one(i) for i in range(n)))", `{"n": 3}`, `[0, 1, 2]`},
		"async generator":             {"async def f(n: int):\n  for i in range(n): yield i", `{"n": 2}`, `[0, 1]`},
		"prints":                      {"print('at the start')\ndef f():\n  print('{}')\n  return 1", `{}`, `1`},
		"decorated":                   {"def other(g):\n  return lambda *a, **k: g(*a, **k)\n@other\ndef f(a: int): return a + 1", `{"a": 1}`, `2`},
		"names of other letters":      {"def f(größe: int): return größe", `{"größe": 3}`, `3`},
		"nothing":                     {"def f() -> None: pass", `{}`, `null`},
		"keys of results":             {"import enum\nclass C(enum.Enum):\n  A = 1\ndef f(): return {1: 'a', None: 'b', C.A: 'd', (1, 2): 'e'}", `{}`, `{"1": "d", "null": "b", "(1, 2)": "e"}`},
		"a module of a taken name":    {"import json\ndef f(): return json.dumps([1])", `{}`, `"[1]"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := "given.py"
			if strings.Contains(name, "taken") {
				file = "json.py"
			}
			s := written(t, mk, &capability.Source{File: file, Code: []byte(c.code), Function: "f"})
			data, said := call(t, s, c.input)
			if said != nil {
				t.Fatalf("%+v", said)
			}
			if want := `{"result": ` + c.want + `}`; data != want {
				if cmp.Diff(value(t, want), value(t, data)) != "" || name == "whole number" {
					t.Errorf("%s; want %s", data, want)
				}
			}
		})
	}
}

// What goes wrong in a function is told as its failure.
func TestFailures(t *testing.T) {
	mk := maker(t)
	for name, c := range map[string]struct{ code, input, want string }{
		"raises":            {"def f(): raise KeyError('x')", `{}`, "TOOL_INVOCATION_ERROR KeyError: 'x'"},
		"ends the program":  {"import sys\ndef f(): sys.exit(3)", `{}`, "TOOL_INVOCATION_ERROR the function ended the program, with 3"},
		"no JSON":           {"def f(): return object()", `{}`, "TOOL_INVOCATION_ERROR TypeError: the result holds a object"},
		"not a number":      {"def f(): return [float('nan')]", `{}`, "TOOL_INVOCATION_ERROR TypeError: the result holds nan"},
		"contains itself":   {"def f():\n  a = []\n  a.append(a)\n  return a", `{}`, "TOOL_INVOCATION_ERROR TypeError: the result is nested too deeply"},
		"recurses":          {"def f(): return f()", `{}`, "TOOL_INVOCATION_ERROR RecursionError"},
		"waits for ever":    {"import asyncio\nasync def f(): await asyncio.Future()", `{}`, "TOOL_INVOCATION_ERROR RuntimeError: the function waits for something that never comes"},
		"not a member":      {"import enum\nclass C(enum.Enum):\n  A = (1,)\n@lambda g: g\ndef f(a: 'C' = None, **k: C): return a", `{"k": "B"}`, "INVALID_ARGUMENT"},
		"not base64":        {"def f(a: bytes): return a", `{"a": "***"}`, "INVALID_ARGUMENT a must be bytes in base64"},
		"not a fraction":    {"import fractions\ndef f(a: list[fractions.Fraction]): return a", `{"a": ["x"]}`, "INVALID_ARGUMENT a[0] must be a fraction"},
		"of no type":        {"def f(a: int): return a", `{"a": "1"}`, "INVALID_ARGUMENT"},
		"unknown parameter": {"def f(a: int): return a", `{"a": 1, "b": 2}`, "INVALID_ARGUMENT"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := written(t, mk, &capability.Source{File: "given.py", Code: []byte(c.code), Function: "f"})
			data, said := call(t, s, c.input)
			if said == nil {
				t.Fatalf("%s; want %s", data, c.want)
			}
			if got := string(said.Code) + " " + said.Message; !strings.HasPrefix(got, c.want) {
				t.Errorf("%s; want %s", got, c.want)
			}
		})
	}
}

// Hostile registries: what is wrong is told, nothing outside the folder is read, and what
// is right is imported all the same.
func TestHostileRegistry(t *testing.T) {
	mk := maker(t)
	dir := t.TempDir()
	folder := filepath.Join(dir, "registry")
	musttest.Do(t, os.Mkdir(folder, 0o700))
	write := func(name, text string) {
		t.Helper()
		musttest.Do(t, os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600))
	}
	write("good.py", "def f(a: int): return a\ndef _p(): pass\ndef g(cb: print): pass\n")
	write("../outside.py", "def f(): return 'SECRET'")
	write("large.py", strings.Repeat("#", 1<<20+1))
	write("broken.py", "def f(")
	for link, to := range map[string]string{"link.py": "../outside.py", "inner.py": "good.py"} {
		musttest.Do(t, os.Symlink(to, filepath.Join(folder, link)))
	}
	entry := func(name, path, function string) string {
		b := musttest.Get(json.Marshal(map[string]string{"id": "cap_" + name, "name": name, "code_path": path, "entry_function": function}))(t)
		return string(b)
	}
	for name, c := range map[string]struct{ entry, want string }{
		"up":                {entry("x", "../outside.py", "f"), "must not leave the folder"},
		"up within":         {entry("x", "a/../../outside.py", "f"), "must not leave the folder"},
		"up, Windows":       {entry("x", `..\outside.py`, "f"), "must not leave the folder"},
		"absolute":          {entry("x", filepath.Join(dir, "outside.py"), "f"), "must be relative"},
		"absolute, Windows": {entry("x", `C:\x.py`, "f"), "must be relative"},
		"a link out":        {entry("x", "link.py", "f"), "cannot be read"},
		"a link within":     {entry("x", "inner.py", "f"), ""},
		"NUL":               {entry("x", "good.py\x00.py", "f"), "is no path"},
		"not Python":        {entry("x", "good.txt", "f"), "must be a file of Python"},
		"not there":         {entry("x", "no.py", "f"), "file not found"},
		"a folder":          {entry("x", ".py", "f"), "file not found"},
		"large":             {entry("x", "large.py", "f"), "over 1048576 bytes"},
		"no path":           {`{"name": "x", "entry_function": "f"}`, "is missing"},
		"no function":       {`{"name": "x", "code_path": "good.py"}`, "entry_function is missing"},
		"private":           {entry("x", "good.py", "_p"), "is private"},
		"not in it":         {entry("x", "good.py", "nope"), "there is no function nope"},
		"no JSON form":      {entry("x", "good.py", "g"), "print has no form in JSON"},
		"broken":            {entry("x", "broken.py", "f"), "this is not Python"},
		"a wrong parameter": {`{"name": "x", "code_path": "good.py", "entry_function": "f", "tool_schema": {"parameters": [{"name": "z"}]}}`, "tool_schema has a parameter z"},
		"a wrong schema":    {`{"name": "x", "code_path": "good.py", "entry_function": "f", "tool_schema": {"parameters": [1]}}`, "tool_schema: each of its parameters"},
		"no id at all":      {`{"id": "!", "name": "\u52a0", "code_path": "good.py", "entry_function": "f"}`, ""}, // of the function
		"twice":             {entry("good", "good.py", "f"), "its skill id good is taken"},
	} {
		t.Run(name, func(t *testing.T) {
			write("r.json", `{"capabilities": [`+entry("good", "good.py", "f")+","+c.entry+"]}")
			sources, problems, err := mk.Import(t.Context(), filepath.Join(folder, "r.json"), "")
			musttest.Do(t, err)
			var made int
			for _, s := range sources {
				m, more, err := mk.Make(t.Context(), s)
				musttest.Do(t, err)
				if m != nil {
					made++
				}
				problems = append(problems, more...)
			}
			text := ""
			for _, p := range problems {
				text += p.String() + "\n"
			}
			if c.want == "" && (made != 2 || text != "") || c.want != "" && (made != 1 || len(problems) != 1 || !strings.Contains(text, c.want)) {
				t.Errorf("%d made, %q; want %q", made, text, c.want)
			}
			if strings.Contains(text, "SECRET") || strings.Contains(text, dir) && name != "absolute" {
				t.Errorf("%q tells of the host", text)
			}
		})
	}
	for name, text := range map[string]string{
		"not JSON": "{", "a text": `"x"`, "a number in it": "[1]", "too deep": strings.Repeat("[", 1000),
		"too many": "[" + strings.TrimSuffix(strings.Repeat(`{"name":"x"},`, 1001), ",") + "]", "too large": `"` + strings.Repeat("x", 4<<20) + `"`,
	} {
		write("r.json", text)
		if _, _, err := mk.Import(t.Context(), filepath.Join(folder, "r.json"), ""); skill.CodeOf(err) != skill.InvalidArgument {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, file := range []string{"nope.json", "nope.py", "good.txt", ".."} {
		if _, _, err := mk.Import(t.Context(), filepath.Join(folder, file), ""); skill.CodeOf(err) != skill.InvalidArgument {
			t.Errorf("%s: %v", file, err)
		}
	}
}

// The forms of registries, and of what they say of parameters.
func TestFormsOfRegistries(t *testing.T) {
	mk := maker(t)
	dir := t.TempDir()
	musttest.Do(t, os.WriteFile(filepath.Join(dir, "a.py"), []byte("def f(a, b=1, **more): return a"), 0o600))
	for name, c := range map[string]struct{ text, want string }{
		"list":         {`[{"id": "x", "code_path": "a.py", "entry_function": "f"}]`, `{"type":"object","properties":{"a":{},"b":{"type":"number","default":1}},"required":["a"],"additionalProperties":true}`},
		"by id":        {`{"x": {"code_path": "./a.py", "entry_function": "f"}}`, `{"type":"object","properties":{"a":{},"b":{"type":"number","default":1}},"required":["a"],"additionalProperties":true}`},
		"one":          {`{"id": "x", "code_path": "a.py", "entry_function": "f"}`, `{"type":"object","properties":{"a":{},"b":{"type":"number","default":1}},"required":["a"],"additionalProperties":true}`},
		"wrapped":      {`{"version": "1", "capabilities": {"x": {"code_path": "a.py", "entry_function": "f"}}}`, `{"type":"object","properties":{"a":{},"b":{"type":"number","default":1}},"required":["a"],"additionalProperties":true}`},
		"a list":       {`[{"id": "x", "code_path": "a.py", "entry_function": "f", "tool_schema": {"parameters": [{"name": "a", "type": "string", "enum": ["p"]}, {"name": "c", "type": "bool", "required": false}]}}]`, `{"type":"object","properties":{"a":{"type":"string","enum":["p"]},"b":{"type":"number","default":1},"c":{"type":"boolean"}},"required":["a"],"additionalProperties":true}`},
		"a function":   {`[{"id": "x", "code_path": "a.py", "entry_function": "f", "tool_schema": {"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {"a": {"type": "integer", "description": "the a"}}}}}}]`, `{"type":"object","properties":{"a":{"type":"integer","description":"the a"},"b":{"type":"number","default":1}},"required":["a"],"additionalProperties":true}`},
		"input_schema": {`[{"id": "x", "code_path": "a.py", "entry_function": "f", "tool_schema": {"name": "f", "input_schema": {"type": "object", "properties": {"d": {"type": "integer"}}, "required": ["d"]}}}]`, `{"type":"object","properties":{"a":{},"b":{"type":"number","default":1},"d":{"type":"integer"}},"required":["a","d"],"additionalProperties":true}`},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(dir, "r.json")
			musttest.Do(t, os.WriteFile(file, []byte(c.text), 0o600))
			sources, problems, err := mk.Import(t.Context(), file, "")
			if err != nil || len(problems) > 0 || len(sources) != 1 {
				t.Fatal(sources, problems, err)
			}
			made, problems, err := mk.Make(t.Context(), sources[0])
			if err != nil || len(problems) > 0 {
				t.Fatal(problems, err)
			}
			if d := cmp.Diff(c.want, string(made.Function.Input)); d != "" {
				t.Error(d)
			}
		})
	}
}

// A skill that was made is made anew in its place; another's folder is left alone.
func TestWrite(t *testing.T) {
	mk := maker(t)
	dir := t.TempDir()
	versions := map[string]bool{}
	for _, code := range []string{"def f(): return 1", "def f(): return 2"} {
		made, problems, err := mk.Make(t.Context(), &capability.Source{File: "f.py", Code: []byte(code), Modules: map[string][]byte{"beside.py": nil}})
		if err != nil || len(problems) > 0 {
			t.Fatal(err, problems)
		}
		for range 2 {
			musttest.Get(made.Write(dir))(t)
		}
		s := loaded(t, dir, "f")
		versions[s.Descriptor.Version] = true
		if got, _ := call(t, s, "{}"); got != `{"result": `+code[len(code)-1:]+`}` {
			t.Errorf("%s of %s", got, code)
		}
	}
	if len(versions) != 2 {
		t.Errorf("the version does not follow the code: %v", versions)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 {
		t.Errorf("%v, %v: something half made is left", entries, err)
	}
	musttest.Do(t, os.WriteFile(filepath.Join(dir, "f", "skill.yaml"), []byte("id: f"), 0o600))
	made, _, err := mk.Make(t.Context(), &capability.Source{File: "f.py", Code: []byte("def f(): return 3")})
	musttest.Do(t, err)
	if _, err := made.Write(dir); skill.CodeOf(err) != skill.Conflict {
		t.Errorf("%v; want CONFLICT", err)
	}
}

// Text in code cannot break the manifest that is made of it.
func TestManifestHoldsAnyText(t *testing.T) {
	mk := maker(t)
	for _, text := range []string{"a: b # c", "'\"\\\\", "{{", "- x", "\\u2028 \\x85 \\x7f \\ufeff \\ufffe", "*anchor &x !tag", "%YAML", "\\n---\\nid: other", strings.Repeat("long ", 400), "\U0001f600 \\ud83d"} {
		code := "def f(a: str = " + quote(text) + "):\n    " + quote("Does "+text+"\n\nArgs:\n    a: "+text) + "\n    return a"
		s := written(t, mk, &capability.Source{File: "f.py", Code: []byte(code), Description: text})
		if s.Descriptor.ID != "f" || s.Descriptor.Runner != skill.WasmPython {
			t.Errorf("%q: %+v", text, s.Descriptor)
		}
	}
}

// quote writes a text as Python does, escapes in it left alone.
func quote(s string) string {
	return `"` + strings.NewReplacer("\n", `\n`, `"`, `\"`, `\\`, `\\`).Replace(s) + `"`
}
