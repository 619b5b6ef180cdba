package python

import (
	"os"
	"strings"
	"testing"

	"openskill/internal/musttest"
	"openskill/sdk/skill"
)

// TestThreadsWithPipes: a thread that waits for another program leaves the others to go on, one of which
// may write what it waits for. The script prints the same natively (CPython 3.11).
func TestThreadsWithPipes(t *testing.T) {
	run := processes(t)
	text := musttest.Get(os.ReadFile("testdata/pipes.py"))(t)
	want := musttest.Get(os.ReadFile("testdata/pipes.out"))(t)
	head, cases, _ := strings.Cut(string(text), "@case\n")
	for part := range strings.SplitSeq(cases, "@case\n") {
		name := strings.TrimPrefix(part[:strings.Index(part, "(")], "def ")
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, after, _ := strings.Cut(string(want), "-- "+name+"\n")
			lines, _, _ := strings.Cut(after, "-- ")
			r := run(t, head+"@case\n"+part)
			if r.Code != "" || r.ExitCode != 0 || string(r.Stdout) != "-- "+name+"\n"+lines {
				t.Errorf("%s %s %d\n%s\nwant\n%s\n%s", r.Code, r.Message, r.ExitCode, r.Stdout, lines, r.Stderr)
			}
		})
	}
}

// TestThreadsOfPipesThatNobodyReads: what can never go on ends at once with what is wrong, and limits hold.
func TestThreadsOfPipesThatNobodyReads(t *testing.T) {
	run := processes(t)
	for _, c := range []struct {
		name, text, stdout, stderr string
		code                       skill.Code
	}{
		{"a pipe that nobody reads", `
r, w = os.pipe()
def f(): os.write(w, b"x" * (1 << 20)); os.write(w, b"y")
t = threading.Thread(target=f); t.start(); t.join()`, "", "", skill.Trap},
		{"a pipe that nobody writes", `
r, w = os.pipe()
t = threading.Thread(target=lambda: os.read(r, 1)); t.start(); t.join()`, "", "", skill.Trap},
		{"each for the other, in a comprehension", `
p = subprocess.Popen([sys.executable, "-c", "import sys; print(sys.stdin.readline())"], stdin=-1, stdout=-1, text=True)
def f(): print([line for line in p.stdout])
t = threading.Thread(target=f); t.start(); t.join()`, "", "", skill.Trap},
		{"output beyond the bound", `
p = subprocess.Popen([sys.executable, "-c", "while True: print('x' * 1000)"], stdout=-1)
def f():
    for line in p.stdout: sys.stdout.buffer.write(line)
t = threading.Thread(target=f); t.start(); t.join()`, "", "", skill.OutputLimit},
		{"closed by another thread", `
r, w = os.pipe()
f = os.fdopen(r)
def g():
    try: f.readline()
    except (OSError, ValueError) as e: print(type(e).__name__)
t = threading.Thread(target=g); t.start(); f.close(); t.join()`, "ValueError\n", "", ""},
		{"another text with the same name and place", `
code = """def f():
    time.sleep(0.001); print('mine')
import threading, time
ns = {'time': time}
exec("def f():\\n    time.sleep(0.001); print('other')", ns)
for g in (ns['f'], f): t = threading.Thread(target=g); t.start(); t.join()"""
subprocess.run([sys.executable, "-c", code])`, "other\nmine\n", "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := run(t, "import os, subprocess, sys, threading\n"+c.text)
			if r.Code != c.code || c.code == "" && (string(r.Stdout) != c.stdout || !strings.Contains(string(r.Stderr), c.stderr)) {
				t.Errorf("%s %s %d\n%.1000s\n%s", r.Code, r.Message, r.ExitCode, r.Stdout, r.Stderr)
			}
		})
	}
}

// TestFormsOfRun: subprocess.run, which makes no files of the pipes that it reads, gives what it gives
// natively (CPython 3.11).
func TestFormsOfRun(t *testing.T) {
	run := processes(t)
	text := musttest.Get(os.ReadFile("testdata/runs.py"))(t)
	want := musttest.Get(os.ReadFile("testdata/runs.out"))(t)
	if r := run(t, string(text)); r.Code != "" || string(r.Stdout) != string(want) {
		t.Errorf("%s %s %d\n%s\nwant\n%s\n%s", r.Code, r.Message, r.ExitCode, r.Stdout, want, r.Stderr)
	}
}
