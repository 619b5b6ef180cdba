package python

import (
	"path/filepath"
	"strings"
	"testing"

	"openskill/internal/musttest"
	"openskill/plugins/runnertest"
	"openskill/sdk/skill"
	"openskill/wasm"
)

// cells runs code in a session, one call after the other.
type cells struct {
	r      *Runner
	folder string
	of     skill.SessionState
	record uint64
	replay []byte
}

func (c *cells) run(t testing.TB, text string, files ...skill.File) *skill.Reply {
	t.Helper()
	call := code(t, text, files...)
	call.Folder, call.Session, call.Record, call.Replay = c.folder, &c.of, c.record, c.replay
	reply := musttest.Get(runnertest.Do(t.Context(), c.r, call))(t)
	if reply.State != nil {
		c.of.State = reply.State
	}
	return reply
}

// TestSession: code finds the variables, modules and functions of the calls before.
func TestSession(t *testing.T) {
	steps := []struct {
		text, value, out, err string
		exit                  uint32
		code                  skill.Code
	}{
		{text: "x = 1\nimport json\ndef f(n): return 1 if n < 2 else n * f(n - 1)"},
		{text: "x += 1\nx", value: "2"},
		{text: "print(json.dumps([x]))", out: "[2]\n"},
		{text: "f(20)", value: "2432902008176640000"},
		{text: "1 / 0", err: "ZeroDivisionError", exit: 1},
		{text: "x", value: "2"},
		{text: "import sys; sys.exit(3)", exit: 3},
		{text: "class A:\n  def __init__(self): self.all = [0] * 1000\na = A(); len(a.all)", value: "1000"},
		{text: "g = (i * i for i in range(10)); next(g)", value: "0"},
		{text: "next(g), next(g)", value: "[1, 4]"},
		{text: "import sqlite3; c = sqlite3.connect(':memory:'); c.execute('create table t(a)'); c.execute('insert into t values (3)'); 0", value: "0"},
		{text: "c.execute('select a from t').fetchall()", value: "[[3]]"},
		{text: "input()", err: "EOFError", exit: 1},
		{text: "import asyncio\nasync def q(): return x\nasyncio.run(q())", value: "2"},
		{text: "import threading\nt = threading.Thread(target=lambda: globals().update(y=5)); t.start(); t.join(); y", value: "5"},
		{text: "sys.settrace(lambda *a: None); 1", value: "1"},
		{text: "x", value: "2"},
		{text: "sum(i * i for i in range(100000))", value: "333328333350000"},
		{text: "f = open('left', 'w'); f.write('text'); 1", value: "1"},
		{text: "try:\n  f.write('more'); f.flush()\nexcept OSError as e: print(e.errno)", out: "72\n"},
		{text: "h = open('other', 'w'); h.fileno() != f.fileno()", value: "true"},
		{text: "try:\n  f.close()\nexcept OSError: pass\nf = None"},
		{text: "big = [str(i) for i in range(200000)]; len(big)", value: "200000"},
		{text: "big[199999]", value: `"199999"`},
		{text: "import os; os.close(0); 1", value: "1", err: "Bad file descriptor", code: skill.ToolInvocationError},
	}
	runners(t, []string{"slim", "python-3.12"}, func(t *testing.T, r *Runner) {
		c := &cells{r: r, folder: t.TempDir(), of: skill.SessionState{Most: 64 << 20}}
		for i, s := range steps {
			reply := c.run(t, s.text)
			value := s.value
			if value != "" {
				value = `{"value": ` + value + `}`
			}
			last := i == len(steps)-1
			if reply.Code != s.code || reply.ExitCode != s.exit || string(reply.Value) != value || string(reply.Stdout) != s.out ||
				!strings.Contains(string(reply.Stderr), s.err) || s.err == "" && len(reply.Stderr) > 0 || (reply.State == nil) != last {
				t.Fatalf("%s: %s %s, exit code %d, %d bytes of state, value %s, %q\n%s", s.text, reply.Code, reply.Message, reply.ExitCode, len(reply.State), reply.Value, reply.Stdout, reply.Stderr)
			}
			t.Logf("%d KiB after %s", len(reply.State)>>10, s.text)
		}
	})
}

