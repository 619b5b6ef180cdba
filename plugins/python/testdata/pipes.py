# Threads that read and write the pipes of other programs; natively it prints the same.
import os, queue, subprocess, sys, threading, time
PIPE = subprocess.PIPE
PY = sys.executable
CAT = """import sys
for line in sys.stdin.buffer: sys.stdout.buffer.write(line); sys.stdout.buffer.flush()"""
def start(*args, **kw):
    args = (PY, "-c", CAT) if args == ("cat",) else args
    return subprocess.Popen(args, stdin=PIPE, stdout=PIPE, **kw)
def case(f):
    print("--", f.__name__)
    f()

@case
def lines_bytes():
    p = start("cat")
    got = []
    def reader():
        for line in p.stdout: got.append(line)
    t = threading.Thread(target=reader); t.start()
    for i in range(3): p.stdin.write(b"l%d\n" % i); p.stdin.flush()
    p.stdin.close(); t.join(); print(got, p.wait())

@case
def ping_pong():
    p = start("cat", text=True, bufsize=1)
    q = queue.Queue()
    def reader():
        for line in iter(p.stdout.readline, ""): q.put(line)
        q.put(None)
    threading.Thread(target=reader, daemon=True).start()
    for i in range(3):
        p.stdin.write(f"ping {i}\n"); p.stdin.flush()
        print(q.get(timeout=5).strip())
    p.stdin.close()
    print(q.get(), p.wait())

@case
def ping_pong_enumerate():
    p = start("cat", text=True)
    q = queue.Queue()
    def reader(pipe):
        for n, line in enumerate(pipe, 1):
            if n == 2: continue
            q.put((n, line))
        else: q.put("end")
    threading.Thread(target=reader, args=(p.stdout,)).start()
    for i in range(3):
        print("päng", i, file=p.stdin, flush=True)
        if i != 1: print(q.get())
    p.stdin.close()
    print(q.get(), p.wait())

@case
def large_both_ways():
    p = start("cat")
    total = []
    def reader():
        while True:
            data = p.stdout.read(65536)
            if not data: break
            total.append(len(data))
    t = threading.Thread(target=reader); t.start()
    for i in range(20): p.stdin.write(b"x" * 49999 + b"\n")
    p.stdin.close(); t.join(); print(sum(total), p.wait())

@case
def writer_thread():
    p = start("cat")
    def writer():
        for i in range(30): p.stdin.write(b"y" * 29999 + b"\n")
        p.stdin.close()
    t = threading.Thread(target=writer); t.start()
    print(len(p.stdout.read())); t.join(); print(p.wait())

@case
def comprehension():
    p = start("cat", text=True)
    out = []
    t = threading.Thread(target=lambda: out.extend(line.upper() for line in p.stdout)); t.start()
    p.stdin.write("a\nb\n"); p.stdin.close(); t.join(); print(out, p.wait())

@case
def two_streams():
    p = subprocess.Popen([PY, "-c", "import sys\nfor i in range(3):\n print('o', i, flush=True); print('e', i, file=sys.stderr, flush=True)"], stdout=PIPE, stderr=PIPE, text=True)
    out = {"o": [], "e": []}
    def pump(f, name):
        with f:
            for line in f: out[name].append(line.strip())
    ts = [threading.Thread(target=pump, args=a) for a in ((p.stdout, "o"), (p.stderr, "e"))]
    [t.start() for t in ts]; p.wait(); [t.join() for t in ts]; print(out)

@case
def communicate_and_timer():
    p = subprocess.Popen([PY, "-c", "import time; print('before', flush=True); time.sleep(300)"], stdout=PIPE, text=True)
    t = threading.Timer(0.5, p.kill); t.start()
    print(p.communicate(), p.returncode)

@case
def runs_in_threads():
    res = {}
    def work(i): res[i] = subprocess.run([PY, "-c", f"import sys; print({i}, sys.stdin.read())"], input=f"in{i}", capture_output=True, text=True).stdout
    ts = [threading.Thread(target=work, args=(i,)) for i in range(3)]
    [t.start() for t in ts]; [t.join() for t in ts]; print(sorted(res.items()))

@case
def os_pipe():
    r, w = os.pipe()
    got = []
    def reader():
        while data := os.read(r, 100): got.append(data)
    t = threading.Thread(target=reader); t.start()
    os.write(w, b"one"); time.sleep(0.01); os.write(w, b"two"); os.close(w); t.join(); print(got)

@case
def fdopen_pipe():
    r, w = os.pipe()
    got = []
    def reader():
        with os.fdopen(r) as f:
            for line in f: got.append(line)
    t = threading.Thread(target=reader); t.start()
    with os.fdopen(w, "w") as f:
        f.write("ä\nö"); f.flush(); time.sleep(0.01); f.write("ü\n")
    t.join(); print(got)

