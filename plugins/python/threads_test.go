package python

import (
	"os"
	"strings"
	"testing"

	"openskill/internal/musttest"
	"openskill/plugins/runnertest"
	"openskill/sdk/skill"
)

// threadsOfScript prints what CPython prints of it natively.
const threadsOfScript = `
import queue, threading, time
goes = [threading.Event() for _ in range(3)]
def work(i):
    goes[i].wait()
    print("work", i, threading.current_thread().name)
    if i: goes[i - 1].set()
ts = [threading.Thread(target=work, args=(i,), name=f"t{i}") for i in range(3)]
for t in ts: t.start()
print("started", threading.active_count())
goes[2].set()
for t in ts: t.join()
print(any(t.is_alive() for t in ts))

q = queue.Queue(maxsize=2)
def worker():
    while True:
        item = q.get()
        try: print("got", item)
        finally: q.task_done()
threading.Thread(target=worker, daemon=True).start()
for i in range(4): q.put(i)
q.join()
q.put("again"); q.join()

class Spinner:
    def __init__(self):
        self.stop = threading.Event()
        self.frames, self.twice = 0, threading.Event()
    def __spin(self):
        while not self.stop.is_set():
            self.frames += 1
            if self.frames == 2: self.twice.set()
            time.sleep(0.001)
        print("spun")
    def __enter__(self):
        self.thread = threading.Thread(target=self.__spin, daemon=True)
        self.thread.start()
        return self
    def __exit__(self, *_):
        self.stop.set()
        self.thread.join()
with Spinner() as s: s.twice.wait()
print(s.frames > 1)

lock, n = threading.Lock(), 0
def add():
    global n
    for _ in range(20):
        with lock:
            v = n
            time.sleep(0)
            n = v + 1
ts = [threading.Thread(target=add) for _ in range(4)]
[t.start() for t in ts]; [t.join() for t in ts]
print(n)

running = True
def busy():
    while running: pass
t = threading.Thread(target=busy); t.start(); running = False; t.join()

local = threading.local(); local.x = 1
def look():
    local.x = 2
    print(hasattr(local, "y"), local.x)
t = threading.Thread(target=look); t.start(); t.join(); print(local.x)

again = threading.RLock()
with again:
    t = threading.Thread(target=lambda: print("again", again.acquire(timeout=0.01))); t.start(); t.join()
cond, items = threading.Condition(), []
def consume():
    with cond:
        while not items: cond.wait()
        print("consumed", items.pop())
t = threading.Thread(target=consume); t.start()
with cond:
    items.append(7)
    cond.notify()
t.join()
barrier = threading.Barrier(3)
ts = [threading.Thread(target=barrier.wait) for _ in range(3)]
[t.start() for t in ts]; [t.join() for t in ts]
class Mine(threading.Thread):
    def run(self): time.sleep(0.001); self.answer = self.__twice(21)
    def __twice(self, n): return n * 2
m = Mine(); m.start(); m.join(); print(m.answer)
t = threading.Timer(0.001, print, ["timer"]); t.start(); t.join()
t = threading.Timer(100, print, ["never"]); t.start(); t.cancel(); t.join()
threading.excepthook = lambda a: print("hook", a.exc_type.__name__, a.thread.name, a.exc_traceback.tb_frame.f_code.co_name)
def bad(): raise ValueError("no")
t = threading.Thread(target=bad, name="named"); t.start(); t.join()

fed = queue.Queue()
def feed():
    for item in iter(fed.get, None):
        if item == 1: continue
        print("fed", item)
    else: print("full")
t = threading.Thread(target=lambda: feed()); t.start()
for item in (1, 2, None): fed.put(item)
t.join()

def late(): time.sleep(0.01); print("late")
threading.Thread(target=late).start()
print("end")
`

