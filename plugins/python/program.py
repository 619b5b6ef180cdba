# What programs of the command line find outside, and WASI has not.
def _program(hook=_hook):
    import os
    import sys

    # Programs: the host starts them as processes of the run (lib/processes.py).

    def later(name):
        def function(*args, **kwargs):
            import _openskill_processes

            return getattr(_openskill_processes, name)(*args, **kwargs)

        function.__name__ = function.__qualname__ = name
        function.__module__ = "posix"
        return function

    spawns = "spawnl spawnle spawnlp spawnlpe spawnv spawnve spawnvp spawnvpe".split()
    for name in "pipe kill killpg wait waitpid system execv execve posix_spawn posix_spawnp waitstatus_to_exitcode".split() + spawns:
        if not hasattr(os, name):
            setattr(os, name, later(name))
    numbers = dict(
        WNOHANG=1, WUNTRACED=2, P_WAIT=0, P_NOWAIT=1, P_NOWAITO=1, POSIX_SPAWN_OPEN=0, POSIX_SPAWN_CLOSE=1, POSIX_SPAWN_DUP2=2
    )
    for name, number in numbers.items():
        if not hasattr(os, name):
            setattr(os, name, number)
    parts = dict(
        WIFEXITED=lambda status: status & 0x7F == 0, WEXITSTATUS=lambda status: status >> 8 & 0xFF,
        WIFSIGNALED=lambda status: status & 0x7F != 0, WTERMSIG=lambda status: status & 0x7F,
        WIFSTOPPED=lambda status: False, WCOREDUMP=lambda status: False,
    )
    for name, function in parts.items():
        if not hasattr(os, name):
            setattr(os, name, function)
    sys.executable = "/usr/bin/python3"  # as a program of the run

    def programs(module):
        import _openskill_processes

        _openskill_processes.programs(module)

    def loops(module):
        import _openskill_processes

        _openskill_processes.loops(module)

    def missing(name):  # hasattr says what is there
        instead = {"fork": "; the sandbox has no copies of a process: start another one by subprocess", "forkpty": "; use subprocess"}
        raise AttributeError(f"module 'os' has no attribute {name!r}{instead.get(name, '')}", name=name, obj=os)

    os.__getattr__ = missing

    # What scripts print of the machine and the user, and choose by.

    def uname():
        """Names the sandbox as a machine, as the shell does."""
        return os.uname_result(("Linux", "sandbox", "5.15.0-sandbox", "#1 SMP PREEMPT sandbox", "x86_64"))

    def get_terminal_size(fd=1, /):
        import errno

        raise OSError(errno.ENOTTY, os.strerror(errno.ENOTTY))

    pid = None

    def getpid():
        """Gives the number of this process in its run, as who started it has it. The host knows it:
        a start-up that several processes share has none."""
        nonlocal pid
        if pid is None:
            import _openskill_processes

            try:
                pid = _openskill_processes.host("self")["pid"]
            except OSError:
                return 1  # a start-up that processes share, or a run that may start none
        return pid

    for function in (uname, get_terminal_size, getpid):
        function.__module__ = "posix"
        setattr(os, function.__name__, function)

    def user(module):
        plain = module.getuser

        def getuser():
            try:
                return plain()
            except (OSError, ImportError):
                return "skill"

        module.getuser = getuser

    values = dict(
        getuid=1000, geteuid=1000, getgid=1000, getegid=1000, getppid=1, getlogin="skill", getgroups=[1000], setsid=1, getsid=1, getpgrp=1,
        setpgid=None, getloadavg=(0.0, 0.0, 0.0),
    )
    for function, value in values.items():
        if not hasattr(os, function):
            setattr(os, function, lambda *_, value=value: value)
    for function, value in (("getpgid", lambda pid: pid or 1), ("sched_getaffinity", lambda pid: {0})):
        if not hasattr(os, function):
            setattr(os, function, value)

    def machine(platform):
        platform.libc_ver = lambda executable=None, lib="", version="", chunksize=0: ("glibc", "2.36")
        platform._Processor.get = staticmethod(lambda: "")  # which starts a program

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

    hook(
        {"argparse": classic, "asyncio.unix_events": loops, "getpass": user, "platform": machine, "subprocess": programs},
        {
            "_openskill_processes": "/openskill/lib/processes.py", "_openskill_pipes": "/openskill/lib/pipes.py", "fcntl": "/openskill/lib/fcntl.py",
            "grp": "/openskill/lib/grp.py", "pwd": "/openskill/lib/pwd.py",
        },
    )
