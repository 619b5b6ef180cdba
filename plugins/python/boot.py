# Runs a script as the interpreter itself would, but for what an image asks for: the
# heap is grown, and standard input is read by the file that knows its first read.
def _boot(main, program, written, files, first):
    import atexit
    import builtins
    import gc
    import io
    import os
    import sys

    script = os.environ.pop("OPENSKILL_SCRIPT", None)  # a program of the command line: what it imports
    lone = os.environ.pop("OPENSKILL_CODE", None)  # which comes with the call, and may have a value
    session = os.environ.pop("OPENSKILL_SESSION", None)  # whose variables the next call has
    calls = os.environ.pop("OPENSKILL_SKILLS", None)  # it may call skills
    process = os.environ.pop("OPENSKILL_PROCESS", None)  # it asks what it is to run
    os.environ.pop("PYTHONTZPATH", None)  # said to the runtime, not to the script
    # Memory that is there before the image is made need not be asked for by runs.
    heap = int(os.environ.pop("OPENSKILL_HEAP", "0"))
    if heap:
        try:
            bytes(heap)
        except MemoryError:
            pass

    kind = type(sys)
    old = sys.stdin
    raw = io.FileIO(0, "rb", closefd=False)
    raw.name = "<stdin>"
    sys.stdin = sys.__stdin__ = io.TextIOWrapper(
        io.BufferedReader(raw), encoding=old.encoding, errors=old.errors, line_buffering=False
    )
    sys.stdin.mode = "r"

    here = _boot.__code__.co_filename

    def without(trace):
        """A traceback without what stands in this file."""
        kept = last = None
        while trace is not None:
            following = trace.tb_next
            if trace.tb_frame.f_code.co_filename != here:
                if last is None:
                    kept = trace
                elif last.tb_next is not trace:  # setting it takes as long as the rest is deep
                    last.tb_next = trace
                last = trace
            trace = following
        if last is not None and last.tb_next is not None:
            last.tb_next = None
        return kept

    del sys.argv[0]
    path = sys.argv[0] if sys.argv else ""
    folder = os.path.dirname(path)
    if sys.path and sys.path[0] == os.path.dirname(__file__):
        sys.path[0] = folder
    else:
        sys.path.insert(0, folder)
    packages = "/openskill/packages"  # those of the skill go before those of the runtime

    def with_packages():
        if os.path.isdir(packages):
            sys.path.insert(1, packages)

    # Compiled files in a skill's folder may do other things than its sources, which are what
    # people and checks read. Where a source has no times, importing it looks for none.
    import _frozen_importlib_external as loading

    times = loading.SourceFileLoader.path_stats

    def path_stats(self, source):
        if source.startswith(("/skill/", "/skills/")):
            raise OSError
        return times(self, source)

    loading.SourceFileLoader.path_stats = path_stats

    for name in set(main) - {"__name__", "__builtins__", "__doc__", "__package__", "__loader__", "__spec__"}:
        del main[name]
    main["__file__"] = path
    main["__cached__"] = None

    def told(text):
        try:
            if sys.stderr is not None:  # print would take it for standard output
                print(text, file=sys.stderr)
        except BaseException:
            pass

    def exits(end):
        """The exit code of a SystemExit."""
        if end.code is None or isinstance(end.code, int):
            return end.code or 0
        told(end.code)
        return 1

    def show(error):
        """Prints an exception that nobody caught; gives the exit code."""
        try:
            sys.excepthook(type(error), error, error.__traceback__)
        except SystemExit as end:
            return exits(end)
        except BaseException as second:
            second.__traceback__ = without(second.__traceback__)
            e = second
            while e.__context__ is not error and e.__context__ is not None:
                e = e.__context__
            e.__context__ = None  # it is told by itself
            told("Error in sys.excepthook:")
            sys.__excepthook__(type(second), second, second.__traceback__)
            told("\nOriginal exception was:")
            sys.__excepthook__(type(error), error, error.__traceback__)
        return 1

    def failed(error):
        """Prints an exception of the program without what stands in this file; gives the exit code."""
        if isinstance(error, SystemExit):
            return exits(error)
        shown = {}
        more = [error]
        while more:
            e = more.pop()
            if e is not None and id(e) not in shown:
                shown[id(e)] = e
                e.__traceback__ = without(e.__traceback__)
                more += e.__cause__, e.__context__
        return show(error)

    def load():
        with io.open_code(path) as f:
            return compile(f.read(), path, "exec", dont_inherit=True)

    # Code of a caller: what a notebook shows of a cell is its value.

    def ready():
        """Imports what valued() needs, and does once what takes long the first time."""
        import ast
        import json
        import warnings

        warnings.filterwarnings("ignore", "FigureCanvasAgg is non-interactive")  # what is shown is saved
        json.dumps([1.5, "x", None, {"a": True}], allow_nan=False, ensure_ascii=False, default=str)
        compile(ast.parse("x = 1\nx"), path, "exec")

    def skills():
        """Lets the program import the skills of the host, unless it has a module of that name."""
        from _frozen_importlib_external import spec_from_file_location

        class Finder:
            @staticmethod
            def find_spec(name, path=None, target=None):
                return spec_from_file_location(name, "/openskill/lib/skills.py") if name == "skills" else None

        sys.meta_path.append(Finder)

    def valued():
        """Gives what runs the code, and tells the value of its last expression."""
        import ast
        import json

        with io.open_code(path) as f:
            tree = compile(f.read(), path, "exec", ast.PyCF_ONLY_AST, dont_inherit=True)
        last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
        code = compile(tree, path, "exec", dont_inherit=True)
        if last is not None:
            last = compile(ast.Expression(last.value), path, "eval", dont_inherit=True)

        def plain(value):  # of numpy and pandas
            for name, more in (("tolist", {}), ("isoformat", {}), ("to_dict", {"orient": "records"})):
                if callable(getattr(value, name, None)):
                    return getattr(value, name)(**more)
            if isinstance(value, (set, frozenset)):
                return list(value)
            raise TypeError

        def images():
            return {os.path.join(at, name) for at, _, names in os.walk(".") for name in names if name.endswith((".png", ".jpg", ".svg", ".pdf"))}

        def figures(before):
            """Saves what is plotted, unless the code has saved something."""
            plots = sys.modules.get("matplotlib.pyplot")
            if plots is not None and before == images():
                for number in plots.get_fignums():
                    plots.figure(number).savefig(f"figure-{number}.png")

        def run():
            before = images() if "matplotlib" in sys.modules else set()
            exec(code, main)
            value = None if last is None else eval(last, main)
            figures(before)
            if value is None:
                return
            told = {}
            try:
                told["value"] = value
                text = json.dumps(told, allow_nan=False, ensure_ascii=False, default=plain)
            except Exception:
                text = json.dumps({"repr": repr(value)}, ensure_ascii=False)
            try:
                with open("/tmp/.value", "w", encoding="utf-8", errors="replace") as f:
                    f.write(text)
            except OSError:
                os.remove("/tmp/.value")
                raise OverflowError("the value of the last expression is too large; print part of it, or write it to a file") from None

        return run

    def cell():
        """Runs the code of a call of a session; gives the exit code."""
        for finder in list(sys.path_importer_cache.values()):
            if hasattr(finder, "invalidate_caches"):  # the files are those of this call
                finder.invalidate_caches()
        status = 0
        try:
            valued()()
        except BaseException as error:
            status = failed(error)
        sys.settrace(None)  # it would be told of the loop below
        sys.setprofile(None)
        for stream in [sys.stdout, sys.stderr] + files():  # files are closed with the call
            try:
                if not stream.closed and stream.writable():
                    stream.flush()
            except BaseException:
                pass
        return status

    def serve():
        """Runs one call of a session after the other. The host takes it for the end of a call when this
        loop reads as it did the first time. The interpreter changes how it runs a loop in its first
        rounds, so those read nothing."""
        own = type(raw).__mro__[1]
        head = bytearray(8)  # what is said of the arguments, of which there are none
        nothing = own("/dev/null", "rb")
        ask, rounds = own.readinto.__get__(nothing, own), 64
        waiting = True
        while True:
            if ask(head) == 0:
                rounds -= 1
                if rounds > 0:
                    continue
                if not waiting:
                    return  # the host does not see that it is the same place
                first.__enter__()
                ask = own.readinto.__get__(raw, own)
                continue
            if waiting:
                waiting = False
                first.__exit__(None, None, None)
            rounds = 64
            status = cell()
            if status:
                with open("/tmp/.status", "w") as f:
                    f.write(str(status))

    def ahead(imports):
        """Does what a program does before anything depends on its arguments."""
        odd = {"", "__main__", "antigravity", "idlelib", "test", "this", "tkinter", "turtle"}
        for name in imports:
            top = name.partition(".")[0]
            here = os.path.join(folder, top)  # of its own, which may do anything
            if top in odd or "__main__" in name or os.path.exists(here) or os.path.exists(here + ".py"):
                continue
            parent, _, last = name.rpartition(".")
            try:  # what is taken from a module may be one
                if not parent or __import__(parent) and not hasattr(sys.modules[parent], last):
                    __import__(name)
            except BaseException:
                pass  # it is told where the program imports it
        streams = sys.stdout, sys.stderr
        sys.stdout, sys.stderr = io.StringIO(), io.StringIO()
        for rehearsal in (errors, options, dates):
            try:
                rehearsal()
            except BaseException:
                pass  # it was only a rehearsal
        sys.stdout, sys.stderr = streams

    # The library imports and prepares much where it is first used, such as a tenth of a
    # second's work where a program ends with a traceback, or prints its help.

    def errors():
        import linecache

        name = "<rehearsal>"
        linecache.cache[name] = 6, None, ["1 / 0\n"], name
        try:
            exec(compile("1 / 0\n", name, "exec"), {})
        except ZeroDivisionError as error:
            sys.__excepthook__(type(error), error, error.__traceback__.tb_next)
        linecache.cache.pop(name, None)

    def options():
        argparse = sys.modules.get("argparse")
        if argparse is None:
            return
        parser = argparse.ArgumentParser(prog="x", description="x", epilog="x")
        parser.add_argument("-a", "--all", type=int, default=1, choices=[1, 2], help="%(default)s")
        parser.add_argument("-b", action="store_true")
        parser.add_argument("rest", nargs="*")
        commands = argparse.ArgumentParser(prog="x")
        commands.add_subparsers(dest="command").add_parser("do", help="x")
        commands.parse_args(["do"])
        commands.format_help()
        parser.parse_args(["-a", "1", "x", "--all=2"])
        for wrong in (["--help"], ["--no"], ["-a", "3"], ["-a", "x"]):
            try:
                parser.parse_args(wrong)
            except SystemExit:
                pass

    def dates():
        if "datetime" in sys.modules or "time" in (script or "").split(","):
            import _strptime

            _strptime._strptime("2000-01-01 00:00:00", "%Y-%m-%d %H:%M:%S")

    def arguments():
        """Reads them from before the program's standard input."""
        def exactly(size):
            parts = []
            while size > 0:
                part = os.read(0, size)
                if not part:
                    raise EOFError
                size -= len(part)
                parts.append(part)
            return b"".join(parts)

        return [os.fsdecode(a) for a in exactly(int(exactly(8), 16)).split(b"\0")[:-1]]

    # Processes that others of their run start: each asks what it was started with.

    common = (
        "argparse base64 collections csv datetime functools glob hashlib itertools json math pathlib random re"
        " shutil string subprocess tempfile textwrap time typing urllib.parse"
    )

    def started():
        """Asks for the arguments, and becomes what they say. Gives what is to run."""
        import json

        with io.FileIO(os.open("/dev/process", os.O_RDWR), "r+") as host:
            with first:
                host.write(b'{"op":"self"}')
                told = json.loads(host.readall())
        os.environ.clear()
        os.environ.update(entry.partition("=")[::2] for entry in told["env"])
        os.chdir(told["dir"] or "/")
        with_packages()
        sys.path[1:1] = [folder for folder in os.environ.get("PYTHONPATH", "").split(":") if folder]
        return told["args"]

    def interpreter(args):
        """Does what python3 does with its command line. Gives the code, or what runs it."""
        nonlocal path
        while args and args[0].startswith("-") and args[0] != "-":
            option = args.pop(0)
            if option in ("--version", "-V", "-VV"):
                print("Python " + (sys.version if option == "-VV" else sys.version.split()[0]))
                raise SystemExit(0)
            if option.startswith("--"):
                if option != "--":
                    continue
                break
            letters = option[1:]
            while letters:
                letter, letters = letters[0], letters[1:]
                if letter not in "cmWX":
                    continue
                value = letters or (args.pop(0) if args else None)
                if value is None:
                    told(f"Argument expected for the -{letter} option")
                    raise SystemExit(2)
                if letter == "c":
                    sys.argv[:], sys.path[0] = ["-c"] + args, ""
                    builtins.__openskill_source__ = value  # for its threads
                    return compile(value, "<string>", "exec", dont_inherit=True)
                if letter == "m":
                    import runpy

                    sys.argv[:], sys.path[0] = ["-m"] + args, os.getcwd()
                    return lambda: runpy._run_module_as_main(value)
                break
        del main["__file__"]
        if not args or args[0] == "-":
            sys.argv[:], sys.path[0] = args or [""], ""
            return compile(sys.stdin.buffer.read(), "<stdin>", "exec", dont_inherit=True)
        sys.argv[:] = args
        path = main["__file__"] = args[0]
        if os.path.isdir(path) or path.endswith((".zip", ".pyz")):
            import runpy

            return lambda: runpy.run_path(path, run_name="__main__")
        sys.path[0] = os.path.dirname(os.path.abspath(path))
        try:
            return load()
        except OSError as error:
            told(f"python3: can't open file {os.path.abspath(path)!r}: [Errno {error.errno}] {error.strerror}")
            raise SystemExit(2) from None

    streams = sys.stdout, sys.stderr
    status = 0
    known = set()  # modules that are no program's own
    try:
        if process is not None:
            program()
            ahead(common.split())
            written = lambda: True
            name, *given = started()
            if os.path.basename(name) == "skill":
                from importlib.util import module_from_spec, spec_from_file_location

                spec = spec_from_file_location("skills", "/openskill/lib/skills.py")
                command = module_from_spec(spec)
                spec.loader.exec_module(command)
                code = lambda: command._main(given)
            else:
                code = interpreter(given)
        elif script is None:
            with_packages()
            if calls:
                skills()
            code = load()
        else:
            program()
            os.chdir(os.environ["PWD"])
            with_packages()
            ahead(script.split(",") + (common.split() if lone else []))
            known.update(sys.modules)
            if lone:
                ready()
                skills()
            else:
                try:
                    code = load()
                except Exception as error:
                    code = error
            sys.argv = [path.removeprefix(os.environ["PWD"] + "/")]
            if session:
                written = lambda: True
                serve()
                raise SystemExit(0)
            sys.argv += arguments()
            written = lambda: True  # it may be, anywhere
            if lone:
                code = valued()
            elif isinstance(code, Exception):
                raise code
        if callable(code):
            code()
        else:
            exec(code, main)
    except BaseException as error:
        status = failed(error)
    # What the interpreter does at its end, but for taking itself apart: that takes
    # longer than most runs, and the image is put back anyway.
    try:
        if "threading" in sys.modules:
            sys.modules["threading"]._shutdown()
    except BaseException as error:
        error.__traceback__ = None
        told("Exception ignored on threading shutdown:")
        status = show(error)
    try:
        atexit._run_exitfuncs()
    except BaseException:
        pass  # the functions that failed have said so
    main.clear()  # files that nobody closed are written

    for stream in (sys.stdout, sys.stderr):
        try:
            if stream is not None and not stream.closed:
                stream.flush()
        except BaseException:
            status = status or 120
    for stream in streams:  # which the script may have put others in the place of
        try:
            stream.flush()
        except BaseException:
            pass
    if written():  # maybe to files that modules of the script hold, or circles
        file = None
        for module in [sys.modules[name] for name in sys.modules.keys() - known]:
            # As it stands there: what looks like a module may be anything, and one that was
            # cleared still has a function that is asked for names.
            names = object.__getattribute__(module, "__dict__") if isinstance(module, kind) else {}
            file = dict.get(names, "__file__")
            if isinstance(file, str) and file.startswith(("/skill/", "/skills/", "/work/")):
                names.clear()
        # A circle that is collected may lose what its files have not written: those are
        # closed before, each file before the one that it writes to.
        files = files()
        files.sort(key=lambda o: 1 if type(o) is io.TextIOWrapper else 2 if type(o).__module__ == "_io" else 0)
        for file in files:
            try:
                file.close()
            except BaseException:
                pass
        del file, files
        gc.collect()
    os._exit((status + (1 << 31)) % (1 << 32) - (1 << 31))


_boot(globals(), _program, *_files)
