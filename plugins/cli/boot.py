# The first thing that the interpreter runs; see doc.go. Arguments: the settings
# below, the working directory, the script, then the arguments of the script.
def boot():
    import _signal
    import os
    import resource
    import sys

    # mode says who ends what the script leaves behind: 0 the kernel, because
    # this process is init of a PID namespace; 1 the host, while this process
    # takes in orphans; 2 the host, by the process group.
    mode, readonly, landlock, program, address, data, cpu, file, files, processes = map(int, sys.argv[1].split(","))
    cwd, script = sys.argv[2:4]
    args = sys.argv[3:]
    # Descriptors from the host. The exit codes of 100 and more are for its logs.
    report, ruleset = 3, 4

    libc = None
    if mode == 1 or readonly or landlock:
        import ctypes

        libc = ctypes.CDLL(None, use_errno=True)
    if mode == 1 and libc.prctl(36, 1, 0, 0, 0) != 0:  # PR_SET_CHILD_SUBREAPER
        os._exit(101)
    if readonly:
        # In the mount namespace of this run: all private, all read-only, but for
        # ./work. mount_setattr takes what to set, to clear, and the propagation.
        class Attr(ctypes.Structure):
            _fields_ = [(name, ctypes.c_uint64) for name in ("set", "clear", "propagation", "userns")]

        def setattr_(path, flags, attr):
            if libc.syscall(442, -100, path, flags, ctypes.byref(attr), ctypes.sizeof(attr)) != 0:
                os._exit(105)

        work = os.fsencode(os.path.join(cwd, "work"))
        private, rdonly, recursive = 1 << 18, 1, 0x8000
        setattr_(b"/", recursive, Attr(0, 0, private, 0))
        if os.path.isdir(work) and libc.mount(work, work, None, 4096, None) != 0:  # MS_BIND
            os._exit(106)
        setattr_(b"/", recursive, Attr(rdonly, 0, 0, 0))
        if os.path.isdir(work):
            setattr_(work, 0, Attr(0, rdonly, 0, 0))
    if landlock:
        # PR_SET_NO_NEW_PRIVS, landlock_restrict_self
        if libc.prctl(38, 1, 0, 0, 0) != 0 or libc.syscall(446, ruleset, 0) != 0:
            os._exit(102)
    # Not only what this package gave: a host may itself have been started with
    # descriptors that its children inherit.
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    os.closerange(ruleset, most if 0 <= most < 1 << 16 else 1 << 16)

    if readonly:
        # The capabilities that mounting took, and all that a root would have.
        for capability in range(64):
            libc.prctl(24, capability, 0, 0, 0)  # PR_CAPBSET_DROP
        header = (ctypes.c_uint32 * 2)(0x20080522, 0)  # version 3, this process
        if libc.prctl(47, 4, 0, 0, 0) != 0 or libc.capset(header, (ctypes.c_uint32 * 6)()) != 0:
            os._exit(107)

    os.chdir(cwd)
    # Signals that the script sends to its parent must not end the supervisor.
    every = _signal.valid_signals()
    before = _signal.pthread_sigmask(_signal.SIG_BLOCK, every)
    supervisor = os.getpid()
    pid = os.fork()
    if pid:
        for fd in (0, 1, 2):
            os.close(fd)
        told = False
        while True:
            try:
                gone, status, usage = os.wait4(-1, 0)
            except ChildProcessError:
                os._exit(0)
            if gone == pid and not told:
                told = True
                # ru_maxrss is in KiB, but in bytes on macOS.
                unit = 1 if sys.platform == "darwin" else 1024
                os.write(report, b"%d %d\n" % (status, usage.ru_maxrss * unit))
                os.close(report)
                if mode == 0:
                    os._exit(0)
                while mode == 2:  # until the host kills the group
                    _signal.pause()

    os.close(report)
    if mode != 2:
        os.setsid()
    if mode == 1:
        libc.prctl(1, 9, 0, 0, 0)  # PR_SET_PDEATHSIG, SIGKILL
        if os.getppid() != supervisor:
            os._exit(103)
    _signal.pthread_sigmask(_signal.SIG_SETMASK, before)
    for what, value in (
        ("RLIMIT_CORE", 0),
        ("RLIMIT_CPU", cpu),
        ("RLIMIT_FSIZE", file),
        ("RLIMIT_NOFILE", files),
        ("RLIMIT_NPROC", processes),
        ("RLIMIT_AS", address),
        ("RLIMIT_DATA", data),
    ):
        if hasattr(resource, what) and (value or what not in ("RLIMIT_NPROC", "RLIMIT_DATA")):
            which = getattr(resource, what)
            hard = resource.getrlimit(which)[1]
            if hard != resource.RLIM_INFINITY and value > hard:
                value = hard
            try:
                resource.setrlimit(which, (value, value))
            except (ValueError, OSError):
                if sys.platform == "linux":
                    os._exit(104)

    granted = os.environ.get("OPENSKILL_ENV", "").split(",")
    for name in set(os.environ) - set(granted):
        del os.environ[name]
    if program:  # an executable file, which takes the place of the interpreter
        try:
            os.execv(script, args)
        except OSError as e:
            os.write(2, b"the entry cannot be executed: %s\n" % os.fsencode(e.strerror))
            os._exit(126)

    # From here on as if the interpreter had been started with the script.
    sys.argv[:] = args
    sys.path.insert(0, os.path.dirname(script))

    def hook(kind, value, trace):
        while trace and trace.tb_frame.f_code.co_filename == "<string>":
            trace = trace.tb_next
        sys.__excepthook__(kind, value.with_traceback(trace), trace)

    sys.excepthook = hook
    import io

    with io.open_code(script) as f:
        source = f.read()
    from _frozen_importlib_external import SourceFileLoader

    names = globals()
    del names["boot"]
    names.update(__file__=script, __cached__=None, __loader__=SourceFileLoader("__main__", script))
    return compile(source, script, "exec", dont_inherit=True)


exec(boot())
