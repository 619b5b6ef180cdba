package python

import (
	"strings"
	"testing"

	"openskill/internal/musttest"
	"openskill/plugins/runnertest"
	"openskill/sdk/skill"
)

// waitsScript prints how each wait of the library ends, and which of them slept.
const waitsOfScript = `
import concurrent.futures as cf, queue, sys, threading, time
def wait(name, call):
    begun = time.monotonic()
    try:
        ended = str(call())
    except Exception as error:
        ended = type(error).__name__
        if isinstance(error, RuntimeError) and "cannot end" in str(error): ended = "never"
    print(name, ended, "slept" if time.monotonic() - begun >= 0.0199 else "at once")
held = threading.Lock(); held.acquire()
full = queue.Queue(1); full.put(1)
late = cf.Future()
def condition(method, *args):
    c = threading.Condition()
    with c: return getattr(c, method)(*args)
for limit in ((0.02,), ()):
    wait("Lock", lambda: held.acquire(True, *limit))
    wait("Event", lambda: threading.Event().wait(*limit))
    wait("Condition", lambda: condition("wait", *limit))
    wait("wait_for", lambda: condition("wait_for", lambda: False, *limit))
    wait("Semaphore", lambda: threading.Semaphore(0).acquire(True, *limit))
    wait("Barrier", lambda: threading.Barrier(2).wait(*limit))
    wait("Queue", lambda: queue.Queue().get(True, *limit))
    wait("full", lambda: full.put(2, True, *limit))
    wait("SimpleQueue", lambda: queue.SimpleQueue().get(True, *limit))
    wait("Future", lambda: late.result(*limit))
    wait("exception", lambda: late.exception(*limit))
    wait("as_completed", lambda: len(list(cf.as_completed([late], *limit))))
    wait("cf.wait", lambda: len(cf.wait([late], *limit).not_done))
wait("with", held.__enter__)
wait("Queue.join", full.join)
wait("not blocking", lambda: held.acquire(False))
wait("no time", lambda: held.acquire(timeout=0))
wait("wrong", lambda: held.acquire(timeout=-2))
wait("both", lambda: held.acquire(False, 1))
wait("RLock", lambda: (lambda r: [r.acquire(timeout=1), r.acquire()])(threading.RLock()))
wait("free", threading.Lock().acquire)
wait("release", threading.Lock().release)
wait("empty", queue.SimpleQueue().get_nowait)
`

const waitsEnd = `Lock False slept
Event False slept
Condition False slept
wait_for False slept
Semaphore False slept
Barrier BrokenBarrierError slept
Queue Empty slept
full Full slept
SimpleQueue Empty slept
Future TimeoutError slept
exception TimeoutError slept
as_completed TimeoutError slept
cf.wait 1 slept
Lock never at once
Event never at once
Condition never at once
wait_for never at once
Semaphore never at once
Barrier never at once
Queue never at once
full never at once
SimpleQueue never at once
Future never at once
exception never at once
as_completed never at once
cf.wait never at once
with never at once
Queue.join never at once
not blocking False at once
no time False at once
wrong ValueError at once
both ValueError at once
RLock [True, True] at once
free True at once
release RuntimeError at once
empty Empty at once
`

// TestWaits: with one thread a wait with a timeout sleeps and then times out, and one
// without that nothing can end is an error at once. None of them traps.
func TestWaits(t *testing.T) {
	runners(t, []string{"slim", "python-3.12"}, func(t *testing.T, r *Runner) {
		for _, program := range []bool{true, false} {
			c := script(t, waitsOfScript)
			c.Script = program
			reply := musttest.Get(runnertest.Do(t.Context(), r, c))(t)
			// Busy machines are slow, so that what is done at once may look as if it slept.
			got, want := strings.Split(string(reply.Stdout), "\n"), strings.Split(waitsEnd, "\n")
			for i := range min(len(got), len(want)) {
				if got[i] != want[i] && got[i] != strings.Replace(want[i], " at once", " slept", 1) {
					t.Errorf("%q, want %q", got[i], want[i])
				}
			}
			if reply.Code != "" || len(got) != len(want) {
				t.Errorf("code %q, %d lines: %.300s", reply.Code, len(got), reply.Stderr)
			}
		}
	})
}

// TestKeepsWhatWasPrinted: whatever ends a run, what it had printed is there, though
// nobody flushed it.
func TestKeepsWhatWasPrinted(t *testing.T) {
	oneGuest(t)
	cases := map[string]struct {
		end  string
		code skill.Code
	}{
		"abort":         {"import os; os.abort()", skill.Trap},
		"a bad address": {"import faulthandler; faulthandler._sigsegv()", skill.Trap},
		"fuel":          {"while True: pass", skill.FuelExhausted},
		"memory":        {"x = ['x' * 10**6 for _ in range(1000)]", skill.MemoryLimit},
		"output":        {"sys.stderr.write('x' * 10**7)", skill.OutputLimit},
	}
	runners(t, []string{"slim", "python-3.12"}, func(t *testing.T, r *Runner) {
		for name, c := range cases {
			t.Run(name, func(t *testing.T) {
				call := script(t, "import sys\nprint('before')\nprint('a part', end='')\n"+c.end)
				if c.code == skill.FuelExhausted {
					call.Limits.Fuel = 1e9
				}
				reply := musttest.Get(runnertest.Do(t.Context(), r, call))(t)
				if reply.Code != c.code || string(reply.Stdout) != "before\na part" {
					t.Errorf("%s (%s), %q", reply.Code, reply.Message, reply.Stdout)
				}
				if c.code == skill.Trap && !strings.Contains(reply.Message, "the Python runtime trapped") {
					t.Errorf("message %q", reply.Message)
				}
			})
		}
	})
}
