"""Programs that a script starts: the host runs them as processes of the run. For modules os,
subprocess and asyncio."""

import _thread
import codecs
import errno
import io
import json
import os
import signal
import sys
import time

# Requests are short: JSONEncoder and JSONDecoder would take longer than all the rest of one.
quoted, decode = json.encoder.encode_basestring_ascii, json.JSONDecoder().scan_once
open, read, write, close = os.open, os.read, os.write, os.close  # which scripts may replace
environ = type(os.environ)
children = {}  # of event loops: what to call with the exit code, by process


def host(op, fields="", path=None):
    """Asks the host, with fields in JSON, each after a comma. What it refuses is the OSError that
    Linux has for it."""
    request, answer, size = f'{{"op":"{op}"{fields}}}'.encode(), b"", 4096
    file = open("/dev/process", os.O_RDWR)
    try:
        while request:
            request = request[write(file, request):]
        while True:
            answer += (part := read(file, size))
            if len(part) < size:  # all of it is there from the beginning
                break
    finally:
        close(file)
    answer = decode(answer.decode(), 0)[0]
    if "error" in answer:
        number = getattr(errno, answer["error"], errno.EIO)
        raise OSError(number, os.strerror(number), path) if path else OSError(number, os.strerror(number))
    return answer


def start(args, env=None, folder=None, **streams):
    """Starts a program. Gives its process and this one's ends of its pipes."""
    args = [os.fsdecode(a) for a in args]
    if env is None and type(os.environ) is environ:
        entries = [(k + b"=" + v).decode("utf-8", "surrogateescape") for k, v in os.environ._data.items()]
    else:
        entries = [f"{os.fsdecode(k)}={os.fsdecode(v)}" for k, v in (os.environ if env is None else env).items()]
    fields = [f',"args":[{",".join(map(quoted, args))}],"env":[{",".join(map(quoted, entries))}],"dir":{quoted(folder or os.getcwd())}']
    for name, asked in streams.items():
        fields.append(f',"{name}":{quoted(asked) if isinstance(asked, str) else int(asked)}')
    return host("start", "".join(fields), args[0])


def wait_for(pid, block):
    """Asks how a process ended; it is 0 where that has not come yet."""
    return host("wait", f',"pid":{pid},"block":{"true" if block else "false"}')


def others():
    """Whether other threads could go on meanwhile."""
    threads = sys.modules.get("_openskill_threads")
    return threads is not None and len(threads.alive) > (threads.current is not None)


# Module os.


def pipe():
    ends = host("pipe")
    return ends["read"], ends["write"]


def kill(pid, signal, /):
    host("kill", f',"pid":{int(pid)},"signal":{int(signal)}')


def killpg(group, signal, /):
    kill(group, signal)  # each process is a group of its own


def status(ended):
    """What waitpid says of it."""
    return ended.get("signal", 0) or (ended.get("exit", 0) & 0xFF) << 8


def waitpid(pid, options, /):
    ended = wait_for(max(int(pid), 0), not options & 1 and not others())
    while not ended["pid"] and not options & 1:
        time.sleep(0.001)  # while other threads go on
        ended = wait_for(max(int(pid), 0), False)
    return ended["pid"], status(ended)


def wait():
    return waitpid(-1, 0)


def waitstatus_to_exitcode(status):
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


def program(path, args):
    """The arguments of a program that is found by its path."""
    args, path = list(args), os.fsdecode(path)
    if not args:
        raise ValueError("arg 2 must not be empty")
    return [path if "/" in path else "./" + path, *args[1:]]


def execve(path, args, env):
    """The program has this process's streams; when it ends, so does this process."""
    told = host("self")
    streams, feed = {}, None
    if told["stdin"] == "inherited":  # which a shell leaves to who started it
        read, feed = pipe()
        streams["stdin"] = read
    pid = start(program(path, args), env, **streams)["pid"]
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (AttributeError, OSError, ValueError):
            pass
    if feed is not None:
        os.close(read)
        try:
            while data := os.read(0, 65536):
                while data:
                    data = data[os.write(feed, data):]
        except OSError:
            pass  # it does not read it
        os.close(feed)
    code = waitstatus_to_exitcode(waitpid(pid, 0)[1])
    os._exit(128 - code if code < 0 else code)


def execv(path, args, /):
    execve(path, args, os.environ)


def posix_spawn(path, argv, env, /, *, file_actions=(), **_):
    return spawned(program(path, argv), env, file_actions)


def posix_spawnp(path, argv, env, /, *, file_actions=(), **_):
    return spawned([path, *list(argv)[1:]], env, file_actions)


