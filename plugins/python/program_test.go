package python

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"openskill/internal/musttest"
	"openskill/plugins/runnertest"
	"openskill/plugins/wasi/sandbox"
	"openskill/sdk/skill"
)

// A program of the command line, as scripts of Agent Skills are, runs as it does in its
// skill's folder outside.
func TestPrograms(t *testing.T) {
	oneGuest(t)
	e, state := warm(t)
	r := New(e, &Options{StateDir: state, Programs: &sandbox.Programs{}})
	defer r.Close()
	program := func(t *testing.T, text string) *skill.Call {
		t.Helper()
		c := script(t, "")
		c.Script, c.SkillID, c.Entry = true, "my-skill", "scripts/tool.py"
		for name, text := range map[string]string{
			"scripts/tool.py": text, "scripts/helper.py": "import sys\nprint('helper sees', sys.argv[1:], file=sys.stderr)\nvalue = 1\n",
			"notes.txt": "first\n", "data/table.csv": "a,b\n1,2\n",
		} {
			path := filepath.Join(c.Folder, filepath.FromSlash(name))
			musttest.Do(t, os.MkdirAll(filepath.Dir(path), 0o700))
			musttest.Do(t, os.WriteFile(path, []byte(text), 0o600))
		}
		return c
	}
	run := func(t *testing.T, c *skill.Call, args ...string) *skill.Reply {
		t.Helper()
		c.Args = args
		return musttest.Get(runnertest.Do(t.Context(), r, c))(t)
	}
	is := func(t *testing.T, r *skill.Reply, stdout, stderr string, code uint32) {
		t.Helper()
		if r.Code != "" || string(r.Stdout) != stdout || string(r.Stderr) != stderr || r.ExitCode != code {
			t.Errorf("code %q, exit code %d, stdout %q, stderr:\n%s", r.Code, r.ExitCode, r.Stdout, r.Stderr)
		}
	}

	t.Run("arguments, folder and input", func(t *testing.T) {
		c := program(t, `
import argparse, json, os, sys
import helper
p = argparse.ArgumentParser()
p.add_argument("--value", type=float)
p.add_argument("rest", nargs="*")
a = p.parse_args()
print(json.dumps([sys.argv[0], a.value, a.rest, os.getcwd(), open("notes.txt").read(), sorted(os.listdir()), sys.stdin.read(), __file__, helper.value]))
`)
		c.Stdin = []byte("00000003in\x00put")
		is(t, run(t, c, "--value", "1.5", "é ü", "", "a\nb", "\xff"),
			`["scripts/tool.py", 1.5, ["\u00e9 \u00fc", "", "a\nb", "\udcff"], "/skills/my-skill", "first\n", ["data", "main.py", "notes.txt", "scripts"], "00000003in\u0000put", "/skills/my-skill/scripts/tool.py", 1]`+"\n",
			"helper sees ['--value', '1.5', 'é ü', '', 'a\\nb', '\\udcff']\n", 0)
		c.Stdin = nil
		r := run(t, c, "--no")
		if r.ExitCode != 2 || !strings.Contains(string(r.Stderr), "usage: tool.py [-h] [--value VALUE]") {
			t.Errorf("%d %s", r.ExitCode, r.Stderr)
		}
		if r := run(t, c); r.ExitCode != 0 || !strings.Contains(string(r.Stdout), `null, [], "/skills/my-skill"`) {
			t.Errorf("%s%s", r.Stdout, r.Stderr)
		}
	})

	t.Run("what it imports is imported once, before its runs", func(t *testing.T) {
		ahead := New(e, &Options{StateDir: state, Programs: &sandbox.Programs{}, Imports: func(context.Context, *skill.Spec, []byte) ([]string, error) {
			return []string{
				"urllib.request.urlopen", "concurrent.futures", "xml.etree.ElementTree", "email.mime.text.MIMEText", "sys.nothing",
				"nowhere.at.all", "json.__main__", "helper.sys", "test.support", "this", "..", "\x00.a",
			}, nil
		}})
		defer ahead.Close()
		c := program(t, `
from urllib.request import urlopen
import concurrent.futures, sys
from xml.etree import ElementTree as ET
from email.mime.text import MIMEText
print(ET.fromstring("<a>1</a>").text, sorted({"helper", "this", "test", "json.__main__"} & set(sys.modules)))
`)
		for range 2 {
			c.Plan = skill.Plan{}
			got := musttest.Get(runnertest.Do(t.Context(), ahead, c))(t)
			is(t, got, "1 []\n", "", 0)
			if got.Usage.Fuel > 10e6 { // importing takes 700 million
				t.Errorf("a run used %d units of fuel", got.Usage.Fuel)
			}
		}
	})

	t.Run("what it writes is its own", func(t *testing.T) {
		c := program(t, `
import os, pathlib, shutil, sys, tempfile
print(open("notes.txt").read(), end="")
with open("notes.txt", "a") as f:
    f.write(sys.argv[1] + "\n")
kept = open("scripts/kept.txt", "w"); kept.write("kept")
pathlib.Path("out/deep").mkdir(parents=True)
pathlib.Path("out/deep/x.json").write_text("{}")
os.rename("data/table.csv", "data/moved.csv")
os.remove("main.py")
shutil.copy("data/moved.csv", "/tmp/copy.csv")
with tempfile.NamedTemporaryFile("w", suffix=".txt") as f:
    assert f.name.startswith("/tmp/"), f.name
print(sorted(os.listdir("data")), sorted(os.listdir("/tmp")), open("data/moved.csv").read().split()[1], os.path.expanduser("~"))
print(open("notes.txt").read(), end="")
`)
		for _, word := range []string{"one", "two"} {
			r := run(t, c, word)
			is(t, r, "first\n['moved.csv'] ['copy.csv'] 1,2 /tmp\nfirst\n"+word+"\n", "", 0)
			var got []string
			for _, a := range r.Artifacts {
				got = append(got, a.Name+"="+string(a.Data))
			}
			want := "data/moved.csv=a,b\n1,2\n|notes.txt=first\n" + word + "\n|out/deep/x.json={}|scripts/kept.txt=kept"
			if s := strings.Join(got, "|"); s != want {
				t.Errorf("%q, want %q", s, want)
			}
		}
		if b, err := os.ReadFile(filepath.Join(c.Folder, "notes.txt")); err != nil || string(b) != "first\n" {
			t.Errorf("the folder itself: %q, %v", b, err)
		}
	})

	t.Run("limits of what it writes", func(t *testing.T) {
		c := program(t, "open('big', 'wb').write(b'x' * (1 << 22))\n")
		c.Limits.Scratch = 1 << 20
		if r := run(t, c); r.ExitCode != 1 || !strings.Contains(string(r.Stderr), "No space left on device") {
			t.Errorf("%q %d %s", r.Code, r.ExitCode, r.Stderr)
		}
	})

	t.Run("how it ends", func(t *testing.T) {
		for _, c := range []struct {
			text, stdout, stderr string
			code                 uint32
		}{
			{"import sys\nsys.exit(3)", "", "", 3},
			{"import sys\nsys.exit('no')", "", "no\n", 1},
			{"print('x')\n1/0", "x\n", "Traceback (most recent call last):\n  File \"/skills/my-skill/scripts/tool.py\", line 2, in <module>\n    1/0\n    ~^~\nZeroDivisionError: division by zero\n", 1},
			{"def f(:\n", "", "  File \"/skills/my-skill/scripts/tool.py\", line 1\n    def f(:\n          ^\nSyntaxError: invalid syntax\n", 1},
			{"import nowhere", "", "Traceback (most recent call last):\n  File \"/skills/my-skill/scripts/tool.py\", line 1, in <module>\n    import nowhere\nModuleNotFoundError: No module named 'nowhere'\n", 1},
			{"import os\nprint(os.environ.get('OPENSKILL_SCRIPT'), os.environ['PWD'])", "None /skills/my-skill\n", "", 0},
		} {
			is(t, run(t, program(t, c.text)), c.stdout, c.stderr, c.code)
		}
	})

	t.Run("chance and clock are the run's own", func(t *testing.T) {
		c := program(t, "import random, time, uuid, secrets\nprint(random.random(), time.time(), uuid.uuid4(), secrets.token_hex())\n")
		seen := map[string]bool{}
		for range 2 {
			for _, word := range strings.Fields(string(run(t, c).Stdout)) {
				if seen[word] {
					t.Errorf("%s came twice", word)
				}
				seen[word] = true
			}
		}
	})
	// Where there is no such thing here, it is missing as it is outside.
	t.Run("what WASI has not", func(t *testing.T) {
		for name, c := range map[string]struct{ text, stdout string }{
			"programs": {`
import subprocess, os, asyncio
for call in (lambda: subprocess.run(["git", "status"], capture_output=True, text=True), lambda: subprocess.check_output("ls -l", shell=True), lambda: subprocess.Popen("git")):
    try:
        call()
    except FileNotFoundError as e:
        print(e.errno == __import__("errno").ENOENT, e.strerror, e.filename)
print(os.system("") in (0, 127 << 8) and os.getuid() >= 0 and isinstance(os.umask(0o22), int))
`, "True No such file or directory git\nTrue No such file or directory /bin/sh\nTrue No such file or directory git\nTrue\n"},
			"threads for work": {`
from concurrent.futures import ThreadPoolExecutor, as_completed
with ThreadPoolExecutor(max_workers=4) as pool:
    print(list(pool.map(lambda n: n * n, range(5))), sorted(f.result() for f in as_completed([pool.submit(pow, 2, n) for n in range(3)])))
    print(type(pool.submit(int, "x").exception()).__name__)
try:
    pool.submit(int)
except RuntimeError as e:
    print(e)
`, "[0, 1, 4, 9, 16] [1, 2, 4]\nValueError\ncannot schedule new futures after shutdown\n"},
			"event loops": {`
import asyncio
async def work(n):
    await asyncio.sleep(n / 100)
    return n
async def main():
    print(await asyncio.gather(work(2), work(1), asyncio.to_thread(pow, 2, 3)))
    try:
        await asyncio.wait_for(work(50), 0.01)
    except TimeoutError:
        print("timeout")
    queue = asyncio.Queue()
    asyncio.create_task(queue.put(1))
    print(await queue.get())
asyncio.run(main())
asyncio.run(main())
`, "[2, 1, 8]\ntimeout\n1\n[2, 1, 8]\ntimeout\n1\n"},
			"a network": {`
import urllib.request, urllib.error
for url in ("http://127.0.0.1:9/x", "https://localhost/"):
    try:
        urllib.request.urlopen(url, timeout=1)
    except urllib.error.URLError as e:
        print(type(e.reason).__name__)
`, "PermissionError\nPermissionError\n"},
			"nothing": {`
import os
print(open(os.devnull).read() == "", open(os.devnull, "w").write("gone"))
`, "True 4\n"},
			"help": {`
import argparse
p = argparse.ArgumentParser(prog="tool", description="does it")
p.add_argument("-o", "--output", metavar="FILE", help="where")
p.add_argument("-v", "--verbose", action="store_true")
p.add_argument("name")
p.print_help()
`, "usage: tool [-h] [-o FILE] [-v] name\n\ndoes it\n\npositional arguments:\n  name\n\noptions:\n  -h, --help            show this help message and exit\n  -o FILE, --output FILE\n                        where\n  -v, --verbose\n"},
			"later": {`
import importlib
p = importlib.import_module("argparse").ArgumentParser(prog="tool")
p.add_argument("-o", "--output")
print(p.format_help().splitlines()[-1].strip(), type(importlib.import_module("argparse").__loader__).__name__ == "Loader")
`, "-o OUTPUT, --output OUTPUT False\n"},
		} {
			t.Run(name, func(t *testing.T) { is(t, run(t, program(t, c.text)), c.stdout, "", 0) })
		}
	})
}
