"""Stream sockets that carry HTTP. A socket collects what is sent until it is a whole HTTP/1.1
request, has the host make it through /dev/http under the grants of the run, and gives the
response back as HTTP/1.1. So every HTTP library works on it. TLS is the host's: module ssl
marks a connection as https, and its bytes stay plain."""

import _thread
import errno
import json
import os
import re
import sys
import time

TLS = b"\x16openSkill TLS "  # begins the line that marks a stream as https; a server name follows
FILE = "/dev/http"
ERRORS = {  # by the host's code
    "NETWORK_DENIED": (PermissionError, errno.EACCES),
    "INVALID_ARGUMENT": (OSError, errno.EINVAL),
    "PAYLOAD_TOO_LARGE": (OSError, errno.EMSGSIZE),
    "RATE_LIMITED": (OSError, errno.EDQUOT),
    "CANCELLED": (ConnectionAbortedError, errno.ECONNABORTED),
    "TOOL_INVOCATION_ERROR": (ConnectionResetError, errno.ECONNRESET),
}
# The protocols of these ports are not HTTP; a connection to them fails at once.
OTHERS = {
    21, 22, 23, 25, 53, 110, 119, 123, 143, 389, 445, 465, 514, 587, 636, 853, 873, 990, 993, 995,
    1433, 1521, 1883, 3306, 3389, 5222, 5432, 5672, 6379, 11211, 27017,
}
HOP = {
    "connection", "content-length", "expect", "forwarded", "host", "http2-settings", "keep-alive", "te",
    "trailer", "transfer-encoding", "upgrade", "via",
}
MOST = 64 << 10  # bytes of a request's headers

connections = {}  # by descriptor
_state = {"begun": False, "unread": None}


def begin():
    """Reads nothing of standard input, but ends the part of a run that all runs share: the
    network is closed to that."""
    if not _state["begun"]:
        import select

        try:
            select.select([0], [], [], 0)
        except (OSError, ValueError):
            pass  # a script may have closed it
        _state["begun"] = True


def patience():
    """How many seconds the timeouts of the event loop leave to a request; None for no limit. The
    loop cannot look at its clock meanwhile."""
    events = sys.modules.get("asyncio.events")
    loop = events and events._get_running_loop()
    left = None
    for handle in getattr(loop, "_scheduled", ()):
        what = handle._callback
        name = getattr(what, "__qualname__", None) or type(what).__qualname__
        if not handle._cancelled and "timeout" in name.lower():
            left = max(left or 0, handle._when - loop.time(), 0.001)
    return left


def numeric(host):
    """The family of an IP address; None for a name."""
    for family in (_socket.AF_INET, _socket.AF_INET6):
        try:
            _socket.inet_pton(family, host)
            return family
        except OSError:
            pass
    return None


def origin(scheme, host, port):
    """A URL without a path."""
    host = host.partition("%")[0].rstrip(".").lower()
    if ":" in host:
        host = f"[{host}]"
    elif not host.isascii():
        host = host.encode("idna").decode()
    return f"{scheme}://{host}" + ("" if port == {"http": 80, "https": 443}[scheme] else f":{port}")


def other(what, address=None):
    """The error of everything that is not HTTP."""
    hint = "; scripts connect by HTTP and HTTPS"
    if address is not None:
        host, port = address
        url = origin("https" if port == 443 else "http", host, port)
        what = f"{what} {host}:{port}"
        hint = f"; HTTP requests are allowed by a grant: openskill script … --allow {url}, or permissions.http of skill.yaml"
    return OSError(errno.ENETUNREACH, f"the sandbox has no sockets: {what}" + hint)