// poolsOfScript does so with pools of threads, which Python 3.12 for WASI has not.
const poolsOfScript = `
import asyncio, concurrent.futures as cf, contextvars, functools, threading, time
def bad(): raise ValueError("no")
def square(n): time.sleep(0.3 * (2 - n)); return n * n
with cf.ThreadPoolExecutor(3) as pool:
    print(list(pool.map(square, range(3))))
    fs = {pool.submit(square, n): n for n in range(3)}
    print([fs[f] for f in cf.as_completed(fs)])
    try: pool.submit(bad).result()
    except ValueError as e: print("ValueError", e)
    try: pool.submit(time.sleep, 0.5).result(timeout=0.001)
    except cf.TimeoutError: print("timeout")
    waiting = [pool.submit(functools.partial(square, n)) for n in range(3)]
    while not all(f.done() for f in waiting): pass
var = contextvars.ContextVar("var", default=0)
async def main():
    var.set(5)
    print(await asyncio.gather(asyncio.to_thread(square, 1), asyncio.to_thread(var.get), asyncio.sleep(0.001, "slept")))
    print(await asyncio.get_running_loop().run_in_executor(None, square, 2))
asyncio.run(main())
def own_loop(): print(asyncio.run(asyncio.sleep(0.001, "own loop")))
t = threading.Thread(target=own_loop); t.start(); t.join()
`

const threadsEnd = `started 4
work 2 t2
work 1 t1
work 0 t0
False
got 0
got 1
got 2
got 3
got again
spun
True
80
False 2
1
again False
consumed 7
42
timer
hook ValueError named bad
fed 2
full
end
late
`

const poolsEnd = `[0, 1, 4]
[2, 1, 0]
ValueError no
timeout
[1, 5, 'slept']
4
own loop
`

// TestThreads: threads go on in turn where they wait, as they do natively.
func TestThreads(t *testing.T) {
	runners(t, []string{"slim", "python-3.12"}, func(t *testing.T, r *Runner) {
		for _, c := range []struct {
			text, want    string
			program, slim bool
		}{
			{threadsOfScript, threadsEnd, true, false},
			{threadsOfScript, threadsEnd, false, true},
			{poolsOfScript, poolsEnd, true, true},
		} {
			if c.slim && !strings.HasSuffix(t.Name(), "/slim") {
				continue
			}
			call := script(t, c.text)
			call.Script = c.program
			reply := musttest.Get(runnertest.Do(t.Context(), r, call))(t)
			if string(reply.Stdout) != c.want || reply.Code != "" || reply.ExitCode != 0 {
				t.Errorf("code %q, exit code %d\n%s\n%s", reply.Code, reply.ExitCode, reply.Stdout, reply.Stderr)
			}
		}
	})
}

// processesEnd is what CPython prints of the script.
const processesEnd = `MainProcess True
[0, 1, 4, 9] [3, 7] 6
[0, 1, 4, 9] [0, 1, 4, 9]
9 True
error no 7
[0, 1, 4, 9]
[0, 2, 6, 12]
ValueError
[(0, 0), (1, 1), (2, 4), (3, 9), (4, 16), (5, 25)]
[0, 0] [False, False]
inside [1]
[]
3
{'got': [1, 2]}
15
True
-15 False
{'k': 1}
Mine
1
`

// TestMultiprocessing: processes of the library do their work as natively.
func TestMultiprocessing(t *testing.T) {
	text := musttest.Get(os.ReadFile("../../examples/parity/programs/scripts/workers.py"))(t)
	runners(t, []string{"slim"}, func(t *testing.T, r *Runner) {
		call := script(t, string(text))
		call.Script = true
		reply := musttest.Get(runnertest.Do(t.Context(), r, call))(t)
		if string(reply.Stdout) != processesEnd || reply.Code != "" || reply.ExitCode != 0 || strings.Count(string(reply.Stderr), "Traceback") != 1 {
			t.Errorf("code %q, exit code %d\n%s\n%s", reply.Code, reply.ExitCode, reply.Stdout, reply.Stderr)
		}
	})
}

