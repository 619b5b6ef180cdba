package python

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"openskill/plugins/python/runtimes"
	"openskill/sdk/skill"
)

// always is a catalogue that gives every script the same runtime.
type always struct {
	*runtimes.Store
	name string
}

func (a always) For(_, _ []string) (string, error) { return a.name, nil }

// runners gives a runner for each runtime of the list that is installed.
func runners(t *testing.T, names []string, test func(t *testing.T, r *Runner)) {
	t.Helper()
	e, state := warm(t)
	store := runtimes.New(state)
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			r := newRunner(e, always{store, name})
			defer func() {
				if err := r.Close(); err != nil {
					t.Error(err)
				}
			}()
			if err := r.Warm(t.Context()); err != nil {
				t.Skip(err) // one of another version, or none
			}
			test(t, r)
		})
	}
}

// marked is a call of testdata/marks.py.
func marked(t testing.TB) *skill.Call {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "marks.py"))
	if err != nil {
		t.Fatal(err)
	}
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
	reply, err := r.Run(ctx, &mine)
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
	// What a runtime does not have, by kind.
	absent := map[string][]string{"slim": nil, "python-3.12": {"locale"}} // whose C library has but one
	runners(t, []string{"slim", "python-3.12"}, func(t *testing.T, r *Runner) {
		c := marked(t)
		var first *told
		for i := range 40 {
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
				slices.Sort(same)
				if d := cmp.Diff(absent[r.library.catalogue.(always).name], same); d != "" {
					t.Errorf("these kinds of state were not changed, so nothing is shown of them:\n%s\n%s", d, strings.Join(got.Failed, "\n"))
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
        if type(o) is dict:
            parts = list(o.values()) + [k for k in o if type(k) is str]
        elif type(o) in (list, tuple, set, frozenset):
            parts = list(o)
        else:
            continue
        for p in parts:
            if type(p) is str and word.search(p):
                seen.add(p)
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
	calls := 250 // of each
	if testing.Short() {
		calls = 50
	}
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
					reply, err := r.Run(t.Context(), &c)
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

// TestChanceOfImages has scripts draw numbers before and after they read their input,
// in every way that there is to read it: no two calls draw the same.
func TestChanceOfImages(t *testing.T) {
	const known = "the seed is drawn anew where sys.stdin is read, and nowhere else"
	runners(t, []string{"slim"}, func(t *testing.T, r *Runner) {
		for _, c := range []struct{ name, read, draw, skip string }{
			{"read", "sys.stdin.read()", "random.random()", ""},
			{"buffer", "sys.stdin.buffer.read()", "random.random()", ""},
			{"raw", "sys.stdin.buffer.raw.read(5)", "random.random()", known},
			{"line", "input()", "random.random()", ""},
			{"fileinput", "list(__import__('fileinput').input())", "random.random()", ""},
			{"shuffled", "sys.stdin.read()", "(random.shuffle(l := list(range(100))), l)", ""},
			{"a uuid", "sys.stdin.read()", "uuid.uuid4()", ""},
			{"a token", "os.read(0, 5)", "secrets.token_hex()", ""},
			{"temporary names", "sys.stdin.read()", "tempfile.mktemp(dir='/')", ""},
			{"temporary names, used before", "tempfile.mktemp(dir='/'); sys.stdin.read()", "tempfile.mktemp(dir='/')", ""},
			{"by the system's read", "os.read(0, 5)", "random.random()", known},
			{"by number", "open(0).read()", "random.random()", known},
			{"a generator of one's own", "sys.stdin.read()", "own.random()", "a generator that a script makes at its start has a seed of the image's"},
		} {
			t.Run(c.name, func(t *testing.T) {
				call := script(t, "import os, random, secrets, sys, tempfile, uuid\nown = random.Random()\nrandom.random()\n"+c.read+"\nprint("+c.draw+")")
				call.Stdin = []byte("input\n")
				seen, twice := map[string]bool{}, false
				for range 4 {
					reply, err := r.Run(t.Context(), call)
					if err != nil || reply.Code != "" || reply.ExitCode != 0 {
						t.Fatalf("%+v, %v", reply, err)
					}
					twice = twice || seen[string(reply.Stdout)]
					seen[string(reply.Stdout)] = true
				}
				switch {
				case c.skip != "" && twice:
					t.Skip("known: " + c.skip)
				case c.skip != "":
					t.Error("what was wrong is mended: take the note away")
				case twice:
					t.Errorf("two of four calls drew the same: %.300v", seen)
				}
			})
		}
	})
}

// TestSameFuelOfPython gives a script the same input fifty times: what a call costs
// tells nothing of other calls, whether its instance is new or has served many.
func TestSameFuelOfPython(t *testing.T) {
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
			reply, err := r.Run(t.Context(), c)
			if err != nil || reply.Code != "" || reply.ExitCode != 0 {
				t.Fatalf("%+v, %v", reply, err)
			}
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
