package javascript

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	quickjswasi "github.com/paralin/go-quickjs-wasi"

	"openskill/internal/musttest"
	"openskill/plugins/runnertest"
	"openskill/sdk/skill"
)

// nestings nest without an end or deeply, each through another part of QuickJS. A
// stack without a limit would be overrun by each of them, into the interpreter's
// own data.
var nestings = map[string]string{
	"function":         "const f = n => f(n + 1) + 1; f(0)",
	"many arguments":   "const f = (...a) => f(...a, 1); f()",
	"large frame":      "const f = () => { const a = [" + strings.Repeat("1,", 500) + "]; return f() + a.length }; f()",
	"constructor":      "class A { constructor() { new A() } } new A()",
	"getter":           "({ get x() { return this.x } }).x",
	"conversion":       "const o = { toString: () => String(o) }; String(o)",
	"primitive":        "const o = { [Symbol.toPrimitive]: () => +o }; +o",
	"callback":         "const f = () => [1].map(f); f()",
	"sort":             "[3, 1].sort(function c() { return [1, 2].sort(c)[0] })",
	"replace":          "'a'.replace(/a/, function r() { return 'a'.replace(/a/, r) })",
	"generator":        "function* g() { yield* g() } [...g()]",
	"bound":            "let f = () => f.bind(null)(); f()",
	"proxy":            "let p = {}; for (let i = 0; i < 1e5; i++) p = new Proxy(p, {}); p.x",
	"reflection":       "const f = () => Reflect.apply(f, null, []); f()",
	"eval":             "globalThis.e = () => (0, eval)('e()'); e()",
	"reviver":          "const f = () => JSON.parse('[1]', f); f()",
	"toJSON":           "const o = { toJSON: () => JSON.stringify(o) }; JSON.stringify(o)",
	"JSON.parse":       "JSON.parse('['.repeat(1e6))",
	"JSON.parse, maps": `JSON.parse('{"a":'.repeat(1e6))`,
	"JSON.stringify":   "let x = []; for (let i = 0; i < 1e5; i++) x = [x]; JSON.stringify(x)",
	"flat":             "let x = []; for (let i = 0; i < 1e5; i++) x = [x]; x.flat(Infinity)",
	"bjson":            "let x = []; for (let i = 0; i < 1e5; i++) x = [x]; bjson.write(x)",
	"parentheses":      "eval('('.repeat(1e6))",
	"brackets":         "eval('['.repeat(1e6))",
	"blocks":           "eval('{'.repeat(1e6))",
	"unary":            "eval('-'.repeat(1e6) + 1)",
	"conditionals":     "eval('1?'.repeat(1e6))",
	"arrows":           "eval('x=>'.repeat(1e5) + 1)",
	"statements":       "eval('if(1)'.repeat(1e5) + ';')",
	"templates":        "eval('`${'.repeat(1e5))",
	"new":              "eval('new '.repeat(1e5) + 'x')",
	"powers":           "eval('1**'.repeat(1e5) + 1)",
	"RegExp":           "new RegExp('(?:'.repeat(1e6))",
	"lookaheads":       "new RegExp('(?='.repeat(1e4) + 'a' + ')'.repeat(1e4)).test('a')",
}

// Recursion without an end is a RangeError as in every JavaScript, which a script
// can catch and go on; a regular expression has a SyntaxError for it.
func TestNesting(t *testing.T) {
	run := running(t)
	texts := musttest.Get(json.Marshal(nestings))(t)
	c := script(t, `
const said = {};
for (const [name, text] of Object.entries(JSON.parse(std.in.readAsString()))) {
  try { (0, eval)('{' + text + '}'); said[name] = 'ended well' } catch (e) { said[name] = e.name + ': ' + e.message }
}
print(JSON.stringify(said))`)
	c.Stdin, c.Limits.Memory, c.Limits.Fuel = texts, 256<<20, 1e11
	reply := run(t, c)
	var said map[string]string
	if err := json.Unmarshal(reply.Stdout, &said); err != nil || reply.Code != "" {
		t.Fatalf("code %q (%s), %v: %.300s\n%s", reply.Code, reply.Message, err, reply.Stdout, reply.Stderr)
	}
	for name := range nestings {
		switch got := said[name]; got {
		case "RangeError: Maximum call stack size exceeded", "SyntaxError: stack overflow":
		default:
			t.Errorf("%s: %q; want an error of the stack", name, got)
		}
	}
	// Not caught, it is the script's own failure.
	reply = run(t, script(t, nestings["function"]))
	if reply.Code != "" || reply.ExitCode != 1 || !strings.Contains(string(reply.Stderr), "RangeError: Maximum call stack size exceeded\n    at f (/skill/main.js") {
		t.Errorf("code %q, exit code %d\n%.300s", reply.Code, reply.ExitCode, reply.Stderr)
	}
}

// As upstream built it, the module loses its own data to a recursion that is no
// deeper than many honest ones: the reason why it is not run as it is.
func TestUpstreamOverrunsItsStack(t *testing.T) {
	r := New(warm(t), nil)
	defer r.Close()
	c := script(t, "const f = n => n ? f(n - 1) + 1 : 0; print(f(600))")
	if reply, err := runnertest.Do(t.Context(), r, c); err != nil || string(reply.Stdout) != "600\n" {
		t.Fatalf("%+v, %v; want 600", reply, err)
	}
	r.runtime = func() runtime { return runtime{module: quickjswasi.QuickJSWASM, digest: upstreamDigest} }
	reply, err := runnertest.Do(t.Context(), r, c)
	if err != nil || reply.Code != skill.Trap {
		t.Errorf("%+v, %v; want TRAP: if upstream has mended it, derive is no longer needed", reply, err)
	}
}

// Another module than the known one is refused: its functions have other numbers.
func TestDeriveKnowsItsModule(t *testing.T) {
	if _, err := derive(append(bytes.Clone(quickjswasi.QuickJSWASM), 0)); err == nil || !strings.Contains(err.Error(), upstreamDigest) {
		t.Errorf("%v; want the digest", err)
	}
	rt := newRuntime()
	if rt.err != nil || rt.digest == upstreamDigest || len(rt.module) > len(quickjswasi.QuickJSWASM) {
		t.Errorf("%v, %s, %d bytes", rt.err, rt.digest, len(rt.module))
	}
	if again := newRuntime(); again.digest != rt.digest {
		t.Errorf("derived twice: %s and %s", rt.digest, again.digest)
	}
	// What cannot run is the host's failure, told without its words.
	r := New(nil, nil)
	r.runtime = func() runtime { return runtime{err: errOther} }
	if err := runnertest.Ready(t.Context(), r); skill.CodeOf(err) != skill.Internal || !strings.Contains(err.Error(), errOther.Error()) {
		t.Errorf("%v; want INTERNAL", err)
	}
}

var errOther = errors.New("another")
