package python

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"openskill/internal/musttest"
	"openskill/plugins/runnertest"
	"openskill/plugins/wasi/sandbox"
	"openskill/sdk/skill"
)

// host is what scripts here ask for processes with.
const host = `
import json, os, sys
def ask(op, **more):
    with open("/dev/process", "r+b", buffering=0) as f:
        f.write(json.dumps({"op": op, **more}).encode())
        return json.loads(f.readall())
def start(*args, env=(), dir=os.getcwd(), **more):
    return ask("start", args=list(args), env=list(env), dir=dir, **more)
def run(*args, input=b"", **more):
    p = start(*args, stdin="pipe", stdout="pipe", **more)
    if "error" in p: return p
    with os.fdopen(p["stdin"], "wb") as f: f.write(input)
    with os.fdopen(p["stdout"], "rb") as f: out = f.read()
    return out.decode(), ask("wait", pid=p["pid"])
`

// processes runs scripts that start others.
func processes(t *testing.T) func(t *testing.T, text string, change ...func(*skill.Call)) *skill.Reply {
	t.Helper()
	e, state := warm(t)
	r := New(e, &Options{StateDir: state, Programs: &sandbox.Programs{}})
	t.Cleanup(func() { _ = r.Close() })
	return func(t *testing.T, text string, change ...func(*skill.Call)) *skill.Reply {
		t.Helper()
		c := script(t, "")
		c.Script, c.SkillID, c.Entry, c.Limits.Memory = true, "my-skill", "tool.py", 256<<20
		for name, text := range map[string]string{
			"tool.py": host + text, "other.py": "import sys\nprint('other', sys.argv, __name__)\n", "notes.txt": "first\n",
			"run": "#!/usr/bin/env python3\nimport sys\nprint('run', sys.argv)\nsys.exit(7)\n", "data": "no program",
		} {
			musttest.Do(t, os.WriteFile(filepath.Join(c.Folder, name), []byte(text), 0o600))
		}
		for _, f := range change {
			f(c)
		}
		return musttest.Get(runnertest.Do(t.Context(), r, c))(t)
	}
}

