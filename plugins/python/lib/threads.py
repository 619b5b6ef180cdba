"""Threads that run one after another. WASI has one stack, so a thread is a generator: its
functions are compiled anew, from their source, with a yield wherever they may wait
(generators.py). A thread goes on until it waits; whoever waits has the others go on, in
turn. What waits in a function that cannot be left in the middle has them go on above it."""

import _thread
import builtins
import collections
import contextvars
import functools
import sys
import threading
import time
import types

lock = _thread.allocate_lock
plain_sleep, monotonic = lock._sleep, time.monotonic

most = 128  # threads alive
deepest = 20  # threads that start one another, without one that could be left

alive = collections.deque()  # the next one to go on first
current = None  # None: the main thread, or one that waits above
idents = iter(range(2, sys.maxsize))
depth = 0
deferred = False
pipes = None  # module _openskill_pipes, once programs are started
main_ident = _thread.get_ident()


class Green:
    """A thread. It waits until ready() holds, or until a time; with neither, for its turn."""

    __slots__ = "ident", "steps", "context", "daemon", "done", "ready", "until", "busy", "loop"

    def can(self):
        if self.busy:
            return False
        if self.until is not None and monotonic() >= self.until:
            return True
        return self.ready() if self.ready is not None else self.until is None


def step(g):
    """Has a thread go on until it waits, or ends."""
    global current, depth
    before, current = current, g
    depth += 1
    g.busy = True
    events = sys.modules.get("asyncio.events")
    loop = events and events._get_running_loop()
    if events:
        events._set_running_loop(g.loop)
    try:
        g.ready, g.until = g.context.run(g.steps.send, None)
    except BaseException:  # StopIteration; errors have been told
        alive.remove(g)
        alive.rotate(1)  # who started it may wait for it
        g.done()
    finally:
        if events := sys.modules.get("asyncio.events"):
            g.loop = events._get_running_loop()
            events._set_running_loop(loop)
        current = before
        depth -= 1
        g.busy = False


def turn(ready):
    """Has each thread go on that can, until ready() holds. Reports whether one could."""
    any_could = False
    for _ in range(len(alive)):
        if not alive:
            break
        g = alive[0]
        alive.rotate(-1)
        if g.can():
            step(g)
            any_could = True
            if ready():
                break
    return any_could


def wait(timeout, ready):
    """Has the others go on until ready() holds, or the time is up."""
    end = None if timeout is None or timeout < 0 else monotonic() + timeout
    while not ready():
        if not turn(ready):
            times = [g.until for g in alive if g.until is not None and not g.busy]
            if end is not None:
                times.append(end)
            programs = pipes and pipes.awaited([ready] + [g.ready for g in alive if not g.busy])
            if programs:
                pipes.rest(programs, min(times, default=None))
            elif not times:
                raise RuntimeError("this wait cannot end: no other thread can go on to end it; give it a timeout")
            else:
                plain_sleep(max(min(times) - monotonic(), 0))
        if end is not None and monotonic() >= end:
            return


def never():
    return False


def sleep(seconds, /):  # time.sleep
    if not alive or seconds < 0:
        return plain_sleep(seconds)
    wait(seconds, never)


# What may wait, as generators. They yield what they wait for: a function, and a time.


class Waits:
    """A call that may wait: what runs it."""

    __slots__ = ("steps",)

    def __init__(self, function, /, *args, **kwargs):
        self.steps = function(*args, **kwargs)

    def __iter__(self):
        return self.steps


def pause(ready, timeout=None):
    end = None if timeout is None or timeout < 0 else monotonic() + timeout
    while not ready():
        if end is not None and monotonic() >= end:
            return
        yield ready, end


def call(function, args=(), kwargs={}):
    result = waiting(function)(*args, **kwargs)
    if type(result) is Waits:
        result = yield from result
    return result


def acquire_lock(self, blocking=True, timeout=-1):
    if blocking is True and (timeout == -1 or timeout >= 0):
        yield from pause(lambda: not self._held, timeout)
        blocking, timeout = False, -1
    return self.acquire(blocking, timeout)


def acquire_again(self, blocking=True, timeout=-1):
    if blocking and self._owner != threading.get_ident():
        yield from pause(lambda: self._owner is None, timeout)
        if self._owner is not None:
            return False
    return self.acquire(blocking, timeout)