def spawned(args, env, actions):
    names = "stdin", "stdout", "stderr"
    streams, opened = {}, []
    try:
        for kind, fd, *more in actions or ():
            if kind == os.POSIX_SPAWN_DUP2:
                fd, source = more[0], streams.get(names[fd], fd) if fd < 3 else fd
            elif kind == os.POSIX_SPAWN_OPEN:
                source = os.open(*more)
                opened.append(source)
            else:
                source = "null"  # as good as closed
            if fd < 3:
                streams[names[fd]] = source
        return start(args, env, **streams)["pid"]
    finally:
        for fd in opened:
            os.close(fd)


def spawnvpe(mode, file, args, env):
    try:
        pid = start([file, *list(args)[1:]], env)["pid"]
    except OSError:
        if mode == os.P_WAIT:
            return 127
        raise
    return waitstatus_to_exitcode(waitpid(pid, 0)[1]) if mode == os.P_WAIT else pid


def spawnve(mode, path, args, env):
    return spawnvpe(mode, *(lambda all: (all[0], all))(program(path, args)), env)


def spawnv(mode, file, args):
    return spawnve(mode, file, args, None)


def spawnvp(mode, file, args):
    return spawnvpe(mode, file, args, None)


def spawnl(mode, file, *args):
    return spawnve(mode, file, args, None)


def spawnle(mode, file, *args):
    return spawnve(mode, file, args[:-1], args[-1])


def spawnlp(mode, file, *args):
    return spawnvpe(mode, file, args, None)


def spawnlpe(mode, file, *args):
    return spawnvpe(mode, file, args[:-1], args[-1])


# Module subprocess.


