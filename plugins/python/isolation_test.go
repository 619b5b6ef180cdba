package python

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"openskill/internal/musttest"
	"openskill/plugins/runnertest"
	"openskill/sdk/skill"
)

// oneGuest leaves out, with -short, a test that has one guest after the other: the race
// detector learns nothing from it.
func oneGuest(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("many interpreters, one after the other")
	}
}

// runners gives a runner for each runtime of the list that is installed.
func runners(t *testing.T, names []string, test func(t *testing.T, r *Runner)) {
	t.Helper()
	e, state := warm(t)
	for i, name := range names {
		t.Run(name, func(t *testing.T) {
			if i > 0 && testing.Short() {
				t.Skip("the code is the same for every runtime")
			}
			r := New(e, &Options{StateDir: state})
			r.planner.choose = func(_, _ []string) (string, error) { return name, nil }
			defer func() {
				if err := r.Close(); err != nil {
					t.Error(err)
				}
			}()
			if err := runnertest.Ready(t.Context(), r); err != nil {
				t.Skip(err) // one of another version, or none
			}
			test(t, r)
		})
	}
}

// marked is a call of testdata/marks.py.
func marked(t testing.TB) *skill.Call {
	t.Helper()
	text := musttest.Get(os.ReadFile(filepath.Join("testdata", "marks.py")))(t)
	c := script(t, string(text))
	c.Grants.Scratch = true
	c.Limits.Fuel, c.Limits.Memory = 1e11, 256<<20
	return c
}

// told is what marks.py tells of one call.
type told struct {
	Seen            map[string]string
	Changed, Failed []string
}

// leave has one call look around and leave its mark. Its input goes on with a lot
// that the script never reads.
func leave(ctx context.Context, r *Runner, c *skill.Call, mark, ending string) (*told, *skill.Reply, error) {
	mine := *c
	mine.Stdin = []byte(mark + " " + ending + "\n" + strings.Repeat("LEFTOVER "+mark+"\n", 2000))
	reply, err := runnertest.Do(ctx, r, &mine)
	if err != nil {
		return nil, nil, err
	}
	line, _, ok := bytes.Cut(reply.Stdout, []byte("\n"))
	data, found := bytes.CutPrefix(line, []byte("RESULT "))
	if !ok || !found {
		return nil, reply, fmt.Errorf("%s, exit code %d: %.300q\n%.3000s", reply.Code, reply.ExitCode, reply.Stdout, reply.Stderr)
	}
	out := &told{}
	if err := json.Unmarshal(data, out); err != nil {
		return nil, reply, err
	}
	return out, reply, nil
}

var endings = []string{"return", "exit", "_exit", "error", "memory"}

// TestMarksAreForgotten has a script change every state that it can reach, a hundred
// kinds of it, and end in every way. Each call sees what the first one saw, to the
// addresses of new objects, whether the instance served others before or is new.
func TestMarksAreForgotten(t *testing.T) {
	oneGuest(t)
	runners(t, []string{"slim", "python-3.12"}, func(t *testing.T, r *Runner) {
		c := marked(t)
		var first *told
		rounds := 4
		if nameOf(r) != "slim" {
			rounds = 2 // what resets instances is the same for all runtimes
		}
		for i := range rounds * len(endings) {
			mark := fmt.Sprintf("MARK%04d", i)
			got, reply, err := leave(t.Context(), r, c, mark, endings[i%len(endings)])
			if err != nil {
				t.Fatalf("call %d: %v", i, err)
			}
			onlyMine(t, mark, reply)
			if first == nil {
				first = got
				var same []string
				for kind := range got.Seen {
					if !slices.Contains(got.Changed, kind) && !strings.HasPrefix(kind, "also ") {
						same = append(same, kind)
					}
				}
				if len(same) > 0 {
					t.Errorf("these kinds of state were not changed, so nothing is shown of them: %q\n%s", same, strings.Join(got.Failed, "\n"))
				}
				t.Logf("%d kinds of state", len(got.Changed))
				continue
			}
			if d := cmp.Diff(first.Seen, got.Seen); d != "" {
				t.Fatalf("call %d sees something of another (-first +now):\n%s", i, d)
			}
		}
	})
}