def acquire_semaphore(self, blocking=True, timeout=None):
    if blocking:
        yield from pause(lambda: self._value > 0, timeout)
    return self.acquire(False) if blocking else self.acquire(blocking, timeout)


def condition_wait(self, timeout=None):
    if not self._is_owned():
        raise RuntimeError("cannot wait on un-acquired lock")
    waiter = lock()
    waiter.acquire()
    self._waiters.append(waiter)
    saved = self._release_save()
    try:
        yield from pause(lambda: not waiter._held, timeout)
        told = not waiter._held
        if not told:
            self._waiters.remove(waiter)
    finally:
        yield from enter(self._lock)
        self._acquire_restore(saved)
    return told


def condition_wait_for(self, predicate, timeout=None):
    end = None if timeout is None else monotonic() + timeout
    while not (result := predicate()):
        left = None if end is None else end - monotonic()
        if left is not None and left <= 0:
            break
        yield from condition_wait(self, left)
    return result


def barrier_wait(self, timeout=None):
    timeout = self._timeout if timeout is None else timeout
    yield from enter(self._cond)
    with self._cond:
        while self._state in (-1, 1):  # others are leaving
            yield from condition_wait(self._cond)
        if self._state < 0:
            raise threading.BrokenBarrierError
        index, self._count = self._count, self._count + 1
        try:
            if index + 1 == self._parties:
                self._release()
            else:
                if not (yield from condition_wait_for(self._cond, lambda: self._state, timeout)):
                    self._break()
                    raise threading.BrokenBarrierError
                if self._state < 0:
                    raise threading.BrokenBarrierError
            return index
        finally:
            self._count -= 1
            self._exit()


def event_wait(self, timeout=None):
    yield from pause(lambda: self._flag, timeout)
    return self._flag


def event_is_set(self):
    yield None, None
    return self._flag


def ended(q):
    return getattr(q, "is_shutdown", False)


def queue_get(self, block=True, timeout=None):
    if not block or timeout is not None and timeout < 0:
        return self.get(block, timeout)
    yield from pause(lambda: self._qsize() or ended(self), timeout)
    return self.get(False)


def queue_put(self, item, block=True, timeout=None):
    if not block or timeout is not None and timeout < 0:
        return self.put(item, block, timeout)
    yield from pause(lambda: self.maxsize <= 0 or self._qsize() < self.maxsize or ended(self), timeout)
    return self.put(item, False)


def queue_join(self):
    yield from pause(lambda: not self.unfinished_tasks)


def simple_get(self, block=True, timeout=None):
    if not block or timeout is not None and timeout < 0:
        return self.get(block, timeout)
    yield from pause(lambda: not self.empty(), timeout)
    return self.get(False)


def thread_start(self):
    global deferred
    before, deferred = deferred, True
    try:
        self.start()
    finally:
        deferred = before
    yield None, None


def thread_run(self):
    try:
        if self._target is not None:
            yield from call(self._target, self._args, self._kwargs)
    finally:
        del self._target, self._args, self._kwargs


def timer_run(self):
    yield from event_wait(self.finished, self.interval)
    if not self.finished.is_set():
        yield from call(self.function, self.args, self.kwargs)
    self.finished.set()


def thread_join(self, timeout=None):
    if self._started.is_set() and self is not threading.current_thread():
        handle = getattr(self, "_handle", None)
        yield from pause((lambda: handle._done) if handle else lambda: not living(self), timeout)
        return
    self.join(timeout)


def thread_is_alive(self):
    yield None, None
    return living(self)


def slept(seconds, /):
    if seconds < 0:
        plain_sleep(seconds)
    yield None, monotonic() + seconds


def in_context(context, function, /, *args, **kwargs):
    g = current
    before, g.context = g.context, context
    yield None, None  # from here on in that one
    try:
        return (yield from call(function, args, kwargs))
    finally:
        g.context = before
        yield None, None


def enter(manager):
    """Waits until a with statement can begin at once. Gives what it is about."""
    kind = type(manager)
    if kind is lock:
        yield from pause(lambda: not manager._held)
    elif kind is threading._PyRLock:
        me = threading.get_ident()  # of this thread: others ask whether it can go on
        yield from pause(lambda: manager._owner in (None, me))
    elif isinstance(manager, threading.Condition):
        yield from enter(manager._lock)
    elif isinstance(manager, threading.Semaphore):
        yield from pause(lambda: manager._value > 0)
    return manager