def programs(subprocess):
    import _openskill_pipes as pipes

    PIPE, STDOUT, DEVNULL = subprocess.PIPE, subprocess.STDOUT, subprocess.DEVNULL

    def stream(asked):
        """How the host is asked for a stream."""
        if asked == PIPE:
            return "pipe"
        if asked == DEVNULL:
            return "null"
        return asked if isinstance(asked, int) else asked.fileno()

    class Popen(subprocess.Popen):
        def __init__(
            self, args, bufsize=-1, executable=None, stdin=None, stdout=None, stderr=None, preexec_fn=None, close_fds=True,
            shell=False, cwd=None, env=None, *rest, **more,
        ):
            self._asked = args, executable, shell, cwd, env
            super().__init__(args, bufsize, executable, stdin, stdout, stderr, preexec_fn, close_fds, shell, cwd, env, *rest, **more)
            for file in (self.stdin, self.stdout, self.stderr):
                if file:
                    pipe = pipes.own(file)
                    if file is self.stdin:
                        pipes.fed.append(pipe.raw)

        def _get_handles(self, stdin, stdout, stderr):
            """Starts the program: one request makes it and its pipes."""
            args, executable, shell, cwd, env = vars(self).pop("_asked")
            if self.encoding not in (None, "locale"):
                codecs.lookup(self.encoding)  # fails before anything has begun
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
            streams = {name: stream(s) for name, s in (("stdin", stdin), ("stdout", stdout)) if s is not None}
            if stderr == STDOUT:
                streams["stderr"] = "stdout" if stdout is not None else sys.__stdout__.fileno()
            elif stderr is not None:
                streams["stderr"] = stream(stderr)
            ends = start(args, env, here, **streams)
            self.pid = ends["pid"]
            return -1, ends.get("stdin", -1), ends.get("stdout", -1), -1, ends.get("stderr", -1), -1

        def _execute_child(self, *_):
            self._child_created = self._closed_child_pipe_fds = True

        def communicate(self, input=None, timeout=None):
            return pipes.drive(self._communicating(input, timeout))

        def _communicating(self, input=None, timeout=None):
            """Writes input and reads output, to their ends: a generator, so that threads can."""
            if self._communication_started and input:
                raise ValueError("Cannot send input after starting communication")
            end = None if timeout is None else time.monotonic() + timeout
            files = [f for f in (self.stdout, self.stderr) if f]
            if not self._communication_started:
                self._fileobj2output = {f: [] for f in files}
                if self.stdin:
                    try:
                        self.stdin.flush()
                        if not input:
                            self.stdin.close()
                    except BrokenPipeError:
                        pass
            self._communication_started = True
            self._save_input(input)
            left = {f.fileno(): f for f in files if not f.closed}
            feed = [self.stdin.fileno()] if self.stdin and not self.stdin.closed and self._input else []
            while left or feed:
                ready = list(left)
                # The last one can wait for itself.
                if feed or len(left) > 1 or end is not None or pipes.threads.alive:
                    asked = pipes.Streams(list(left), feed)
                    yield asked, end
                    ready = [s["fd"] for s in asked.told.get("read", ())]
                    if asked.told.get("write"):
                        self._feed(feed, asked.told["write"][0]["bytes"])
                for fd in ready:
                    if data := read(fd, 65536):
                        self._fileobj2output[left[fd]].append(data)
                    else:
                        left.pop(fd).close()
                if end is not None and time.monotonic() > end:
                    raise subprocess.TimeoutExpired(self.args, timeout, *(b"".join(self._fileobj2output[f]) or None if f else None for f in (self.stdout, self.stderr)))
            yield from self._waiting(timeout, end)
            whole = [b"".join(self._fileobj2output[f]) if f else None for f in (self.stdout, self.stderr)]
            if self.text_mode:
                whole = [f and self._translate_newlines(data, f.encoding, f.errors) for data, f in zip(whole, (self.stdout, self.stderr))]
            return tuple(whole)

        def _feed(self, feed, room):
            """Writes as much of the input as there is room for."""
            data = memoryview(self._input).cast("B")[self._input_offset:]
            try:
                self._input_offset += write(feed[0], data[:max(room, 1)])
                if len(data) > room:
                    return
            except BrokenPipeError:
                pass
            feed.clear()
            self.stdin.close()

        def _internal_poll(self, *_, **__):
            if self.returncode is None and not self._ended(False):
                return None
            return self.returncode

        def _ended(self, block):
            """Whether it has ended; it has its exit code then."""
            try:
                ended = wait_for(self.pid, block)
            except ChildProcessError:
                ended = {"pid": self.pid, "exit": 0}  # as where somebody else has waited for it
            except OSError:
                return False
            if ended["pid"]:
                self.returncode = waitstatus_to_exitcode(status(ended))
            return self.returncode is not None

        def wait(self, timeout=None):
            return pipes.drive(self._waiting(timeout))

        def _waiting(self, timeout, end=None):
            if end is None and timeout is not None:
                end = time.monotonic() + timeout
            while self.returncode is None and not self._ended(end is None and not pipes.threads.alive):
                if end is not None and time.monotonic() >= end:
                    raise subprocess.TimeoutExpired(self.args, timeout)
                yield pipes.Child(self), end
            return self.returncode

        def send_signal(self, sig):
            if self.poll() is None:
                kill(self.pid, sig)

        def terminate(self):
            self.send_signal(15)

        def kill(self):
            self.send_signal(9)

    class Bare:
        """A pipe's end without buffers, which nobody but run has."""

        __slots__ = "fd", "closed", "encoding", "errors"

        def __init__(self, fd, encoding, errors):
            self.fd, self.closed, self.encoding, self.errors = fd, False, encoding, errors

        def fileno(self):
            return self.fd

        def flush(self):
            pass

        def close(self):
            if not self.closed:
                self.closed = True
                close(self.fd)

    usual = io.TextIOWrapper(io.BytesIO()).encoding
    plain = {"args", "stdin", "stdout", "stderr", "text", "encoding", "errors", "shell", "cwd", "env"}

    def bare(args, stdin=None, stdout=None, stderr=None, text=None, encoding=None, errors=None, shell=False, cwd=None, env=None):
        """A program whose files are such ends: to make those of a Popen takes longer than to start it."""
        p = Popen.__new__(Popen)
        p.args, p._asked, p.returncode = args, (args, None, shell, cwd, env), None
        p.encoding, p.errors, p.text_mode = encoding, errors, encoding or errors or text
        p._child_created = p._communication_started = False
        p._input, p._input_offset = None, 0
        ends = p._get_handles(stdin, stdout, stderr)
        p._child_created = True
        codec = usual if encoding in (None, "locale") else encoding
        p.stdin, p.stdout, p.stderr = [None if fd < 0 else Bare(fd, codec, errors or "strict") for fd in (ends[1], ends[2], ends[4])]
        return p

    def run(*popenargs, input=None, capture_output=False, timeout=None, check=False, **kwargs):
        return pipes.drive(running(*popenargs, input=input, capture_output=capture_output, timeout=timeout, check=check, **kwargs))

    def running(*popenargs, input=None, capture_output=False, timeout=None, check=False, **kwargs):
        if input is not None:
            if kwargs.get("stdin") is not None:
                raise ValueError("stdin and input arguments may not both be used.")
            kwargs["stdin"] = PIPE
        if capture_output:
            if kwargs.get("stdout") is not None or kwargs.get("stderr") is not None:
                raise ValueError("stdout and stderr arguments may not be used with capture_output.")
            kwargs["stdout"] = kwargs["stderr"] = PIPE
        simple = subprocess.Popen is Popen and len(popenargs) < 2 and plain.issuperset(kwargs)
        process = (bare if simple else subprocess.Popen)(*popenargs, **kwargs)
        with process:
            try:
                if isinstance(process, Popen):
                    stdout, stderr = yield from process._communicating(input, timeout)
                else:  # what a script has in its place
                    stdout, stderr = process.communicate(input, timeout=timeout)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
                raise
            except BaseException:
                process.kill()
                raise
            code = process.poll()
        if check and code:
            raise subprocess.CalledProcessError(code, process.args, output=stdout, stderr=stderr)
        return subprocess.CompletedProcess(process.args, code, stdout, stderr)

    for name in ("__name__", "__qualname__", "__module__", "__doc__"):
        setattr(run, name, getattr(subprocess.run, name))
    Popen.__qualname__, Popen.__module__ = "Popen", "subprocess"
    subprocess.Popen, subprocess.run = Popen, run
    for function, steps in ((Popen.wait, Popen._waiting), (Popen.communicate, Popen._communicating), (run, running)):
        pipes.threads.steps(function, steps)
    subprocess._can_fork_exec = True


