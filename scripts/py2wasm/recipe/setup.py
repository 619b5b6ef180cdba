"""setup.py TOOLCHAIN: makes a folder able to compile Python to WebAssembly.

Called by setup.sh, with Python 3.11. In the folder lie then

    venv    py2wasm, patched, and zig, in an environment of their own
    sdk     what py2wasm takes for wasi-sdk
    cache   of zig; it outlives a new setup
    ready   the digest of all that made it; written last
    log     what the last tool printed
    lock    held while the folder is changed or used
"""

import fcntl
import hashlib
import os
import pathlib
import shutil
import subprocess
import sys

import patches

HERE = pathlib.Path(__file__).resolve().parent
RECIPE = (
    "setup.py", "patches.py", "build.py", "clang.sh", "dl.c", "requirements-build.txt", "requirements.txt",
)
MISSING = 3  # the exit code for what cannot be had on this machine


class Failure(Exception):
    """What went wrong, in one line, and the exit code for it."""

    def __init__(self, message, code=1):
        super().__init__(message)
        self.code = code


def say(text):
    print("py2wasm: " + text, file=sys.stderr, flush=True)


def wanted():
    """The digest of the recipe and of the Python that runs it: another micro version
    compiles the library to other bytecode.
    """
    digest = hashlib.sha256(sys.version.encode())
    for name in RECIPE:
        digest.update(b"%s\0%s\0" % (name.encode(), hashlib.sha256((HERE / name).read_bytes()).digest()))
    return digest.hexdigest()


def locked(folder):
    """The folder's lock, held until the file that this gives is closed."""
    lock = open(folder / "lock", "w")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        say("another one uses the toolchain; waiting for it")
        fcntl.flock(lock, fcntl.LOCK_EX)
    return lock


def run(folder, command, **env):
    """Run a tool with its output in the log. Gives whether it succeeded, and the log."""
    log = folder / "log"
    with open(log, "wb") as out:
        done = subprocess.run(
            [str(word) for word in command], stdin=subprocess.DEVNULL, stdout=out, stderr=out, env={**os.environ, **env}
        )
    return done.returncode == 0, log.read_text(errors="replace")


def last(text):
    """The last line of a log that says something."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1][:200] if lines else "it said nothing"


def install(folder, python, requirements):
    """Install pinned packages. What pip has fetched it keeps, for the next try."""
    env = {"PYTHONDONTWRITEBYTECODE": "1"}
    if not os.environ.get("HOME"):
        env["HOME"] = str(folder)
    ok, log = run(
        folder,
        [python, "-m", "pip", "install", "--quiet", "--no-input", "--disable-pip-version-check", "--no-compile",
         "--no-deps", "--require-hashes", "--no-build-isolation", "-r", HERE / requirements],
        **env,
    )
    if ok:
        return
    if "DO NOT MATCH THE HASHES" in log:
        raise Failure("a package is not the one in %s; nothing was installed" % requirements)
    errors = [line.strip() for line in log.splitlines() if line.startswith("ERROR:")]
    raise Failure("pip could not fetch or build %s (no network?): %s" % (requirements, last("\n".join(errors) or log)), MISSING)


def make(folder):
    """Everything from nothing. A folder that is half made is thrown away, but for
    what pip keeps: it cannot be told how far a patch or an installation came.
    """
    for name in ("venv", "sdk"):
        shutil.rmtree(folder / name, ignore_errors=True)

    say("an environment with Python %s" % sys.version.split()[0])
    ok, log = run(folder, [sys.executable, "-m", "venv", folder / "venv"])
    if not ok:
        raise Failure("Python's venv does not work (Debian has it in python3.11-venv): " + last(log), MISSING)
    python = folder / "venv" / "bin" / "python"

    say("fetching py2wasm and zig, 170 MB; with its installation a minute or two")
    install(folder, python, "requirements-build.txt")
    install(folder, python, "requirements.txt")

    ok, packages = run(folder, [python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"])
    packages = pathlib.Path(packages.strip())
    say("patching py2wasm")
    patches.apply(packages / "nuitka")

    sdk = folder / "sdk"
    (sdk / "bin").mkdir(parents=True)
    (sdk / "zig").symlink_to(os.path.relpath(packages / "ziglang", sdk))
    clang = sdk / "bin" / "clang"
    shutil.copyfile(HERE / "clang.sh", clang)
    clang.chmod(0o755)
    ok, log = run(folder, [clang, "--target=wasm32-wasi", "-O2", "-c", HERE / "dl.c", "-o", sdk / "dl.o"])
    if not ok:
        raise Failure("zig does not compile C: " + last(log), MISSING)


def main():
    folder = pathlib.Path(sys.argv[1]).absolute()
    folder.mkdir(parents=True, exist_ok=True)
    ready, digest = folder / "ready", wanted()
    try:
        with locked(folder):
            if ready.is_file() and ready.read_text() == digest:
                return 0
            say("setting up the toolchain, once")
            ready.unlink(missing_ok=True)
            make(folder)
            new = folder / "ready.new"
            new.write_text(digest)
            new.replace(ready)
            say("the toolchain is ready")
    except patches.Mismatch as mismatch:
        say("a patch does not fit: %s" % mismatch)
        return 1
    except Failure as failure:
        say(str(failure))
        return failure.code
    return 0


if __name__ == "__main__":
    sys.exit(main())
