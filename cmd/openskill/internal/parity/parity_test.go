package parity_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"openskill/cmd/openskill/internal/parity"
	"openskill/internal/musttest"
	"openskill/plugins/javascript"
	"openskill/plugins/python/pythontest"
	"openskill/plugins/runnertest"
	"openskill/sdk/skill"
	"openskill/wasm"
)

// shared has room for the images of many skills.
var shared = pythontest.Shared{Options: wasm.Options{ImageBytes: 8 << 30}}

func TestMain(m *testing.M) { os.Exit(shared.Main(m)) }

// js runs the other scripts, on the same engine.
var js = sync.OnceValue(func() skill.Runner {
	r := javascript.New(shared.Engine(), nil)
	shared.Closes(r)
	return r
})

// sandbox runs scripts as a host does.
func sandbox(t testing.TB) *parity.Sandbox {
	t.Helper()
	shared.Runner(t, "../../../..")
	return &parity.Sandbox{Script: script}
}

var count struct {
	sync.Mutex
	n int
}

func script(ctx context.Context, folder string, r skill.ScriptRequest) (*skill.Reply, error) {
	var runner skill.Runner = shared.Python()
	if !strings.HasSuffix(r.Script, ".py") {
		runner = js()
	}
	count.Lock()
	count.n++
	id := "parity-" + string(rune('a'+count.n%26)) + time.Now().Format("150405.000000000")
	count.Unlock()
	// A copy that stays: hosts do not lose the folders of their skills after each call.
	stays, err := os.MkdirTemp(shared.Dir(), "")
	if err != nil {
		return nil, err
	}
	stays = filepath.Join(stays, filepath.Base(folder))
	if err := os.CopyFS(stays, os.DirFS(folder)); err != nil {
		return nil, err
	}
	if folder, err = filepath.EvalSymlinks(stays); err != nil {
		return nil, err
	}
	return runnertest.Do(ctx, runner, &skill.Call{
		SkillID: skill.ID(filepath.Base(folder)), TraceID: "parity", ExecutionID: id, Tenant: "test", Folder: folder, Entry: r.Script,
		Digest: id, Trust: skill.Trusted, Args: r.Args, Stdin: r.Stdin, Script: true,
		Limits: skill.Limits{Timeout: r.Limits.Timeout, Memory: 256 << 20, Fuel: 1 << 36, Output: 8 << 20, Scratch: 64 << 20},
	})
}

func native(t testing.TB) *parity.Native {
	t.Helper()
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("there is no python3 to compare with")
	}
	return musttest.Get(parity.NewNative(t.Context(), ""))(t)
}

func TestParse(t *testing.T) {
	want := []parity.Case{
		{Name: "one", Script: "scripts/a.py", Args: []string{"--value", "26.2", "-1", "x y", "true"}, Stdin: "in\n", Files: map[string]string{"d/in.csv": "a,b\n"}, Ignore: []string{"time", "file:out/*.log"}, TimeoutMS: 5000},
		{Script: "b.py"},
	}
	for name, text := range map[string]string{
		"YAML": "cases:\n  - name: one\n    script: scripts/a.py\n    args: [--value, 26.2, -1, x y, true]\n    stdin: \"in\\n\"\n    files: {d/in.csv: \"a,b\\n\"}\n    ignore: [time, \"file:out/*.log\"]\n    timeout_ms: 5000\n  - script: b.py\n",
		"JSON": `[{"name": "one", "script": "scripts/a.py", "args": ["--value", 26.2, -1, "x y", true], "stdin": "in\n", "files": {"d/in.csv": "a,b\n"}, "ignore": ["time", "file:out/*.log"], "timeout_ms": 5000}, {"script": "b.py"}]`,
	} {
		got, err := parity.Parse([]byte(text))
		if err != nil {
			t.Errorf("%s: %v", name, err)
		} else if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	tests := []struct{ name, text, want string }{
		{"nothing", "", "the file is empty"},
		{"no cases", "cases: []", "no cases"},
		{"another key", "cases: [{script: a.py, arg: [x]}]", "arg"},
		{"not YAML", "cases: [", "line"},
		{"a path out", "cases: [{script: ../a.py}]", "must be a relative path in the folder"},
		{"an absolute path", "cases: [{script: /a.py}]", "must be a relative path in the folder"},
		{"no script", "cases: [{args: [x]}]", "must be a relative path in the folder"},
		{"a file out", `[{"script": "a.py", "files": {"../x": ""}}]`, "must be a relative path in the folder"},
		{"a backslash", `[{"script": "a\\b.py"}]`, "must be a relative path in the folder"},
		{"an argument with a zero", `[{"script": "a.py", "args": ["a\u0000b"]}]`, "has a NUL character"},
		{"an object as argument", "cases: [{script: a.py, args: [{a: 1}]}]", "must be a string or number"},
		{"an unknown word", "cases: [{script: a.py, ignore: [stderr]}]", "accepted are stdout, exit, files, order, folder, time and file:GLOB"},
		{"a bad pattern", `[{"script": "a.py", "ignore": ["file:["]}]`, "is not known"},
		{"a timeout", "cases: [{script: a.py, timeout_ms: 999999999}]", "timeout_ms"},
		{"too many", "[" + strings.Repeat(`{"script":"a"},`, parity.MaxCases) + `{"script":"a"}]`, "the limit is 10000"},
	}
	for _, test := range tests {
		if _, err := parity.Parse([]byte(test.text)); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v", test.name, err)
		}
	}
}

