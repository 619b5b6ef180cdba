"""Has several processes work, by modules multiprocessing and concurrent.futures."""

import concurrent.futures as cf
import multiprocessing as mp
import sys
import time
from multiprocessing import Pool, Process, Queue

def square(n):
    if n == 2: time.sleep(0.02)
    return n * n
def bad(n): raise ValueError(f"no {n}")
def add(a, b=1): return a + b
def worker(tasks, results):
    while (n := tasks.get()) is not None:
        results.put((n, n * n))
def fill(values):
    values.append(1)
    print("inside", values)
def leave(): sys.exit(3)
def talk(end):
    end.send({"got": end.recv()})
    end.close()
def count(value, lock):
    for _ in range(5):
        with lock: value.value += 1
def slow(): time.sleep(100)

class Mine(mp.Process):
    def __init__(self, q):
        super().__init__()
        self.q = q
    def run(self): self.q.put(self.name.split("-")[0])

if __name__ == "__main__":
    print(mp.current_process().name, mp.cpu_count() > 0)
    with Pool(3) as pool:
        print(pool.map(square, range(4)), pool.starmap(add, [(1, 2), (3, 4)]), pool.apply(add, (1,), {"b": 5}))
        print(list(pool.imap(square, range(4))), sorted(pool.imap_unordered(square, range(4))))
        r = pool.apply_async(square, (3,)); print(r.get(timeout=5), r.successful())
        try: pool.map(bad, [7])
        except ValueError as e: print("error", e)
    with cf.ProcessPoolExecutor(max_workers=2) as ex:
        print(list(ex.map(square, range(4))))
        fs = {ex.submit(square, n): n for n in range(4)}
        print(sorted(fs[f] + f.result() for f in cf.as_completed(fs)))
        print(type(ex.submit(bad, 1).exception()).__name__)
    tasks, results = Queue(), Queue()
    ps = [Process(target=worker, args=(tasks, results)) for _ in range(2)]
    for p in ps: p.start()
    for n in range(6): tasks.put(n)
    for _ in ps: tasks.put(None)
    print(sorted(results.get() for _ in range(6)))
    for p in ps: p.join()
    print([p.exitcode for p in ps], [p.is_alive() for p in ps])
    values = []
    p = Process(target=fill, args=(values,)); p.start(); p.join(); print(values)
    p = Process(target=leave); p.start(); p.join(); print(p.exitcode)
    a, b = mp.Pipe()
    p = Process(target=talk, args=(b,)); p.start(); a.send([1, 2]); print(a.recv()); p.join()
    value, lock = mp.Value("i", 0), mp.Lock()
    ps = [Process(target=count, args=(value, lock)) for _ in range(3)]
    [p.start() for p in ps]; [p.join() for p in ps]; print(value.value)
    p = Process(target=slow); p.start(); print(p.is_alive()); p.terminate(); p.join(); print(p.exitcode, p.is_alive())
    with mp.Manager() as m:
        d = m.dict()
        p = Process(target=d.update, args=({"k": 1},)); p.start(); p.join(); print(dict(d))
    q = Queue(); m = Mine(q); m.start(); print(q.get()); m.join()
    p = Process(target=bad, args=(1,)); p.start(); p.join(); print(p.exitcode)
