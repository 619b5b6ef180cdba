package javascript

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"openskill/internal/musttest"
	"openskill/plugins/runnertest"
	"openskill/sdk/skill"
)

// What a folder may hold to harm the loader ends in an error of the script, within its limits.
func TestNodeLoaderIsBounded(t *testing.T) {
	needsNode(t)
	run := running(t)
	for name, c := range map[string]struct {
		main   string
		files  []string
		prints string // on standard output
		fails  string // on standard error, with exit code 1
	}{
		"a large package.json": {
			main: "require('big')", files: []string{"node_modules/big/package.json", `{"main": "x.js", "more": "` + strings.Repeat("x", 2<<20) + `"}`, "node_modules/big/x.js", ""},
			fails: "ERR_INVALID_PACKAGE_CONFIG",
		},
		"a broken package.json":      {main: "require('bad')", files: []string{"node_modules/bad/package.json", `{"main": `}, fails: "ERR_INVALID_PACKAGE_CONFIG"},
		"main leads out":             {main: "require('out')", files: []string{"node_modules/out/package.json", `{"main": "../../../../../../etc/passwd"}`}, fails: "MODULE_NOT_FOUND"},
		"exports leads out":          {main: "require('out')", files: []string{"node_modules/out/package.json", `{"exports": "./../../x.js"}`, "x.js", ""}, fails: "ERR_INVALID_PACKAGE_TARGET"},
		"exports by a star":          {main: "require('out/../../x')", files: []string{"node_modules/out/package.json", `{"exports": {"./*": "./src/*.js"}}`, "x.js", ""}, fails: "ERR_INVALID_PACKAGE_TARGET"},
		"a file of the host":         {main: "console.log(require('fs').existsSync('/etc/passwd'), require('fs').existsSync('../../../../etc'))", prints: "false false\n"},
		"names that are no packages": {main: "for (const n of ['@', '@a', '..%2fx', 'a\\\\b', ' ']) { try { require(n) } catch (e) { console.log(e.code) } }", prints: strings.Repeat("MODULE_NOT_FOUND\n", 5)},
		"a cycle of packages":        {main: "console.log(require('a').b.a.name)", files: []string{"node_modules/a/index.js", "exports.name = 'a'; exports.b = require('b')", "node_modules/b/index.js", "exports.a = require('a')"}, prints: "a\n"},
		"a cycle of imports": {
			main: "import './a.mjs'", files: []string{"package.json", `{"type": "module"}`, "a.mjs", "import { b } from './b.mjs'; export const a = 1; console.log(b())", "b.mjs", "import { a } from './a.mjs'; export const b = () => a"},
			prints: "1\n",
		},
		"a package that is a native add-on": {main: "require('./x.node')", files: []string{"x.node", "\x7fELF"}, fails: "native add-ons do not run"},
		"a prototype is no module":          {main: "for (const n of ['constructor', '__proto__', 'toString']) { try { require(n) } catch (e) { console.log(e.code) } }", prints: strings.Repeat("MODULE_NOT_FOUND\n", 3)},
		"TypeScript without an end":         {main: "require('./deep.ts')", files: []string{"deep.ts", "const x: number = " + strings.Repeat("(", 20000)}, fails: "Error"},
		"large TypeScript":                  {main: "require('./large.ts')", files: []string{"large.ts", "const x: string = '" + strings.Repeat("x", 3<<20) + "'"}, fails: "ERR_MODULE_TOO_LARGE"},
	} {
		t.Run(name, func(t *testing.T) {
			files := append([]string{"run.js", c.main + "\n"}, c.files...)
			call := script(t, "", files...)
			call.Script, call.Entry = true, "run.js"
			call.Limits.Memory = 64 << 20
			r := run(t, call)
			switch {
			case c.fails != "":
				if r.ExitCode != 1 || !strings.Contains(string(r.Stderr), c.fails) {
					t.Errorf("exit code %d %s\n%s", r.ExitCode, r.Code, r.Stderr)
				}
			case r.ExitCode != 0 || r.Code != "" || string(r.Stdout) != c.prints:
				t.Errorf("exit code %d %s, %q, want %q\n%s", r.ExitCode, r.Code, r.Stdout, c.prints, r.Stderr)
			}
		})
	}
}