# Event loops, which wait for pipes and children.


def loops(module):
    loop = module._UnixSelectorEventLoop

    async def start(self, protocol, args, shell, stdin, stdout, stderr, bufsize, extra=None, **more):
        waiter = self.create_future()
        transport = module._UnixSubprocessTransport(
            self, protocol, args, shell, stdin, stdout, stderr, bufsize, waiter=waiter, extra=extra, **more
        )
        children[transport.get_pid()] = lambda code: self.call_soon_threadsafe(transport._process_exited, code)
        try:
            await waiter
        except BaseException:
            transport.close()
            await transport._wait()
            raise
        return transport

    plain, add_reader = module._UnixWritePipeTransport, loop._add_reader
    written = set()  # descriptors, which tell by an error that nobody reads them

    class Write(plain):
        def __init__(self, loop, pipe, *rest, **more):
            written.add(pipe.fileno())
            super().__init__(loop, pipe, *rest, **more)

        def _call_connection_lost(self, exc):
            written.discard(self._fileno)
            super()._call_connection_lost(exc)

    def add(self, fd, callback, *args, **more):
        return None if fd in written else add_reader(self, fd, callback, *args, **more)

    Write.__qualname__ = Write.__name__ = plain.__name__
    module._UnixWritePipeTransport = Write
    loop._make_subprocess_transport, loop._add_reader = start, add

    def signals(self, sig, callback, *args):
        if sig not in signal.valid_signals() if hasattr(signal, "valid_signals") else not 0 < sig < 65:
            raise ValueError(f"invalid signal number {sig}")

    loop.add_signal_handler = signals  # none ever comes
    loop.remove_signal_handler = lambda self, sig: False


def ended():
    """Tells those who wait for a child that has ended. Reports whether there was one."""
    some = False
    for pid in list(children):
        try:
            told = wait_for(pid, False)
        except OSError:
            told = {"pid": pid, "exit": 255}  # somebody else has waited for it
        if told["pid"]:
            children.pop(pid)(waitstatus_to_exitcode(status(told)))
            some = True
    return some


def select(selector, plain, timeout):
    """Waits until a pipe can be read or written, a child has ended, or the time is up."""
    end = None if timeout is None else time.monotonic() + timeout
    delay = 0.0005
    while True:
        found = plain(selector, 0)
        if ended() or found or vars(selector).get("_woken"):
            selector._woken = False
            return found
        left = None if end is None else end - time.monotonic()
        if left is not None and left <= 0:
            return found
        if others():
            delay = min(delay * 2, 0.02)
            _thread.allocate_lock._wait(
                delay if left is None else min(delay, left), lambda: vars(selector).get("_woken")
            )
            continue
        read, write = [], []
        sockets = vars(selector).get("_http", ())
        for key in selector.get_map().values():
            if key.fd not in sockets:
                if key.events & 1:
                    read.append(key.fd)
                if key.events & 2:
                    write.append(key.fd)
        ms = None if left is None else left * 1000
        more = f',"child":{next(iter(children))}' if len(children) == 1 else ""
        if len(children) > 1 or sockets:
            ms = 10 if ms is None else min(ms, 10)
        if ms is not None:
            more += f',"ms":{ms}'
        host("ready", f',"read":{read},"write":{write}{more}')
