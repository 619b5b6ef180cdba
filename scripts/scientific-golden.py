#!/usr/bin/env python3
"""Makes examples/skills/testdata/scientific.json: what the examples that need the
scientific runtime answer, by another engine.

    openskill runtime install scientific
    python3 -m venv /tmp/golden && /tmp/golden/bin/pip install wasmtime==50.0.1
    /tmp/golden/bin/python scripts/scientific-golden.py

runs the cases of that file on wasmtime, with the module and library that the runtime
has, and writes down the data and the SHA-256 of each file that is left in /work. It
takes some minutes and 4 GB. With --native the cases without files run by this Python
with its own pandas (pip install pandas), are compared, and nothing is written.
"""
import hashlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import zipfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
CASES = ROOT / "examples/skills/testdata/scientific.json"
RUNTIME = pathlib.Path(os.environ.get("OPENSKILL_STATE_DIR", ROOT / ".openskill")) / "runtimes/scientific"


def native(case, stdin):
    run = [sys.executable, ROOT / "examples/skills" / case["skill"] / "main.py"]
    out = subprocess.run(run, input=stdin, capture_output=True, cwd=ROOT, check=True)
    return json.loads(out.stdout)


class Wasmtime:
    def __init__(self, top):
        import wasmtime

        self.wasmtime, self.top = wasmtime, top
        config = wasmtime.Config()
        config.wasm_exceptions = True
        self.engine = wasmtime.Engine(config)
        self.module = wasmtime.Module.from_file(self.engine, str(RUNTIME / "python.wasm"))
        # The runtime's library is a zip file that guests see as a folder.
        zipfile.ZipFile(RUNTIME / "stdlib.zip").extractall(top / "usr/local/lib/python315.zip")
        shutil.copytree(ROOT / "data", top / "data")

    def run(self, case, stdin):
        """Gives the data, and the files in /work."""
        for name in ("skill", "work"):
            shutil.rmtree(self.top / name, ignore_errors=True)
        shutil.copytree(ROOT / "examples/skills" / case["skill"], self.top / "skill")
        (self.top / "work").mkdir()
        (self.top.parent / "stdin").write_bytes(stdin)
        wasi = self.wasmtime.WasiConfig()
        wasi.argv = ["/usr/local/bin/python.wasm", "-B", "-s", "-X", "utf8", "/skill/main.py"]
        wasi.env = [("PYTHONTZPATH", ""), ("HOME", "/work"), ("TMPDIR", "/work")]
        wasi.stdin_file = str(self.top.parent / "stdin")
        wasi.stdout_file = str(self.top.parent / "stdout")
        wasi.stderr_file = str(self.top.parent / "stderr")
        wasi.preopen_dir(str(self.top), "/")
        store = self.wasmtime.Store(self.engine)
        store.set_wasi(wasi)
        linker = self.wasmtime.Linker(self.engine)
        linker.define_wasi()
        exports = linker.instantiate(store, self.module).exports(store)
        exports["_initialize"](store)
        try:
            code = exports["run"](store)
        except self.wasmtime.ExitTrap as end:
            code = end.code
        if code != 0:
            sys.exit(f"{case['skill']}: exit code {code}: {(self.top.parent / 'stderr').read_text()}")
        files = {f.name: hashlib.sha256(f.read_bytes()).hexdigest() for f in sorted((self.top / "work").iterdir()) if f.is_file()}
        return json.loads((self.top.parent / "stdout").read_text()), files


def main():
    cases = json.loads(CASES.read_text())
    lines = []
    with tempfile.TemporaryDirectory() as temp:
        wasmtime = None
        for case in cases:
            stdin = json.dumps({"input": case["input"], "skill_id": case["skill"], "trace_id": "t"}).encode()
            if "--native" in sys.argv:
                if case["files"]:
                    continue
                got = native(case, stdin)
                print("same" if got == case["data"] else f"different: {got}, want {case['data']}", case["input"])
                continue
            wasmtime = wasmtime or Wasmtime(pathlib.Path(temp) / "root")
            case["data"], case["files"] = wasmtime.run(case, stdin)
            lines.append("  " + json.dumps(case, ensure_ascii=False))
    if lines:
        CASES.write_text("[\n" + ",\n".join(lines) + "\n]\n")


main()
