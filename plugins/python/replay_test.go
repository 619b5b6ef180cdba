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
	"openskill/wasm"
)

// everything is a script that shows whatever can differ between two of its runs.
const everything = `
import os, random, sys, tempfile, time, uuid
seen = [random.random(), time.time(), set("abcdefghij")]
import json
given = sys.stdin.read()
started = time.monotonic()
time.sleep(0.05)
print(given, seen, len(seen))
print(time.time(), time.time_ns(), time.monotonic() - started, time.perf_counter(), time.process_time())
print(random.random(), random.SystemRandom().random(), uuid.uuid4(), uuid.uuid1(), os.urandom(8).hex())
print(set(str(random.random()) for _ in range(20)), set("some words in no order".split()), hash("x"), object())
print(time.strftime("%Y-%m-%d %H:%M:%S"), sys.getsizeof(seen), id(seen))
if os.path.isdir("/work"):
    with tempfile.NamedTemporaryFile("w", delete=False) as f:
        f.write(str(random.random()))
    os.mkdir("/work/deep")
    open("/work/deep/file", "w").close()
    print(f.name, [os.stat(p).st_mtime_ns for p in ("/work", f.name, "/work/deep", "/work/deep/file")])
    print([(e.name, e.stat().st_ino) for e in sorted(os.scandir("/work"), key=lambda e: e.name)])
`

// replayed runs a call, and again on another runner from what was recorded.
func replayed(t *testing.T, c *skill.Call) (then, now *skill.Reply) {
	t.Helper()
	e, state := warm(t)
	run := func(c *skill.Call) *skill.Reply {
		r := New(e, &Options{StateDir: state})
		defer r.Close()
		return musttest.Get(runnertest.Do(t.Context(), r, c))(t)
	}
	recorded := *c
	recorded.Record = 1 << 20
	then = run(&recorded)
	if then.Recording == nil || then.Recording.Draws == nil {
		t.Fatalf("nothing was recorded: %+v\n%s", then.Recording, then.Stderr)
	}
	again := *c
	again.Replay = then.Recording.Draws
	return then, run(&again)
}

func same(t *testing.T, then, now *skill.Reply) {
	t.Helper()
	if now.Differs != "" || now.Code != then.Code || now.ExitCode != then.ExitCode || now.Usage.Fuel != then.Usage.Fuel ||
		string(now.Stdout) != string(then.Stdout) || string(now.Stderr) != string(then.Stderr) || len(now.Artifacts) != len(then.Artifacts) {
		t.Fatalf("it differs: %q %q, %d units of %d\n%s%s\nthen\n%s%s", now.Differs, now.Message, now.Usage.Fuel, then.Usage.Fuel, now.Stdout, now.Stderr, then.Stdout, then.Stderr)
	}
	for i, a := range then.Artifacts {
		if b := now.Artifacts[i]; a.Name != b.Name || string(a.Data) != string(b.Data) {
			t.Errorf("%s is %q, and %s was %q", b.Name, b.Data, a.Name, a.Data)
		}
	}
}

// TestReplay holds that a script which looks at every clock and every kind of chance, and
// at the times of its files, does again on another runner what it did.
func TestReplay(t *testing.T) {
	for name, change := range map[string]func(c *skill.Call){
		"a skill":                  func(*skill.Call) {},
		"with scratch space":       func(c *skill.Call) { c.Grants.Scratch = true },
		"with arguments":           func(c *skill.Call) { c.Args, c.Grants.Scratch = []string{"a"}, true },
		"a script of the commands": func(c *skill.Call) { c.Script, c.Args = true, []string{"a", "b"} },
	} {
		t.Run(name, func(t *testing.T) {
			c := script(t, everything)
			c.Stdin = []byte("the input")
			change(c)
			then, now := replayed(t, c)
			if then.ExitCode != 0 || then.Code != "" {
				t.Fatalf("%s %s", then.Code, then.Stderr)
			}
			same(t, then, now)
			if other, _ := replayed(t, c); string(other.Stdout) == string(then.Stdout) {
				t.Error("the clocks and chance of two runs are alike, so this shows nothing")
			}
		})
	}
}

