# Runs a reactor of WASI preview 1 on wasmtime (PyPI). Standard input: a JSON object
# {module, compiled, root, work, args, env, stdin, stdout, stderr}, all files of the
# host but args and env. root is "/" of the guest, read-only; work is /work. The exit
# status is 0 when the guest has ended by itself.
import json
import os
import sys

import wasmtime

run = json.load(sys.stdin)
config = wasmtime.Config()
config.max_wasm_stack = 2 << 20  # what it allows; 512 KiB by itself
engine = wasmtime.Engine(config)
if not os.path.exists(run["compiled"]):
    data = wasmtime.Module.from_file(engine, run["module"]).serialize()
    with open(run["compiled"] + ".new", "wb") as f:
        f.write(data)
    os.rename(run["compiled"] + ".new", run["compiled"])
module = wasmtime.Module.deserialize_file(engine, run["compiled"])

wasi = wasmtime.WasiConfig()
wasi.argv = run["args"]
wasi.env = [v.split("=", 1) for v in run["env"]]
wasi.preopen_dir(run["root"], "/", False)
wasi.preopen_dir(run["work"], "/work", True)
wasi.stdin_file = run["stdin"]
wasi.stdout_file = run["stdout"]
wasi.stderr_file = run["stderr"]

store = wasmtime.Store(engine)
store.set_wasi(wasi)
linker = wasmtime.Linker(engine)
linker.define_wasi()
instance = linker.instantiate(store, module).exports(store)
try:
    instance["_initialize"](store)
    instance["run"](store)
except wasmtime.ExitTrap as e:
    print("exit", e.code, file=sys.stderr)
except (wasmtime.Trap, wasmtime.WasmtimeError) as e:
    print("trap", str(e).strip().split("\n")[-1], file=sys.stderr)
    sys.exit(1)
