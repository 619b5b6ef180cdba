package python

import (
	"fmt"
	"strings"
	"testing"

	"openskill/internal/musttest"
	"openskill/plugins/runnertest"
	"openskill/sdk/skill"
)

// code is a call that brings the code along that it runs.
func code(t testing.TB, text string, files ...skill.File) *skill.Call {
	t.Helper()
	return &skill.Call{
		SkillID: "run_code", Folder: t.TempDir(), Entry: "main.py", Script: true, Code: true,
		Files:  append([]skill.File{{Name: "main.py", Data: []byte(text)}}, files...),
		Limits: script(t, "").Limits,
	}
}

// TestCode: code prints, writes artifacts and has the value of its last expression.
func TestCode(t *testing.T) {
	cases := map[string]struct {
		text           string
		files          []skill.File
		out, err, left string
		value          string
		exit           uint32
	}{
		"prints":                {text: "print(1)", out: "1\n"},
		"a value":               {text: "x = [1, 2]\n{'sum': sum(x), 'x': x}", value: `{"value": {"sum": 3, "x": [1, 2]}}`},
		"both":                  {text: "print('a')\n'b'", out: "a\n", value: `{"value": "b"}`},
		"a value that is none":  {text: "None"},
		"a value of an object":  {text: "object.__new__(type('A', (), {'__repr__': lambda s: '<A>'}))", value: `{"repr": "<A>"}`},
		"a value of no number":  {text: "float('nan')", value: `{"repr": "nan"}`},
		"a date":                {text: "import datetime\ndatetime.date(2026, 3, 5)", value: `{"value": "2026-03-05"}`},
		"nothing":               {text: ""},
		"a definition":          {text: "def f(): pass"},
		"a file":                {text: "open('data/in.txt').read()", files: []skill.File{{Name: "data/in.txt", Data: []byte("hay")}}, value: `{"value": "hay"}`},
		"a file in and one out": {text: "open('out.txt', 'w').write(open('in').read() * 2)", files: []skill.File{{Name: "in", Data: []byte("ab")}}, value: `{"value": 4}`, left: "out.txt abab"},
		"a file is changed":     {text: "f = open('in', 'a'); f.write('c'); f.close()", files: []skill.File{{Name: "in", Data: []byte("ab")}}, left: "in abc"},
		"a module of its own":   {text: "import helper\nhelper.twice(4)", files: []skill.File{{Name: "helper.py", Data: []byte("def twice(x): return 2 * x")}}, value: `{"value": 8}`},
		"an error":              {text: "a = 1\n\n1 / 0", err: "File \"/skills/run_code/main.py\", line 3, in <module>\n    1 / 0", exit: 1},
		"an error in the value": {text: "def f():\n    return 1 / 0\nf()", err: "line 3, in <module>\n    f()", exit: 1},
		"no Python":             {text: "x =", err: "File \"/skills/run_code/main.py\", line 1\n    x =", exit: 1},
		"an exit":               {text: "import sys; sys.exit(3)", exit: 3},
		"its arguments":         {text: "import sys; sys.argv, __name__, __file__", value: `{"value": [["main.py"], "__main__", "/skills/run_code/main.py"]}`},
		"a nul":                 {text: "\x00", err: "null bytes", exit: 1},
		"what another one left": {text: "import os; sorted(os.listdir('.')), os.path.exists('/tmp/left')", value: `{"value": [["main.py"], false]}`},
	}
	runners(t, []string{"slim", "python-3.12"}, func(t *testing.T, r *Runner) {
		folder := t.TempDir() // one for all, so that all have an image
		do := func(c *skill.Call) *skill.Reply {
			c.Folder = folder
			return musttest.Get(runnertest.Do(t.Context(), r, c))(t)
		}
		for name, c := range cases {
			for range 2 {
				do(code(t, "open('/tmp/left', 'w').close(); open('other', 'w').close(); x = 1"))
				reply := do(code(t, c.text, c.files...))
				var left []string
				for _, a := range reply.Artifacts {
					left = append(left, a.Name+" "+string(a.Data))
				}
				if string(reply.Stdout) != c.out || reply.ExitCode != c.exit || reply.Code != "" || string(reply.Value) != c.value ||
					!strings.Contains(string(reply.Stderr), c.err) || c.err == "" && len(reply.Stderr) > 0 || strings.Join(left, "\n") != c.left {
					t.Errorf("%s: %q, exit code %d %s %s, value %s, files %q\n%s", name, reply.Stdout, reply.ExitCode, reply.Code, reply.Message, reply.Value, left, reply.Stderr)
				}
			}
		}
	})
}

// TestCodeHostile: files that conflict refuse the call, and hostile values are limited.
func TestCodeHostile(t *testing.T) {
	runners(t, []string{"slim"}, func(t *testing.T, r *Runner) {
		for _, name := range []string{"a/../../x", "main.py/x", strings.Repeat("d/", 200) + "x", ""} {
			_, err := runnertest.Do(t.Context(), r, code(t, "1", skill.File{Name: name}))
			if skill.CodeOf(err) != skill.InvalidArgument {
				t.Errorf("%.20q: %v", name, err)
			}
		}
		for text, want := range map[string]string{
			"'x' * (1 << 21)": "  1", // of the scratch space
			"'x' * 600_000":   " OUTPUT_LIMIT 0",
			"open('/tmp/.value', 'w').write('not JSON'); import os; os._exit(0)": "not JSON  0",
		} {
			c := code(t, text)
			c.Limits.Output /= 2
			reply := musttest.Get(runnertest.Do(t.Context(), r, c))(t)
			if got := fmt.Sprintf("%.20s %s %d", reply.Value, reply.Code, reply.ExitCode); got != want {
				t.Errorf("%s: %s\n%s", text, got, reply.Stderr)
			}
		}
	})
}
