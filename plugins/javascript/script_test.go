package javascript

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"openskill/internal/musttest"
	"openskill/plugins/runnertest"
	"openskill/sdk/skill"
)

// script is a call of main.js with the text, beside the files.
func script(t testing.TB, text string, files ...string) *skill.Call {
	t.Helper()
	dir := t.TempDir()
	files = append(files, "main.js", text)
	for i := 0; i < len(files); i += 2 {
		name := filepath.Join(dir, filepath.FromSlash(files[i]))
		musttest.Do(t, os.MkdirAll(filepath.Dir(name), 0o700))
		musttest.Do(t, os.WriteFile(name, []byte(files[i+1]), 0o600))
	}
	return &skill.Call{
		SkillID: "script", Folder: dir, Entry: "main.js",
		Limits: skill.Limits{Timeout: time.Minute, Memory: 16 << 20, Fuel: 2e9, Output: 1 << 20, Scratch: 1 << 20},
	}
}

// running gives the function that runs a call on one shared runner.
func running(t testing.TB) func(t testing.TB, c *skill.Call) *skill.Reply {
	t.Helper()
	r := New(warm(t), nil)
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	return func(t testing.TB, c *skill.Call) *skill.Reply {
		t.Helper()
		return musttest.Get(runnertest.Do(t.Context(), r, c))(t)
	}
}

// What a script exits with is its own; what the host ended it for is not.
func TestEnds(t *testing.T) {
	run := running(t)
	for name, c := range map[string]struct {
		text   string
		code   skill.Code
		exit   uint32
		stderr string // part of it
		files  []string
	}{
		"ends":                  {text: "const x = 1"},
		"exits":                 {text: "std.exit(7)", exit: 7},
		"throws":                {text: "function f() { throw new Error('wröng') }\nf()", exit: 1, stderr: "Error: wröng\n    at f (/skill/main.js:1:"},
		"throws a text":         {text: "throw 'just this'", exit: 1, stderr: "just this"},
		"throws undefined":      {text: "throw undefined", exit: 1, stderr: "undefined"},
		"throws in a timer":     {text: "setTimeout(() => { throw new TypeError('late') }, 1)", exit: 1, stderr: "TypeError: late"},
		"rejects":               {text: "Promise.reject(new Error('unseen'))", exit: 1, stderr: "unhandled promise rejection: /skill/main.js:1\nPromise.reject(new Error('unseen'))\n                  ^\n\nError: unseen\n    at"},
		"rejects at the top":    {text: "await Promise.reject(new RangeError('awaited'))", exit: 1, stderr: "RangeError: awaited"},
		"rejects, caught":       {text: "try { await Promise.reject(1) } catch {}"},
		"syntax error":          {text: "const x = = 1", exit: 1, stderr: "SyntaxError: unexpected token in expression: '='\n    at /skill/main.js:1"},
		"not UTF-8":             {text: "'\xff'", exit: 1, stderr: "SyntaxError: invalid UTF-8"},
		"no such module":        {text: "import './none.js'", exit: 1, stderr: "could not load module filename '/skill/none.js'"},
		"CommonJS":              {text: "const fs = require('fs')", exit: 1, stderr: "require is not defined"},
		"the line itself":       {text: "let a;\n\ta.b.c\n", exit: 1, stderr: "/skill/main.js:2\n\ta.b.c\n\t^\n\nTypeError: cannot read property 'b' of undefined\n    at"},
		"a cause":               {text: "throw Object.assign(new Error('a', { cause: new TypeError('b') }), { code: 7 })", exit: 1, stderr: " {\n  code: 7,\n  [cause]: TypeError: b\n      at"},
		"a module's own error":  {text: "import './std.mjs';\nconst x = = 2", exit: 1, stderr: "/skill/main.js:2\nconst x = = 2\n"},
		"JSON, imported":        {text: "import d from './main.json' with { type: 'json' }", exit: 1, stderr: "import attributes are not there; JSON files cannot be imported here: read them by JSON.parse(std.loadFile(path))"},
		"JSON, as a module":     {text: "import d from './x.json'", files: []string{"x.json", `{"a": 1}`}, exit: 1, stderr: "/skill/x.json:1\n{\"a\": 1}\n"},
		"JSON, required":        {text: "\nconst d = require('./x.json')", exit: 1, stderr: "/skill/main.js:2\n"},
		"a module of Node":      {text: "\nimport fs from 'node:fs'", exit: 1, stderr: "/skill/main.js:2\nimport fs from 'node:fs'\n"},
		"a set of letters":      {text: "\nconst r = /[a--b]/v", exit: 1, stderr: "/skill/main.js:2\nconst r = /[a--b]/v\n\n[SyntaxError: invalid class range]\nsets in regular expressions"},
		"its own text of it":    {text: "class E extends Error { toString() { return 'mine' } } throw new E('x')", exit: 1, stderr: "mine\n    at"},
		"no frames wanted":      {text: "Error.stackTraceLimit = 0; throw new Error('bare')", exit: 1, stderr: "Error: bare\n"},
		"a frozen one":          {text: "throw Object.freeze(new Error('cold'))", exit: 1, stderr: "Error: cold\n    at"},
		"a long line":           {text: "/*" + strings.Repeat("x", 300) + "*/ null.x", exit: 1, stderr: "/skill/main.js:1\n\nTypeError"},
		"loops":                 {text: "for (;;);", code: skill.FuelExhausted},
		"waits for nothing":     {text: "await new Promise(() => {})", code: skill.FuelExhausted},
		"backtracks":            {text: "/^(a+)+$/.test('a'.repeat(40) + 'b')", code: skill.FuelExhausted},
		"prints without an end": {text: "for (;;) print('x'.repeat(1000))", code: skill.OutputLimit},
		"errors without an end": {text: "for (;;) console.error('x'.repeat(1000))", code: skill.OutputLimit},
		"array of arrays":       {text: "for (const a = []; ;) a.push(new Uint8Array(1 << 20).fill(1))", code: skill.MemoryLimit},
		"array of objects":      {text: "for (const a = []; ;) a.push({ a: 1 })", code: skill.MemoryLimit},
		"string doubled":        {text: "for (let s = 'x'; ;) s += s", code: skill.MemoryLimit},
		"one large buffer":      {text: "new ArrayBuffer(2 ** 30)", code: skill.MemoryLimit},
		"out of memory, caught": {text: "try { new ArrayBuffer(2 ** 30) } catch (e) { if (e.message !== 'out of memory') throw e }"},
	} {
		t.Run(name, func(t *testing.T) {
			reply := run(t, script(t, c.text, c.files...))
			if reply.Code != c.code || reply.ExitCode != c.exit || !strings.Contains(string(reply.Stderr), c.stderr) {
				t.Errorf("code %q (%s), exit code %d; want %q, %d and %q on standard error\n%.500s",
					reply.Code, reply.Message, reply.ExitCode, c.code, c.exit, c.stderr, reply.Stderr)
			}
			if c.exit == 0 && c.code == "" && len(reply.Stderr) > 0 {
				t.Errorf("stderr: %.500s", reply.Stderr)
			}
		})
	}
	t.Run("sleeps", func(t *testing.T) {
		for _, text := range []string{"os.sleep(1e9)", "await new Promise(r => setTimeout(r, 1e9))"} {
			c := script(t, text)
			c.Limits.Timeout = 200 * time.Millisecond
			if reply := run(t, c); reply.Code != skill.Timeout {
				t.Errorf("%s: code %q (%s); want TIMEOUT", text, reply.Code, reply.Message)
			}
		}
	})
}