ticks = 0


def tick():
    """Begins each pass of a loop: now and then it is the others' turn."""
    global ticks
    ticks += 1
    return () if ticks % 100 else ((None, None),)


# Functions as generators.

codes = {}  # by the id of a code: it, and None, a generator function, or the code of one


def steps(function, generator):
    """Says what does the work of a function in a thread."""
    code = function.__code__
    codes[id(code)] = code, generator


def waiting(f):
    """What to call instead of f: it gives Waits where f may wait."""
    kind = type(f)
    if kind is types.FunctionType:
        steps = generator(f)
        return f if steps is None else functools.partial(Waits, steps)
    if kind is types.MethodType:
        inner = f.__func__
        steps = generator(inner) if type(inner) is types.FunctionType else None
        return f if steps is None else functools.partial(Waits, steps, f.__self__)
    if kind is functools.partial:
        inner = waiting(f.func)
        return f if inner is f.func else functools.partial(inner, *f.args, **f.keywords)
    if kind is types.BuiltinMethodType:
        if type(f.__self__) is contextvars.Context and f.__name__ == "run":
            return functools.partial(Waits, in_context, f.__self__)
        steps = pipes and pipes.waiting(f)
        return functools.partial(Waits, steps) if steps else f
    return f


def generator(f):
    code = f.__code__
    known = codes.get(id(code))
    if known is None:
        import _openskill_generators

        try:
            known = code, _openskill_generators.rewritten(code)
        except (SyntaxError, ValueError, RecursionError, OSError):
            known = code, None
        codes[id(code)] = known
    new = known[1]
    if type(new) is not types.CodeType:
        return new
    cells = dict(zip(code.co_freevars, f.__closure__ or ()))
    steps = types.FunctionType(new, f.__globals__, f.__name__, f.__defaults__, tuple(cells[n] for n in new.co_freevars))
    steps.__kwdefaults__ = f.__kwdefaults__
    return steps


def each(of, *first):
    """What a for statement is over; with a number, what it counts from."""
    return pipes.each(of, *first) if pipes else enumerate(of, *first) if first else of


def gathered(of):
    """What a comprehension is over: of a file that another program writes, all of its lines."""
    lines = pipes and pipes.lines(of)
    return (yield from lines) if lines else of


for n, value in {"gathered": gathered, "call": waiting, "type": type, "waits": Waits, "enter": enter, "tick": tick, "each": each}.items():
    setattr(builtins, f"__openskill_{n}__", value)


# Module _thread.


class Handle:
    __slots__ = "ident", "_done", "__weakref__"

    def __init__(self):
        self.ident, self._done = 0, False

    def is_done(self):
        turn(lambda: self._done)
        return self._done

    def _set_done(self):
        self._done = True

    def join(self, timeout=None):
        wait(timeout, lambda: self._done)


def get_ident():
    return main_ident if current is None else current.ident


def living(thread):
    handle = getattr(thread, "_handle", None)
    if handle is None:  # before 3.13
        return thread in threading._active.values()
    return thread._started._flag and not handle._done


def trimmed(error):
    """An error without the frames of this file."""
    kept, trace = [], error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename != __file__:
            kept.append(trace)
        trace = trace.tb_next
    for one, following in zip(kept, kept[1:] + [None]):
        one.tb_next = following
    error.__traceback__ = kept[0] if kept else None
    return error


def bootstrap(thread):
    try:
        yield from call(thread.run)
    except GeneratorExit:
        pass  # it is ended where it is
    except BaseException as error:
        trimmed(error)
        thread._invoke_excepthook(thread)
    finally:
        thread._delete()


def function_of(function, args, kwargs):
    try:
        yield from call(function, args, kwargs)
    except (GeneratorExit, SystemExit):
        pass
    except BaseException as error:
        trimmed(error)
        sys.unraisablehook(types.SimpleNamespace(
            exc_type=type(error), exc_value=error, exc_traceback=error.__traceback__,
            err_msg=f"Exception ignored in thread started by {function!r}", object=None,
        ))


