"""Pipes to and from other programs, for threads. A thread that would wait for one is left, as it is
where it waits for a lock: so one thread can read what another one's writes bring about."""

import functools
import io
import os
import select
import stat
import sys
import weakref

import _openskill_processes as processes
import _openskill_threads as threads

host, monotonic = processes.host, threads.monotonic
fed = []  # files that programs read from


class Waited:
    """What is waited for, until ready or a time has come."""

    __slots__ = ()

    def rest(self, end):
        rest([self], end)


class Stream(Waited):
    """A pipe that can be read, or written."""

    __slots__ = "fd", "writes"

    def __init__(self, fd, writes=False):
        self.fd, self.writes = fd, writes

    def __call__(self):
        try:
            return any(select.select(*((), (self.fd,), ()) if self.writes else ((self.fd,), (), ()), 0))
        except (OSError, ValueError):
            return True  # whoever uses it is told


class Streams(Waited):
    """Several of them. Those that are ready are told; of one to write with the room there is."""

    __slots__ = "read", "write", "told"

    def __init__(self, read, write):
        self.read, self.write, self.told = read, write, {}

    def __call__(self):
        self.ask(0)
        return bool(self.told)

    def ask(self, ms):
        self.told = host("ready", f',"read":{self.read},"write":{self.write}' + ("" if ms is None else f',"ms":{ms}'))

    def rest(self, end):
        self.ask(None if end is None else max(end - monotonic(), 0) * 1000)


class Child(Waited):
    """A program that ends."""

    __slots__ = ("program",)

    def __init__(self, program):
        self.program = program

    def __call__(self):
        return self.program.returncode is not None or self.program._ended(False)


def awaited(all):
    """Those that are about programs."""
    return [w for w in all if isinstance(w, Waited)]


def rest(all, end):
    """Waits until one of these may be ready, or until a time, while programs go on."""
    read, write, children = [], [], []
    for waited in all:
        if type(waited) is Child:
            children.append(waited.program.pid)
        elif type(waited) is Streams:
            read += waited.read
            write += waited.write
        else:
            (write if waited.writes else read).append(waited.fd)
    ms = None if end is None else max(end - monotonic(), 0) * 1000
    more = f',"child":{children[0]}' if len(children) == 1 else ""
    if len(children) > 1:
        ms = 10 if ms is None else min(ms, 10)
    if ms is not None:
        more += f',"ms":{ms}'
    try:
        host("ready", f',"read":{read},"write":{write}{more}')
    except OSError:
        pass  # one was closed: whoever uses it is told


def drive(steps):
    """Does what a generator of a thread does, and has the others go on where it waits."""
    try:
        while True:
            ready, end = next(steps)
            if threads.alive:
                threads.wait(None if end is None else max(end - monotonic(), 0), ready)
            else:
                ready.rest(end)
    except StopIteration as done:
        return done.value


# Files.


class Pipe:
    """Reads and writes for a file: what its buffers call."""

    __slots__ = "raw", "pending", "over", "trying", "text", "blocked", "backlog"

    def __init__(self, raw):
        self.raw, self.pending, self.backlog = weakref.ref(raw), b"", bytearray()
        self.over = self.trying = self.text = self.blocked = False

    def fd(self):
        return self.raw().fileno()  # an error where it is closed

    def take(self, size):
        """Reads what there is. In a thread that tries it, nothing may be there yet."""
        fd = self.fd()
        data, self.pending = self.pending[:size], self.pending[size:]
        if self.over or len(data) == size or data and not self.trying:
            return data
        if not self.trying:
            if threads.alive:
                threads.wait(None, Stream(fd))
        elif not Stream(fd)():
            self.pending, self.blocked = data, True
            return b""
        more = processes.read(fd, size - len(data))
        self.over = not more
        data += more
        if self.trying and self.text and more:  # as text is made of it, no character is left in the middle
            cut = whole(data)
            data, self.pending = data[:cut], data[cut:]
            self.blocked = not data
        return data

    def readinto(self, buffer):
        data = self.take(len(buffer))
        buffer[:len(data)] = data
        return len(data)

    def readall(self):
        parts = []
        while data := self.take(65536):
            parts.append(data)
        return b"".join(parts)

    def read(self, size=-1):
        return self.readall() if size is None or size < 0 else self.take(size)

    def write(self, data):
        if self.trying:
            self.backlog += data
            return len(data)
        while self.backlog:
            del self.backlog[:self.put(self.backlog)]
        return self.put(data)

    def put(self, data):
        fd = self.fd()
        if not threads.alive:
            return processes.write(fd, data)
        threads.wait(None, Stream(fd, True))
        return self.some(data)

    def some(self, data):
        """Writes what there is room for."""
        fd = self.fd()
        room = host("ready", f',"write":[{fd}],"ms":0').get("write", ({"bytes": 1},))[0]["bytes"]
        return processes.write(fd, bytes(data[:max(room, 1)]))


def whole(data):
    """How much of it ends with a character of UTF-8, and with no half of a line's end."""
    for i in range(1, min(4, len(data) + 1)):
        byte = data[-i]
        if byte >= 0xC0:
            return len(data) - i if i < 2 + (byte >= 0xE0) + (byte >= 0xF0) else len(data)
        if byte < 0x80:
            break
    return len(data) - (data[-1:] == b"\r")


