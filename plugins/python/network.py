# The network: sockets that carry HTTP (lib/sockets.py), and event loops on them.
def _network():
    def sockets(module):
        import _openskill_sockets

        _openskill_sockets.install(module)

    def selectors(module):
        import _openskill_sockets

        _openskill_sockets.selectors(module)

    # Event loops: nothing outside wakes them but time and responses.

    def loops(module):
        loop = module.BaseSelectorEventLoop
        loop._make_self_pipe = loop._close_self_pipe = lambda self: None

        def wake(self):  # from another thread
            if self._selector is not None:
                self._selector._woken = True

        def remove(self):
            if self.is_running():
                raise RuntimeError("Cannot close a running event loop")
            if not self.is_closed():
                module.base_events.BaseEventLoop.close(self)
                if self._selector is not None:
                    self._selector.close()
                    self._selector = None

        async def shutdown(self, timeout=None):
            self._executor_shutdown_called = True
            if self._default_executor is not None:
                self._default_executor.shutdown()

        loop.close, loop.shutdown_default_executor, loop._write_to_self = remove, shutdown, wake

    lib = "/openskill/lib/"
    _hook(
        {"_socket": sockets, "selectors": selectors, "asyncio.selector_events": loops},
        {"_openskill_sockets": lib + "sockets.py", "ssl": lib + "ssl.py"},
    )


_network()
del _network