// A process sees its own arguments, environment, folder and streams, and the files of its run.
func TestProcesses(t *testing.T) {
	run := processes(t)
	for _, c := range []struct{ name, text, want string }{
		{"a file", `print(run("python3", "other.py", "a b", ""))`, `("other ['other.py', 'a b', ''] __main__\n", {'pid': 2, 'exit': 0})`},
		{"a command", `print(run("python3", "-c", "import sys; print(sys.argv, sys.stdin.read()); sys.exit(3)", "x", input=b"in"))`, `("['-c', 'x'] in\n", {'pid': 2, 'exit': 3})`},
		{"a module", `print(run("python3", "-m", "json.tool", "--compact", input=b'{"a": 1}'))`, `('{"a":1}\n', {'pid': 2, 'exit': 0})`},
		{"standard input", `print(run("python", "-", "x", input=b"import sys; print(sys.argv)"))`, `("['-', 'x']\n", {'pid': 2, 'exit': 0})`},
		{"numbers", `
import logging, multiprocessing, signal, subprocess
me = os.getpid()
two = [subprocess.Popen([sys.executable, "-c", "import os, logging; print(os.getpid(), logging.makeLogRecord({}).process or os.getpid())"], stdout=-1, text=True) for _ in range(2)]
print(all([int(p.communicate()[0].split()[0]) == p.pid for p in two]), me, len({me, two[0].pid, two[1].pid}), {logging.LogRecord("", 1, "", 1, "", (), None).process, multiprocessing.current_process().pid} == {me})
p = subprocess.Popen([sys.executable, "-c", "import os, signal; os.kill(os.getpid(), signal.SIGTERM)"])
print("ended", p.wait() != 0)`, "True 1 3 True\nended True"},
		{"a script", `print(run("./run", "x"))`, `("run ['./run', 'x']\n", {'pid': 2, 'exit': 7})`},
		{"environment and folder", `print(run("python3", "-c", "import os; print(dict(os.environ), os.getcwd())", env=["A=b=c"], dir="/tmp"))`, `("{'A': 'b=c'} /tmp\n", {'pid': 2, 'exit': 0})`},
		{"files", `
open("/tmp/made", "w").write("made")
print(run("python3", "-c", "print(open('/tmp/made').read(), open('notes.txt').read()); open('by', 'w').write('child')"), open("by").read())`, `('made first\n\n', {'pid': 2, 'exit': 0}) child`},
		{
			"nothing of it", `print(run("ls"), run("./data"), run("./none"), run("/tmp"))`,
			`{'error': 'ENOENT', 'message': 'ls: command not found'} {'error': 'ENOEXEC', 'message': './data: no program that can be run here'} {'error': 'ENOENT', 'message': './none: command not found'} {'error': 'EACCES', 'message': '/tmp: permission denied'}`,
		},
		{"its error", `p = start("python3", "-c", "1/0", stderr="pipe"); print(os.fdopen(p["stderr"]).read().splitlines()[-1], ask("wait", pid=0))`, `ZeroDivisionError: division by zero {'pid': 2, 'exit': 1}`},
		{"what it inherits", `
print("before", flush=True)
p = start("python3", "-c", "print('child')")
print(ask("wait", pid=p["pid"]))`, "before\nchild\n{'pid': 2, 'exit': 0}"},
		{"to a file", `
f = open("/tmp/out", "w+b", buffering=0)
f.write(b"1\n")
p = start("python3", "-c", "print(2)", stdout=f.fileno())
ask("wait", pid=p["pid"])
f.write(b"3\n")
print(open("/tmp/out").read().split())`, `['1', '2', '3']`},
		{"a pipeline", `
a = ask("pipe")
p = start("python3", "-c", "for i in range(100000): print(i)", stdout=a["write"])
os.close(a["write"])
q = start("python3", "-c", "import sys; print(sum(map(int, sys.stdin)))", stdin=a["read"])
os.close(a["read"])
print(ask("wait", pid=p["pid"]), ask("wait", pid=q["pid"]))`, "4999950000\n{'pid': 2, 'exit': 0} {'pid': 3, 'exit': 0}"},
		{"a reader that leaves", `
a = ask("pipe")
p = start("python3", "-c", "while True: print('y')", stdout=a["write"], stderr="null")
os.close(a["write"])
print(os.read(a["read"], 1))
os.close(a["read"])
print(ask("wait", pid=p["pid"])["exit"] != 0)`, "b'y'\nTrue"},
		{
			"a child of a child", `print(run("python3", "-c", open("tool.py").read().split("print(run")[0] + "\nprint(run('python3', 'other.py'))"))`,
			`('("other [\'other.py\'] __main__\\n", {\'pid\': 3, \'exit\': 0})\n', {'pid': 2, 'exit': 0})`,
		},
		{
			"killed", `
p = start("python3", "-c", "while True: pass")
print(ask("wait", pid=p["pid"], block=False), ask("kill", pid=p["pid"], signal=15), ask("wait", pid=p["pid"]), ask("wait", pid=p["pid"]))`,
			`{'pid': 0} {} {'pid': 2, 'signal': 15} {'error': 'ECHILD', 'message': 'there is no such child process'}`,
		},
		{"a sleeper and one that computes", `
import time
p = start("python3", "-c", "while True: pass")
time.sleep(0.02)
ask("kill", pid=p["pid"], signal=9)
print(ask("wait", pid=p["pid"]))`, `{'pid': 2, 'signal': 9}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if r := run(t, c.text); r.Code != "" || r.ExitCode != 0 || strings.TrimSpace(string(r.Stdout)) != c.want {
				t.Errorf("%s %s %d\n%s\nwant\n%s\n%s", r.Code, r.Message, r.ExitCode, r.Stdout, c.want, r.Stderr)
			}
		})
	}
}

// Programs are started in the ways of the library.
func TestSubprocess(t *testing.T) {
	run := processes(t)
	for _, c := range []struct{ name, text, want string }{
		{"run", `
r = subprocess.run([sys.executable, "-c", "import sys; print(sys.stdin.read().upper()); print('e', file=sys.stderr); sys.exit(3)"], input="in", capture_output=True, text=True)
print(r.returncode, repr(r.stdout), repr(r.stderr))`, `3 'IN\n' 'e\n'`},
		{"much in both directions", `
text = "x" * 300_000
r = subprocess.run(["python3", "-c", "import sys; t = sys.stdin.read(); print(t, end=''); print(t, end='', file=sys.stderr)"], input=text, capture_output=True, text=True)
print(r.returncode, r.stdout == r.stderr == text)`, `0 True`},
		{"check", `
try: subprocess.run(["python3", "-c", "raise SystemExit(9)"], check=True)
except subprocess.CalledProcessError as e: print(e.returncode, e.cmd[0])
print(subprocess.check_output("python3 -V".split(), text=True).startswith("Python 3"), subprocess.call(["python3", "-c", ""]))`, "9 python3\nTrue 0"},
		{"what is not there", `
for args in (["git", "status"], ["./none"], ["./data"]):
    try: subprocess.run(args)
    except OSError as e: print(type(e).__name__, e.filename)
try: subprocess.run(["python3"], cwd="none")
except OSError as e: print(type(e).__name__, e.filename)`, "FileNotFoundError git\nFileNotFoundError ./none\nOSError ./data\nFileNotFoundError none"},
		{"timeout", `
try: subprocess.run(["python3", "-c", "while True: pass"], timeout=0.02)
except subprocess.TimeoutExpired as e: print(e.timeout)
p = subprocess.Popen(["python3", "-c", "import time; time.sleep(100)"])
print(p.poll()); p.terminate(); print(p.wait(), p.poll())`, "0.02\nNone\n-15 -15"},
		{"a pipeline", `
p = subprocess.Popen(["python3", "-c", "for i in range(50000): print(i)"], stdout=subprocess.PIPE)
q = subprocess.Popen(["python3", "-c", "import sys; print(sum(map(int, sys.stdin)))"], stdin=p.stdout, stdout=subprocess.PIPE, text=True)
p.stdout.close()
print(q.communicate(), p.wait())`, `('1249975000\n', None) 0`},
		{"both streams of output", `
p = subprocess.Popen(["python3", "-c", "import sys; t = 'a' * 200000; sys.stdout.write(t); sys.stderr.write(t + 'b'); sys.stdout.write('c')"], stdout=-1, stderr=-1, text=True)
out, err = p.communicate()
print(len(out), out[-1], len(err), err[-1], p.stdout.closed and p.stderr.closed, p.returncode, p.communicate() == (out, err))`, "200001 c 200001 b True 0 True"},
		{"what is wrong begins nothing", `
for more in [{"encoding": "none"}, {"stdout": 99}, {"stdin": "no file"}, {"cwd": "none"}]:
    try: subprocess.Popen(["python3", "-c", "open('/tmp/begun', 'w')"], **more)
    except (AttributeError, LookupError, OSError) as e: print(type(e).__name__, end=" ")
print(sorted(os.listdir("/tmp")), open("/tmp/x", "w").fileno() < 6)`, "LookupError OSError AttributeError FileNotFoundError [] True"},
		{"streams", `
print(subprocess.run(["python3", "-c", "import sys; print(1); print(2, file=sys.stderr)"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT).stdout)
print(subprocess.run(["python3", "-c", "import sys; print(repr(sys.stdin.read()))"], stdin=subprocess.DEVNULL, capture_output=True).stdout)
with open("/tmp/out", "w") as f: subprocess.run(["python3", "-c", "print('to a file')"], stdout=f)
print(open("/tmp/out").read(), end="")`, `b'1\n2\n'
b"''\n"
to a file`},
		{"environment and folder", `
print(subprocess.run(["python3", "-c", "import os; print(os.environ.get('A'), os.getcwd())"], env={"A": "ä"}, cwd="/tmp", capture_output=True, text=True).stdout)
os.environ["B"] = "b"
print(subprocess.check_output(["python3", "-c", "import os; print(os.environ['B'])"]))`, "ä /tmp\n\nb'b\\n'"},
		{"looked for", `
import shutil
print(shutil.which("python3"), shutil.which("git"), os.access("/usr/bin/python", os.X_OK), os.path.exists("/bin/git"), os.environ["PATH"])
for change in (lambda: open("/usr/bin/git", "w"), lambda: os.unlink("/usr/bin/python3"), lambda: os.rename("other.py", "/bin/python3")):
    try: change()
    except OSError as e: print(e.strerror)
print(subprocess.check_output(["/usr/bin/python3", "-c", "import shutil; print(shutil.which('python'))"], env={}, text=True), sorted(os.listdir("/usr/bin")))`, `/usr/bin/python3 None True False /usr/bin:/bin
Read-only file system
Read-only file system
Cross-device link
/bin/python
 ['python', 'python3']`},
		{"instead of this one", `
atexit = __import__("atexit"); atexit.register(print, "never")
os.read(0, 3)
os.execlp("python3", "python3", "-c", "import sys; print(sys.stdin.read(), sys.argv); sys.exit(0)", "x")`, "input ['-c', 'x']"},
		{"a copy of this one", `
print(hasattr(os, "fork"))
try: os.fork()
except AttributeError as e: print(e)`, "False\nmodule 'os' has no attribute 'fork'; the sandbox has no copies of a process: start another one by subprocess"},
		{"a user's home", `print(*map(os.path.expanduser, ["~skill/x", "~", "~nobody/x"]))`, "/tmp/x /tmp ~nobody/x"},
		{"of module os", `
r, w = os.pipe(); os.write(w, b"x"); os.close(w); print(os.read(r, 9), os.read(r, 9))
print(os.system(""))`, "b'x' b''\n0"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if r := run(t, "import subprocess\n"+c.text, func(c *skill.Call) { c.Stdin = []byte("1, input") }); r.Code != "" || r.ExitCode != 0 || strings.TrimSpace(string(r.Stdout)) != c.want {
				t.Errorf("%s %s %d\n%s\nwant\n%s\n%s", r.Code, r.Message, r.ExitCode, r.Stdout, c.want, r.Stderr)
			}
		})
	}
}

// All processes of a run have its limits together, and end with it.
func TestProcessLimits(t *testing.T) {
	run := processes(t)
	for _, c := range []struct {
		name, text, want string
		code             skill.Code
		change           func(*skill.Call)
	}{
		{name: "time", text: `p = start("python3", "-c", "while True: pass"); ask("wait", pid=p["pid"])`, code: skill.Timeout, change: func(c *skill.Call) { c.Limits.Timeout = time.Second }},
		{name: "fuel", text: `p = start("python3", "-c", "while True: pass"); ask("wait", pid=p["pid"])`, code: skill.FuelExhausted, change: func(c *skill.Call) { c.Limits.Fuel = 3e8 }},
		{name: "fuel of all", text: `
for i in range(200): run("python3", "-c", "for i in range(100000): pass")`, code: skill.FuelExhausted, change: func(c *skill.Call) { c.Limits.Fuel = 6e8 }},
		{name: "memory of all", text: `
b = bytearray(120 << 20)
alone = run("python3", "-c", "b = bytearray(120 << 20)")
del b
print(alone)`, want: "('', {'pid': 2, 'signal': 9})", change: func(c *skill.Call) { c.Limits.Memory = 256 << 20 }},
		{name: "output", text: `
for i in range(2): start("python3", "-c", "while True: print('x' * 1000)")
ask("wait", pid=0)`, code: skill.OutputLimit},
		{name: "memory", text: `
p = start("python3", "-c", "print('in'); bytearray(200 << 20)", stderr="null")
print(ask("wait", pid=p["pid"]))`, want: "in\n{'pid': 2, 'signal': 9}", change: func(c *skill.Call) { c.Limits.Memory = 128 << 20 }},
		{name: "each for the other", text: `
a, b = ask("pipe"), ask("pipe")
start("python3", "-c", "import sys; sys.stdin.read()", stdin=a["read"])
os.read(b["read"], 1)`, code: skill.Trap},
		{name: "arguments", text: `print(start("python3", "x" * (2 << 20))["error"])`, want: "E2BIG"},
		{name: "left behind", text: `start("python3", "-c", "import time; time.sleep(100)"); print("over")`, want: "over"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var change []func(*skill.Call)
			if c.change != nil {
				change = append(change, c.change)
			}
			if r := run(t, c.text, change...); r.Code != c.code || strings.TrimSpace(string(r.Stdout)) != c.want && c.code == "" {
				t.Errorf("%s %s %d\n%s\nwant %s %s\n%s", r.Code, r.Message, r.ExitCode, r.Stdout, c.code, c.want, r.Stderr)
			}
		})
	}
}

// A run of several processes that look at clocks and chance, and that take turns, is made again.
func TestProcessesReplayed(t *testing.T) {
	e, state := warm(t)
	run := func(c *skill.Call) *skill.Reply {
		r := New(e, &Options{StateDir: state, Programs: &sandbox.Programs{}})
		defer r.Close()
		return musttest.Get(runnertest.Do(t.Context(), r, c))(t)
	}
	c := script(t, "")
	c.Script, c.SkillID, c.Entry, c.Limits.Memory = true, "my-skill", "tool.py", 512<<20
	text := host + `
import random, time
child = """
import os, random, sys, time, uuid
print(sys.argv[1], time.time(), random.random(), uuid.uuid4(), set('abcdefghij'), time.perf_counter())
n = 0
end = time.monotonic() + 0.01
while time.monotonic() < end: n += 1
time.sleep(0.005)
print(sys.argv[1], n, os.getcwd())
"""
print(random.random(), time.time(), set("abcdefghij"), flush=True)
for name in ("one", "two"): start("python3", "-c", child, name)
while (ended := ask("wait"))["pid"]:
    print(ended, time.time(), flush=True)
    if ended["pid"] == 3: break
`
	musttest.Do(t, os.WriteFile(filepath.Join(c.Folder, "tool.py"), []byte(text), 0o600))
	recorded := *c
	recorded.Record = 4 << 20
	then := run(&recorded)
	if then.Recording == nil || then.Recording.Draws == nil || then.ExitCode != 0 {
		t.Fatalf("nothing was recorded: %+v\n%s", then.Recording, then.Stderr)
	}
	again := *c
	again.Replay = then.Recording.Draws
	same(t, then, run(&again))
}

// The host tells what a run started: which program, by whom, and its end, and no arguments.
func TestProcessesAreTold(t *testing.T) {
	run := processes(t)
	if r := run(t, "print(1)"); r.Processes != nil {
		t.Errorf("%+v of a run without processes", r.Processes)
	}
	r := run(t, `
run("python3", "-c", "import sys; sys.exit(3)", "secret")
run("./run")
start("python3", "-c", open("tool.py").read().split("\nrun(")[0] + "\nstart('none')\nstart('python3', '-c', 'while True: pass')\nprint(ask('wait', pid=0, block=False))", stdout="null")
ask("wait")
start("python3", "-c", "pass")`)
	want := &skill.Processes{Started: 5, List: []skill.Process{
		{ID: 2, Parent: 1, Program: "python3", Exit: 3},
		{ID: 3, Parent: 1, Program: "python3", Exit: 7},
		{ID: 4, Parent: 1, Program: "python3"},
		{ID: 5, Parent: 4, Program: "python3", Signal: 9},
		{ID: 6, Parent: 1, Program: "python3", Signal: 9},
	}}
	if diff := cmp.Diff(want, r.Processes); diff != "" {
		t.Errorf("%s\n%s", diff, r.Stderr)
	}
	r = run(t, `
for i in range(120): run("python3", "-c", "pass")`, func(c *skill.Call) { c.Limits.Fuel *= 10 })
	if p := r.Processes; p == nil || p.Started != 120 || len(p.List) != skill.MaxProcessesListed {
		t.Errorf("%+v, %s", r.Processes, r.Stderr)
	}
}