// onlyMine holds that a reply has no marks but the call's own.
func onlyMine(t *testing.T, mark string, reply *skill.Reply) {
	t.Helper()
	all := append(append([]byte(nil), reply.Stdout...), reply.Stderr...)
	for _, a := range reply.Artifacts {
		all = append(append(all, a.Name...), a.Data...)
	}
	if bytes.Count(all, []byte("MARK")) != bytes.Count(all, []byte(mark)) {
		t.Errorf("a call with %s saw another's: %.2000q", mark, all)
	}
}

// keeper keeps its input wherever things last, and tells of every string with the
// word MARK that it finds among all objects
// of the interpreter; it must find its own.
const keeper = `
import builtins, gc, json, os, re, sys
kept, bag, word = {}, [], re.compile('MARK[0-9]-')
def found():
    gc.unfreeze()
    seen, all = set(), gc.get_objects()
    for o in all:
        kind = type(o)
        if kind is dict:
            parts = [*o, *o.values()]
        elif kind is tuple or kind is list or kind is set or kind is frozenset:
            parts = list(o)
        else:
            continue
        seen.update([p for p in parts if type(p) is str and "MARK" in p and word.search(p)])
    return seen
mark = sys.stdin.readline().strip()
mine = {"x": [mark]}
seen = found()
others = sorted(f for f in seen if mark not in f)
files = os.listdir("/work")
print(json.dumps([others, files, os.environ.get("MARKED"), bag, mark in seen]), flush=True)
kept[mark] = [mark + "!"]
bag.append((mark, {mark}))
builtins.marked = json.marked = os.environ["MARKED"] = mark
re.compile(mark)
open("/work/" + mark, "w").write(mark)
sys.stdout.write("unflushed " + mark)
os.chdir("/work")
if mark.endswith("7"): os._exit(0)
if mark.endswith("59"): big = [mark * 1000 for _ in range(1_500)]
`

// TestTenantsOfPython has two principals call one skill, and two more another with
// the same text, interleaved: nobody finds a mark of anybody else.
func TestTenantsOfPython(t *testing.T) {
	const calls = 60 // of each
	runners(t, []string{"slim"}, func(t *testing.T, r *Runner) {
		skills := []*skill.Call{script(t, keeper), script(t, keeper)}
		var wg sync.WaitGroup
		for tenant := range 4 {
			wg.Go(func() {
				c := *skills[tenant%2]
				c.Grants.Scratch = true
				for i := range calls {
					mark := fmt.Sprintf("MARK%d-%05d", tenant, i)
					c.Stdin = []byte(mark + "\n" + strings.Repeat("unread "+mark, 1000))
					reply, err := runnertest.Do(t.Context(), r, &c)
					if err != nil {
						t.Error(err)
						return
					}
					line, _, _ := strings.Cut(string(reply.Stdout), "\n")
					if want := `[[], [], null, [], true]`; line != want || reply.Code != "" {
						t.Errorf("tenant %d, call %d: %.2000s, want %s\n%s %.2000s", tenant, i, line, want, reply.Code, reply.Stderr)
						return
					}
					onlyMine(t, mark, reply)
				}
			})
		}
		wg.Wait()
	})
}

// chanceCase is a script that reads its input and draws.
type chanceCase struct{ name, start, read, draw string }