class Connection:
    """What the sockets of one descriptor share."""

    def __init__(self):
        try:
            self.fd = os.open(FILE, os.O_RDWR)
        except OSError:
            self.fd = os.open("/dev/null", os.O_RDWR)
        connections[self.fd] = self
        self.address = self.name = None  # of the server; its name in TLS, "" for none
        self.tls = False
        self.sent = bytearray()  # of a request that is not complete
        self.method = None
        self.headers, self.body, self.left = [], bytearray(), 0  # of it; left is None where it is chunked
        self.asked = False
        self.out = bytearray()  # of responses, unread
        self.more = False  # whether the file has more of the last response
        self.error = None
        self.ended = False

    def close(self):
        if self.fd >= 0:
            del connections[self.fd]
            os.close(self.fd)
            if _state["unread"] is self:
                _state["unread"] = None
            self.fd = -1

    # Requests.

    def send(self, data, timeout):
        if self.address is None:
            raise OSError(errno.ENOTCONN, os.strerror(errno.ENOTCONN))
        if self.ended:
            raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))
        self.sent += data
        while self.sent and self.step(timeout):
            pass

    def step(self, timeout):
        """Takes the next part of what was sent; whether there was a whole one."""
        if self.method is None:
            return self.start(timeout)
        if self.left is None:
            return self.chunk(timeout)
        part = self.sent[: self.left]
        del self.sent[: len(part)]
        self.body += part
        self.left -= len(part)
        if not self.left:
            self.ask(timeout)
        return not self.left

    def start(self, timeout):
        if self.sent[: len(TLS)] == TLS[: len(self.sent)]:
            line, newline, rest = self.sent.partition(b"\n")
            if newline:
                self.secure(line[len(TLS) :].decode())
                self.sent = rest
            return bool(newline)
        if not re.match(rb"[A-Za-z-]{1,20}(?: |$)", self.sent[:21]):
            raise other("what is sent is not HTTP, to", self.address)
        end = self.sent.find(b"\r\n\r\n")
        if end < 0:
            if len(self.sent) > MOST:
                raise OSError(errno.EMSGSIZE, "the headers of the request are too large")
            return False
        lines = re.sub(rb"\r\n[ \t]+", b" ", bytes(self.sent[:end])).decode("latin-1").split("\r\n")
        del self.sent[: end + 4]
        found = re.fullmatch(r"(\S+) (\S.*) HTTP/1\.[01]", lines[0])
        if not found:
            raise other("what is sent is not HTTP/1.1, to", self.address)
        self.method, self.target = found.groups()
        self.headers = [(n.strip().lower(), v.strip(" \t")) for n, _, v in (line.partition(":") for line in lines[1:])]
        given = dict(self.headers)
        if self.method == "CONNECT":  # to a proxy: none is asked, and what follows goes to the host as the rest does
            host, _, port = self.target.rpartition(":")
            self.address, self.method = (host.strip("[]"), int(port)), None
            self.out += b"HTTP/1.1 200 Connection established\r\n\r\n"
            return True
        if "websocket" in given.get("upgrade", "").lower():
            raise other("WebSockets are not HTTP requests, to", self.address)
        self.body = bytearray()
        if "chunked" in given.get("transfer-encoding", "").lower():
            self.left = None
        else:
            self.left = int(given.get("content-length") or 0)
        if self.left == 0:
            self.ask(timeout)
        elif "100-continue" in given.get("expect", "").lower():
            self.out += b"HTTP/1.1 100 Continue\r\n\r\n"
        return True

    def chunk(self, timeout):
        line, newline, _ = self.sent.partition(b"\r\n")
        if not newline:
            return False
        size = int(line.partition(b";")[0], 16)
        at = len(line) + 2
        if size:
            if len(self.sent) < at + size + 2:
                return False
            self.body += self.sent[at : at + size]
            del self.sent[: at + size + 2]
            return True
        if self.sent[at : at + 2] == b"\r\n":
            end = at - 2
        else:  # trailers, which are left out
            end = self.sent.find(b"\r\n\r\n", at)
            if end < 0:
                return False
        del self.sent[: end + 4]
        self.ask(timeout)
        return True

    def secure(self, name):
        self.tls, self.name = True, name

    def url(self):
        if self.target.partition("://")[0].lower() in ("http", "https"):  # as to a proxy
            target = self.target
        else:
            host, port = self.address
            if self.tls and self.name:
                host = self.name
            target = origin("https" if self.tls else "http", host, port)
            said = dict(self.headers).get("host", "").lower()
            if said and said.rpartition(":")[0 if re.search(r":\d+$", said) else 2].strip("[]").rstrip(".") != host.lower().rstrip("."):
                raise OSError(errno.EINVAL, f"the header Host says {said}, but the connection is to {host}: connect to {said}")
            target += self.target
        return re.sub(r'[^!#-;=?-\[\]_a-z~]', lambda c: "".join(f"%{b:02X}" for b in c[0].encode("latin-1")), target.partition("#")[0])

    def ask(self, timeout):
        method, headers, close = self.method, {}, False
        self.method = None
        for name, value in self.headers:
            if name == "connection" and value.lower() == "close":
                close = True
            if name in HOP or name.startswith("proxy-"):
                continue
            if name in headers:
                value = headers[name] + ("; " if name == "cookie" else ", ") + value
            headers[name] = value
        head = {"method": method, "url": self.url(), "headers": headers, "redirect": "manual"}
        late = timeout == 0 and patience()  # a timer of the loop says that it is
        if timeout or late:
            timeout = timeout or late
            head["timeout_ms"] = max(1, min(int(timeout * 1000), 2**32 - 1))
        before = _state["unread"]
        if before is not None:  # the file of a new request ends what another has
            before.drain()
        begin()
        self.asked = True
        self.exchange(json.dumps(head).encode() + b"\n", self.body)
        self.body = bytearray()
        line, body = self.head()
        if line["error"]:
            if not late or line["error"]["code"] != "TIMEOUT":
                self.fail(line["error"])
            return
        self.answer(method, line["status"], line["headers"], body, close)

    def exchange(self, head, body):
        for part in (head, memoryview(body)):
            while len(part):
                part = part[os.write(self.fd, part) :]

    def head(self):
        data = bytearray()
        while b"\n" not in data:
            part = os.read(self.fd, 1 << 16)
            if not part:
                raise ConnectionResetError(errno.ECONNRESET, "the host gave no response")
            data += part
        line, _, body = data.partition(b"\n")
        return json.loads(bytes(line)), body

    def fail(self, error):
        """A server that is late is noticed where its response is read; everything else where
        libraries expect that no connection is made."""
        message, code = error["message"], error["code"]
        self.ended = True
        if code == "TIMEOUT":
            self.error = TimeoutError("timed out")
            return
        if self.tls and code == "TOOL_INVOCATION_ERROR" and "certificate" in message:
            import ssl

            self.error = ssl.SSLCertVerificationError(1, "[SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed: " + message)
        else:
            kind, number = ERRORS.get(code, (OSError, errno.EIO))
            self.error = kind(number, message)
        raise self.error

    # Responses.

    def answer(self, method, status, headers, body, close):
        import http

        try:
            reason = http.HTTPStatus(status).phrase
        except ValueError:
            reason = ""
        lines = [f"HTTP/1.1 {status} {reason}"]
        for name, values in headers.items():
            if name not in ("connection", "keep-alive", "transfer-encoding"):
                lines += (f"{name.title()}: {value}" for value in values)
        bare = method == "HEAD" or status in (204, 304) or status < 200
        if not bare and "content-length" not in headers:
            self.rest(body)  # how long it is, is known where all is read
            body, self.more = bytes(body), False
            lines.append(f"Content-Length: {len(body)}")
        else:
            self.more = not bare
        if close:
            lines.append("Connection: close")
            self.ended = True
        self.out += "\r\n".join(lines).encode("latin-1", "replace") + b"\r\n\r\n"
        self.out += body
        _state["unread"] = self if self.more else None

    def rest(self, data):
        while part := os.read(self.fd, 1 << 16):
            data += part

    def drain(self):
        if self.more:
            self.rest(self.out)
            self.more = False
        _state["unread"] = None

    def readable(self):
        return bool(self.out or self.more or self.error or self.ended)

    def receive(self, size, timeout, peek=False):
        """The next bytes of a response; none at the end."""
        if self.address is None:
            raise OSError(errno.ENOTCONN, os.strerror(errno.ENOTCONN))
        if not self.out and self.more:
            self.out += os.read(self.fd, min(max(size, 1 << 12), 1 << 16))
            if not self.out:
                self.drain()
        if self.out:
            data = bytes(self.out[:size])
            if not peek:
                del self.out[:size]
            return data
        if self.error is not None:
            error, self.error = self.error, None
            raise error
        if self.ended:
            return b""
        if timeout == 0:
            raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))
        if not self.asked:
            raise other("no HTTP request was sent before reading from", self.address)
        if timeout is None:
            raise OSError(errno.ENODATA if hasattr(errno, "ENODATA") else errno.EIO, "no response can come: no request waits for one")
        time.sleep(timeout)
        raise TimeoutError("timed out")