def begin(steps, handle, daemon, context=None):
    if len(alive) >= most:
        raise RuntimeError("can't start new thread")
    g = Green()
    g.ident, g.steps, g.done, g.daemon = next(idents), steps, handle._set_done, daemon
    g.context = context if context is not None else contextvars.Context()
    g.ready = g.until = g.loop = None
    g.busy = False
    handle.ident = g.ident
    alive.appendleft(g)
    return g


def first(g):
    """Has a new thread go on at once, up to where it waits; later, where a program may wait for what
    the one that starts it is to write."""
    events = sys.modules.get("asyncio.events")
    if not deferred and depth < deepest and not (events and events._get_running_loop()) and not (pipes and pipes.feeding()):
        alive.rotate(-1)
        step(g)
    return g.ident


def thread_of(thread, handle, daemon, done=None):
    g = begin(bootstrap(thread), handle, daemon, getattr(thread, "_context", None))
    g.done = done or g.done
    thread._ident = g.ident
    if threading._HAVE_THREAD_NATIVE_ID:
        thread._native_id = g.ident
    with threading._active_limbo_lock:
        threading._active[g.ident] = thread
        threading._limbo.pop(thread, None)
    thread._started.set()
    return first(g)


def start_joinable_thread(function, handle=None, daemon=True):
    handle = Handle() if handle is None else handle
    if getattr(function, "__name__", "") == "_bootstrap" and isinstance(getattr(function, "__self__", None), threading.Thread):
        thread_of(function.__self__, handle, daemon)
    else:
        first(begin(function_of(function, (), {}), handle, daemon))
    return handle


def start_new_thread(function, args, kwargs={}, /):
    if not callable(function):
        raise TypeError("first arg must be callable")
    thread = getattr(function, "__self__", None)
    if getattr(function, "__name__", "") == "_bootstrap" and isinstance(thread, threading.Thread):
        held = lock()
        held.acquire()
        thread._tstate_lock = held
        return thread_of(thread, Handle(), thread.daemon, held.release)
    return first(begin(function_of(function, tuple(args), kwargs), Handle(), True))


def finish():
    """Has threads that are no daemons come to their ends."""
    wait(None, lambda: all(g.daemon for g in alive))


def polled(self):  # Event.is_set, by others than threads
    if alive:
        turn(never)
    return self._flag


def install():
    import _threading_local

    lock._wait = staticmethod(wait)
    lock._sleep = staticmethod(sleep)
    for module in (_thread, threading):
        module.get_ident = get_ident
    threading._CRLock = None
    plain_acquire = threading._PyRLock.acquire

    def acquire(self, blocking=True, timeout=-1):
        return bool(plain_acquire(self, blocking, timeout))

    threading._PyRLock.acquire = acquire
    _thread.RLock = threading._PyRLock
    _thread._local = threading.local = _threading_local.local
    _thread.start_new_thread = _thread.start_new = start_new_thread
    if hasattr(_thread, "start_joinable_thread"):
        _thread.start_joinable_thread = threading._start_joinable_thread = start_joinable_thread
        _thread._ThreadHandle = threading._ThreadHandle = Handle
        _thread._shutdown = threading._thread_shutdown = finish
    else:
        threading._start_new_thread = start_new_thread
        plain = threading._shutdown

        def shutdown():
            plain()
            finish()

        threading._shutdown = shutdown
    steps(time.sleep, slept)
    steps(lock.acquire, acquire_lock)
    steps(acquire, acquire_again)
    steps(threading.Semaphore.acquire, acquire_semaphore)
    steps(threading.Condition.wait, condition_wait)
    steps(threading.Condition.wait_for, condition_wait_for)
    steps(threading.Barrier.wait, barrier_wait)
    steps(threading.Event.wait, event_wait)
    for name, generator in {"start": thread_start, "run": thread_run, "join": thread_join, "is_alive": thread_is_alive}.items():
        steps(getattr(threading.Thread, name), generator)
    steps(threading.Timer.run, timer_run)
    steps(polled, event_is_set)
    threading.Event.is_set = threading.Event.isSet = polled


def queues(queue):
    """Says what the waits of module queue are."""
    for name, generator in {"get": queue_get, "put": queue_put, "join": queue_join}.items():
        steps(getattr(queue.Queue, name), generator)
    steps(queue.SimpleQueue.get, simple_get)


install()
