# What programs of the command line find outside, and WASI has not. Where there is no
# such thing here, they meet what they are written to expect where it is missing.
def _program(hook=_hook):
    import errno
    import os
    import sys

    def missing(path):
        return FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)

    def name(args, executable=None):
        """The program that would be started."""
        if executable is not None:
            return os.fspath(executable)
        if isinstance(args, (str, bytes)) or hasattr(args, "__fspath__"):
            return os.fspath(args)
        return os.fspath(next(iter(args)))

    # Programs: none is installed.

    def no_programs(subprocess):
        class Popen(subprocess.Popen):
            def _execute_child(self, args, executable, *rest, **more):
                shell = more.get("shell", rest[7] if len(rest) > 7 else False)
                self._child_created = False
                self._closed_child_pipe_fds = True
                raise missing("/bin/sh" if shell is True and executable is None else name(args, executable))

            def _get_handles(self, stdin, stdout, stderr):
                return (-1,) * 6  # pipes, which there are none of either

        Popen.__qualname__, Popen.__module__ = "Popen", "subprocess"
        subprocess.Popen = Popen
        subprocess._can_fork_exec = True

    def system(command):
        word = os.fsdecode(command).split()
        if word:
            print(f"sh: 1: {word[0]}: not found", file=sys.stderr)
        return 127 << 8

    for function, value in (("getuid", 1000), ("geteuid", 1000), ("getgid", 1000), ("getegid", 1000), ("getppid", 1)):
        if not hasattr(os, function):
            setattr(os, function, lambda *_, value=value: value)
    if not hasattr(os, "system"):
        os.system = system

    # Threads: work that is handed out is done at once.

    def no_threads(module):
        def submit(self, function, /, *args, **kwargs):
            with self._shutdown_lock:
                if self._shutdown:
                    raise RuntimeError("cannot schedule new futures after shutdown")
            if self._initializer is not None and not getattr(self, "_began", False):
                self._began = True
                self._initializer(*self._initargs)
            future = module._base.Future()
            future.set_running_or_notify_cancel()
            try:
                future.set_result(function(*args, **kwargs))
            except BaseException as error:
                future.set_exception(error)
            return future

        start = module.ThreadPoolExecutor.__init__

        def init(self, max_workers=None, thread_name_prefix="", initializer=None, initargs=(), **more):
            start(self, max_workers, thread_name_prefix, initializer, initargs, **more)
            self._initializer, self._initargs = initializer, initargs

        module.ThreadPoolExecutor.__init__ = init
        module.ThreadPoolExecutor.submit = submit

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

    hook({"argparse": classic, "concurrent.futures.thread": no_threads, "subprocess": no_programs})