class socket:
    """socket(family=AF_INET, type=SOCK_STREAM, proto=0) -> a socket that carries HTTP"""

    __slots__ = ("_conn", "_family", "_type", "_proto", "_timeout")

    def __init__(self, family=-1, type=-1, proto=-1, fileno=None):
        self._conn = None
        self._family = _socket.AF_INET if family == -1 else int(family)
        self._type = _socket.SOCK_STREAM if type == -1 else int(type) & 0xF
        self._proto = 0 if proto == -1 else proto
        self._timeout = _socket.getdefaulttimeout()
        if fileno is not None:
            self._conn = connections.get(fileno)
            if self._conn is None:
                raise OSError(errno.ENOTSOCK, os.strerror(errno.ENOTSOCK))
        else:
            self._conn = Connection()

    def __del__(self):
        if getattr(self, "_conn", None) is not None:
            socket.close(self)

    family = property(lambda self: self._family)
    type = property(lambda self: self._type)
    proto = property(lambda self: self._proto)
    timeout = property(lambda self: self._timeout)

    def _open(self):
        if self._conn is None:
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))
        return self._conn

    def fileno(self):
        return -1 if self._conn is None else self._conn.fd

    def close(self):
        conn, self._conn = self._conn, None
        if conn is not None:
            conn.close()

    def detach(self):
        fd, self._conn = self.fileno(), None
        return fd

    def connect(self, address):
        conn = self._open()
        if not isinstance(address, tuple) or len(address) < 2:
            raise other(f"no {address!r}")
        host, port = os.fsdecode(address[0]), int(address[1])
        if self._type != _socket.SOCK_STREAM:
            raise other("no datagrams to", (host, port))
        if port in OTHERS:
            raise other("no connection to", (host, port))
        if not 0 < port < 65536:
            raise OverflowError("connect(): port must be 0-65535.")
        conn.address = host, port

    def connect_ex(self, address):
        try:
            self.connect(address)
        except OSError as error:
            return error.errno or errno.EIO
        return 0

    def send(self, data, flags=0):
        data = memoryview(data).cast("B")
        self._open().send(data, self._timeout)
        return len(data)

    def sendall(self, data, flags=0):
        self.send(data)

    def sendmsg(self, buffers, *_):
        return self.send(b"".join(buffers))

    def sendto(self, data, *rest):
        host, port = rest[-1][:2]
        raise other("no datagrams to", (host, port))

    def recv(self, size, flags=0):
        return self._open().receive(size, self._timeout, flags & _socket.MSG_PEEK)

    def recv_into(self, buffer, nbytes=0, flags=0):
        view = memoryview(buffer).cast("B")
        data = socket.recv(self, nbytes or len(view), flags)
        view[: len(data)] = data
        return len(data)

    def recvfrom(self, size, flags=0):
        return socket.recv(self, size, flags), self._conn.address

    def recvfrom_into(self, buffer, nbytes=0, flags=0):
        return socket.recv_into(self, buffer, nbytes, flags), self._conn.address

    def recvmsg(self, size, *_):
        return socket.recv(self, size), [], 0, self._conn.address

    def shutdown(self, how):
        conn = self._open()
        if conn.address is None:
            raise OSError(errno.ENOTCONN, os.strerror(errno.ENOTCONN))
        if how != _socket.SHUT_WR:
            conn.ended = True

    def setblocking(self, flag):
        self._timeout = None if flag else 0.0

    def getblocking(self):
        return self._timeout != 0

    def settimeout(self, timeout):
        if timeout is not None:
            timeout = float(timeout)
            if timeout < 0:
                raise ValueError("Timeout value out of range")
        self._timeout = timeout

    def gettimeout(self):
        return self._timeout

    def getpeername(self):
        if self._open().address is None:
            raise OSError(errno.ENOTCONN, os.strerror(errno.ENOTCONN))
        return self._conn.address

    def getsockname(self):
        return ("0.0.0.0", 0) if self._open().address is None else ("127.0.0.1", 32768 + self._conn.fd)

    def getsockopt(self, level, option, size=None):
        value = self._type if (level, option) == (_socket.SOL_SOCKET, _socket.SO_TYPE) else 0
        return value if size is None else value.to_bytes(size, "little")

    def setsockopt(self, *_):
        self._open()

    def bind(self, address):
        raise OSError(errno.EACCES, "the sandbox has no sockets that listen")

    def listen(self, backlog=0):
        raise OSError(errno.EACCES, "the sandbox has no sockets that listen")

    def _accept(self):
        raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))