// draws has three calls of each script draw, and tells how many different numbers came.
func draws(t *testing.T, r *Runner, cases []chanceCase, test func(t *testing.T, different int, seen map[string]bool)) {
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			call := script(t, "import os, random, secrets, sys, tempfile, uuid\n"+c.start+"\n"+c.read+"\nprint("+c.draw+")")
			call.Stdin = []byte("input\nand more\n")
			call.Limits.Fuel, call.Limits.Memory, call.Limits.Timeout = 1e11, 512<<20, time.Minute
			seen := map[string]bool{}
			for range 3 {
				reply, err := runnertest.Do(t.Context(), r, call)
				if err != nil || reply.Code != "" || reply.ExitCode != 0 {
					t.Fatalf("%+v, %v\n%s", reply, err, reply.Stderr)
				}
				seen[string(reply.Stdout)] = true
			}
			test(t, len(seen), seen)
		})
	}
}

const drawn = "random.random()"

// every gives one of n, the last among them.
func every(cases []chanceCase, n int) (some []chanceCase) {
	for i := len(cases) - 1; i >= 0; i -= n {
		some = append(some, cases[i])
	}
	return some
}

// reads are the ways to come to the first bytes of the input.
var reads = []chanceCase{
	{"read", "", "sys.stdin.read()", drawn},
	{"lines", "", "for line in sys.stdin: break", drawn},
	{"input", "", "input()", drawn},
	{"buffer", "", "sys.stdin.buffer.read()", drawn},
	{"buffer, one read", "", "sys.stdin.buffer.read1()", drawn},
	{"buffer, peek", "", "sys.stdin.buffer.peek()", drawn},
	{"raw", "", "sys.stdin.buffer.raw.read(5)", drawn},
	{"raw, all", "", "sys.stdin.buffer.raw.readall()", drawn},
	{"raw, into", "", "sys.stdin.buffer.raw.readinto(bytearray(5))", drawn},
	{"the stream of the start", "", "sys.__stdin__.read()", drawn},
	{"fileinput", "", "list(__import__('fileinput').input())", drawn},
	{"by the system's read", "", "os.read(0, 5)", drawn},
	{"by the system's read of no bytes", "", "os.read(0, 0)", drawn},
	{"by its own name of it", "from os import read", "read(0, 5)", drawn},
	{"by the module below", "import posix", "posix.read(0, 5)", drawn},
	{"into buffers", "", "os.readv(0, [bytearray(3), bytearray(3)]) if hasattr(os, 'readv') else input()", drawn},
	{"by number", "", "open(0).read()", drawn},
	{"by number, lines", "", "for line in open(0): break", drawn},
	{"by number, bytes", "", "open(0, 'rb').read(3)", drawn},
	{"by number, raw", "", "open(0, 'rb', 0).read(3)", drawn},
	{"by number, opened before", "f = open(0, buffering=1, encoding='latin-1', newline='', closefd=False)", "f.readline()", drawn},
	{"by a descriptor", "", "os.fdopen(0).read()", drawn},
	{"by io", "import io", "io.open(sys.stdin.fileno()).read()", drawn},
	{"by a file of one's own", "import io", "io.FileIO(0).read(3)", drawn},
	{"by a kind of one's own", "import io\nclass Mine(io.FileIO): pass", "Mine(0).readall()", drawn},
	{"by a name in a class", "class Own: open, read = open, os.read", "Own().read(0, 3)", drawn},
	{"by a name in a class, a file", "class Own: open, read = open, os.read", "Own().open(0).read()", drawn},
	{"waited for", "import select", "select.select([0], [], [])", drawn},
	{"waited for, by the file", "import select", "select.select([sys.stdin], [], [], 1)", drawn},
	{"polled", "import select\np = select.poll(); p.register(sys.stdin, select.POLLIN)", "p.poll()", drawn},
	{"selected", "import selectors\ns = selectors.DefaultSelector(); s.register(0, selectors.EVENT_READ)", "s.select()", drawn},
	{"after reads that fail", "", "try: os.read(0, -1)\nexcept OSError: pass\nsys.stdin.read()", drawn},
	{"after reads of others", "os.read(os.open('/skill/main.py', os.O_RDONLY), 3); open('/skill/main.py').read()", "sys.stdin.read()", drawn},
}

