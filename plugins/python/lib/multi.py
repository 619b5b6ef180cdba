"""Module multiprocessing, whose processes are threads (module _openskill_threads): they go on one
after another, in this interpreter. What they are given, and give back, is copied, as between
processes; globals are not."""

import concurrent.futures
import io
import itertools
import os
import pickle
import queue
import sys
import threading
import traceback
from concurrent.futures.thread import ThreadPoolExecutor

import _openskill_threads as threads

numbers = itertools.count(1)
here = {}  # processes by thread


class Shared:
    """What processes have together."""

    def get_lock(self):
        if not hasattr(self, "_lock"):
            self._lock = threading.RLock()
        return self._lock


common = Shared, threading.Event, threading.Condition, threading.Semaphore, threading.Barrier, type(threading.Lock()), threading._PyRLock


def sent(value):
    """A copy, of which what is shared is the same. What cannot be copied is pickle's error."""
    kept = []

    class Pickler(pickle.Pickler):
        def persistent_id(self, o):
            if not isinstance(o, common):
                return None
            kept.append(o)
            return len(kept) - 1

    class Unpickler(pickle.Unpickler):
        def persistent_load(self, number):
            return kept[number]

    buffer = io.BytesIO()
    Pickler(buffer).dump(value)
    buffer.seek(0)
    return Unpickler(buffer).load()


def copied(value):
    """The same of what a forked process inherits: what cannot be copied is given as it is."""
    try:
        return sent(value)
    except Exception:
        return value


def task(function, args, kwargs):
    """What a process of a pool does."""
    function, args, kwargs = sent((function, args, kwargs))
    return sent((yield from threads.call(function, args, kwargs)))


threads.steps(task, task)


class Process:
    _exit = None

    def __init__(self, group=None, target=None, name=None, args=(), kwargs={}, *, daemon=None):
        self._target, self._args, self._kwargs = target, tuple(args), dict(kwargs)
        self.name, self.daemon = name or f"{type(self).__name__}-{next(numbers)}", bool(daemon)
        self.authkey, self._thread = b"", None

    def run(self):
        if self._target:
            self._target(*self._args, **self._kwargs)

    def _body(self):
        here[threading.get_ident()] = self
        code = 0
        try:
            if type(self).run is Process.run:
                args, kwargs = copied((self._args, self._kwargs))
                yield from threads.call(self._target or (lambda: None), args, kwargs)
            else:
                yield from threads.call(self.run)
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else 0 if end.code is None else 1
            if code == 1 and not isinstance(end.code, int):
                print(end.code, file=sys.stderr)
        except GeneratorExit:
            raise
        except BaseException as error:
            code = 1
            print(f"Process {self.name}:", file=sys.stderr)
            traceback.print_exception(threads.trimmed(error))
        finally:
            here.pop(threading.get_ident(), None)
            if self._exit is None:
                self._exit = code

    def start(self):
        if self._thread is not None:
            raise AssertionError("cannot start a process twice")
        self._thread = threading.Thread(target=self._body, name=self.name, daemon=self.daemon)
        self._thread.start()

    def join(self, timeout=None):
        if self._thread is None:
            raise AssertionError("can only join a started process")
        if self._exit is None:
            self._thread.join(timeout)

    def is_alive(self):
        return self._thread is not None and self._exit is None and self._thread.is_alive()

    def kill(self, code=-9):
        for g in list(threads.alive):
            if self._thread is not None and g.ident == self._thread.ident and not g.busy:
                self._exit = code
                threads.alive.remove(g)
                g.steps.close()
                g.done()

    def terminate(self):
        self.kill(-15)

    def close(self):
        pass

    @property
    def exitcode(self):
        self.is_alive()
        return self._exit

    @property
    def pid(self):
        return self._thread and self._thread.ident

    ident = pid

    def __repr__(self):
        state = "initial" if self._thread is None else "started" if self._exit is None else f"stopped exitcode={self._exit}"
        return f"<{type(self).__name__} name={self.name!r} {state}>"


threads.steps(Process._body, Process._body)


class Main(Process):
    pid = ident = property(lambda self: os.getpid())
    exitcode = None


main = Main(name="MainProcess")


def current_process():
    return here.get(threading.get_ident(), main)


def active_children():
    return [p for p in here.values() if p.is_alive()]


class Queue(Shared, queue.Queue):
    def __init__(self, maxsize=0):
        queue.Queue.__init__(self, maxsize)

    def _put(self, item):
        queue.Queue._put(self, copied(item))

    def close(self):
        pass

    cancel_join_thread = join_thread = close


class Connection(Shared):
    """An end of a pipe."""

    closed = False

    def __init__(self, reads, writes):
        self._reads, self._writes = reads, writes

    def send(self, value):
        self._writes.put((sent(value),))

    def recv(self):
        got = self._reads.get()
        if not got:
            self._reads.put(got)
            raise EOFError
        return got[0]

    def poll(self, timeout=0):
        if self._reads.empty():
            threads.wait(timeout, lambda: not self._reads.empty())
        return not self._reads.empty()

    def close(self):
        if not self.closed:
            self.closed = True
            self._writes.put(())

    send_bytes, recv_bytes = send, recv

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def Pipe(duplex=True):
    one, other = queue.Queue(), queue.Queue()
    return Connection(one, other), Connection(other, one)


class Value(Shared):
    def __init__(self, kind, value=0, *, lock=True):
        self.value = value


class Array(Shared, list):
    def __init__(self, kind, values, *, lock=True):
        list.__init__(self, [0] * values if isinstance(values, int) else values)


class Namespace(Shared):
    def __init__(self, **values):
        self.__dict__.update(values)


