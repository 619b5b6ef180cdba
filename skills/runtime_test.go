package skills_test

import (
	"os"
	"strings"
	"testing"
)

// TestPythonRuntime runs the fetched CPython the way scripts/runtimes.md says:
// no environment, no mount for the standard library.
func TestPythonRuntime(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat(pythonModule); err != nil {
		t.Skip("no Python runtime: make runtimes")
	}
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
		{"works at the root", "import os; print(os.getcwd(), open('./data/x.txt').read(), open('/data/x.txt').read())", "", "/ found found"},
		{"sees no environment", "import os; print(dict(os.environ))", "", "{}"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := runWasm(t, pythonModule, []string{"python", "-I", "-B", "-c", c.code}, "calculator", data, []byte(c.stdin))
			if out := strings.TrimSpace(string(got.stdout)); out != c.want || got.exit != 0 {
				t.Errorf("exit %d, output %q, want %q", got.exit, out, c.want)
			}
		})
	}
}