// Each rule of comparing, without anything being run.
func TestCompare(t *testing.T) {
	a := func(out string, exit int, files ...string) *parity.Outcome {
		o := &parity.Outcome{Stdout: []byte(out), Exit: exit, Files: map[string]string{}, Folders: []string{"/tmp/a/unit"}}
		for i := 0; i < len(files); i += 2 {
			o.Files[files[i]] = files[i+1]
		}
		return o
	}
	b := func(out string, exit int, files ...string) *parity.Outcome {
		o := a(out, exit, files...)
		o.Folders = []string{"/skill"}
		return o
	}
	tests := []struct {
		name            string
		native, sandbox *parity.Outcome
		ignore          []string
		differs         []string
	}{
		{name: "the same", native: a("x\n", 0, "o.txt", "1"), sandbox: b("x\n", 0, "o.txt", "1")},
		{name: "another exit code", native: a("", 0), sandbox: b("", 1), differs: []string{"exit"}},
		{name: "another exit code, ignored", native: a("", 0), sandbox: b("", 1), ignore: []string{"exit"}},
		{name: "a byte", native: a("x\n", 0), sandbox: b("x", 0), differs: []string{"stdout"}},
		{name: "a byte, ignored", native: a("x\n", 0), sandbox: b("x", 0), ignore: []string{"stdout"}},
		{name: "a file", native: a("", 0, "a", "1", "b", "2"), sandbox: b("", 0, "b", "3", "c", "4"), differs: []string{"a", "b", "c"}},
		{name: "files, ignored", native: a("", 0, "a", "1"), sandbox: b("", 0), ignore: []string{"files"}},
		{name: "one file, ignored", native: a("", 0, "d/a.log", "1", "b", "2"), sandbox: b("", 0), ignore: []string{"file:d/*.log"}, differs: []string{"b"}},
		{name: "order", native: a("a\nb\n", 0), sandbox: b("b\na\n", 0), differs: []string{"stdout"}},
		{name: "order, ignored", native: a("a\nb\n", 0), sandbox: b("b\na\n", 0), ignore: []string{"order"}},
		{name: "order, ignored, and more", native: a("a\nb\n", 0), sandbox: b("b\nc\n", 0), ignore: []string{"order"}, differs: []string{"stdout"}},
		{name: "the folder", native: a("at /tmp/a/unit/x\n", 0), sandbox: b("at /skill/x\n", 0), differs: []string{"stdout"}},
		{name: "the folder, ignored", native: a("at /tmp/a/unit/x\n", 0), sandbox: b("at /skill/x\n", 0), ignore: []string{"folder"}},
		{name: "time", native: a("on 2025-01-02T03:04:05Z in 0.12s\n", 0), sandbox: b("on 2026-11-22T08:00:00.123+00:00 in 3 ms\n", 0), differs: []string{"stdout"}},
		{name: "time, ignored", native: a("on 2025-01-02T03:04:05Z in 0.12s\n", 0), sandbox: b("on 2026-11-22T08:00:00.123+00:00 in 3 ms\n", 0), ignore: []string{"time"}},
		{name: "an end by a limit", native: a("x", 0), sandbox: &parity.Outcome{Stdout: []byte("x"), Failed: "TIMEOUT: it took too long"}, ignore: []string{"exit", "files"}, differs: []string{"end"}},
	}
	for _, test := range tests {
		c := parity.Compare(&parity.Case{Script: "s.py", Ignore: test.ignore}, test.native, test.sandbox)
		var what []string
		for _, d := range c.Differences {
			what = append(what, d.What)
		}
		if !slices.Equal(what, test.differs) || (c.Verdict == parity.Same) != (len(test.differs) == 0) {
			t.Errorf("%s: %s, %q", test.name, c.Verdict, what)
		}
	}
}