@case
def readline_read_mixed():
    p = start(PY, "-c", "import os\nwhile d := os.read(0, 99): os.write(1, d)", text=True)
    got = []
    def reader():
        got.append(p.stdout.readline()); got.append(p.stdout.read(3)); got.append(p.stdout.read())
    t = threading.Thread(target=reader); t.start()
    for s in ("fi", "rst\nab", "cé", "rest\r\nend"): p.stdin.write(s); p.stdin.flush(); time.sleep(0.01)
    p.stdin.close(); t.join(); print(got)

@case
def unbuffered():
    p = start(PY, "-c", "import os\nwhile d := os.read(0, 99): os.write(1, d)", bufsize=0)
    got = []
    def reader():
        while True:
            c = p.stdout.read(1)
            if not c: break
            got.append(c)
    t = threading.Thread(target=reader); t.start()
    p.stdin.write(b"abc"); p.stdin.close(); t.join(); print(b"".join(got))

@case
def broken():
    p = start(PY, "-c", "import sys; sys.stdin.read(1)")
    def writer():
        try:
            for i in range(100): p.stdin.write(b"z" * 10000)
            p.stdin.close()
        except BrokenPipeError as e: print("broken")
    t = threading.Thread(target=writer); t.start(); t.join(); print(p.wait())

@case
def stdin_of_child():
    code = '''
import queue, sys, threading
q = queue.Queue()
def reader():
    for line in sys.stdin: q.put(line)
    q.put(None)
threading.Thread(target=reader, daemon=True).start()
while (line := q.get()) is not None: print("echo", line, end="", flush=True)
'''
    p = start(PY, "-c", code, text=True)
    for i in range(2):
        p.stdin.write(f"{i}\n"); p.stdin.flush(); print(p.stdout.readline(), end="")
    p.stdin.close(); print(p.wait())

@case
def class_wrapper():
    class Server:
        def __init__(self):
            self.proc = start("cat", text=True)
            self.replies = queue.Queue()
            self.thread = threading.Thread(target=self._loop, daemon=True); self.thread.start()
        def _loop(self):
            while True:
                line = self.proc.stdout.readline()
                if not line: break
                self.replies.put(line.rstrip())
        def ask(self, text):
            self.proc.stdin.write(text + "\n"); self.proc.stdin.flush()
            return self.replies.get(timeout=10)
        def close(self):
            self.proc.stdin.close(); self.proc.wait(); self.thread.join()
    s = Server(); print(s.ask("one"), s.ask("two")); s.close()

@case
def comprehension_between_writes():
    p = start("cat", text=True)
    got = []
    def reader(): got.append([line.strip() for line in p.stdout if line != "skip\n"])
    t = threading.Thread(target=reader); t.start()
    for line in ("one\n", "skip\n", "two"): time.sleep(0.01); p.stdin.write(line); p.stdin.flush()
    p.stdin.close(); t.join(); print(got, p.wait())

@case
def comprehensions_of_all_kinds():
    class Of:
        def __init__(self): self.__p = start("cat"); self.files = [self.__p.stdout]
        def feed(self):
            for i in range(3): time.sleep(0.01); self.__p.stdin.write(b"%d\n" % i); self.__p.stdin.flush()
            self.__p.stdin.close()
    def sets(o): return sorted({line for line in o.files[0]})
    def dicts(o): return {i: line for i, line in enumerate(o.files[0], 1)}
    def sums(o): return sum(len(line) * n for line in o.files[0] for n in (1, 2))
    def lists(o): out = o.files[0]; return list(out)
    def joined(o): out = o.files[0]; return b"".join(line.upper() for line in out)
    def largest(o): return max(o.files[0], key=lambda line: -int(line))
    def nested(o): return [[c for c in line] for line in o.files[0]]
    def plain(o): o.files[0].read(); rows = [[1, 2], [3]]; return [n for row in rows for n in row], sum(n for n in rows[0]), dict(a=1)
    for f in (sets, dicts, sums, lists, joined, largest, nested, plain):
        o = Of()
        def reader(): print(f.__name__, f(o))
        t = threading.Thread(target=reader); t.start(); o.feed(); t.join()

@case
def pool_of_readers():
    from concurrent.futures import ThreadPoolExecutor
    both = [start("cat", text=True) for _ in range(2)]
    with ThreadPoolExecutor(2) as pool:
        done = [pool.submit(lambda p=p: [line for line in p.stdout]) for p in both]
        for i in range(2):
            for p in both: time.sleep(0.01); p.stdin.write(f"{i}\n"); p.stdin.flush()
        for p in both: p.stdin.close()
        print([d.result() for d in done])
