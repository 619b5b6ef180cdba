package python

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"openskill/internal/musttest"
	"openskill/plugins/runnertest"
	"openskill/sdk/skill"
)

// trick is a script that does what few do, before it reads its input and after.
type trick struct {
	name, text string
	files      []string // name, text, name, text …
	code       skill.Code
	exit       uint32
	want       string // on standard output, of the call with the input IN
	stderr     string // in standard error
	slim       bool   // of this version alone
}

var tricks = []trick{
	// What is printed before the read is part of each call, once and in its place.
	{name: "prints before", text: "print('a'); print('e', file=sys.stderr); IN(); print('b')", want: "a\nb\n", stderr: "e\n"},
	{name: "prints before, flushed", text: "print('a', flush=True); os.write(1, b'w'); IN(); os.write(1, b'b')", want: "a\nwb"},
	{name: "prints before, in parts", text: "sys.stdout.write('a'); sys.stdout.buffer.write(b'x'); IN(); print('b')", want: "axb\n"}, // nothing waits in a buffer
	{name: "prints much before", text: "print('a' * 100_000); IN(); print('b')", want: strings.Repeat("a", 100_000) + "\nb\n"},
	{name: "a generator in the middle", text: "def g():\n  print('a')\n  x = yield\n  print(x)\n  yield\ng = g(); next(g); g.send(IN())", want: "a\nIN\n"},
	{name: "in a handler of an error", text: "try:\n  1 / 0\nexcept ZeroDivisionError as e:\n  print(IN(), type(e).__name__)", want: "IN ZeroDivisionError\n"},
	{name: "in an import", text: "import sub; print(sub.got)", files: []string{"sub.py", "import sys\ngot = sys.stdin.read()\n"}, want: "IN\n"},
	{name: "in a finalizer", text: "class C:\n  def __del__(self): print(IN())\nc = C(); c.c = c; del c\nimport gc; gc.collect(); print('b')", want: "IN\nb\n"},
	{name: "at exit", text: "import atexit; atexit.register(lambda: print(IN()))\nprint('a')", want: "a\nIN\n"},
	{name: "in the hook of an error", text: "sys.excepthook = lambda *a: print(IN())\n1 / 0", exit: 1, want: "IN\n"},
	{name: "in a trace function", text: "def t(*a):\n  sys.settrace(None); print(IN())\nsys.settrace(t)\n(lambda: 0)()", want: "IN\n"},
	{name: "in a callback of the collector", text: "import gc\ndef c(phase, info):\n  gc.callbacks.clear(); print(IN())\ngc.callbacks.append(c); gc.collect()", want: "IN\n"},
	{name: "twice at once", text: "import weakref\nclass C: pass\nc = C(); c.c = c; w = weakref.ref(c, lambda _: print('inner', IN())); del c\nprint('outer', repr(sys.stdin.buffer.raw.read()))", want: "inner IN\nouter b''\n"},

	// What is replaced in the interpreter is replaced for the script alone.
	{name: "input replaced", text: "sys.stdin = io.StringIO('mine'); print(input())", want: "mine\n"},
	{name: "input closed", text: "sys.stdin.close()\ntry: input()\nexcept ValueError: print('closed')", want: "closed\n"},
	{name: "input taken away", text: "sys.stdin = None\ntry: input()\nexcept RuntimeError as e: print(str(e)[-14:])", want: "lost sys.stdin\n"},
	{name: "descriptor closed", text: "os.close(0)\ntry: sys.stdin.read()\nexcept OSError as e: print(e.errno)", want: "8\n"},
	{name: "input detached", text: "raw = sys.stdin.detach().detach(); print(raw.readall())", want: "b'IN'\n"},
	{name: "another encoding", text: "sys.stdin.reconfigure(encoding='utf-16-le'); print(repr(sys.stdin.read()))", want: "'\u4e49'\n"},
	{name: "json replaced", text: "import json; json.dumps = lambda o: 'mine'; IN(); print(json.dumps(1))", want: "mine\n"},
	{name: "open replaced", text: "import builtins\nold = open\ndef mine(*a, **k): return old(*a, **k)\nbuiltins.open = mine\nprint(open(0).read(), open is mine)", want: "IN True\n"},
	{name: "os.read replaced", text: "old, os.read = os.read, None; os.read = lambda *a: old(*a).lower()\nprint(os.read(0, 9), os.read.__name__)", want: "b'in' <lambda>\n"},
	{name: "modules taken away", text: "for m in list(sys.modules): del sys.modules[m]\nprint(IN())", want: "IN\n"},
	{name: "main taken away", text: "def f():\n  m, p, r = sys.modules.pop('__main__'), print, IN; m.__dict__.clear(); p(r())\nf()", want: "IN\n"},
	{name: "main imported", text: "import __main__ as m; x = 7; IN(); print(m.x, m is sys.modules['__main__'], m.__name__, m.__spec__)", want: "7 True __main__ None\n"},
	{name: "the boot's frames", text: "f = sys._getframe(1); print(IN(), f.f_code.co_name, '_first' in str(sys.meta_path))", want: "IN _boot False\n"},
	{name: "exit replaced", text: "os._exit = lambda *a: None; IN(); print('x'); sys.exit(3)", exit: 0, want: "x\n"},

	// Modules of the skill's own stand before those of the library, for the script and not
	// for what runs it.
	{name: "own json", text: "import json; print(json.dumps(IN()))", files: []string{"json.py", "def dumps(o): return 'mine ' + o\n"}, want: "mine IN\n"},
	{name: "own random", text: "import random; print(random.Random, IN())", files: []string{"random.py", "Random = 5\n_inst = None\n"}, want: "5 IN\n"},
	{name: "own random of classes", text: "import random; print(random.random(), IN())", files: []string{"random.py", "class Random:\n  def seed(self): pass\n  def random(self): return 1\n  getstate = setstate = None\n_inst = Random()\nrandom = _inst.random\n"}, want: "1 IN\n"},
	{name: "own os and io", text: "import os, io, sys; print(os.sep, io.open is open, IN())", files: []string{"os.py", "1 / 0\n", "io.py", "1 / 0\n", "sys.py", "1 / 0\n", "gc.py", "1 / 0\n", "atexit.py", "1 / 0\n", "builtins.py", "1 / 0\n"}, want: "/ True IN\n"},
	{name: "own tracebacks", text: "IN(); raise ValueError('x')", files: []string{"traceback.py", "def print_exception(*a, **k): raise SystemExit(0)\n", "linecache.py", "1 / 0\n"}, exit: 1, stderr: "ValueError: x"},
	{name: "own site", text: "print(IN())", files: []string{"sitecustomize.py", "print('no')\n", "usercustomize.py", "print('no')\n", "site.py", "print('no')\n", "encodings/__init__.py", "1 / 0\n", "_io.py", "1 / 0\n", "abc.py", "1 / 0\n"}, want: "IN\n"},
	{name: "own numpy", text: "import numpy.random; print(numpy.random.x, IN())", files: []string{"numpy/__init__.py", "", "numpy/random.py", "x = 1\n"}, want: "1 IN\n"},
	{name: "a module that is no text", text: "import blob", files: []string{"blob.py", "\x00\xff"}, exit: 1, stderr: "SyntaxError"},

	// What asks for a machine that is not there.
	{name: "a thread before", text: "import threading, time\ndef f():\n  for i in range(3): print(i); time.sleep(0.001)\nthreading.Thread(target=f).start()\nprint(IN(), threading.active_count())", want: "0\nIN 2\n1\n2\n"},
	{name: "a handler of a signal", text: "import signal\nsignal.signal(signal.SIGTERM, lambda *a: print('handled')); IN(); signal.raise_signal(signal.SIGTERM); print('on')", want: "handled\non\n"},
	{name: "an alarm", text: "import signal; print(hasattr(signal, 'alarm'), IN())", want: "False IN\n"},

	// Ends by force are the guest's own failure.
	{name: "aborts", text: "IN(); print('x', flush=True); os.abort()", code: skill.Trap, want: "x\n"},
	{name: "a segmentation fault", text: "import faulthandler; IN(); faulthandler._sigsegv()", code: skill.Trap},
	{name: "aborts before", text: "os.abort()", code: skill.Trap},
	{name: "code that is none", text: "IN(); exec((lambda: 0).__code__.replace(co_code=b'\\xff' * 64, co_stacksize=0))", code: skill.Trap, slim: true}, // 3.12 has an error for it
}