// TestChanceOfImages has scripts draw numbers before and after they read their input,
// in every way that there is to read it: no two calls draw the same.
func TestChanceOfImages(t *testing.T) {
	oneGuest(t)
	generators := []chanceCase{
		{"shuffled", "", "sys.stdin.read()", "(random.shuffle(l := list(range(100))), l)"},
		{"half of a pair", "random.gauss(0, 1)", "sys.stdin.read()", "random.gauss(0, 1)"},
		{"a uuid", "", "sys.stdin.read()", "uuid.uuid4()"},
		{"a token", "", "os.read(0, 5)", "secrets.token_hex()"},
		{"bytes of the system", "os.urandom(8)", "os.read(0, 5)", "os.urandom(8)"},
		{"temporary names", "", "sys.stdin.read()", "tempfile.mktemp(dir='/')"},
		{"temporary names, used before", "tempfile.mktemp(dir='/')", "sys.stdin.read()", "tempfile.mktemp(dir='/')"},
		{"seeded by nothing", "random.seed(7); random.seed()", "sys.stdin.read()", drawn},
		{"a generator of one's own", "own = random.Random(); own.random()", "sys.stdin.read()", "own.random()"},
		{"a kind of one's own", "class R(random.Random):\n  def seed(self, a=None): super().seed(a)\nown = R()", "sys.stdin.read()", "own.random()"},
		{"put back", "state = random.getstate(); random.seed(42); random.setstate(state)", "sys.stdin.read()", drawn},
		{"a copy", "import copy; own = copy.deepcopy(random.Random())", "sys.stdin.read()", "own.random()"},
		{"a copy of the common one", "import pickle; own = pickle.loads(pickle.dumps(random._inst))", "sys.stdin.read()", "own.random()"},
		{"of a database", "import sqlite3; db = sqlite3.connect(':memory:'); db.execute('select random()').fetchall()", "sys.stdin.read()", "db.execute('select random()').fetchall()"},
		{"bytes of a database", "import sqlite3; db = sqlite3.connect(':memory:')", "sys.stdin.read()", "db.execute('select randomblob(9), length(randomblob(0)), typeof(random())').fetchall()"},
		{"of a database that is opened after", "import sqlite3; sqlite3.connect(':memory:').execute('select random()').fetchall()", "sys.stdin.read()", "sqlite3.connect(':memory:').execute('select random()').fetchall()"},
		{"of a database in a file", "import sqlite3; db = sqlite3.connect('file:/skill/main.py?mode=ro&immutable=1', uri=True)", "sys.stdin.read()", "sqlite3.connect(':memory:').execute('select random()').fetchall()"},
		{"of a database that was written", "import sqlite3; db = sqlite3.connect(':memory:'); db.execute('create table t (x)'); db.executemany('insert into t values (?)', [(i,) for i in range(100)]); db.commit()", "sys.stdin.read()", "db.execute('select x from t order by random()').fetchall()"},
		{"a generator of the system", "own = random.SystemRandom()", "sys.stdin.read()", "own.random()"},
		{"a generator of a package", "own = tempfile._RandomNameSequence(); next(own)", "sys.stdin.read()", "next(own)"},
		{"imported for it", "del sys.modules['random']; import random", "sys.stdin.read()", drawn},
		{"imported after it", "for m in ('random', 'tempfile', 'secrets', 'uuid'): sys.modules.pop(m, None)", "sys.stdin.read(); import random", drawn},
		{"functions of one's own", "from random import random as own, seed; seed()", "sys.stdin.read()", "own()"},
	}
	runners(t, []string{"slim", "python-3.12"}, func(t *testing.T, r *Runner) {
		all := append(reads[:len(reads):len(reads)], generators...)
		if nameOf(r) != "slim" {
			all = every(all, 6) // the same file stands in all runtimes
		}
		draws(t, r, all, func(t *testing.T, different int, seen map[string]bool) {
			if different != 3 {
				t.Errorf("of three calls %d drew different numbers: %.300v", different, seen)
			}
		})
	})
}

