package python

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"openskill/internal/musttest"
	"openskill/plugins/runnertest"
	"openskill/sdk/skill"
)

// A script runs as it does with python script.py.
func TestScripts(t *testing.T) {
	oneGuest(t)
	e, state := warm(t)
	r := New(e, &Options{StateDir: state})
	defer r.Close()
	run := func(t *testing.T, c *skill.Call) *skill.Reply {
		t.Helper()
		return musttest.Get(runnertest.Do(t.Context(), r, c))(t)
	}

	t.Run("like plain Python", func(t *testing.T) {
		c := script(t, `
import sys, os, json, re, datetime, statistics, decimal, fractions, hashlib, csv, io, base64, zlib, uuid, dataclasses, random
import sibling
from package import inner
assert __name__ == "__main__" and __file__ == sys.argv[0] == "/skill/main.py", (__name__, __file__)
assert sys.argv[1:] == ["a", "b c"], sys.argv
assert sys.path[0] == "/skill" and os.getcwd() == "/", sys.path
assert dict(os.environ) == {}, os.environ
assert sys.version_info[:2] >= (3, 12) and sys.maxsize == 2**31 - 1
assert sys.stdout.encoding == "utf-8" and open(__file__).encoding.lower() == "utf-8"
assert "skill" in os.listdir("/"), os.listdir("/")
assert hashlib.sha256(b"x").hexdigest().startswith("2d71164"), zlib.crc32(b"x")
exit_is_there = exit
import atexit
atexit.register(lambda: print(sibling.value, inner.value, "höher", input()))
raise ValueError("wrong")
`)
		c.Args, c.Stdin = []string{"a", "b c"}, []byte("a line\nand more")
		musttest.Do(t, os.Mkdir(filepath.Join(c.Folder, "package"), 0o700))
		for name, text := range map[string]string{"sibling.py": "value = 1", "package/inner.py": "value = 2"} {
			musttest.Do(t, os.WriteFile(filepath.Join(c.Folder, name), []byte(text), 0o600))
		}
		reply := run(t, c)
		want := "Traceback (most recent call last):\n  File \"/skill/main.py\", line 16, in <module>\n    raise ValueError(\"wrong\")\nValueError: wrong\n"
		if reply.Code != "" || reply.ExitCode != 1 || string(reply.Stdout) != "1 2 höher a line\n" || string(reply.Stderr) != want {
			t.Errorf("code %q, exit code %d, stdout %q, stderr:\n%s", reply.Code, reply.ExitCode, reply.Stdout, reply.Stderr)
		}
	})

	t.Run("in a subfolder", func(t *testing.T) {
		c := script(t, "")
		c.Entry = "scripts/tool.py"
		musttest.Do(t, os.Mkdir(filepath.Join(c.Folder, "scripts"), 0o700))
		text := "import sys; print(sys.argv[0], sys.path[0], open('/skill/main.py').read() == '')"
		musttest.Do(t, os.WriteFile(filepath.Join(c.Folder, "scripts", "tool.py"), []byte(text), 0o600))
		if reply := run(t, c); string(reply.Stdout) != "/skill/scripts/tool.py /skill/scripts True\n" {
			t.Errorf("%s%s", reply.Stdout, reply.Stderr)
		}
	})

	t.Run("chance differs by run", func(t *testing.T) {
		for _, read := range []string{"", "import sys; sys.stdin.read()", "input()", "import sys; sys.stdin.buffer.readline()"} {
			c := script(t, "import random, os; random.random()\n"+read+"\nprint(random.random())\nprint(os.urandom(8), flush=True)")
			c.Stdin = []byte("line\n")
			a, b := strings.Split(string(run(t, c).Stdout), "\n"), strings.Split(string(run(t, c).Stdout), "\n")
			if len(a) != 3 || a[0] == b[0] || a[1] == b[1] {
				t.Errorf("with %q: %q, then %q", read, a, b)
			}
		}
	})

	t.Run("temporary files", func(t *testing.T) {
		c := script(t, `
import tempfile, os
with tempfile.TemporaryFile() as f:
    f.write(b"x" * 1000); f.seek(0); print(len(f.read()))
open("work/out.txt", "w").write("kept")
`)
		c.Grants.Scratch = true
		reply := run(t, c)
		if string(reply.Stdout) != "1000\n" || len(reply.Artifacts) != 1 || reply.Artifacts[0].Name != "out.txt" {
			t.Errorf("%q, %v\n%s", reply.Stdout, reply.Artifacts, reply.Stderr)
		}
	})

	// What a script exits with is its own; what the host ended it for is not.
	for name, c := range map[string]struct {
		text string
		code skill.Code
		exit uint32
	}{
		"ends":              {"x = 1", "", 0},
		"exits":             {"raise SystemExit(7)", "", 7},
		"exits with a text": {"raise SystemExit('no')", "", 1},
		"exits at once":     {"import os; os._exit(9)", "", 9},
		"syntax error":      {"x = = 1", "", 1},
		"too much memory":   {"x = bytearray(10**9)", skill.MemoryLimit, 0},
		"memory, caught":    {"try:\n  x = bytearray(10**9)\nexcept MemoryError:\n  pass", "", 0},
		"no network":        {"import socket; socket.create_connection(('127.0.0.1', 22))", "", 1},
		"no processes":      {"import subprocess; subprocess.run(['ls'])", "", 1},
		"not the host's":    {"open('/etc/passwd')", "", 1},
		"out of its folder": {"open('/skill/../../etc/passwd')", "", 1},
		"writes its folder": {"open('/skill/main.py', 'a')", "", 1},
	} {
		t.Run(name, func(t *testing.T) {
			reply := run(t, script(t, c.text))
			if reply.Code != c.code || reply.ExitCode != c.exit {
				t.Errorf("code %q, exit code %d; want %q, %d\n%s", reply.Code, reply.ExitCode, c.code, c.exit, reply.Stderr)
			}
			if c.exit == 1 && c.code == "" && len(reply.Stderr) == 0 {
				t.Error("nothing on standard error")
			}
		})
	}

	t.Run("out of fuel", func(t *testing.T) {
		c := script(t, "print('begun', flush=True)\nwhile True: pass")
		c.Limits.Fuel = 1e9
		reply := run(t, c)
		if reply.Code != skill.FuelExhausted || string(reply.Stdout) != "begun\n" || !strings.Contains(reply.Message, "1000000000") {
			t.Errorf("%+v", reply)
		}
	})
}

// BenchmarkCall is the start of an interpreter and its end.
func BenchmarkCall(b *testing.B) {
	e, state := warm(b)
	r := New(e, &Options{StateDir: state})
	defer r.Close()
	dir := b.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "main.py"), []byte("import json, sys; json.dump(json.load(sys.stdin), sys.stdout)"), 0o600); err != nil {
		b.Fatal(err)
	}
	c := &skill.Call{SkillID: "echo", Folder: dir, Entry: "main.py", Stdin: []byte(`{"a": 1}`), Limits: skill.Limits{
		Timeout: 1 << 36, Memory: 64 << 20, Fuel: 1e12, Output: 1 << 20, Scratch: 1 << 20,
	}}
	for b.Loop() {
		if reply, err := runnertest.Do(b.Context(), r, c); err != nil || string(reply.Stdout) != `{"a": 1}` {
			b.Fatal(reply, err)
		}
	}
}