// thorough reports whether case i is run: each on slim alone takes half a minute, so
// it is some of them unless OPENSKILL_TEST_SCRIPTS asks for all, on all runtimes.
func thorough(r *Runner, i int) bool {
	if os.Getenv("OPENSKILL_TEST_SCRIPTS") != "" {
		return true
	}
	if nameOf(r) != "slim" {
		return i%16 == 1 // the same files stand in all runtimes
	}
	return i%4 == 1
}

// TestTricks: each script does the same in each of its calls, whether its instance
// served others before or is new, and does it as plain Python would.
func TestTricks(t *testing.T) {
	oneGuest(t)
	runners(t, []string{"slim", "python-3.12"}, func(t *testing.T, r *Runner) {
		for i, c := range tricks {
			if !thorough(r, i) || c.slim && nameOf(r) != "slim" {
				continue
			}
			t.Run(c.name, func(t *testing.T) {
				call := script(t, "import io, os, sys\nIN = sys.stdin.read\n"+c.text)
				call.Stdin = []byte("IN")
				call.Limits.Timeout = 30 * time.Second
				for i := 0; i < len(c.files); i += 2 {
					path := filepath.Join(call.Folder, filepath.FromSlash(c.files[i]))
					musttest.Do(t, os.MkdirAll(filepath.Dir(path), 0o700))
					musttest.Do(t, os.WriteFile(path, []byte(c.files[i+1]), 0o600))
				}
				for range 2 {
					reply := musttest.Get(runnertest.Do(t.Context(), r, call))(t)
					if reply.Code != c.code || c.code == "" && reply.ExitCode != c.exit || string(reply.Stdout) != c.want {
						t.Fatalf("%q (%s), exit code %d, %.300q; want %q, %d, %.300q\n%s", reply.Code, reply.Message, reply.ExitCode, reply.Stdout, c.code, c.exit, c.want, reply.Stderr)
					}
					if !strings.Contains(string(reply.Stderr), c.stderr) || c.stderr == "" && c.code == "" && c.exit == 0 && len(reply.Stderr) > 0 {
						t.Fatalf("standard error: %s", reply.Stderr)
					}
				}
			})
		}
	})
}
