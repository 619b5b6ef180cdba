# Threads, which go on one after another (lib/threads.py), pools of them (lib/pools.py), and the
# processes of module multiprocessing, which are threads (lib/multi.py).
def _threads(hook=_hook):
    import _thread
    import time

    def sleep(seconds, /):
        """Waits for this many seconds."""
        _thread.allocate_lock._sleep(seconds)

    time.sleep = sleep

    def threads(module):
        import _openskill_threads

    def queues(module):
        import _openskill_threads

        _openskill_threads.queues(module)

    def pool(module):
        import _openskill_pools

        _openskill_pools.executors(module)

    def multi(change):
        def changed(module):
            import _openskill_multi

            getattr(_openskill_multi, change)(module)

        return changed

    lib = "/openskill/lib/"
    hook(
        {
            "threading": threads, "queue": queues, "concurrent.futures.thread": pool, "concurrent.futures.process": multi("executors"),
            "multiprocessing": multi("install"), "multiprocessing.pool": multi("pools"),
        },
        {f"_openskill_{n}": f"{lib}{n}.py" for n in ("threads", "generators", "pools", "multi")},
    )


_threads()
del _threads
