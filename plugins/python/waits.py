# Waits, of which the interpreter's own trap or spin where there is one thread: with a timeout
# they sleep and time out, and without one they are an error. Module _openskill_threads has
# other threads go on meanwhile.
def _waits():
    import _queue
    import _thread
    import sys
    import time

    sleep, error = time.sleep, RuntimeError
    free = _thread.allocate_lock()  # nobody holds it: it only looks at arguments

    def wait(timeout, ready):
        if timeout is None or timeout == -1:
            raise error("this wait cannot end: no other thread can go on to end it; give it a timeout")
        sleep(timeout)

    class lock:
        """A lock object is a synchronization primitive, here of one thread."""

        __slots__ = ("_held", "__weakref__")

        _wait, _sleep = staticmethod(wait), staticmethod(sleep)

        def __init__(self):
            self._held = False

        def acquire(self, blocking=True, timeout=-1):
            if blocking is not True or timeout != -1:
                free.acquire(blocking, timeout)
                free.release()
            if self._held and blocking:
                self._wait(timeout, self._free)
            if self._held:
                return False
            self._held = True
            return True

        def _free(self):
            return not self._held

        def release(self):
            if not self._held:
                raise error("release unlocked lock")
            self._held = False

        def locked(self):
            return self._held

        def __enter__(self):
            if self._held:
                self._wait(None, self._free)
            self._held = True
            return True

        def __exit__(self, *_):
            self.release()

        def __repr__(self):
            return f"<{'locked' if self._held else 'unlocked'} _thread.lock object at {id(self):#x}>"

        def __reduce__(self):
            raise TypeError("cannot pickle '_thread.lock' object")

        def _at_fork_reinit(self):
            self._held = False

        acquire_lock, release_lock, locked_lock = acquire, release, locked

    class SimpleQueue(_queue.SimpleQueue):
        __doc__ = _queue.SimpleQueue.__doc__

        def get(self, block=True, timeout=None):
            if block and self.empty():
                if timeout is not None and timeout < 0:
                    raise ValueError("'timeout' must be a non-negative number")
                lock._wait(timeout, lambda: not self.empty())
            return super().get(False)

    lock.__qualname__, lock.__module__ = "lock", "_thread"
    SimpleQueue.__qualname__, SimpleQueue.__module__ = "SimpleQueue", "_queue"
    for name in ("lock", "LockType", "allocate_lock", "allocate"):
        if hasattr(_thread, name):
            setattr(_thread, name, lock)
    _queue.SimpleQueue = SimpleQueue
    threading = sys.modules.get("threading")
    if threading is not None:
        threading.Lock = threading._allocate_lock = lock


_waits()
del _waits