// The end frees nothing, which took two thirds of the time of a small script, and writes what
// files still hold.
func TestEndsAtOnce(t *testing.T) {
	run := running(t)
	c := script(t, `const all = []; for (let i = 0; i < 9000; i++) all.push({ i, next: all });
std.in.readAsString(); const left = std.open('/work/left.txt', 'w'); left.puts('kept'); std.out.puts('no line ends it');`)
	c.Grants.Scratch = true
	c.Limits.Fuel = 500_000 // freeing takes 18 million
	r := run(t, c)
	if r.Code != "" || string(r.Stdout) != "no line ends it" || len(r.Artifacts) != 1 || string(r.Artifacts[0].Data) != "kept" {
		t.Errorf("%q %q, %d units, %+v %s", r.Code, r.Stdout, r.Usage.Fuel, r.Artifacts, r.Stderr)
	}
}

// What scripts print, value by value.
func TestPrints(t *testing.T) {
	run := running(t)
	for name, c := range map[string]struct {
		text, stdin, want string
		files             []string
	}{
		"arguments":          {text: "print(JSON.stringify(scriptArgs))", want: `["/skill/main.js","a","b c"]`},
		"environment":        {text: "print(JSON.stringify(std.getenviron()))", want: "{}"},
		"input":              {text: "print(JSON.parse(std.in.readAsString()).é)", stdin: `{"é": "höher 世 😀"}`, want: "höher 世 😀"},
		"input twice":        {text: "print(std.in.readAsString().length, std.in.readAsString().length)", stdin: "12345", want: "5 0"},
		"input by line":      {text: "print(std.in.getline(), std.in.getline(), std.in.getline())", stdin: "a\nb\n", want: "a b null"},
		"input not UTF-8":    {text: "print(JSON.stringify(std.in.readAsString()))", stdin: "\xff\xed\xa0\x80", want: `"` + "\ufffd" + `\ud800"`},
		"modules":            {text: "import { y } from './lib/a.js'; const { z } = await import('./lib/b.mjs'); print(y, z)", files: []string{"lib/a.js", "export { y } from './b.mjs'", "lib/b.mjs", "export const y = 1, z = import.meta.url"}, want: "1 file:///skill/lib/b.mjs"},
		"std by name":        {text: "import * as std from 'std'; import { platform } from 'os'; import { open } from 'qjs:std'; print(typeof std.open, std.open === open, platform)", want: "function true wasi"},
		"classic script":     {text: "var o = { a: 1 }; with (o) print(a, this === globalThis)", want: "1 true"},
		"timers":             {text: "const t = setTimeout(print, 1, 'no'); clearTimeout(t); clearTimeout(undefined); let n = 0; const i = setInterval(() => { if (++n == 3) { clearInterval(i); print(n) } }); setTimeout(print, 500, 'late', 2)", want: "3\nlate 2"},
		"console":            {text: "console.log(1, 'a', null, undefined, Symbol.iterator.description); console.info(2); console.debug(3)", want: "1 a null undefined Symbol.iterator\n2\n3"},
		"prelude is hidden":  {text: "for (const k in globalThis) if (/Timeout|Interval/.test(k)) print(k); print(Object.keys(console).length)", want: "1"},
		"BigInt":             {text: "print(2n ** 100n); try { JSON.stringify(1n) } catch (e) { print(e.name) }", want: "1267650600228229401496703205376\nTypeError"},
		"Date":               {text: "print(new Date(0).toString(), new Date(Date.UTC(2024, 1, 29, 12)).toISOString(), new Date(NaN).getTime(), Math.abs(Date.now() - os.stat('/skill/main.js')[0].mtime) < 3.6e6)", want: "Thu Jan 01 1970 00:00:00 GMT+0000 2024-02-29T12:00:00.000Z NaN true"},
		"JSON":               {text: `print(JSON.stringify({ a: undefined, b: NaN, c: -0, d: 1e21, e: 0.1 + 0.2, f: "\ud800\u2028\u0000", ["__proto__"]: 1 }), JSON.parse('{"a":1,"a":2}').a, JSON.parse("1e400"))`, want: `{"b":null,"c":0,"d":1e+21,"e":0.30000000000000004,"f":"\ud800` + "\u2028" + `\u0000","__proto__":1} 2 Infinity`},
		"Unicode":            {text: `print("ß".toUpperCase(), "é".normalize("NFD").length, [..."😀é"].length, /^\p{Lu}\p{L}+$/u.test("Élan"), "z".localeCompare("a"))`, want: "SS 2 2 true 1"},
		"what is not there":  {text: "print([typeof Intl, typeof fetch, typeof require, typeof process, typeof TextEncoder, typeof URL, typeof structuredClone, typeof os.Worker].join())", want: strings.TrimSuffix(strings.Repeat("undefined,", 8), ",")},
		"deep but not too":   {text: "const f = n => n ? f(n - 1) + 1 : 0; print(f(800)); print(JSON.stringify(JSON.parse('['.repeat(500) + ']'.repeat(500))).length)", want: "800\n1000"},
		"map within map":     {text: "const f = n => n ? [n].map(n => f(n - 1))[0] + 1 : 0; print(f(200))", want: "200"},
		"shebang":            {text: "#!/usr/bin/env qjs\nprint('ok')", want: "ok"},
		"many arguments":     {text: "print(Math.max(...new Array(65000).fill(3)))", want: "3"},
		"still there, after": {text: "try { (function f() { f() })() } catch (e) { print(e.name) } print([3, 1, 2].map(x => x * 2).sort().join())", want: "RangeError\n2,4,6"},
	} {
		t.Run(name, func(t *testing.T) {
			call := script(t, c.text, c.files...)
			call.Args, call.Stdin = []string{"a", "b c"}, []byte(c.stdin)
			reply := run(t, call)
			if diff := cmp.Diff(c.want+"\n", string(reply.Stdout)); diff != "" || reply.Code != "" || reply.ExitCode != 0 {
				t.Errorf("code %q, exit code %d, stdout (-want +got):\n%s\n%s", reply.Code, reply.ExitCode, diff, reply.Stderr)
			}
		})
	}
}

