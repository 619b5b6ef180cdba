"""Looks for programs, and starts them by modules os, shutil and subprocess."""

import os
import shutil
import subprocess
import sys

print([bool(shutil.which(name)) for name in ("python3", "sh", "no-such-program")], os.access("/bin/sh", os.X_OK))
print(os.path.isfile(sys.executable), os.path.exists("/usr/bin/no-such-program"))
print(subprocess.check_output([shutil.which("sh"), "-c", "echo by its path"], text=True), end="")
print(subprocess.check_output(["/usr/bin/env", "sh", "-c", "echo by env"], text=True), end="")

quiet = [sys.executable, "-c", "import sys; sys.exit(int(sys.argv[1]))"]
print(os.spawnv(os.P_WAIT, sys.executable, [*quiet, "3"]), os.spawnlp(os.P_WAIT, "sh", "sh", "-c", "exit 4"))
pid = os.spawnvp(os.P_NOWAIT, "sh", ["sh", "-c", "exit 5"])
ended, status = os.waitpid(pid, 0)
print(ended == pid, os.WIFEXITED(status), os.WEXITSTATUS(status))

r, w = os.pipe()
pid = os.posix_spawn(
    sys.executable, [sys.executable, "-c", "print('spawned')"], os.environ, file_actions=[(os.POSIX_SPAWN_DUP2, w, 1)]
)
os.close(w)
with os.fdopen(r) as f:
    print(f.read(), end="")
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))

pid = os.spawnv(os.P_NOWAIT, sys.executable, [sys.executable, "-c", "import time; time.sleep(60)"])
print(os.waitpid(pid, os.WNOHANG))
os.kill(pid, 15)
ended, status = os.waitpid(pid, 0)
print(os.WIFSIGNALED(status), os.WTERMSIG(status))
for wrong in (lambda: os.waitpid(pid, 0), lambda: os.kill(pid, 9), lambda: os.execv("/no/such", ["x"])):
    try:
        wrong()
    except OSError as error:
        print(type(error).__name__)

p = subprocess.Popen(["sh", "-c", "sleep 60"], start_new_session=True)
os.killpg(os.getpgid(p.pid), 9)
print(p.wait())
