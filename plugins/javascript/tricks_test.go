package javascript

import (
	"strings"
	"testing"

	"openskill/sdk/skill"
)

// TestTricks has scripts do what few do, before they read their input and after. Each
// does the same in each of its calls, on an instance that is new and on one that served
// others.
func TestTricks(t *testing.T) {
	run := running(t)
	for name, c := range map[string]struct {
		text   string
		files  []string
		code   skill.Code
		exit   uint32
		want   string // on standard output, of a call with the input IN
		stderr string // in standard error
	}{
		// What is printed before the read is part of each call, once and in its place.
		"prints before":              {text: "print('a'); console.error('e'); IN(); print('b')", want: "a\nb\n", stderr: "e\n"},
		"prints before, in parts":    {text: "std.out.puts('a'); std.out.flush(); std.out.puts('b'); print(IN())", want: "abIN\n"},
		"prints much before":         {text: "print('a'.repeat(100000)); print(IN())", want: strings.Repeat("a", 100_000) + "\nIN\n"},
		"a generator in the middle":  {text: "function* g() { print('a'); print(yield) } const i = g(); i.next(); i.next(IN())", want: "a\nIN\n"},
		"a promise in the middle":    {text: "Promise.resolve(1).then(() => print(IN())); print('a')", want: "a\nIN\n"},
		"awaited":                    {text: "await null; const s = await new Promise(r => setTimeout(() => r(IN()), 1)); print(s)", want: "IN\n"},
		"a timer from before":        {text: "setTimeout(() => print('late'), 1); print(IN())", want: "IN\nlate\n"},
		"in an import":               {text: "import { got } from './sub.mjs'; print(got)", files: []string{"sub.mjs", "import * as std from 'std'; export const got = std.in.readAsString()"}, want: "IN\n"},
		"in a handler of an error":   {text: "try { null.x } catch (e) { print(IN(), e.name) }", want: "IN TypeError\n"},
		"in a getter":                {text: "const o = { get x() { return IN() } }; print(JSON.stringify(o))", want: `{"x":"IN"}` + "\n"},
		"in a proxy":                 {text: "print(new Proxy({}, { get: () => IN() }).x)", want: "IN\n"},
		"in a sort":                  {text: "print([2, 1].sort((a, b) => (IN(), a - b)).join())", want: "1,2\n"},
		"in a replacement":           {text: "print('x'.replace(/x/, () => IN()))", want: "IN\n"},
		"in JSON":                    {text: "print(JSON.parse('[1]', (k, v) => k === '0' ? IN() : v)[0])", want: "IN\n"},
		"in an evaluated script":     {text: "print(std.evalScript('std.in.readAsString()'))", want: "IN\n"},
		"in the end of a for":        {text: "for (const x of { [Symbol.iterator]: () => ({ next: () => ({ value: 1 }), return: () => (print(IN()), {}) }) }) break", want: "IN\n"},
		"never, and an error":        {text: "print('a'); null.x", exit: 1, want: "a\n", stderr: "TypeError"},
		"collected before and after": {text: "let x = Array(1e4).fill({}); x = null; std.gc(); print(IN()); std.gc()", want: "IN\n"},

		// What is replaced is replaced for the script alone.
		"JSON replaced":            {text: "JSON.stringify = () => 'mine'; IN(); print(JSON.stringify(1))", want: "mine\n"},
		"input closed":             {text: "try { std.in.close() } catch (e) { print(e.name) } print(IN())", want: "TypeError\nIN\n"},
		"descriptor closed":        {text: "os.close(0); print(JSON.stringify(IN()))", want: "\"\"\n"},
		"reads replaced":           {text: "const p = Object.getPrototypeOf(std.in), old = p.getline; p.getline = function () { return 'mine ' + old.call(this) }; print(std.in.getline(), std.in.getline())", want: "mine IN mine null\n"},
		"arrays of numbers gone":   {text: "delete globalThis.Uint32Array; print(IN(), Math.random() < 1)", want: "IN true\n"},
		"classes of all kinds":     {text: "for (const n of ['Object', 'Array', 'Function', 'Reflect', 'Math', 'Uint32Array', 'ArrayBuffer']) globalThis[n] = null; print(IN())", want: "IN\n"},
		"prototypes without all":   {text: "const put = print; for (const p of [Array.prototype, Object.prototype, Function.prototype]) for (const n of Object.getOwnPropertyNames(p)) try { delete p[n] } catch {} put(std.in.getline())", want: "IN\n"},
		"globals gone":             {text: "const put = print, read = std.in; for (const n of Object.getOwnPropertyNames(globalThis)) try { delete globalThis[n] } catch {} put(read.getline())", want: "IN\n"},
		"console gone":             {text: "const put = print; globalThis.console = null; put(IN())", want: "IN\n"},
		"all descriptors taken":    {text: "const fds = []; for (;;) { const fd = os.open('/skill/main.js', os.O_RDONLY); if (fd < 0) break; fds.push(fd) } print(fds.length > 50, IN(), Math.random() < 1)", want: "true IN true\n"},
		"frozen before":            {text: "Object.freeze(Math); Object.freeze(Object.getPrototypeOf(std.in)); Object.freeze(globalThis); print(IN(), Math.random() < 1)", want: "IN true\n"},
		"a handler that is a word": {text: "try { os.setReadHandler(0, 'x') } catch (e) { print(e.name) } print(IN())", want: "TypeError\nIN\n"},
		"a name of the prelude":    {text: "import { open } from '/lib/prelude.js'; print(open)", exit: 1, stderr: "SyntaxError"},

		// Files of the skill's own stand before nobody else's.
		"own std":   {text: "import * as s from './std.js'; import { out } from 'std'; print(s.x, typeof out, IN())", files: []string{"std.js", "export const x = 1"}, want: "1 object IN\n"},
		"own names": {text: "import * as s from 'std'; print(typeof s.open, IN())", files: []string{"std", "throw 1", "qjs:std", "throw 1", "std.js", "throw 1"}, want: "function IN\n"},

		// Results that are none.
		"numbers that are none": {text: "IN(); print(JSON.stringify({ a: NaN, b: Infinity, c: 1e400 }))", want: `{"a":null,"b":null,"c":null}` + "\n"},
		"a circle":              {text: "IN(); const a = {}; a.a = a; print(JSON.stringify(a))", exit: 1, stderr: "TypeError: circular reference"},
		"a large integer":       {text: "IN(); print(JSON.stringify({ a: 2n ** 64n }))", exit: 1, stderr: "TypeError"},
		"half a character":      {text: `IN(); print(JSON.stringify("😀".slice(0, 1)))`, want: `"\ud83d"` + "\n"},
		"deep":                  {text: "IN(); let a = []; for (let i = 0; i < 1e5; i++) a = [a]; print(JSON.stringify(a).length)", code: skill.FuelExhausted},
		"prints after its end":  {text: "IN(); print('{}'); setTimeout(() => print('late'), 1)", want: "{}\nlate\n"},
		"exits in a promise":    {text: "Promise.resolve().then(() => std.exit(4)); print(IN())", exit: 4, want: "IN\n"},
		"exits with a word":     {text: "print(IN()); std.exit('x')", want: "IN\n"},
		"exits with much":       {text: "print(IN()); std.exit(2 ** 32 + 9)", exit: 9, want: "IN\n"},
		"exits with less":       {text: "print(IN()); std.exit(-1)", exit: 0xffffffff, want: "IN\n"},
	} {
		t.Run(name, func(t *testing.T) {
			call := script(t, "const IN = () => std.in.readAsString();\n"+c.text, c.files...)
			call.Stdin = []byte("IN")
			for range 2 {
				reply := run(t, call)
				if reply.Code != c.code || reply.ExitCode != c.exit || string(reply.Stdout) != c.want {
					t.Fatalf("%q (%s), exit code %d, %.300q; want %q, %d, %.300q\n%s", reply.Code, reply.Message, reply.ExitCode, reply.Stdout, c.code, c.exit, c.want, reply.Stderr)
				}
				if !strings.Contains(string(reply.Stderr), c.stderr) || c.stderr == "" && len(reply.Stderr) > 0 {
					t.Fatalf("standard error: %s", reply.Stderr)
				}
			}
		})
	}
}
