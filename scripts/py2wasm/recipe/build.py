"""build.py TOOLCHAIN SCRIPT.py OUT.wasm: compiles a Python script to a WASI command.

Run by the Python of the toolchain's environment. What Nuitka prints goes to a log;
of a build that fails, its end is shown. Modules that lie beside the script and are
imported by it are compiled with it.
"""

import os
import pathlib
import shutil
import subprocess
import sys

from setup import last, locked, say


def main():
    toolchain, script, out = (pathlib.Path(word).absolute() for word in sys.argv[1:])
    # One build at a time: each takes up to 1 GB, and the folder has one name, because
    # names of folders get into the module.
    with locked(toolchain):
        work = toolchain / "work"
        shutil.rmtree(work, ignore_errors=True)
        work.mkdir()
        say("compiling %s; the first time takes some minutes, later ones half a minute" % script.name)
        env = {
            **os.environ,
            "CC": str(toolchain / "sdk" / "bin" / "clang"),
            "PYTHONHASHSEED": "0",
            "PYTHONDONTWRITEBYTECODE": "1",
            # Nuitka keeps a cache below it.
            "HOME": str(toolchain),
        }
        for name in ("CFLAGS", "CPPFLAGS", "CXXFLAGS", "LDFLAGS", "CCFLAGS", "PYTHONPATH", "PYTHONHOME"):
            env.pop(name, None)
        with open(toolchain / "log", "wb") as log:
            done = subprocess.run(
                [sys.executable, "-m", "nuitka", "--standalone", "--static-libpython=yes", "--disable-ccache",
                 "--lto=yes", "--remove-output", "--user-plugin=" + str(pathlib.Path(__file__).with_name("plugin.py")),
                 "--output-dir=" + str(work), "--output-filename=out.wasm", str(script)],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=env, cwd=work,
            )
        made = work / (script.stem + ".dist") / "out.wasm"
        if done.returncode != 0 or not made.is_file():
            text = (toolchain / "log").read_text(errors="replace")
            for line in text.splitlines()[-8:]:
                say(line[:300])
            say("%s was not built: %s" % (script.name, last(text)))
            return 1
        shutil.copyfile(made, out)
        shutil.rmtree(work, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
