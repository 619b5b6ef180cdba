# Threads, which go on one after another (lib/threads.py), and pools of them (lib/pools.py).
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

    lib = "/openskill/lib/"
    hook(
        {"threading": threads, "queue": queues, "concurrent.futures.thread": pool},
        {f"_openskill_{n}": f"{lib}{n}.py" for n in ("threads", "generators", "pools")},
    )


_threads()
del _threads