// Links among packages end, and a link out of the folder is not followed.
func TestNodeLinks(t *testing.T) {
	needsNode(t)
	run := running(t)
	c := script(t, "", "run.js", "for (const n of ['loop', 'out', 'self/self/self']) { try { console.log(require(n)) } catch (e) { console.log(e.code) } }\n", "node_modules/x/index.js", "")
	out := t.TempDir()
	musttest.Do(t, os.WriteFile(filepath.Join(out, "index.js"), []byte("module.exports = 'secret'"), 0o600))
	for name, to := range map[string]string{"loop": "loop", "out": out, "self": "."} {
		musttest.Do(t, os.Symlink(to, filepath.Join(c.Folder, "node_modules", name)))
	}
	c.Script, c.Entry = true, "run.js"
	if r := run(t, c); r.ExitCode != 0 || strings.Contains(string(r.Stdout), "secret") || strings.Count(string(r.Stdout), "MODULE_NOT_FOUND") != 3 {
		t.Errorf("exit code %d %s, %q\n%s", r.ExitCode, r.Code, r.Stdout, r.Stderr)
	}
}

// A script loads ten thousand modules, and no more.
func TestNodeModulesAreCounted(t *testing.T) {
	needsNode(t)
	run := running(t)
	c := script(t, "", "run.js", `
const fs = require('fs');
fs.mkdirSync('/tmp/m');
fs.writeFileSync('/tmp/m/x.js', 'module.exports = 1');
let n = 0;
try { for (; n < 20000; n++) { require('/tmp/m/x.js'); delete require.cache['/tmp/m/x.js']; } } catch (e) { console.log(n, e.code); }
`)
	c.Script, c.Entry = true, "run.js"
	c.Limits.Memory, c.Limits.Fuel = 128<<20, 200e9
	if r := run(t, c); string(r.Stdout) != "9999 ERR_TOO_MANY_MODULES\n" {
		t.Errorf("exit code %d %s, %q\n%s", r.ExitCode, r.Code, r.Stdout, r.Stderr)
	}
}

// A script takes what one of another run left nowhere.
func TestNodeRunsAreApart(t *testing.T) {
	needsNode(t)
	run := running(t)
	c := script(t, "", "run.js", "console.log(globalThis.left, require('fs').existsSync('/tmp/left'), require('path').left, process.argv[2], process.env.A); globalThis.left = 1; require('path').left = 1; require('fs').writeFileSync('/tmp/left', ''); console.log(Math.random(), crypto.randomUUID());\n")
	c.Script, c.Entry = true, "run.js"
	seen := map[string]bool{}
	for i := range 3 {
		c.Args, c.Grants.Env = []string{fmt.Sprint("arg", i)}, []string{fmt.Sprint("A=", i)}
		r := run(t, c)
		first, second, _ := strings.Cut(string(r.Stdout), "\n")
		if want := fmt.Sprintf("undefined false undefined arg%d %d", i, i); r.ExitCode != 0 || first != want || seen[second] {
			t.Errorf("%q, want %q and other random numbers\n%s", r.Stdout, want, r.Stderr)
		}
		seen[second] = true
	}
}

// answers is a network with one server.
type answers struct{}

