package python

import (
	"os"
	"strings"
	"testing"
	"time"

	"openskill/plugins/runnertest"
	"openskill/sdk/skill"
)

// TestLimitsInScripts exceeds every limit from inside Python, after input was read:
// each ends with its own code within its time, and the next call of the same skill
// is right and begins in the image, which is told by its fuel.
func TestLimitsInScripts(t *testing.T) {
	oneGuest(t)
	const late = 250 * time.Millisecond // the most that an end may come after the deadline
	const short = 300 * time.Millisecond
	cases := []struct {
		name, body string
		limits     func(*skill.Limits)
		code       skill.Code
		text       string // in standard error, where the guest ended by itself
	}{
		{"endless loop, by fuel", "while True: pass", func(l *skill.Limits) { l.Fuel = 1e9 }, skill.FuelExhausted, ""},
		{"endless loop, by time", "while True: pass", func(l *skill.Limits) { l.Timeout = short }, skill.Timeout, ""},
		{"a great string", "x = 'x' * 10**9", nil, skill.MemoryLimit, ""},
		{"a great string, not caught", "x = ['x' * 10**6 for _ in range(1000)]", nil, skill.MemoryLimit, ""},
		// The interpreter counts its own calls, and has room for what it allows.
		{"recursion", "def f(n): return f(n + 1)\nf(0)", nil, "", "RecursionError"},
		// With its memory used up, the interpreter may collect garbage for each line that it prints.
		{"recursion without a limit", "sys.setrecursionlimit(10**9)\ndef f(n): return f(n + 1)\nf(0)", func(l *skill.Limits) { l.Fuel = 6e9 }, "deep", "Error"},
		{"recursion in C", "x = []\nfor _ in range(10**5): x = [x]\nrepr(x)", nil, "deep", "RecursionError"},
		{"recursion in the parser", "eval('(' * 5000 + ')' * 5000)", nil, "", "Error"},
		{"recursion in the compiler", "eval('-' * 100_000 + '1')", nil, "deep", "Error"},
		{"recursion in json", "import json; json.loads('[' * 10**6)", nil, "deep", "RecursionError"},
		{"recursion of a regular expression", "import re; re.compile('(' * 5000 + ')' * 5000)", nil, "deep", "Error"},
		{"endless print", "while True: print('x' * 1000)", nil, skill.OutputLimit, ""},
		{"endless print of errors", "while True: print('x' * 1000, file=sys.stderr)", nil, skill.OutputLimit, ""},
		{"a long sleep", "import time; time.sleep(10**6)", func(l *skill.Limits) { l.Timeout = short }, skill.Timeout, ""},
		{"a catastrophic regular expression, by fuel", "import re; re.match('(a+)+$', 'a' * 40 + 'b')", func(l *skill.Limits) { l.Fuel = 1e9 }, skill.FuelExhausted, ""},
		{"a catastrophic regular expression, by time", "import re; re.match('(a+)+$', 'a' * 40 + 'b')", func(l *skill.Limits) { l.Timeout = short }, skill.Timeout, ""},
		{"a great number", "x = 7 ** 10**8", func(l *skill.Limits) { l.Timeout = short }, skill.Timeout, ""},
		{"a great sum", "sum(range(10**12))", func(l *skill.Limits) { l.Timeout = short }, skill.Timeout, ""},
		{"a great list", "x = list(range(10**7))", nil, skill.MemoryLimit, ""},
		// More than there are addresses: the interpreter refuses it and asks nobody.
		{"a greater list", "x = list(range(10**9))", nil, "", "MemoryError"},
	}
	runners(t, []string{"slim", "python-3.12"}, func(t *testing.T, r *Runner) {
		for i, c := range cases {
			t.Run(c.name, func(t *testing.T) {
				if i%3 > 0 && nameOf(r) != "slim" && os.Getenv("OPENSKILL_TEST_FALLBACK") == "" {
					t.Skip("OPENSKILL_TEST_FALLBACK is not set: slim has every case, the others one in three")
				}
				call := script(t, "import sys\nline = sys.stdin.readline()\nif line.strip() == 'go':\n  "+
					strings.ReplaceAll(c.body, "\n", "\n  ")+"\nprint('right', line.strip())")
				call.Limits.Timeout = 20 * time.Second
				right := func() uint64 {
					call.Stdin = []byte("rest\n")
					reply, err := runnertest.Do(t.Context(), r, call)
					if err != nil || reply.Code != "" || string(reply.Stdout) != "right rest\n" {
						t.Fatalf("%+v, %v", reply, err)
					}
					return reply.Usage.Fuel
				}
				fuel := right()
				bad := *call
				bad.Stdin = []byte("go\n")
				if c.limits != nil {
					c.limits(&bad.Limits)
				}
				// What is late on a busy machine is in time when it is tried again; what
				// cannot be ended is late each time.
				var reply *skill.Reply
				var err error
				var took time.Duration
				for try := 0; try == 0 || try < 5 && err == nil && took > bad.Limits.Timeout+late; try++ {
					began := time.Now()
					reply, err = runnertest.Do(t.Context(), r, &bad)
					took = time.Since(began)
				}
				switch {
				case err != nil:
					t.Fatal(err)
				case c.code == "deep":
					// Which guard is nearer is not promised, but that one is met.
					if reply.Code != skill.StackLimit && reply.Code != skill.MemoryLimit && (reply.Code != skill.FuelExhausted || c.limits == nil) && (reply.Code != "" || !strings.Contains(string(reply.Stderr), c.text)) {
						t.Errorf("%s, exit code %d, %.500s", reply.Code, reply.ExitCode, reply.Stderr)
					}
					t.Logf("%q, exit code %d, %.100q, %v", reply.Code, reply.ExitCode, lastLine(reply.Stderr), took)
				case reply.Code != c.code || c.code == "" && (reply.ExitCode != 1 || !strings.Contains(string(reply.Stderr), c.text)):
					t.Errorf("%q, exit code %d, want %q; %.500s", reply.Code, reply.ExitCode, c.code, reply.Stderr)
				}
				if took > bad.Limits.Timeout+late {
					t.Errorf("it took %v, with a limit of %v", took, bad.Limits.Timeout)
				}
				for range 2 {
					// A start-up takes hundreds of millions; this is a call's own, to the unit.
					if now := right(); now != fuel {
						t.Errorf("the next call used %d of fuel, the one before %d", now, fuel)
					}
				}
			})
		}
	})
}

func lastLine(b []byte) string {
	lines := strings.Split(strings.TrimSpace(string(b)), "\n")
	return lines[len(lines)-1]
}