// TestMultiprocessingCopies: what a pool or a pipe cannot copy is an error, as between processes, and
// a forked process has it.
func TestMultiprocessingCopies(t *testing.T) {
	const text = `
import multiprocessing as mp
from concurrent.futures import ProcessPoolExecutor
def half(x): return x / 2
def maker(x): return lambda: x
def show(f): print("forked", f())
def tried(what):
    try:
        return what()
    except Exception as e:
        return "pickle" if "pickle" in str(e).lower() else repr(e)
pool = mp.Pool(2)
print(tried(lambda: pool.map(half, [2])), tried(lambda: pool.map(half, [lambda: 1])), tried(lambda: pool.map(maker, [1])), sep="/")
print(tried(lambda: pool.map(lambda x: x, [1])), tried(lambda: mp.Pipe()[0].send(lambda: 1)), sep="/")
with ProcessPoolExecutor() as executor:
    print(tried(executor.submit(half, 4).result), tried(executor.submit(half, lambda: 1).result), sep="/")
p = mp.Process(target=show, args=(lambda: 7,))
p.start()
p.join()
print(p.exitcode)
`
	const want = "[1.0]/pickle/pickle\npickle/pickle\n2.0/pickle\nforked 7\n0\n"
	runners(t, []string{"slim"}, func(t *testing.T, r *Runner) {
		call := script(t, text)
		call.Script = true
		reply := musttest.Get(runnertest.Do(t.Context(), r, call))(t)
		if string(reply.Stdout) != want || reply.ExitCode != 0 {
			t.Errorf("exit code %d\n%s\n%s", reply.ExitCode, reply.Stdout, reply.Stderr)
		}
	})
}

// TestThreadsThatDoNotEnd: limits hold in threads, and none of them keeps a script from its end.
func TestThreadsThatDoNotEnd(t *testing.T) {
	oneGuest(t)
	runners(t, []string{"slim", "python-3.12"}, func(t *testing.T, r *Runner) {
		for name, c := range map[string]struct {
			text, stdout, stderr string
			code                 skill.Code
			exit                 uint32
		}{
			"an endless loop": {"def f():\n  while True: pass\nthreading.Thread(target=f).start()\nthreading.Event().wait()", "", "", skill.FuelExhausted, 0},
			"memory":          {"def f(): x = ['x' * 10**6 for _ in range(1000)]\nthreading.Thread(target=f).start()", "", "MemoryError", "", 0},
			"each other": {`
both = threading.Barrier(2)
a, b = threading.Lock(), threading.Lock()
def f(one, other):
  with one:
    both.wait()
    with other: pass
ts = [threading.Thread(target=f, args=x, daemon=True) for x in ((a, b), (b, a))]
for t in ts: t.start()
ts[0].join()`, "", "RuntimeError: this wait cannot end", "", 1},
			"each other at the end": {"threading.Thread(target=lambda: threading.Event().wait()).start(); print('end')", "end\n", "RuntimeError: this wait cannot end", "", 1},
			"daemons": {`
def f():
  try:
    while True: time.sleep(1000)
  finally: print("no")
threading.Thread(target=f, daemon=True).start()
print("end")`, "end\n", "", "", 0},
			"too many": {`
try:
  for i in range(200): threading.Thread(target=threading.Event().wait, daemon=True).start()
except RuntimeError as e: print(i, e)`, "128 can't start new thread\n", "", "", 0},
			"deep": {`
def f(n):
  t = threading.Thread(target=f, args=(n + 1,))
  try: t.start()
  except RuntimeError as e: return print(n, e)
  t.join()
f(0)`, "128 can't start new thread\n", "", "", 0},
			"a lock of the one that waits": {"again = threading.RLock()\ndef f():\n  with again: pass\nt = threading.Thread(target=f, daemon=True)\nwith again:\n  t.start()\n  t.join()", "", "RuntimeError: this wait cannot end", "", 1},
			"an error at the end":          {"def f(): time.sleep(0.001); 1 / 0\nthreading.Thread(target=f).start()\nraise SystemExit(3)", "", "ZeroDivisionError", "", 3},
		} {
			t.Run(name, func(t *testing.T) {
				call := script(t, "import threading, time\n"+c.text)
				call.Script, call.Limits.Fuel = true, 3e9
				reply := musttest.Get(runnertest.Do(t.Context(), r, call))(t)
				if reply.Code != c.code || reply.ExitCode != c.exit || string(reply.Stdout) != c.stdout || !strings.Contains(string(reply.Stderr), c.stderr) {
					t.Errorf("%s, exit code %d, %q\n%s", reply.Code, reply.ExitCode, reply.Stdout, reply.Stderr)
				}
			})
		}
	})
}