func TestDiff(t *testing.T) {
	tests := []struct{ name, native, sandbox, want string }{
		{"a line", "a\nb\nc\n", "a\nx\nc\n", "-b\n+x"},
		{"one more", "a\nc\n", "a\nb\nc\n", "+b"},
		{"one less", "a\nb\nc\n", "a\nc\n", "-b"},
		{"its indentation", "  a\n", "    a\n", "-  a\n+    a"},
		{"no end", "a\n", "a", "-a\n+a (no end of line)"},
		{"two places", "1\na\n2\nb\n3\n", "1\nx\n2\ny\n3\n", "-a\n+x\n-b\n+y"},
		{"control characters", "a\n", "\x1b[31ma\u202e\n", "-a\n+[31ma"},
		{"many", strings.Repeat("a\n", 20), "", strings.Repeat("-a\n", 12) + "… 8 more lines"},
		{"too many to match", strings.Repeat("a\nb\n", 1000), strings.Repeat("b\n", 999) + "c\n", ""},
	}
	for _, test := range tests {
		o := func(s string) *parity.Outcome { return &parity.Outcome{Stdout: []byte(s)} }
		c := parity.Compare(&parity.Case{Script: "s.py"}, o(test.native), o(test.sandbox))
		got := c.Differences[0].Diff
		if test.want == "" {
			if n := strings.Count(got, "\n"); n == 0 || n > 12 {
				t.Errorf("%s: %d lines: %s", test.name, n, got)
			}
		} else if got != test.want {
			t.Errorf("%s:\n%s\nwant\n%s", test.name, got, test.want)
		}
	}
}

// program prints what it is given and leaves files.
const program = `import argparse, json, os, sys
from pathlib import Path
p = argparse.ArgumentParser()
p.add_argument("--n", type=int, default=1)
p.add_argument("--fail", action="store_true")
a = p.parse_args()
print(json.dumps({"n": a.n * 2, "stdin": sys.stdin.read(), "here": sorted(os.listdir("."))}))
Path("out").mkdir()
Path("out/made.txt").write_text("n=%d\n" % a.n)
Path("given.txt").write_text("changed\n")
Path("kept.txt").write_text("kept\n")
sys.exit("failed on purpose" if a.fail else 0)
`

func write(t testing.TB, files map[string]string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "unit")
	for name, text := range files {
		musttest.Write(t, filepath.Join(dir, filepath.FromSlash(name)), text)
	}
	return dir
}