// TestSeedsAreKept has scripts give seeds of their own before they read their input:
// they draw the same in every call, as they do with python script.py.
func TestSeedsAreKept(t *testing.T) {
	oneGuest(t)
	cases := []chanceCase{
		{"seed", "random.seed(42)", "", "random.random() == 0.6394267984578837"},
		{"seed, and some drawn", "random.seed(42); random.random()", "", "random.random() == 0.025010755222666936"},
		{"a generator of one's own", "own = random.Random(42)", "", "own.random() == 0.6394267984578837"},
		{"seeded again", "own = random.Random(); own.seed(42)", "", "own.random() == 0.6394267984578837"},
		{"a state", "state = random.Random(42).getstate(); random.setstate(state)", "", "random.random() == 0.6394267984578837"},
		{"a state of one's own", "own = random.Random(); own.setstate(random.Random(42).getstate())", "", "own.random() == 0.6394267984578837"},
		{"a copy", "import copy; own = copy.deepcopy(random.Random(42))", "", "own.random() == 0.6394267984578837"},
		{"a state put back", "random.seed(42); state = random.getstate(); random.seed(); random.setstate(state)", "", "random.random() == 0.6394267984578837"},
		{"beside one that is gone", "for i in range(100): random.Random()\nown = [random.Random(42) for i in range(100)]", "", "[o.random() for o in own] == [0.6394267984578837] * 100"},
		{"functions of one's own", "from random import random as own, seed; seed(42)", "", "own() == 0.6394267984578837"},
		{"half of a pair", "random.seed(42); random.gauss(0, 1)", "", "random.gauss(0, 1) == (random.seed(42), random.gauss(0, 1), random.gauss(0, 1))[2]"},
		{"a kind of one's own", "class R(random.Random):\n  def seed(self, a=None): super().seed(42)\nown = R()", "", "own.random() == 0.6394267984578837"},
		{"after the read", "", "random.seed(42)", "random.random() == 0.6394267984578837"},
	}
	for i := range cases {
		cases[i].read = "sys.stdin.read()\n" + cases[i].read
	}
	runners(t, []string{"slim", "python-3.12"}, func(t *testing.T, r *Runner) {
		all := cases
		if nameOf(r) != "slim" {
			all = every(all, 6)
		}
		draws(t, r, all, func(t *testing.T, different int, seen map[string]bool) {
			if different != 1 || !seen["True\n"] {
				t.Errorf("%v", seen)
			}
		})
	})
}