def getaddrinfo(host, port, family=0, type=0, proto=0, flags=0):
    """Addresses of a name: the name itself, which the host resolves."""
    if isinstance(port, str) and not port.isdigit():
        if port not in ("http", "https"):
            raise _socket.gaierror(_socket.EAI_SERVICE, "Servname not supported for ai_socktype")
        port = {"http": 80, "https": 443}[port]
    if isinstance(host, (bytes, bytearray)):
        host = host.decode()
    if host is None:
        host = "0.0.0.0" if flags & _socket.AI_PASSIVE else "127.0.0.1"
    kind = numeric(host.partition("%")[0])
    if not host or kind is None and flags & _socket.AI_NUMERICHOST:
        raise _socket.gaierror(_socket.EAI_NONAME, "Name or service not known")
    kind = kind or _socket.AF_INET
    if family not in (0, kind):
        raise _socket.gaierror(_socket.EAI_FAMILY, "ai_family not supported")
    address = (host, int(port or 0)) + ((0, 0) if kind == _socket.AF_INET6 else ())
    proto = proto or {_socket.SOCK_STREAM: 6, _socket.SOCK_DGRAM: 17}.get(type or _socket.SOCK_STREAM, 0)
    return [(kind, type or _socket.SOCK_STREAM, proto, host if flags & _socket.AI_CANONNAME else "", address)]