// The two real runners, on scripts that do the same and on scripts that cannot.
func TestRun(t *testing.T) {
	n, s := native(t), sandbox(t)
	dir := write(t, map[string]string{
		"scripts/p.py":        program,
		"scripts/platform.py": "import sys\nprint(sys.platform)\n",
		"scripts/where.py":    "import os\nprint(os.path.join(os.getcwd(), 'x'))\n",
		"scripts/loop.py":     "while True: pass\n",
		"scripts/spawn.py":    "import subprocess\nprint(subprocess.run(['true']).returncode)\n",
		"scripts/child.py":    "import subprocess\nsubprocess.Popen(['sleep', '1000'])\nprint('gone')\n",
		"given.txt":           "as it was\n", "kept.txt": "kept\n",
	})
	r, err := parity.Run(t.Context(), dir, []parity.Case{
		{Script: "scripts/p.py", Args: []string{"--n", "21"}, Stdin: "häl lo\n", Files: map[string]string{"in/x.csv": "a\n"}},
		{Script: "scripts/p.py", Args: []string{"--fail"}},
		{Script: "scripts/p.py", Args: []string{"--n", "x"}},
		{Script: "scripts/platform.py"},
		{Script: "scripts/where.py", Ignore: []string{"folder"}},
		{Script: "scripts/loop.py", TimeoutMS: 300},
		{Script: "scripts/spawn.py"},
		{Script: "scripts/missing.py"},
	}, n, s)
	musttest.Do(t, err)
	want := []struct {
		verdict parity.Verdict
		exit    int
		files   int
		differs string
	}{
		{parity.Same, 0, 2, ""},
		{parity.Same, 1, 2, ""},
		{parity.Same, 2, 0, ""},
		{parity.Differs, 0, 0, "stdout"},
		{parity.Same, 0, 0, ""},
		{parity.NoNative, 0, 0, "end"},
		{parity.Differs, 0, 0, "exit"},
		{parity.Differs, 2, 0, ""},
	}
	for i, w := range want {
		c := r.Cases[i]
		if c.Verdict != w.verdict || c.Exit != w.exit || c.Files != w.files || w.differs != "" && c.Differences[0].What != w.differs {
			b, _ := json.MarshalIndent(c, "", " ")
			t.Errorf("case %d: %s", i+1, b)
		}
	}
	if r.Same != 4 || r.Differs != 3 || r.NoNative != 1 {
		t.Errorf("%d same, %d differ, %d without a native run", r.Same, r.Differs, r.NoNative)
	}
	if left, err := os.ReadFile(filepath.Join(dir, "given.txt")); err != nil || string(left) != "as it was\n" {
		t.Errorf("the folder itself was changed: %q, %v", left, err)
	}
	if _, err := os.Stat(filepath.Join(dir, "out")); err == nil {
		t.Error("the folder itself was written to")
	}
}

// A native script sees nothing of the environment, and what it leaves running ends
// with it.
func TestNative(t *testing.T) {
	n := native(t)
	t.Setenv("OPENSKILL_CANARY", "secret")
	dir := write(t, map[string]string{
		"env.py":   "import os\nprint(sorted(os.environ))\nprint(os.listdir(os.environ['HOME']))\n",
		"child.py": "import subprocess, sys\np = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(1000)'], stdout=subprocess.DEVNULL)\nprint(p.pid, flush=True)\nimport time; time.sleep(1000)\n",
	})
	o, err := n.Run(t.Context(), dir, &parity.Case{Script: "env.py"})
	if err != nil || o.Exit != 0 {
		t.Fatalf("%+v, %v", o, err)
	}
	if out := string(o.Stdout); strings.Contains(out, "CANARY") || !strings.HasSuffix(out, "[]\n") {
		t.Errorf("%s", out)
	}
	o, err = n.Run(t.Context(), dir, &parity.Case{Script: "child.py", TimeoutMS: 2000})
	if err != nil || o.Failed == "" {
		t.Fatalf("%+v, %v", o, err)
	}
	pid := strings.TrimSpace(string(o.Stdout))
	// It was killed with the others; on a busy machine it takes its time to be gone.
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		state, err := os.ReadFile(filepath.Join("/proc", pid, "stat"))
		if err != nil || strings.Contains(string(state), ") Z ") {
			break
		}
		if time.Now().After(end) {
			t.Errorf("process %q is there: %s", pid, state)
			break
		}
	}
	if _, err := parity.NewNative(t.Context(), "/nowhere/python3"); skill.CodeOf(err) != skill.ToolInvocationError {
		t.Errorf("%v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := n.Run(ctx, dir, &parity.Case{Script: "env.py"}); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}