// TestNothingStandsInTheWay looks at what a script can see of the way in which its first
// read is known: after it nothing, and before it functions that do what they should.
func TestNothingStandsInTheWay(t *testing.T) {
	oneGuest(t)
	runners(t, []string{"slim", "python-3.12"}, func(t *testing.T, r *Runner) {
		c := script(t, `
import _io, builtins, io, os, random, select, sys, traceback
def plain():
    types = [type(f).__name__ for f in (open, io.open, _io.open, os.read, random.seed, random.Random.seed, select.select)]
    return types, io.FileIO is _io.FileIO is type(open("/skill/main.py", "rb", 0)), sum("Finder" == f.__name__ for f in sys.meta_path)
assert isinstance(open("/skill/main.py", "rb", 0), io.FileIO) and isinstance(open("/skill/main.py").buffer.raw, io.FileIO)
assert not isinstance(open("/skill/main.py"), io.FileIO) and issubclass(io.FileIO, io.RawIOBase) and issubclass(type(open("/skill/main.py", "rb", 0)), io.FileIO)
assert open is io.open is _io.open and (open.__name__, open.__module__) == ("open", "_io"), open.__module__
class Mine(io.FileIO): pass
assert not isinstance(open("/skill/main.py", "rb", 0), Mine) and isinstance(Mine("/skill/main.py"), Mine)
said = []
for arguments in [dict(mode="r", buffering=0), dict(mode="rb", encoding="utf-8"), dict(file="/none")]:
    try:
        open(**{"file": 0, "closefd": "file" in arguments} | arguments)
        said.append("nothing")
    except Exception as e:
        said.append(str(e))
before = plain()
text = open(0, closefd=False)
assert (text.name, text.mode, text.encoding.lower(), text.fileno(), text.readable(), text.seekable()) == (0, "r", "utf-8", 0, True, False)
line = text.readline()
print(said, line)
print(before)
print(plain())
assert isinstance(Mine("/skill/main.py"), io.FileIO) and isinstance(sys.stdin.buffer.raw, io.FileIO)
def fails():
    try:
        open("/none")
    except OSError as e:
        os.read(99, 1)
fails()
`)
		c.Stdin = []byte("a line\nmore")
		reply := musttest.Get(runnertest.Do(t.Context(), r, c))(t)
		want := []string{
			`["can't have unbuffered text I/O", "binary mode doesn't take an encoding argument", "[Errno 44] No such file or directory: '/none'"] a line`,
			"", // the line's own end
			"(['staticmethod', 'staticmethod', 'staticmethod', 'staticmethod', 'method', 'function', 'staticmethod'], False, 3)",
			"(['builtin_function_or_method', 'builtin_function_or_method', 'builtin_function_or_method', 'builtin_function_or_method', 'method', 'function', 'builtin_function_or_method'], True, 2)",
			"",
		}
		if d := cmp.Diff(want, strings.Split(string(reply.Stdout), "\n")); d != "" {
			t.Error(d)
		}
		trace := regexp.MustCompile(`File "(.*)", line`).FindAllSubmatch(reply.Stderr, -1)
		if len(trace) != 3 || !bytes.Contains(reply.Stderr, []byte("During handling of")) {
			t.Errorf("%s", reply.Stderr)
		}
		for _, file := range trace {
			if string(file[1]) != "/skill/main.py" {
				t.Errorf("a traceback shows %s:\n%s", file[1], reply.Stderr)
			}
		}
	})
}

// TestSameFuelOfPython gives a script the same input fifty times: what a call costs
// tells nothing of other calls, whether its instance is new or has served many.
func TestSameFuelOfPython(t *testing.T) {
	oneGuest(t)
	runners(t, []string{"slim"}, func(t *testing.T, r *Runner) {
		c := script(t, `
import json, re, sys, statistics, collections
d = json.load(sys.stdin)
words = collections.Counter(re.findall("[a-z]+", d["text"]))
print(json.dumps([words, statistics.mean(d["numbers"]), sorted({w for w in words})]))
if "spoil" in d: x = bytearray(16_000_000)
if "grow" in d: sys.modules["json"].grown = [str(i) * 10 for i in range(50_000)]
`)
		inputs := [][]byte{
			[]byte(`{"text": "one two one", "numbers": [1, 2, 3]}`),
			[]byte(`{"text": "one two one", "numbers": [1, 2, 3], "spoil": 1}`),
			[]byte(`{"text": "three", "numbers": [7], "grow": 1}`),
		}
		want := map[string]skill.Usage{}
		for i := range 50 {
			c.Stdin = inputs[[]int{0, 0, 0, 2, 0, 1, 0}[i%7]]
			reply, err := runnertest.Do(t.Context(), r, c)
			if err != nil || reply.Code != "" || reply.ExitCode != 0 {
				t.Fatalf("%+v, %v", reply, err)
			}
			reply.Usage.StartFuel = 0 // callers are not told of it
			was, seen := want[string(c.Stdin)]
			if !seen {
				want[string(c.Stdin)] = reply.Usage
			} else if was != reply.Usage {
				t.Errorf("call %d: %+v, and %+v before", i, reply.Usage, was)
			}
		}
		t.Logf("%+v", want)
	})
}

// nameOf is the runtime that a runner of the tests chooses.
func nameOf(r *Runner) string {
	name, _ := r.planner.choose(nil, nil) // it always chooses one
	return name
}