class Manager(Shared):
    def __init__(self, *_, **__):
        pass

    dict, list = type("DictProxy", (Shared, dict), {}), type("ListProxy", (Shared, list), {})
    Queue = JoinableQueue = Queue
    Namespace, Value, Array = Namespace, Value, Array
    Lock, RLock, Event = staticmethod(threading.Lock), staticmethod(threading.RLock), threading.Event
    Condition, Semaphore, BoundedSemaphore, Barrier = threading.Condition, threading.Semaphore, threading.BoundedSemaphore, threading.Barrier

    def start(self, *_):
        pass

    connect = shutdown = start

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass


class Result:
    """What a pool has been asked for."""

    def __init__(self, futures, one):
        self._futures, self._one = futures, one

    def ready(self):
        return all([f.done() for f in self._futures])

    def wait(self, timeout=None):
        concurrent.futures.wait(self._futures, timeout)

    def successful(self):
        if not self.ready():
            raise ValueError(f"{self!r} not ready")
        return not any(f.exception() for f in self._futures)

    def get(self, timeout=None):
        self.wait(timeout)
        if not self.ready():
            raise sys.modules["multiprocessing"].TimeoutError
        values = [f.result() for f in self._futures]
        return values[0] if self._one else values


class Pool:
    def __init__(self, processes=None, initializer=None, initargs=(), maxtasksperchild=None, context=None):
        if processes is not None and processes < 1:
            raise ValueError("Number of processes must be at least 1")
        self._pool = ThreadPoolExecutor(processes or 1, "PoolWorker", initializer, initargs)
        self._processes = processes or 1

    def _submit(self, function, args, kwargs={}):
        try:
            return self._pool.submit(task, function, args, kwargs)
        except RuntimeError:
            raise ValueError("Pool not running") from None

    def _ask(self, function, lists, one, callback, error_callback):
        result = Result([self._submit(function, *of) for of in lists], one)
        left = len(result._futures)

        def done(_):
            nonlocal left
            left -= 1
            if left == 0:
                wrong = next((f.exception() for f in result._futures if f.exception()), None)
                if wrong is not None:
                    error_callback and error_callback(wrong)
                elif callback:
                    callback(result.get())

        for future in result._futures if callback or error_callback else ():
            future.add_done_callback(done)
        return result

    def apply_async(self, func, args=(), kwds={}, callback=None, error_callback=None):
        return self._ask(func, [(tuple(args), dict(kwds))], True, callback, error_callback)

    def map_async(self, func, iterable, chunksize=None, callback=None, error_callback=None):
        return self._ask(func, [((x,),) for x in iterable], False, callback, error_callback)

    def starmap_async(self, func, iterable, chunksize=None, callback=None, error_callback=None):
        return self._ask(func, [(tuple(x),) for x in iterable], False, callback, error_callback)

    def apply(self, func, args=(), kwds={}):
        return self.apply_async(func, args, kwds).get()

    def map(self, func, iterable, chunksize=None):
        return self.map_async(func, iterable).get()

    def starmap(self, func, iterable, chunksize=None):
        return self.starmap_async(func, iterable).get()

    def imap(self, func, iterable, chunksize=1):
        futures = [self._submit(func, (x,)) for x in iterable]
        return (f.result() for f in futures)

    def imap_unordered(self, func, iterable, chunksize=1):
        futures = [self._submit(func, (x,)) for x in iterable]
        return (f.result() for f in concurrent.futures.as_completed(futures))

    def close(self):
        self._pool.shutdown(wait=False)

    def terminate(self):
        self._pool.shutdown(wait=False, cancel_futures=True)

    def join(self):
        if not self._pool._shutdown:
            raise ValueError("Pool is still running")
        self._pool.shutdown()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.terminate()


def install(module):
    """Gives multiprocessing what it is made of here."""
    method = "fork"

    def set_start_method(name, force=False):
        nonlocal method
        if name not in ("fork", "spawn", "forkserver", None):
            raise ValueError(f"cannot find context for {name!r}")
        method = name or "fork"

    def get_context(name=None):
        set_start_method(name or method)
        return module

    new = dict(
        Process=Process, Pool=Pool, Queue=Queue, JoinableQueue=Queue, SimpleQueue=Queue, Pipe=Pipe, Value=Value, Array=Array,
        RawValue=Value, RawArray=Array, Manager=Manager, current_process=current_process, active_children=active_children,
        parent_process=lambda: None if current_process() is main else main, set_start_method=set_start_method,
        get_start_method=lambda allow_none=False: method, get_context=get_context,
        get_all_start_methods=lambda: ["fork", "spawn", "forkserver"], cpu_count=lambda: 1, freeze_support=lambda: None,
        Lock=threading.Lock, RLock=threading.RLock, Event=threading.Event, Condition=threading.Condition,
        Semaphore=threading.Semaphore, BoundedSemaphore=threading.BoundedSemaphore, Barrier=threading.Barrier,
    )
    vars(module).update(new)


def pools(module):
    module.Pool = module.ThreadPool = Pool


def executors(module):
    """Gives concurrent.futures.process its pool."""

    class ProcessPoolExecutor(ThreadPoolExecutor):
        def __init__(self, max_workers=None, mp_context=None, initializer=None, initargs=(), *, max_tasks_per_child=None):
            super().__init__(1 if max_workers is None else max_workers, "", initializer, initargs)

        def submit(self, fn, /, *args, **kwargs):
            return super().submit(task, fn, args, kwargs)

    ProcessPoolExecutor.__module__, ProcessPoolExecutor.__qualname__ = "concurrent.futures.process", "ProcessPoolExecutor"
    module.ProcessPoolExecutor = ProcessPoolExecutor
