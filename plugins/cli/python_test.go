package cli

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"openskill/internal/musttest"
	"openskill/sdk/skill"
)

// P02: the door refuses uploaded skills; should it forget, this does.
func TestCommunityIsRefused(t *testing.T) {
	c := program(t, "print('ran')")
	c.Trust = skill.Community
	reply, err := New(nil).Run(t.Context(), c)
	if reply != nil || skill.CodeOf(err) != skill.Forbidden {
		t.Errorf("reply %+v, error %v; want FORBIDDEN", reply, err)
	}
}

func TestPythonMissing(t *testing.T) {
	c := program(t, "")
	now := time.Unix(0, 0)
	r := New(&Options{Python: "none-such-python"})
	r.now = func() time.Time { return now }
	_, err := r.Prepare(t.Context(), c.Spec())
	var e *skill.Error
	if !errors.As(err, &e) || e.Code != skill.ToolInvocationError || !strings.Contains(e.Message, "python3 was not found") {
		t.Fatalf("Prepare: %v", err)
	}
	if _, err := r.Run(t.Context(), c); skill.CodeOf(err) != skill.ToolInvocationError {
		t.Errorf("Run: %v", err)
	}
	// It is believed for a while, then looked for again.
	r.opts.Python = "python3"
	if _, err := r.Prepare(t.Context(), c.Spec()); err == nil {
		t.Error("the finding was not kept")
	}
	now = now.Add(again)
	if _, err := r.Prepare(t.Context(), c.Spec()); err != nil {
		t.Errorf("after Python was installed: %v", err)
	}
}

func TestPythonThatIsNone(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"fails":  "#!/bin/sh\nexit 3\n",
		"silent": "#!/bin/sh\nexit 0\n",
		"old":    "#!/bin/sh\necho '{\"version\": [2, 7]}'\n",
	} {
		path := filepath.Join(dir, name)
		musttest.Do(t, os.WriteFile(path, []byte(text), 0o700))
		c := program(t, "")
		if _, err := New(&Options{Python: path}).Prepare(t.Context(), c.Spec()); skill.CodeOf(err) != skill.ToolInvocationError {
			t.Errorf("%s: %v; want TOOL_INVOCATION_ERROR", name, err)
		}
	}
}

func TestEntry(t *testing.T) {
	outside := filepath.Join(t.TempDir(), "outside.py")
	musttest.Do(t, os.WriteFile(outside, nil, 0o600))
	dir := t.TempDir()
	for _, sub := range []string{"scripts", "folder.py"} {
		musttest.Do(t, os.Mkdir(filepath.Join(dir, sub), 0o700))
	}
	for _, name := range []string{"main.py", "scripts/tool.py"} {
		musttest.Do(t, os.WriteFile(filepath.Join(dir, name), nil, 0o600))
	}
	for link, to := range map[string]string{"in.py": "scripts/tool.py", "out.py": outside, "up.py": "../" + filepath.Base(outside)} {
		musttest.Do(t, os.Symlink(to, filepath.Join(dir, link)))
	}
	for entry, ok := range map[string]bool{
		"main.py": true, "scripts/tool.py": true, "in.py": true,
		"out.py": false, "up.py": false, "../x.py": false, "/main.py": false, outside: false,
		"": false, ".": false, "folder.py": false, "missing.py": false, "a\x00b": false,
	} {
		_, err := script(dir, entry)
		if (err == nil) != ok {
			t.Errorf("entry %q: %v", entry, err)
		}
		if err != nil && skill.CodeOf(err) != skill.InvalidManifest {
			t.Errorf("entry %q: code %s", entry, skill.CodeOf(err))
		}
	}
}

// A script runs as it does with python script.py.
func TestLikePlainPython(t *testing.T) {
	c := program(t, `
import sys, os
import sibling
from package import inner
assert __name__ == "__main__" and __file__ == sys.argv[0] and os.path.isabs(__file__)
assert sys.argv[1:] == ["a", "b c"], sys.argv
assert sys.path[0] == os.path.dirname(__file__)
assert sorted(os.listdir(".")) == [], os.listdir(".")
assert set(globals()) - {"sys", "os", "sibling", "inner"} == {
    "__name__", "__doc__", "__package__", "__loader__", "__spec__", "__annotations__",
    "__builtins__", "__file__", "__cached__"} - (set() if "__annotations__" in globals() else {"__annotations__"}), sorted(globals())
import inspect
def here(): return 1
assert inspect.getsource(here) == "def here(): return 1\n"
import pickle
class Thing: pass
assert type(pickle.loads(pickle.dumps(Thing()))) is Thing
import atexit
atexit.register(lambda: print(sibling.value, inner.value, "höher"))
def fail(): raise ValueError("wrong")
fail()
`)
	c.Args = []string{"a", "b c"}
	musttest.Do(t, os.Mkdir(filepath.Join(c.Folder, "package"), 0o700))
	for name, text := range map[string]string{"sibling.py": "value = 1", "package/inner.py": "value = 2"} {
		musttest.Do(t, os.WriteFile(filepath.Join(c.Folder, name), []byte(text), 0o600))
	}
	reply := must(t, New(nil), c)
	want := "Traceback (most recent call last):\n  File \"" + filepath.Join(c.Folder, "main.py") + "\", line 21, in <module>\n    fail()\n"
	if reply.Code != "" || reply.ExitCode != 1 || string(reply.Stdout) != "1 2 höher\n" || !strings.HasPrefix(string(reply.Stderr), want) ||
		!strings.HasSuffix(string(reply.Stderr), "\nValueError: wrong\n") {
		t.Errorf("code %q, exit code %d, stdout %q, stderr:\n%s", reply.Code, reply.ExitCode, reply.Stdout, reply.Stderr)
	}
}

func TestProtections(t *testing.T) {
	all := musttest.Get(New(nil).Protections())(t)
	names := map[string]bool{}
	for _, p := range all {
		names[p.Name] = true
		if p.Detail == "" {
			t.Errorf("%s: no detail", p.Name)
		}
	}
	for _, name := range []string{"processes", "host-death", "process-limit", "memory", "files", "network", "user"} {
		if !names[name] {
			t.Errorf("nothing about %s", name)
		}
	}
}

// A script sees the variables that it was granted, and none beside them.
func TestGrantedVariables(t *testing.T) {
	t.Setenv("OF_THE_HOST", "hush")
	c := program(t, "import json, os; print(json.dumps(dict(os.environ), sort_keys=True))")
	r := New(nil)
	defer r.Close()
	for _, env := range [][]string{{"A=1", "B=two = words", "TZ=UTC"}, {"EMPTY="}, nil} {
		want := map[int]string{3: `{"A": "1", "B": "two = words", "TZ": "UTC"}`, 1: `{"EMPTY": ""}`, 0: `{}`}[len(env)]
		c.Grants.Env = env
		if reply := must(t, r, c); string(reply.Stdout) != want+"\n" {
			t.Errorf("%q: %s%s, want %s", env, reply.Stdout, reply.Stderr, want)
		}
	}
}
