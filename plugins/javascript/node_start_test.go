package javascript

import (
	"strings"
	"testing"
)

// Starting a script takes fuel by its length, and little before that.
func TestNodeStartsCheaply(t *testing.T) {
	needsNode(t)
	run := running(t)
	for name, c := range map[string]struct {
		text string
		most uint64
	}{
		"nothing":      {"", 2_500_000},
		"64 KiB":       {strings.Repeat("// what it exports, and what it may import as a module\n", 1192), 90_000_000},
		"no such word": {strings.Repeat("// a line about something else, of the same length ...\n", 1192), 40_000_000},
	} {
		call := script(t, "", "run.js", c.text+"console.log(typeof require)\n")
		call.Script, call.Entry = true, "run.js"
		r := run(t, call)
		if string(r.Stdout) != "function\n" {
			t.Errorf("%s: stdout %q, exit code %d, stderr:\n%s", name, r.Stdout, r.ExitCode, r.Stderr)
		}
		if r.Usage.Fuel > c.most {
			t.Errorf("%s: %d units of fuel, want at most %d", name, r.Usage.Fuel, c.most)
		}
	}
}

// A file without a type is a module where a statement of modules begins a line.
func TestNodeTellsModules(t *testing.T) {
	needsNode(t)
	run := running(t)
	for text, module := range map[string]bool{
		"import 'os'":                                      true,
		"\n\t \r\n  import fs from 'fs'":                   true,
		"1\n  import { join } from 'path'":                 true,
		"1; import('os')":                                  false,
		"// import fs from 'fs'":                           false,
		"const s = ` x import 'os'`":                       false,
		"const important = 1":                              false,
		"\n\nexport const a = 1":                           true,
		"\n  export default 1":                             true,
		"exports.a = 1; module.exports = 1":                false,
		"const o = { export: 1,\nexported: 1, import: 1 }": false,
		"globalThis.u = import.meta.url":                   true,
		"globalThis.u = 'import.metal'":                    false,
	} {
		call := script(t, "", "run.js", text+"\n;console.log(typeof require)\n")
		call.Script, call.Entry = true, "run.js"
		want := "function\n"
		if module {
			want = "undefined\n"
		}
		if r := run(t, call); string(r.Stdout) != want {
			t.Errorf("%q: stdout %q, want %q; exit code %d, stderr:\n%s", text, r.Stdout, want, r.ExitCode, r.Stderr)
		}
	}
}

// A turn of the event loop waits for nothing; a timer of the platform waits a millisecond at
// least, so that those set first run first.
func TestTimersWithoutDelay(t *testing.T) {
	run := running(t)
	text := "%s.setTimeout(() => console.log('one'), 1); %s.setTimeout(() => console.log('none'), 0);\n"
	for of, want := range map[string]string{"globalThis.os": "none\none\n", "globalThis": "one\nnone\n"} {
		c := script(t, strings.ReplaceAll(text, "%s", of))
		if r := run(t, c); string(r.Stdout) != want {
			t.Errorf("%s: stdout %q, want %q; exit code %d, stderr:\n%s", of, r.Stdout, want, r.ExitCode, r.Stderr)
		}
	}
}
