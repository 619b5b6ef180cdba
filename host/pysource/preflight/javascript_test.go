package preflight_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"openskill/host/pysource/preflight"
	"openskill/internal/musttest"
	"openskill/plugins/javascript"
	"openskill/plugins/runnertest"
	"openskill/sdk/skill"
)

// What the check calls "runs" runs in the sandbox, and what "cannot run" fails there.
func TestJavaScriptIsAsChecked(t *testing.T) {
	if !javascript.HasNode() {
		t.Skip("Node's modules are not installed: make node-modules")
	}
	o := options(t)
	r := javascript.New(shared.Engine(), nil)
	defer r.Close()
	for verdict, texts := range map[preflight.Severity][]string{
		preflight.Runs: {
			"console.table([{ a: 1 }]); console.group('x'); console.groupEnd(); console.count(); console.time(); console.assert(true); console.dir({}); console.log({}, '%d');",
			"console.log((1).toLocaleString(), (1).toLocaleString('en-US', { style: 'currency', currency: 'EUR' }), (1).toLocaleString(undefined, { minimumFractionDigits: 2 }));",
			"console.log(new Date(0).toLocaleDateString('en-US', { timeZone: 'UTC' }), new Date(0).toLocaleString(), new Date(0).toLocaleTimeString(undefined));",
			"console.log(['b', 'a'].sort((x, y) => x.localeCompare(y)), 'a'.localeCompare('b', 'de', { numeric: true }), 'a'.toLocaleUpperCase('de'));",
			"console.log(/[\\p{L}a-z]/v.test('A'), performance.now() > 0, Symbol.iterator, 'a--b', 1 && 2);",
			"require('child_process').execSync;", "const stack = []; stack.push(1); const urls = { URL: 1 }; console.log(urls.URL);",
			"import d from './data.json' with { type: 'json' }; console.log(d.a);", "const d = require('./data'); console.log(d.a);",
			"console.log(structuredClone({}), btoa('x'), atob('eA==')); setImmediate(() => {});", "try { null.x } catch (e) { console.error(e.stack) }",
			"console.log(new URL('http://a/b').pathname, new URLSearchParams('a=1'), URL.canParse('x'));", "new AbortController(); new EventTarget(); new Blob([]); new ReadableStream(); new TextEncoder();",
			"console.log(crypto.randomUUID()); global.x = 1; performance.mark('a'); module.exports = {}; exports.a = 1;", "console.log(new Date(0).toLocaleDateString('en-US', { month: 'long', timeZone: 'UTC' }), process.argv, Buffer.from('a'), __dirname, new Intl.NumberFormat().format(1));",
			"const https = require('https'); console.log(typeof https.get);", "console.log(typeof (() => fetch('http://a')));",
			"import * as std from 'std';\nimport * as os from 'os';\nconsole.log(os.getcwd()[0], typeof std.loadFile);",
		},
		preflight.MayDiffer: {
			"const lang = 'en-US'; console.log((1).toLocaleString(lang));",
		},
		preflight.CannotRun: {
			"import d from './none.json';", "require('better-sqlite3');", "new (require('worker_threads').Worker)('x');", "require('net').connect(1);",
			"console.log(/[\\p{L}--[a-z]]/v.test('A'));",
			"console.log((1).toLocaleString('de-DE'));",
			"console.log((1).toLocaleString(['de-DE', 'en']));",
			"console.log((1).toLocaleString('en-US', { notation: 'compact' }));",
			"console.log(new Date(0).toLocaleString('en-US', { timeZone: 'Europe/Berlin' }));",
			"console.log(['a'].concat('b').sort((x, y) => x.localeCompare(y, 'sv')));",
			"console.log('i'.toLocaleUpperCase('tr-TR'));",
			"Atomics.load;", "WebAssembly.validate;", "Deno.args;", "new Worker('x');",
		},
	} {
		for _, text := range texts {
			dir := t.TempDir()
			for name, text := range map[string]string{"main.js": text + "\n", "data.json": `{"a": 1}`} {
				musttest.Do(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
			}
			root := musttest.Get(os.OpenRoot(dir))(t)
			report, err := preflight.Check(t.Context(), root, o)
			_ = root.Close()
			if err != nil || report.Verdict != verdict {
				t.Errorf("%s: %v, %q, %v; want %s", text, report.Verdict, seen(report), err, verdict)
			}
			reply, err := runnertest.Do(t.Context(), r, &skill.Call{
				SkillID: "s", TraceID: "t", ExecutionID: "e", Folder: dir, Entry: "main.js", Script: true, Digest: dir,
				Limits: skill.Limits{Timeout: 10 * time.Second, Memory: 64 << 20, Fuel: 1e9, Output: 1 << 16, Scratch: 1 << 20},
			})
			if err != nil || (reply.ExitCode == 0 && reply.Code == "") != (verdict != preflight.CannotRun) {
				t.Errorf("%s: %v, exit code %d %s\n%s", text, err, reply.ExitCode, reply.Code, reply.Stderr)
			}
		}
	}
}
