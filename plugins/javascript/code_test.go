package javascript

import (
	"strings"
	"testing"

	"openskill/sdk/skill"
)

// TestCode: code has the value of its last expression, require and top-level await.
func TestCode(t *testing.T) {
	needsNode(t)
	do := running(t)
	for name, c := range map[string]struct {
		file, text string
		out, value string
		err        string
		exit       uint32
	}{
		"a value":             {text: "const x = [1, 2]; x.map((n) => n * 2)", value: `{"value":[2,4]}`},
		"an object":           {text: "({ a: 1 })", value: `{"value":{"a":1}}`},
		"nothing":             {text: "console.log(1)", out: "1\n"},
		"a function":          {text: "(function f() {})", value: `{"repr":"[Function: f]"}`},
		"a large number":      {text: "10n", value: `{"repr":"10n"}`},
		"a promise":           {text: "(async () => 5)()", value: `{"value":5}`},
		"require":             {text: "require('path').join('a', 'b')", value: `{"value":"a/b"}`},
		"await":               {text: "const n = await Promise.resolve(5);\nconsole.log(n, typeof require)", out: "5 function\n"},
		"import":              {text: "import fs from 'fs';\nconsole.log(fs.readFileSync('in.txt', 'utf8'))", out: "hay\n"},
		"a file":              {text: "require('fs').readFileSync('in.txt', 'utf8')", value: `{"value":"hay"}`},
		"a module of its own": {text: "require('./helper.js').twice(4)", value: `{"value":8}`},
		"TypeScript":          {file: "main.ts", text: "const x: number = 3; x + 1", value: `{"value":4}`},
		"later":               {text: "setTimeout(() => console.log('later'), 1); 7", out: "later\n", value: `{"value":7}`},
		"an error":            {text: "let a = 1;\nnull.x", err: "main.js:2", exit: 1},
		"no JavaScript":       {text: "no javascript", err: "main.js:1", exit: 1},
		"an awaited error":    {text: "await Promise.reject(new Error('why'))", err: "Error: why", exit: 1},
		"what another left":   {text: "[typeof kept, require('fs').existsSync('/tmp/left'), typeof process.env.OPENSKILL_CODE]", value: `{"value":["undefined",false,"undefined"]}`},
	} {
		t.Run(name, func(t *testing.T) {
			if c.file == "" {
				c.file = "main.js"
			}
			call := script(t, "")
			call.SkillID, call.Entry, call.Script, call.Code = skill.RunCode, c.file, true, true
			call.Limits.Memory = 64 << 20
			files := []skill.File{{Name: "in.txt", Data: []byte("hay")}, {Name: "helper.js", Data: []byte("exports.twice = (n) => 2 * n")}}
			for range 2 {
				before := *call
				before.Entry, before.Files = "main.js", []skill.File{{Name: "main.js", Data: []byte("globalThis.kept = 1; require('fs').writeFileSync('/tmp/left', '')")}}
				do(t, &before)
				call.Files = append([]skill.File{{Name: c.file, Data: []byte(c.text)}}, files...)
				r := do(t, call)
				if string(r.Stdout) != c.out || string(r.Value) != c.value || r.ExitCode != c.exit || !strings.Contains(string(r.Stderr), c.err) || c.err == "" && len(r.Stderr) > 0 {
					t.Errorf("%q, value %s, exit code %d %s\n%s", r.Stdout, r.Value, r.ExitCode, r.Code, r.Stderr)
				}
			}
		})
	}
}