func (answers) For(*skill.Call) skill.Fetch {
	return func(_ context.Context, request []byte) []byte {
		line, body, _ := strings.Cut(string(request), "\n")
		var head struct {
			Method, URL string
			Headers     map[string]string
		}
		if err := json.Unmarshal([]byte(line), &head); err != nil {
			return []byte(`{"status": 0, "headers": {}, "error": {"code": "INVALID_ARGUMENT", "message": "no request"}}` + "\n")
		}
		if strings.Contains(head.URL, "denied") {
			return []byte(`{"status": 0, "headers": {}, "error": {"code": "NETWORK_DENIED", "message": "no rule allows it"}}` + "\n")
		}
		status := 200
		if strings.HasSuffix(head.URL, "/missing") {
			status = 404
		}
		echo, err := json.Marshal(map[string]any{"method": head.Method, "url": head.URL, "type": head.Headers["content-type"], "own": head.Headers["x-own"], "body": body})
		if err != nil {
			panic(err)
		}
		return fmt.Appendf(nil, `{"status": %d, "url": %q, "headers": {"content-type": ["application/json"], "set-cookie": ["a=1", "b=2"]}, "error": null}`+"\n%s", status, head.URL, echo)
	}
}

// fetch, http and https ask the host.
func TestNodeNetwork(t *testing.T) {
	needsNode(t)
	r := New(warm(t), &Options{Outgoing: answers{}})
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	c := script(t, "", "run.mjs", `
import https from 'node:https';
const r = await fetch('https://api.example/x?q=1#part', { method: 'POST', body: JSON.stringify({ a: 1 }), headers: { 'X-Own': 'yes', 'Content-Type': 'application/json' } });
console.log(r.status, r.ok, r.statusText, r.headers.get('content-type'), r.headers.getSetCookie(), await r.json());
console.log((await fetch(new URL('https://api.example/missing'))).ok);
await fetch('https://denied.example/').catch((e) => console.log(e.name, e.message, e.cause.code, e.cause.message));
const form = new FormData(); form.append('k', 'v'); console.log((await (await fetch('https://h/', { method: 'POST', body: form })).json()).type.split(';')[0]);
console.log((await (await fetch('https://h/', { method: 'POST', body: new URLSearchParams({ a: 'b c' }) })).json()).body);
https.get('https://api.example:8443/path', { headers: { 'x-own': '1' } }, (res) => {
  let text = ''; res.setEncoding('utf8');
  res.on('data', (d) => { text += d; }); res.on('end', () => console.log(res.statusCode, res.headers['content-type'], text));
});
const post = https.request({ hostname: 'h', path: '/p', method: 'POST' }, (res) => { console.log(res.headers['set-cookie']); res.resume(); }); post.write('part '); post.end('end');
https.get('https://denied.example/').on('error', (e) => console.log(e.code));
await fetch('https://h/', { signal: AbortSignal.abort() }).catch((e) => console.log(e.name));
`)
	c.Script, c.Entry = true, "run.mjs"
	reply := musttest.Get(runnertest.Do(t.Context(), r, c))(t)
	const want = `200 true OK application/json [ 'a=1', 'b=2' ] {
  body: '{"a":1}',
  method: 'POST',
  own: 'yes',
  type: 'application/json',
  url: 'https://api.example/x?q=1'
}
false
TypeError fetch failed EACCES NETWORK_DENIED: no rule allows it
multipart/form-data
a=b+c
AbortError
200 application/json {"body":"","method":"GET","own":"1","type":"","url":"https://api.example:8443/path"}
[ 'a=1', 'b=2' ]
EACCES
`
	if string(reply.Stdout) != want || reply.ExitCode != 0 {
		t.Errorf("exit code %d, got\n%s\nwant\n%s\n%s", reply.ExitCode, reply.Stdout, want, reply.Stderr)
	}
}

func BenchmarkNode(b *testing.B) {
	needsNode(b)
	r := New(warm(b), nil)
	defer r.Close()
	c := script(b, "", "run.js", "console.log(1)\n")
	c.Script, c.Entry, c.Trust = true, "run.js", skill.Community
	for b.Loop() {
		if reply, err := runnertest.Do(b.Context(), r, c); err != nil || reply.ExitCode != 0 {
			b.Fatal(reply, err)
		}
	}
}
