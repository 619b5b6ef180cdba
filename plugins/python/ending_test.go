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

// A script ends as it does with python script.py, whatever it did to the interpreter:
// what it wrote is there, its exit code is its own, and errors are told.
func TestEndsLikePython(t *testing.T) {
	oneGuest(t)
	cases := []struct {
		name, text string
		exit       uint32
		stdout     string
		stderr     []string // in this order
		artifact   string   // of out.txt
	}{
		{name: "output closed", text: "print('x'); sys.stdout.close()", stdout: "x\n"},
		{name: "output replaced", text: "print('x', end=''); sys.stdout = io.StringIO(); print('no')", stdout: "x"},
		{name: "output replaced and closed", text: "print('x', end=''); sys.stdout = open('/work/out.txt', 'w'); print('y'); sys.stdout.close()", stdout: "x", artifact: "y\n"},
		{name: "output taken away", text: "print('x', end=''); sys.stdout = None", stdout: "x"},
		{name: "output that fails", text: "class Bad(io.StringIO):\n  def flush(self): raise OSError\nprint('x'); sys.stdout = Bad()", exit: 120, stdout: "x\n"},
		{name: "output wrapped", text: "sys.stdout = io.TextIOWrapper(sys.stdout.buffer, 'utf-16-le'); print('x')", stdout: "x\x00\n\x00"},
		{name: "no error output", text: "sys.stderr = None; sys.exit('words')", exit: 1},
		{name: "a word that fails", text: "class Bad:\n  def __str__(self): raise OSError\nsys.exit(Bad())", exit: 1},
		{name: "a truth", text: "sys.exit(True)", exit: 1},
		{name: "a large code", text: "sys.exit(2**40 + 7)", exit: 7},
		{name: "a hook of its own", text: "sys.excepthook = lambda kind, error, trace: print('mine', error)\nraise ValueError('first')", exit: 1, stdout: "mine first\n"},
		{name: "a hook that fails", text: "sys.excepthook = lambda *a: 1 / 0\nraise ValueError('first')", exit: 1, stderr: []string{"Error in sys.excepthook:\nTraceback", "ZeroDivisionError", "\n\nOriginal exception was:\nTraceback", "ValueError: first"}},
		{name: "a hook that exits", text: "sys.excepthook = lambda *a: sys.exit(5)\nraise ValueError('first')", exit: 5},
		{name: "a hook that is none", text: "sys.excepthook = 7\nraise ValueError('first')", exit: 1, stderr: []string{"ValueError: first"}},
		{name: "a hook that is gone", text: "del sys.excepthook\nraise ValueError('first')", exit: 1, stderr: []string{"ValueError: first"}},
		{name: "a file of its own", text: "f = open('/work/out.txt', 'w'); f.write('kept')", artifact: "kept"},
		{name: "a file of a module", text: "import helper; helper.log('kept')", artifact: "kept"},
		{name: "a file of a module, behind another", text: "f = open('/skill/main.py'); import helper; helper.log('kept'); f.close()", artifact: "kept"},
		{name: "a file in a circle", text: "class C: pass\nc = C(); c.f = open('/work/out.txt', 'w'); c.f.write('kept'); c.c = c", artifact: "kept"},
		{name: "a file of a class", text: "class C: f = open('/work/out.txt', 'w')\nC.f.write('kept')", artifact: "kept"},
		{name: "a file, and an error", text: "import helper; helper.log('kept'); raise ValueError('first')", exit: 1, artifact: "kept", stderr: []string{"ValueError: first"}},
		{name: "a file of logging", text: "import logging; logging.basicConfig(filename='/work/out.txt', format='%(message)s'); logging.warning('kept')", artifact: "kept\n"},
		{name: "functions at the end", text: "import atexit\natexit.register(print, 'second')\natexit.register(lambda: 1 / 0)\natexit.register(print, 'first')", stdout: "first\nsecond\n", stderr: []string{"ZeroDivisionError"}},
		{name: "objects at the end", text: "class C:\n  def __del__(self): print('gone')\nc = C()", stdout: "gone\n"},
	}
	runners(t, []string{"slim", "python-3.12"}, func(t *testing.T, r *Runner) {
		for i, c := range cases {
			// In an interpreter of its own, and from an image, with modules of the script in it.
			for when, text := range map[string]string{"at once": "import io, sys\n", "after input": "import helper, io, sys\nsys.stdin.read()\n"} {
				if !thorough(r, i+len(when)) && (c.artifact == "" || i%2 == len(when)%2) {
					continue
				}
				t.Run(c.name+", "+when, func(t *testing.T) {
					call := script(t, text+c.text)
					call.Grants.Scratch = true
					if when == "at once" {
						call.Args = []string{"its own"}
					}
					helper := "f = None\ndef log(text):\n  globals()['f'] = open('/work/out.txt', 'w')\n  f.write(text)\n"
					musttest.Do(t, os.WriteFile(filepath.Join(call.Folder, "helper.py"), []byte(helper), 0o600))
					reply := musttest.Get(runnertest.Do(t.Context(), r, call))(t)
					if reply.Code != "" || reply.ExitCode != c.exit || string(reply.Stdout) != c.stdout {
						t.Errorf("%q, exit code %d, %q; want %d, %q\n%s", reply.Code, reply.ExitCode, reply.Stdout, c.exit, c.stdout, reply.Stderr)
					}
					rest := string(reply.Stderr)
					for _, want := range c.stderr {
						_, after, ok := strings.Cut(rest, want)
						if !ok {
							t.Errorf("%q is not on standard error:\n%s", want, reply.Stderr)
							break
						}
						rest = after
					}
					if c.stderr == nil && rest != "" || strings.Contains(rest, "/openskill/") {
						t.Errorf("standard error:\n%s", reply.Stderr)
					}
					if got := artifact(reply, "out.txt"); got != c.artifact {
						t.Errorf("out.txt holds %q, want %q", got, c.artifact)
					}
				})
			}
		}
	})
}

func artifact(r *skill.Reply, name string) string {
	for _, a := range r.Artifacts {
		if a.Name == name {
			return string(a.Data)
		}
	}
	return ""
}
