package skills_test

import (
	"path/filepath"
	"strings"
	"testing"

	"openskill/internal/musttest"
	"openskill/plugins/runnertest"
	"openskill/sdk/skill"
)

// TestPythonRuntime holds the fetched CPython to what scripts/runtimes.md says of
// it: no environment of the host, its library inside, the root as working folder.
func TestPythonRuntime(t *testing.T) {
	t.Parallel()
	open(t)
	if why := missing(t, sandboxed, "calculator"); why != "" {
		t.Skip(why)
	}
	python := musttest.Get(house.runners.Get(skill.WasmPython))(t)
	limits := sandboxed.skill(t, "calculator").Limits
	data := t.TempDir()
	writeFile(t, data, "x.txt", "found")
	for _, c := range []struct{ name, code, stdin, want string }{
		{"prints", "print(1+1)", "", "2"},
		{"reads standard input", "import sys; print(sys.stdin.read().upper())", "héllo 技", "HÉLLO 技"},
		{
			"has its library", "import json, re, statistics, datetime, csv, decimal, hashlib; " +
				"print(json.dumps([statistics.mean([1, 2]), str(datetime.date(2026, 1, 5)), re.sub('a', 'b', 'a')]))",
			"", `[1.5, "2026-01-05", "b"]`,
		},
		{"works at the root", "import os; print(os.getcwd(), open('./data/x.txt').read(), len(open('/data/x.txt').read()))", "", "/ found 5"},
		{"sees no environment", "import os; print(dict(os.environ))", "", "{}"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			folder := musttest.Get(filepath.EvalSymlinks(t.TempDir()))(t)
			writeFile(t, folder, "main.py", c.code+"\n")
			reply, err := runnertest.Do(t.Context(), python, &skill.Call{
				SkillID: "probe", TraceID: "t-1", ExecutionID: "e-1", Folder: folder, Entry: "main.py", Trust: skill.Trusted,
				Stdin: []byte(c.stdin), Limits: limits, Grants: skill.Grants{Data: data},
			})
			musttest.Do(t, err)
			if out := strings.TrimSpace(string(reply.Stdout)); out != c.want || reply.Code != "" || reply.ExitCode != 0 {
				t.Errorf("%s, exit %d, output %q, want %q; %s", reply.Code, reply.ExitCode, out, c.want, reply.Stderr)
			}
		})
	}
}
