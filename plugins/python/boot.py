# Runs a script as the interpreter itself would, but for what an image asks for: the
# heap is grown, start-up's objects are kept out of the garbage collector, and what
# was drawn at random is drawn anew, around the first read of standard input, since
# everything before that read is the same in all runs.
def _boot(main):
    import atexit
    import gc
    import io
    import os
    import sys

    os.environ.pop("PYTHONTZPATH", None)  # said to the runtime, not to the script
    # Memory that is there before the image is made need not be asked for by runs.
    heap = int(os.environ.pop("OPENSKILL_HEAP", "0"))
    if heap:
        try:
            bytes(heap)
        except MemoryError:
            pass

    class Input(io.FileIO):
        def readinto(self, buffer):
            with first:
                return super().readinto(buffer)

        def readall(self):
            with first:
                return super().readall()

    class First:
        def __enter__(self):
            if Input.readinto is not io.FileIO.readinto:
                gc.collect()  # what is frozen is never collected
                gc.freeze()

        def __exit__(self, *_):
            if Input.readinto is io.FileIO.readinto:
                return
            # Later reads do not come by here.
            Input.readinto, Input.readall = io.FileIO.readinto, io.FileIO.readall
            modules = sys.modules
            if "random" in modules:
                modules["random"].seed()
            if "tempfile" in modules:
                modules["tempfile"]._name_sequence = None
            if "numpy.random" in modules:
                modules["numpy.random"].seed()

    first = First()
    old = sys.stdin
    raw = Input(0, "rb", closefd=False)
    raw.name = "<stdin>"
    sys.stdin = sys.__stdin__ = io.TextIOWrapper(
        io.BufferedReader(raw), encoding=old.encoding, errors=old.errors, line_buffering=False
    )
    sys.stdin.mode = "r"

    del sys.argv[0]
    path = sys.argv[0]
    folder = os.path.dirname(path)
    if sys.path and sys.path[0] == os.path.dirname(__file__):
        sys.path[0] = folder
    else:
        sys.path.insert(0, folder)
    for name in set(main) - {"__name__", "__builtins__", "__doc__", "__package__", "__loader__", "__spec__"}:
        del main[name]
    main["__file__"] = path
    main["__cached__"] = None
    status = 0
    try:
        with io.open_code(path) as f:
            source = f.read()
        code = compile(source, path, "exec", dont_inherit=True)
        del source
        exec(code, main)
    except SystemExit as end:
        status = end.code
        if status is None:
            status = 0
        elif not isinstance(status, int):
            print(status, file=sys.stderr)
            status = 1
    except BaseException as error:
        status = 1
        trace = error.__traceback__.tb_next  # without this file
        sys.excepthook(type(error), error.with_traceback(trace), trace)
        del error, trace
    # What the interpreter does at its end, but for taking itself apart: that takes
    # longer than most runs, and the image is put back anyway.
    try:
        atexit._run_exitfuncs()
    except BaseException:
        pass  # the functions that failed have said so
    main.clear()  # files that nobody closed are written
    for stream in (sys.stdout, sys.stderr):
        try:
            if stream is not None:
                stream.flush()
        except BaseException:
            status = status or 120
    os._exit((status + (1 << 31)) % (1 << 32) - (1 << 31))


_boot(globals())
