"""Pools of threads, whose threads module _openskill_threads runs."""

import collections
import itertools
import sys
import threading

import _openskill_threads as threads

numbers = itertools.count()


def executors(module):
    """Gives concurrent.futures.thread its pool."""
    base = module._base

    class ThreadPoolExecutor(base.Executor):
        __doc__ = module.ThreadPoolExecutor.__doc__

        def __init__(self, max_workers=None, thread_name_prefix="", initializer=None, initargs=()):
            if max_workers is None:
                max_workers = 5
            if max_workers <= 0:
                raise ValueError("max_workers must be greater than 0")
            if initializer is not None and not callable(initializer):
                raise TypeError("initializer must be a callable")
            self._max_workers = max_workers
            self._prefix = thread_name_prefix or f"ThreadPoolExecutor-{next(numbers)}"
            self._initializer, self._initargs = initializer, initargs
            self._work, self._threads, self._idle = collections.deque(), [], 0
            self._shutdown, self._broken = False, None

        def submit(self, fn, /, *args, **kwargs):
            if self._broken:
                raise module.BrokenThreadPool(self._broken)
            if self._shutdown:
                raise RuntimeError("cannot schedule new futures after shutdown")
            if module._shutdown:
                raise RuntimeError("cannot schedule new futures after interpreter shutdown")
            future = base.Future()
            self._work.append((future, fn, args, kwargs))
            if len(self._work) > self._idle and len(self._threads) < self._max_workers:
                thread = threading.Thread(name=f"{self._prefix}_{len(self._threads)}", target=work, args=(self,))
                self._threads.append(thread)
                thread.start()
            return future

        def shutdown(self, wait=True, *, cancel_futures=False):
            self._shutdown = True
            if cancel_futures:
                while self._work:
                    self._work.popleft()[0].cancel()
            if wait:
                for thread in self._threads:
                    thread.join()

    def work(pool):
        """A thread of a pool."""
        if pool._initializer is not None:
            try:
                yield from threads.call(pool._initializer, pool._initargs)
            except BaseException:
                base.LOGGER.critical("Exception in initializer:", exc_info=True)
                pool._broken = "A thread initializer failed, the thread pool is not usable anymore"
                while pool._work:
                    pool._work.popleft()[0].set_exception(module.BrokenThreadPool(pool._broken))
                return
        while True:
            if not pool._work:
                pool._idle += 1
                yield from threads.pause(lambda: pool._work or pool._shutdown or module._shutdown)
                pool._idle -= 1
                if not pool._work:
                    return
            future, function, args, kwargs = pool._work.popleft()
            if not future.set_running_or_notify_cancel():
                continue
            try:
                result = yield from threads.call(function, args, kwargs)
            except BaseException as error:
                future.set_exception(threads.trimmed(error))
            else:
                future.set_result(result)
                del result
            del future, function, args, kwargs

    threads.steps(work, work)
    ThreadPoolExecutor.__module__, ThreadPoolExecutor.__qualname__ = "concurrent.futures.thread", "ThreadPoolExecutor"
    module.ThreadPoolExecutor = ThreadPoolExecutor
    ends = {base.CANCELLED, base.CANCELLED_AND_NOTIFIED, base.FINISHED}

    def result(self, timeout=None):
        yield from threads.pause(lambda: self._state in ends, timeout)
        return self.result(0)

    def exception(self, timeout=None):
        yield from threads.pause(lambda: self._state in ends, timeout)
        return self.exception(0)

    def done(self):
        yield None, None
        return self._state in ends

    def polled(self):
        if threads.alive:
            threads.turn(threads.never)
        return self._state in ends

    threads.steps(base.Future.result, result)
    threads.steps(base.Future.exception, exception)
    threads.steps(polled, done)
    base.Future.done = polled