def gethostbyname(name):
    if name == "localhost" or name == _socket.gethostname():
        return "127.0.0.1"
    if numeric(name) == _socket.AF_INET:
        return name
    raise _socket.gaierror(_socket.EAI_AGAIN, "names have no addresses in the sandbox: the host resolves them, when a request is made")


def gethostbyaddr(name):
    raise _socket.herror(1, "Unknown host")


def getnameinfo(address, flags):
    return address[0], str(address[1])


def getservbyname(name, protocol="tcp"):
    try:
        return {"ftp": 21, "ssh": 22, "smtp": 25, "domain": 53, "http": 80, "https": 443}[name]
    except KeyError:
        raise OSError("service/proto not found") from None


def install(module):
    """Gives module _socket these sockets, and the names that WASI leaves out."""
    global _socket
    _socket = module
    for new in (socket, getaddrinfo, gethostbyaddr, gethostbyname, getnameinfo, getservbyname):
        new.__module__ = "_socket"
        setattr(module, new.__name__, new)
    module.SocketType = socket
    module.gethostname = lambda: os.uname().nodename
    numbers = {
        "SO_REUSEADDR": 2, "SO_ERROR": 4, "SO_BROADCAST": 6, "SO_SNDBUF": 7, "SO_RCVBUF": 8, "SO_KEEPALIVE": 9, "SO_LINGER": 13,
        "SO_REUSEPORT": 15, "SO_RCVTIMEO": 20, "SO_SNDTIMEO": 21, "SOCK_RAW": 3, "TCP_KEEPIDLE": 4, "TCP_KEEPINTVL": 5,
        "TCP_KEEPCNT": 6, "TCP_USER_TIMEOUT": 18,
    }
    for name, number in numbers.items():
        if not hasattr(module, name):
            setattr(module, name, number)


def selectors(module):
    """Has selectors know when these sockets are ready, which the host does not."""
    base = module._BaseSelectorImpl

    def change(kind):
        plain = kind.register, kind.unregister, kind.modify, kind.select

        def ours(self, fileobj):
            try:
                fd = self._fileobj_lookup(fileobj)
            except (ValueError, AttributeError):
                return False
            return fd in connections or fd in vars(self).get("_http", ())

        def register(self, fileobj, events, data=None):
            if not ours(self, fileobj):
                return plain[0](self, fileobj, events, data)
            key = base.register(self, fileobj, events, data)
            vars(self).setdefault("_http", set()).add(key.fd)
            return key

        def unregister(self, fileobj):
            if not ours(self, fileobj):
                return plain[1](self, fileobj)
            key = base.unregister(self, fileobj)
            self._http.discard(key.fd)
            return key

        def modify(self, fileobj, events, data=None):
            if not ours(self, fileobj):
                return plain[2](self, fileobj, events, data)
            unregister(self, fileobj)
            return register(self, fileobj, events, data)

        def select(self, timeout=None):
            ready, http = [], vars(self).get("_http", ())
            for fd in http:
                key, conn = self._fd_to_key[fd], connections.get(fd)
                events = key.events & (module.EVENT_WRITE | (module.EVENT_READ if conn is None or conn.readable() else 0))
                if events:
                    ready.append((key, events))
            others, processes = len(self._fd_to_key) > len(http), sys.modules.get("_openskill_processes")
            if processes and (others or processes.children):
                return ready + processes.select(self, plain[3], 0 if ready else timeout)
            if others:
                return ready + plain[3](self, 0 if ready else timeout)
            if not ready:
                _thread.allocate_lock._wait(timeout, lambda: vars(self).get("_woken"))
                self._woken = False
            return ready

        kind.register, kind.unregister, kind.modify, kind.select = register, unregister, modify, select

    for name in ("SelectSelector", "PollSelector"):
        if hasattr(module, name):
            change(getattr(module, name))