// TestSessionReplayed: recorded calls of a session end the same, in the same order, in another image.
func TestSessionReplayed(t *testing.T) {
	steps := []struct{ text, file string }{
		{text: "import random, time, os\nx = [random.random()]\nprint(time.time(), os.urandom(4), x, hash('a'))"},
		{text: "x.append(random.random()); x"},
		{text: "1 / 0"},
		{text: "open('b.txt').read() + str(os.stat('b.txt').st_mtime_ns)", file: "text"},
		{text: "[(i, time.monotonic_ns()) for i in range(3)]"},
		{text: "import uuid, sqlite3\nc = sqlite3.connect(':memory:'); str(uuid.uuid4())"},
		{text: "f = open('left', 'w'); f.write(str(x)); os.stat('left').st_mtime"},
		{text: "sum(len(str(i)) for i in range(30000)), c.execute('select random()').fetchall(), set('abcdef')"},
	}
	runners(t, []string{"slim", "python-3.12"}, func(t *testing.T, r *Runner) {
		c := &cells{r: r, folder: t.TempDir(), of: skill.SessionState{Seed: [32]byte{1}, Made: 1_700_000_000, Most: 64 << 20}, record: 1 << 20}
		again := *c
		run := func(c *cells, i int) *skill.Reply {
			var files []skill.File
			if s := &steps[i]; s.file != "" {
				files = append(files, skill.File{Name: "b.txt", Data: []byte(s.file)})
			}
			return c.run(t, steps[i].text, files...)
		}
		ran := make([]*skill.Reply, len(steps))
		for i := range steps {
			if ran[i] = run(c, i); ran[i].Recording == nil || ran[i].Recording.Draws == nil || ran[i].State == nil {
				t.Fatalf("%s: %+v", steps[i].text, ran[i])
			}
		}
		for i, then := range ran {
			again.replay, again.record = then.Recording.Draws, 0
			now := run(&again, i)
			if now.Differs != "" || now.Code != then.Code || now.ExitCode != then.ExitCode || string(now.Value) != string(then.Value) || string(now.Stdout) != string(then.Stdout) ||
				string(now.Stderr) != string(then.Stderr) || now.Usage.Fuel != then.Usage.Fuel || len(now.State) != len(then.State) {
				t.Fatalf("%s: %s%s\nthen %s %s %s, %d units of fuel\n now %s %s %s, %d units of fuel", steps[i].text, now.Differs, now.Message,
					then.Value, then.Stdout, then.Stderr, then.Usage.Fuel, now.Value, now.Stdout, now.Stderr, now.Usage.Fuel)
			}
		}
		// A recorded session goes on without recording, and the other way round.
		c.record = 0
		plain := run(c, 1)
		c.record = 1 << 20
		if recorded := run(c, 1); plain.State == nil || recorded.State == nil || recorded.Recording.Draws == nil {
			t.Errorf("%s %s\n%s %s", plain.Code, plain.Message, recorded.Code, recorded.Message)
		}
		// The draws of one call are not those of another.
		again.replay = ran[0].Recording.Draws
		if other := run(&again, 7); other.Differs == "" {
			t.Errorf("%+v", other)
		}
	})
}

// TestSessionLimit: a call that leaves more memory than the limit fails, and the session is as it was before.
func TestSessionLimit(t *testing.T) {
	runners(t, []string{"slim"}, func(t *testing.T, r *Runner) {
		c := &cells{r: r, folder: t.TempDir(), of: skill.SessionState{Most: 4 << 20}}
		c.run(t, "x = 1")
		if reply := c.run(t, "x = 2; y = bytearray(b'y' * 5_000_000)"); reply.Code != skill.MemoryLimit || reply.State != nil {
			t.Errorf("%s %s, %d bytes of state", reply.Code, reply.Message, len(reply.State))
		}
		if reply := c.run(t, "x"); string(reply.Value) != `{"value": 1}` {
			t.Errorf("%s %s", reply.Value, reply.Message)
		}
	})
}

func BenchmarkSession(b *testing.B) {
	r := New(musttest.Get(wasm.Open(&wasm.Options{CacheDir: filepath.Join(stateDir(b), "cache", "wasm")}))(b), &Options{StateDir: stateDir(b)})
	for _, first := range []string{"", "x = 1", "x = bytearray(b'x' * 1000000)", "x = [str(i) for i in range(400000)]"} {
		b.Run(first, func(b *testing.B) {
			c := &cells{r: r, folder: b.TempDir(), of: skill.SessionState{Most: 64 << 20}}
			if first != "" {
				c.run(b, first)
			}
			b.ReportMetric(float64(len(c.of.State)), "bytes")
			for b.Loop() {
				if first == "" {
					call := code(b, "1")
					call.Folder = c.folder
					musttest.Get(runnertest.Do(b.Context(), r, call))(b)
				} else {
					c.run(b, "1")
				}
			}
		})
	}
}