// TestReplaySleeps holds that nobody waits twice.
func TestReplaySleeps(t *testing.T) {
	c := script(t, "import sys, time\nsys.stdin.read()\nbefore = time.monotonic()\ntime.sleep(float(0.7))\nprint(time.monotonic() - before)")
	then, _ := replayed(t, c)
	began := time.Now()
	_, state := warm(t)
	r := New(engine.opened, &Options{StateDir: state})
	defer r.Close()
	again := *c
	again.Replay, again.Limits.Timeout = then.Recording.Draws, time.Minute
	reply := musttest.Get(runnertest.Do(t.Context(), r, &again))(t)
	same(t, then, reply)
	t.Logf("%s said it slept, after %v with the start of an interpreter", reply.Stdout, time.Since(began))
}

// TestReplayOther holds that another program on the same tape ends where it asks for
// what is not on it.
func TestReplayOther(t *testing.T) {
	e, state := warm(t)
	r := New(e, &Options{StateDir: state})
	defer r.Close()
	c := script(t, "import sys, time\nsys.stdin.read()\nprint(time.time())")
	then, _ := replayed(t, c)
	for name, other := range map[string]struct{ text, want string }{
		"more":   {"import sys, time\nsys.stdin.read()\nprint(time.time())\nprint(1, time.time())", "more than was recorded"},
		"less":   {"import sys, time\nsys.stdin.read()\nprint(1)", "less than was recorded: 0 draws of 1"},
		"others": {"import os, sys, time\nsys.stdin.read()\nprint(os.urandom(4))", "something else than was recorded, at draw 1: random bytes, and there is time of day"},
	} {
		t.Run(name, func(t *testing.T) {
			o := script(t, other.text)
			o.Replay = then.Recording.Draws
			reply, err := runnertest.Do(t.Context(), r, o)
			if err != nil || !strings.Contains(reply.Differs, other.want) {
				t.Errorf("%+v, %v; want %s", reply, err, other.want)
			}
			if name != "less" && (reply.Code != skill.Conflict || !strings.Contains(reply.Message, other.want)) {
				t.Errorf("%s %s", reply.Code, reply.Message)
			}
		})
	}
}

// TestSeen holds what is noted of the data folder.
func TestSeen(t *testing.T) {
	data := t.TempDir()
	for name, text := range map[string]string{"a.txt": "alpha", "b.txt": "beta", "start.txt": "early", "sub/c.txt": "gamma"} {
		path := filepath.Join(data, name)
		musttest.Do(t, os.MkdirAll(filepath.Dir(path), 0o700))
		musttest.Do(t, os.WriteFile(path, []byte(text), 0o600))
	}
	c := script(t, `
import os, sys
open("/data/start.txt").read()
what = sys.stdin.read()
if what == "files":
    open("/data/a.txt").read()
    os.stat("/data/b.txt")
    os.path.exists("/data/none.txt")
elif what == "folders":
    os.listdir("/data/sub")
`)
	c.Grants.Data, c.Record = data, 1<<20
	e, state := warm(t)
	r := New(e, &Options{StateDir: state})
	defer r.Close()
	for _, what := range []struct{ input, want string }{
		{"files", "a.txt file 5 8ed3f6ad b.txt file 4  none.txt missing 0  start.txt file 5 f408830b"},
		{"folders", "start.txt file 5 f408830b sub folder 0 41cc041e sub/c.txt file 5 "},
		{"nothing", "start.txt file 5 f408830b"},
		{"files", "a.txt file 5 8ed3f6ad b.txt file 4  none.txt missing 0  start.txt file 5 f408830b"},
	} {
		call := *c
		call.Stdin = []byte(what.input)
		reply, err := runnertest.Do(t.Context(), r, &call)
		if err != nil || reply.Recording == nil || reply.Recording.More {
			t.Fatalf("%+v, %v", reply, err)
		}
		var got []string
		for _, s := range reply.Recording.Seen {
			if s.Path != "." {
				got = append(got, s.Path, string(s.Kind), string(rune('0'+s.Size)), s.SHA256[:min(8, len(s.SHA256))])
			}
		}
		if strings.Join(got, " ") != what.want {
			t.Errorf("%s: %s\nwant %s", what.input, strings.Join(got, " "), what.want)
		}
	}
}

// A recording names what it began with: another boot file is another start.
func TestStartNamesBoot(t *testing.T) {
	module := wasm.Digest(nil)
	a, b := started(module, boot("slim")), started(module, append(boot("slim"), '#'))
	if a == b || !strings.HasPrefix(a, module+":") || len(a) > 100 {
		t.Errorf("%s and %s", a, b)
	}
}