func TestConsoleErrors(t *testing.T) {
	reply := running(t)(t, script(t, "console.error('e', 1, Symbol('s'), null); console.warn(); print('out')"))
	if string(reply.Stdout) != "out\n" || string(reply.Stderr) != "e 1 Symbol(s) null\n\n" || reply.ExitCode != 0 {
		t.Errorf("stdout %q, stderr %q", reply.Stdout, reply.Stderr)
	}
}

func TestSubfolder(t *testing.T) {
	c := script(t, "", "scripts/tool.js", "import { n } from '../lib.js'; print(scriptArgs[0], n)", "lib.js", "export const n = 1")
	c.Entry = "scripts/tool.js"
	if reply := running(t)(t, c); string(reply.Stdout) != "/skill/scripts/tool.js 1\n" {
		t.Errorf("%s%s", reply.Stdout, reply.Stderr)
	}
}

func TestChance(t *testing.T) {
	run := running(t)
	c := script(t, "print(Math.random())")
	if a, b := run(t, c), run(t, c); string(a.Stdout) == string(b.Stdout) || len(a.Stdout) == 0 {
		t.Errorf("%q twice", a.Stdout)
	}
}

// BenchmarkCall is the start of an interpreter and its end.
func BenchmarkCall(b *testing.B) {
	run := running(b)
	c := script(b, "std.out.puts(JSON.stringify(JSON.parse(std.in.readAsString()).input))")
	c.Stdin = []byte(`{"input":{"a":1}}`)
	for b.Loop() {
		if reply := run(b, c); string(reply.Stdout) != `{"a":1}` {
			b.Fatal(reply)
		}
	}
}