texts, buffers = io.TextIOWrapper, (io.BufferedReader, io.BufferedWriter)


def own(file):
    """Has the reads and writes of a file be a Pipe's. Gives it."""
    raw = file
    try:
        while not isinstance(raw, io.FileIO):
            raw = raw.buffer if type(raw) is texts else raw.raw
        pipe = vars(raw).get("_pipe")
        if pipe is None:
            pipe = raw._pipe = Pipe(raw)
            raw.readinto, raw.readall, raw.write = pipe.readinto, pipe.readall, pipe.write
            if raw is file:
                raw.read = pipe.read
        return pipe
    except (AttributeError, ValueError):
        return None  # it is none of a descriptor


def pipe_of(file):
    """The Pipe of a file that is one."""
    if type(file) is not texts and type(file) not in buffers:
        return None
    try:
        fd = file.fileno()
        if fd in (1, 2) or not stat.S_ISFIFO(os.fstat(fd).st_mode):
            return None
    except (OSError, ValueError):
        return None
    return own(file) if fd or stdin_is_pipe() else None


told = None  # what standard input is


def stdin_is_pipe():
    global told
    told = told or host("self")["stdin"]
    return told == "pipe"


# What threads do with them.


def tried(pipe, file, method, args):
    pipe.text, pipe.trying, pipe.blocked = type(file) is texts, True, False
    try:
        return method(*args)
    finally:
        pipe.trying = False


def reads(pipe, method, *args):
    name, result = method.__name__, None
    while True:
        part = tried(pipe, method.__self__, method, args)
        result = part if result is None else result + part
        if not pipe.blocked or name == "read1" and result:
            return result
        if args and args[0] is not None and args[0] >= 0:
            args = (args[0] - len(part),)
            if not args[0]:
                return result
        yield Stream(pipe.fd()), None


def reads_lines(pipe, method, hint=-1):
    lines, size = [], 0
    while line := (yield from reads(pipe, method.__self__.readline)):
        lines.append(line)
        size += len(line)
        if hint is not None and 0 < hint <= size:
            break
    return lines


def writes(pipe, method, *args):
    file = method.__self__
    if method.__name__ == "close":
        if not file.closed:
            tried(pipe, file, file.flush, ())
        yield from emptied(pipe)
        return method()
    result = tried(pipe, file, method, args)
    yield from emptied(pipe)
    return result


def emptied(pipe):
    while pipe.backlog:
        yield Stream(pipe.fd(), True), None
        del pipe.backlog[:pipe.some(pipe.backlog)]


methods = {n: reads for n in ("read", "read1", "readline")} | {n: writes for n in ("write", "writelines", "flush", "close")}
methods["readlines"] = reads_lines


def reads_bare(self, size=-1):
    """Reads a file without buffers."""
    data = b""
    while True:
        yield Stream(self.fd()), None
        part = self.take(65536 if size is None or size < 0 else size)
        data += part
        if not part or size is not None and size >= 0:
            return data


def writes_bare(self, data):
    yield Stream(self.fd(), True), None
    return self.some(memoryview(data))


def read(fd, size, /):
    yield Stream(fd), None
    return processes.read(fd, size)


def write(fd, data, /):
    yield Stream(fd, True), None
    room = host("ready", f',"write":[{fd}],"ms":0').get("write", ({"bytes": 1},))[0]["bytes"]
    return processes.write(fd, memoryview(data)[:max(room, 1)])


def waiting(function):
    """What a thread does in the place of a function of C that may wait for a pipe; None: itself."""
    of = function.__self__
    if of is sys.modules["posix"]:
        return {"read": read, "write": write}.get(function.__name__)
    steps = methods.get(function.__name__)
    pipe = steps and pipe_of(of)
    return functools.partial(steps, pipe, function) if pipe else None


class Lines:
    """The lines of a file, and Waits between them."""

    __slots__ = "file", "pipe", "line"

    def __init__(self, file, pipe):
        self.file, self.pipe, self.line = file, pipe, None

    def __iter__(self):
        return self

    def __next__(self):
        part = tried(self.pipe, self.file, self.file.readline, ())
        self.line = part if self.line is None else self.line + part
        if self.pipe.blocked:
            return threads.Waits(threads.pause, Stream(self.pipe.fd()))
        line, self.line = self.line, None
        if not line:
            raise StopIteration
        return line


def each(of, *first):
    """What a for statement is over; with a number, what it counts from."""
    pipe = pipe_of(of)
    lines = of if pipe is None else Lines(of, pipe)
    if not first:
        return lines
    return counted(lines, *first) if pipe else enumerate(of, *first)


def lines(of):
    """What reads all lines of a file that is a pipe; else None."""
    pipe = pipe_of(of)
    return pipe and reads_lines(pipe, of.readline)


def counted(lines, n):
    for line in lines:
        if type(line) is threads.Waits:
            yield line
        else:
            yield n, line
            n += 1


def feeding():
    """Whether a program may wait for what the script writes."""
    fed[:] = [f for f in fed if f() is not None and not f().closed]
    return bool(fed)


threads.steps(Pipe.read, reads_bare)
threads.steps(Pipe.write, writes_bare)
threads.pipes = sys.modules[__name__]
