# The first read of standard input, whichever way a script makes it. All that is done
# before it is the same in every run of an image, so what was drawn at random then is
# drawn anew right after it. Until it comes, functions of this file stand before the
# interpreter's own that can read descriptor 0; then those are put back.
def _first():
    import _io
    import _weakref
    import builtins
    import gc
    import io
    import os
    import sys

    waiting = True
    undo = []  # puts back what is in the way, the last first
    redo = []  # puts it in the way again, where a read has failed
    find = []  # is done before the first read
    draw = []  # is done after it

    listdir, get_objects = os.listdir, gc.get_objects
    frozen = []  # files

    def written():
        """Whether any file was: there are none that can be but in /work."""
        try:
            return bool(listdir("/work"))
        except OSError:
            return False

    def files():
        """Open files, and closed ones, that may hold what is still to be written."""
        kinds = _io._IOBase, _io._RawIOBase
        return frozen + [o for o in get_objects() if issubclass(type(o), kinds[0]) and not issubclass(type(o), kinds[1])]

    class First:
        def __enter__(self):
            if not waiting:
                return
            for function in find:
                function()
            if written():
                frozen[:] = files()
            # Before the read, so that it is done once and not in each run.
            for function in reversed(undo):
                function()
            gc.collect()  # what is frozen is never collected
            gc.freeze()

        def __exit__(self, error, *_):
            nonlocal waiting
            if not waiting:
                return
            if error is not None:  # what fails has not come to the descriptor
                for function in redo:
                    function()
                return
            waiting = False
            for function in draw:
                function()

    first = First()

    def like(old, new):
        new.__name__, new.__qualname__, new.__module__ = old.__name__, old.__qualname__, old.__module__
        new.__doc__ = old.__doc__
        return new

    def plain(old, new):
        """A function that is not bound when it is found in a class, as the old is not."""
        return staticmethod(like(old, new))

    def instead(owner, name, new):
        """Has new stand in the place of a name, until the first read."""
        old = getattr(owner, name)
        setattr(owner, name, new)

        def change(one, other):
            if getattr(owner, name, None) is one:  # and not a script's own
                setattr(owner, name, other)

        undo.append(lambda: change(new, old))
        redo.append(lambda: change(old, new))

    # Files.

    class Kind(type):
        # Files by other functions are of the interpreter's own class.
        def __instancecheck__(cls, file):
            return type.__instancecheck__(own if cls is FileIO else cls, file)

        def __subclasscheck__(cls, other):
            return type.__subclasscheck__(own if cls is FileIO else cls, other)

    own = _io.FileIO

    class FileIO(own, metaclass=Kind):
        def read(self, size=-1, /):
            if waiting and not self.closed and self.fileno() == 0:
                with first:
                    return super().read(size)
            return super().read(size)

        def readall(self):
            if waiting and not self.closed and self.fileno() == 0:
                with first:
                    return super().readall()
            return super().readall()

        def readinto(self, buffer, /):
            if waiting and not self.closed and self.fileno() == 0:
                with first:
                    return super().readinto(buffer)
            return super().readinto(buffer)

    any_open = _io.open

    def open(file, mode="r", buffering=-1, encoding=None, errors=None, newline=None, closefd=True, opener=None):
        binary = "b" in mode
        if (
            not isinstance(file, int)
            or file != 0
            or mode not in ("r", "rt", "tr", "rb", "br")
            or buffering == (1 if binary else 0)  # what is odd or wrong is for the one that knows
            or binary and (encoding, errors, newline) != (None, None, None)
        ):
            return any_open(file, mode, buffering, encoding, errors, newline, closefd, opener)
        raw = FileIO(file, "rb", closefd)
        if buffering == 0:
            return raw
        buffer = _io.BufferedReader(raw, buffering) if buffering > 1 else _io.BufferedReader(raw)
        if binary:
            return buffer
        text = _io.TextIOWrapper(buffer, encoding, errors, newline)
        text.mode = mode
        return text

    open = plain(any_open, open)
    for owner in (_io, io, builtins):
        instead(owner, "open", open)
    like(own, FileIO)
    for owner in (_io, io):
        instead(owner, "FileIO", FileIO)

    # Functions of the system.

    def reading(old):
        def read(fd, /, *args):
            if waiting and fd == 0:
                with first:
                    return old(fd, *args)
            return old(fd, *args)

        return plain(old, read)

    for name in ("read", "readv"):
        if hasattr(os, name):
            read = reading(getattr(os, name))
            for owner in (os, sys.modules[os.name]):
                instead(owner, name, read)

    def number(file):
        return file if isinstance(file, int) else file.fileno()

    def watch_select(module):
        old_select, old_poll = module.select, getattr(module, "poll", None)

        def select(rlist, wlist, xlist, timeout=None, /):
            rlist = list(rlist)
            if waiting and any(number(file) == 0 for file in rlist):
                with first:
                    return old_select(rlist, wlist, xlist, timeout)
            return old_select(rlist, wlist, xlist, timeout)

        class Poll:
            __slots__ = ("_poll", "_files")

            def __init__(self):
                self._poll, self._files = old_poll(), set()

            def register(self, fd, *mask):
                self._poll.register(fd, *mask)
                self._files.add(number(fd))

            def modify(self, fd, mask):
                self._poll.modify(fd, mask)

            def unregister(self, fd):
                self._poll.unregister(fd)
                self._files.discard(number(fd))

            def poll(self, timeout=None, /):
                if waiting and 0 in self._files:
                    with first:
                        return self._poll.poll(timeout)
                return self._poll.poll(timeout)

        instead(module, "select", plain(old_select, select))
        if old_poll is not None:
            instead(module, "poll", like(old_poll, Poll))

    # Generators whose seed was drawn and not given: they get another. Those with a
    # seed of the script's own stay as they are.

    def watch_random(module):
        Random, inst = module.Random, module._inst
        old_seed, old_getstate, old_setstate = Random.seed, Random.getstate, Random.setstate
        seeded = {}  # by number, a weak reference
        states = set()  # hashes of what those had, which copies get, and who puts back what was

        def note(generator, drawn):
            key = id(generator)
            if drawn:
                seeded[key] = _weakref.ref(generator, lambda _: seeded.pop(key, None))
            else:
                seeded.pop(key, None)

        def seed(self, a=None, version=2):
            old_seed(self, a, version)
            if waiting:
                note(self, a is None)

        def getstate(self):
            state = old_getstate(self)
            if waiting and id(self) in seeded:
                states.add(hash(state))
            return state

        def setstate(self, state):
            old_setstate(self, state)
            if waiting:
                note(self, hash(tuple(state)) in states)

        def bind():
            for name in ("seed", "getstate", "setstate"):
                bound = getattr(module, name, None)
                if getattr(bound, "__self__", None) is inst:
                    setattr(module, name, getattr(inst, name))

        def reseed():
            for generator in [ref() for ref in seeded.values()]:
                if generator is not None:
                    old_seed(generator)

        undo.append(bind)
        instead(Random, "seed", like(old_seed, seed))
        instead(Random, "getstate", like(old_getstate, getstate))
        instead(Random, "setstate", like(old_setstate, setstate))
        redo.append(bind)
        bind()
        note(inst, True)
        draw.append(reseed)

    entropy = set()  # that numpy drew

    def drawn(bits):
        """Whether a generator of bits has a seed that was drawn; one that was given may be a list."""
        seed = getattr(getattr(bits, "seed_seq", None), "entropy", None)
        return isinstance(seed, int) and seed in entropy

    def watch_numpy(module):
        randbits, urandom = module.randbits, os.urandom
        bits, states, twisters = [], [], []

        def drawing(k):
            n = randbits(k)
            if waiting:
                entropy.add(n)
            return n

        def collect():
            bits.clear()
            states.clear()
            State = getattr(sys.modules.get("numpy.random.mtrand"), "RandomState", ())
            for o in gc.get_objects():
                kind = type(o)  # what an object itself says may be an error, of a proxy
                if issubclass(kind, module.BitGenerator):
                    if drawn(o):
                        bits.append(o)
                elif issubclass(kind, State):
                    states.append(o)
            common = getattr(sys.modules.get("numpy.random.mtrand"), "_rand", None)
            if anew and common is not None:
                bits.append(common._bit_generator)
            # Those that have such a source keep half of what they drew last.
            states[:] = [s for s in states if any(s._bit_generator is b for b in bits)]
            # Most are of this kind, and have a way to seed them that is ten times as fast.
            kind = getattr(sys.modules.get("numpy.random._mt19937"), "MT19937", ())
            twisters[:] = [(State.seed, s) for s in states if isinstance(s._bit_generator, kind)]
            states[:] = [s for s in states if not isinstance(s._bit_generator, kind)]
            bits[:] = [b for b in bits if not any(s._bit_generator is b for _, s in twisters)]

        def reseed():
            for b in bits:
                b.__setstate__(type(b)().__getstate__())
            for s in states:
                s.set_state(s.get_state(legacy=False) | {"has_gauss": 0, "gauss": 0.0})
            for seed, s in twisters:
                seed(s, memoryview(urandom(32)).cast("I").tolist())

        instead(module, "randbits", drawing)
        find.append(collect)
        draw.append(reseed)

    anew = False  # the common generator of numpy has a seed that was drawn, and nothing else tells

    def watch_numpy_seed(module):
        old_seed, old_get_state, old_set_state = module.seed, module.get_state, module.set_state
        states = set()  # as of module random

        def place(state):
            """What tells one state from another."""
            try:
                inner = state["state"] if isinstance(state, dict) else {"key": state[1], "pos": state[2]}
                return hash((inner["key"].tobytes(), inner["pos"]))
            except (AttributeError, IndexError, KeyError, TypeError):
                return None

        def seed(seed=None):
            nonlocal anew
            old_seed(seed)
            anew = seed is None

        def get_state(legacy=True):
            state = old_get_state(legacy)
            if anew or drawn(module.mtrand._rand._bit_generator):
                states.add(place(state))
            return state

        def set_state(state):
            nonlocal anew
            old_set_state(state)
            anew = place(state) in states

        instead(module, "seed", plain(old_seed, seed))
        instead(module, "get_state", plain(old_get_state, get_state))
        instead(module, "set_state", plain(old_set_state, set_state))

    def watch_sqlite(module):
        # SQLite has one generator for all of a process, seeds it when the first database
        # is opened, and offers no way to seed it again. So databases get functions of
        # their own, for good: those that are opened after the read would go on with it.
        old_connect, urandom = module.connect, os.urandom

        def number():
            return int.from_bytes(urandom(8), "little", signed=True)

        def blob(size):
            return urandom(max(size, 1) if isinstance(size, int) else 1)

        def connect(*args, **kwargs):
            database = old_connect(*args, **kwargs)
            try:
                database.create_function("random", 0, number)
                database.create_function("randomblob", 1, blob)
            except module.Error:
                pass
            return database

        module.connect = like(old_connect, connect)

    watched = {
        "_sqlite3": watch_sqlite,
        "select": watch_select,
        "random": watch_random,
        "numpy.random": watch_numpy_seed,
        "numpy.random.bit_generator": watch_numpy,
    }

    class Loader:
        def __init__(self, spec, watch):
            self._spec, self._loader, self._watch = spec, spec.loader, watch

        def __getattr__(self, name):
            return getattr(self._loader, name)

        def create_module(self, spec):
            return self._loader.create_module(spec)

        def exec_module(self, module):
            module.__loader__ = self._spec.loader = self._loader
            self._loader.exec_module(module)
            try:
                self._watch(module)
            except AttributeError:
                pass  # another module of that name

    class Finder:
        @staticmethod
        def find_spec(name, path=None, target=None):
            watch = watched.get(name)
            if watch is None:
                return None
            for finder in sys.meta_path:
                if finder is not Finder:
                    spec = finder.find_spec(name, path, target)
                    if spec is not None:
                        if hasattr(spec.loader, "exec_module"):
                            spec.loader = Loader(spec, watch)
                        return spec
            return None

    def unfind():
        if Finder in sys.meta_path:
            sys.meta_path.remove(Finder)

    for name, watch in watched.items():
        if name in sys.modules:
            watch(sys.modules[name])
    def look():
        if Finder not in sys.meta_path:
            sys.meta_path.insert(0, Finder)

    look()
    undo.append(unfind)
    redo.append(look)
    return written, files, first


_files = _first()
del _first
