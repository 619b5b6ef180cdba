# What programs of the command line find outside, and WASI has not.
def _program(hook=_hook):
    import errno
    import os
    import sys

    # Programs: the host starts them as processes of the run.

    def host(op, path=None, **more):
        """Asks the host. What it refuses is the OSError that Linux has for it."""
        import json

        fd = os.open("/dev/process", os.O_RDWR)
        try:
            request = json.dumps({"op": op, **more}).encode()
            while request:
                request = request[os.write(fd, request):]
            parts = []
            while part := os.read(fd, 65536):
                parts.append(part)
        finally:
            os.close(fd)
        answer = json.loads(b"".join(parts))
        if "error" in answer:
            number = getattr(errno, answer["error"], errno.EIO)
            raise OSError(number, os.strerror(number), path) if path else OSError(number, os.strerror(number))
        return answer

    def pipe():
        ends = host("pipe")
        return ends["read"], ends["write"]

    def kill(pid, signal, /):
        host("kill", pid=pid, signal=int(signal))

    def status(ended):
        """What waitpid says of it."""
        return ended.get("signal", 0) or (ended.get("exit", 0) & 0xFF) << 8

    def waitpid(pid, options, /):
        ended = host("wait", pid=max(pid, 0), block=not options & 1)
        return ended["pid"], status(ended)

    def exit_code(status, /):
        return -(status & 0x7F) if status & 0x7F else status >> 8

    def system(command):
        import subprocess

        if not os.fsdecode(command).strip():
            return 0
        try:
            code = subprocess.Popen(command, shell=True).wait()
        except OSError:
            print(f"sh: 1: {os.fsdecode(command).split()[0]}: not found", file=sys.stderr)
            return 127 << 8
        return -code if code < 0 else code << 8

    for function in (pipe, kill, waitpid, system):
        if not hasattr(os, function.__name__):
            setattr(os, function.__name__, function)
    if not hasattr(os, "waitstatus_to_exitcode"):
        os.waitstatus_to_exitcode = exit_code
    if not hasattr(os, "WNOHANG"):
        os.WNOHANG = 1
    sys.executable = "/usr/bin/python3"  # as a program of the run

    def programs(subprocess):
        class Popen(subprocess.Popen):
            def _execute_child(
                self, args, executable, preexec_fn, close_fds, pass_fds, cwd, env, startupinfo, creationflags, shell,
                p2cread, p2cwrite, c2pread, c2pwrite, errread, errwrite, *rest,
            ):
                self._child_created = False
                try:
                    if isinstance(args, (str, bytes)) or hasattr(args, "__fspath__"):
                        args = [args]
                    args = [os.fsdecode(a) for a in args]
                    if shell:
                        args = ["/bin/sh", "-c", *args]
                    if executable is not None:
                        args[0] = os.fsdecode(executable)
                    here = os.getcwd()
                    if cwd is not None:
                        here = os.path.join(here, os.fsdecode(cwd))
                        if not os.path.isdir(here):
                            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), cwd)
                    env = os.environ if env is None else env
                    streams = {
                        name: fd for name, fd in (("stdin", p2cread), ("stdout", c2pwrite), ("stderr", errwrite)) if fd != -1
                    }
                    entries = [f"{os.fsdecode(k)}={os.fsdecode(v)}" for k, v in env.items()]
                    self.pid = host("start", args[0], args=args, env=entries, dir=here, **streams)["pid"]
                    self._child_created = True
                finally:
                    devnull = getattr(self, "_devnull", None)
                    for theirs, mine in ((p2cread, p2cwrite), (c2pwrite, c2pread), (errwrite, errread)):
                        if theirs != -1 and mine != -1 and theirs != devnull:
                            os.close(theirs)
                    if devnull is not None:
                        os.close(devnull)
                    self._closed_child_pipe_fds = True

            def _internal_poll(self, *_, **__):
                if self.returncode is None and not self._ended(False):
                    return None
                return self.returncode

            def _ended(self, block):
                """Whether it has ended; it has its exit code then."""
                try:
                    ended = host("wait", pid=self.pid, block=block)
                except ChildProcessError:
                    ended = {"pid": self.pid, "exit": 0}  # as where somebody else has waited for it
                except OSError:
                    return False
                if ended["pid"]:
                    self.returncode = exit_code(status(ended))
                return self.returncode is not None

            def _wait(self, timeout):
                import time

                end, delay = None if timeout is None else time.monotonic() + timeout, 0.0005
                while self.returncode is None and not self._ended(timeout is None):
                    left = end - time.monotonic()
                    if left <= 0:
                        raise subprocess.TimeoutExpired(self.args, timeout)
                    delay = min(delay * 2, left, 0.05)
                    time.sleep(delay)
                return self.returncode

            def send_signal(self, sig):
                if self.poll() is None:
                    kill(self.pid, sig)

            def terminate(self):
                self.send_signal(15)

            def kill(self):
                self.send_signal(9)

        Popen.__qualname__, Popen.__module__ = "Popen", "subprocess"
        subprocess.Popen = Popen
        subprocess._can_fork_exec = True

    for function, value in (("getuid", 1000), ("geteuid", 1000), ("getgid", 1000), ("getegid", 1000), ("getppid", 1)):
        if not hasattr(os, function):
            setattr(os, function, lambda *_, value=value: value)

    # Help of argparse, as it was up to Python 3.12, which most machines have, and what is
    # written about programs shows: each option with its value, and lines of usage that
    # break between an option and its value.

    def classic(argparse):
        formatter = argparse.HelpFormatter
        if sys.version_info < (3, 13) or not hasattr(formatter, "_get_actions_usage_parts"):
            return
        import re

        parts = formatter._get_actions_usage_parts
        word = re.compile(r"\(.*?\)+(?=\s|$)|\[.*?\]+(?=\s|$)|\S+")

        def usage_parts(self, actions, groups):
            whole, positionals = parts(self, actions, groups)
            options = word.findall(" ".join(whole[:positionals]))
            return options + word.findall(" ".join(whole[positionals:])), len(options)

        def invocation(self, action):
            if not action.option_strings:
                return self._metavar_formatter(action, self._get_default_metavar_for_positional(action))(1)[0]
            if action.nargs == 0:
                return ", ".join(action.option_strings)
            value = self._format_args(action, self._get_default_metavar_for_optional(action))
            return ", ".join(f"{option} {value}" for option in action.option_strings)

        formatter._get_actions_usage_parts = usage_parts
        formatter._format_action_invocation = invocation

    hook({"argparse": classic, "subprocess": programs})
