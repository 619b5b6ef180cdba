"""Requests to one host: what is sent, how long is waited, and what is tried again."""

from __future__ import annotations

import contextlib
import http.client
import io
import json
import random
import re
import socket
import ssl
import time
from typing import Any, Callable, Dict, Iterator, Optional, Tuple
from urllib.parse import parse_qs, quote, urlsplit

from ._errors import Error, OpenSkillError, TimedOut, clean, from_answer
from ._events import Reader

JSON, EVENTS = "application/json", "text/event-stream"

_FIRST_WAIT = 0.25  # seconds, without a Retry-After
_LONGEST_WAIT = 60.0  # what a host may ask for; with more the refusal is given


class Transport:
    """Makes requests, each on a connection of its own, so that threads may share it."""

    def __init__(
        self,
        base: str,
        key: str,
        timeout: float,
        retries: int,
        user_agent: str,
        max_answer: int,
        max_event: int,
        context: Optional[ssl.SSLContext],
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        try:
            url = urlsplit(base)
            port = url.port
        except ValueError:
            raise OpenSkillError("invalid base URL; use one like http://127.0.0.1:8000") from None
        if url.scheme not in ("http", "https") or not url.hostname or not base.isascii() or any(c <= " " or c == "\x7f" for c in base):
            raise OpenSkillError("invalid base URL: begin with http:// or https:// and a host, like http://127.0.0.1:8000")
        if url.username is not None or url.password is not None:
            raise OpenSkillError("invalid base URL: remove user and password; pass the key as api_key")
        if "?" in base or "#" in base:
            raise OpenSkillError("invalid base URL: remove query and fragment")
        if any(c <= " " or c >= "\x7f" for c in key):
            raise OpenSkillError("invalid characters in the API key; remove a line end at its end")
        if not timeout > 0 or retries < 0:
            raise OpenSkillError("timeout must be more than 0 seconds, and retries at least 0")
        self.base = f"{url.scheme}://{url.netloc}{url.path.rstrip('/')}"
        self._secure, self._host, self._port, self._path = url.scheme == "https", url.hostname, port, url.path.rstrip("/")
        self._key, self._timeout, self._retries, self._agent = key, timeout, retries, user_agent
        self._max_answer, self._max_event, self._context, self._sleep = max_answer, max_event, context, sleep

    def call(self, method: str, path: str, body: Any = None, headers: Optional[Dict[str, str]] = None, timeout: Optional[float] = None) -> "Tuple[int, Dict[str, str], Any]":
        """Makes a request, and gives status, headers and decoded answer where the status is 200
        to 299. body is a value for JSON, or bytes with their content type."""
        clock = _Clock(time.monotonic() + (self._timeout if timeout is None else timeout))
        connection, answer, given = self._send(method, path, body, dict(headers or {}, Accept=JSON), clock)
        with _closing(connection, answer):
            text = self._read(answer)
        return answer.status, given, _decode(text, given)

    def content(self, path: str, headers: Dict[str, str]) -> bytes:
        """The bytes of a file."""
        clock = _Clock(time.monotonic() + self._timeout)
        connection, answer, _ = self._send("GET", path, None, dict(headers, Accept="application/octet-stream"), clock)
        with _closing(connection, answer):
            return self._read(answer)

    def stream(self, path: str, body: Any, headers: Dict[str, str]) -> "Tuple[str, Iterator[Tuple[str, bytes]]]":
        """Posts body, and gives the trace id and the events of the answer. What fails before the
        first event is raised here; the connection ends with the iterator."""
        clock = _Clock(time.monotonic() + self._timeout)
        connection, answer, given = self._send("POST", path, body, dict(headers, Accept=EVENTS), clock)
        if given.get("content-type", "").split(";")[0].strip().lower() != EVENTS:
            with _closing(connection, answer):
                raise OpenSkillError("the response is not an event stream; check that the base URL is an openSkill server")
        return given.get("x-trace-id", ""), self._events(connection, answer, clock)

    def _send(
        self, method: str, path: str, body: Any, headers: Dict[str, str], clock: "_Clock"
    ) -> "Tuple[http.client.HTTPConnection, http.client.HTTPResponse, Dict[str, str]]":
        """Sends a request until it is not refused, or is not to be tried again."""
        data, kind = None, ""
        if body is not None:
            data, kind = body if isinstance(body, tuple) else (_encode(body), JSON)
            headers["Content-Type"] = kind
        headers["User-Agent"] = self._agent
        if self._key:
            headers["Authorization"] = "Bearer " + self._key
        tried = 0
        while True:
            connection, answer = self._once(method, path, data, headers, clock)
            given = {k.lower(): v for k, v in answer.getheaders()}
            if 200 <= answer.status <= 299:
                return connection, answer, given
            with _closing(connection, answer):
                try:
                    said = json.loads(self._read(answer))
                except ValueError:
                    said = None
            refused = from_answer(answer.status, given, said)
            wait = refused.retry_after
            if wait is None:
                wait = _FIRST_WAIT * 2**tried * (1 + random.random() / 4)  # so that many clients do not come at once
            if tried >= self._retries or not _again(method, refused) or wait > min(_LONGEST_WAIT, clock.left()):
                raise refused
            tried += 1
            self._sleep(wait)

    def _once(
        self, method: str, path: str, data: Optional[bytes], headers: Dict[str, str], clock: "_Clock"
    ) -> "Tuple[http.client.HTTPConnection, http.client.HTTPResponse]":
        connection: http.client.HTTPConnection
        if self._secure:
            connection = http.client.HTTPSConnection(self._host, self._port, timeout=clock.left(), context=self._context)
        else:
            connection = http.client.HTTPConnection(self._host, self._port, timeout=clock.left())
        connection.response_class = lambda sock, **more: http.client.HTTPResponse(_Watched(sock, clock), **more)  # type: ignore
        try:
            try:
                connection.request(method, self._path + path, body=data, headers=headers)
            except (BrokenPipeError, ConnectionResetError):
                pass  # a host that refuses a long body does not read it to its end, and says why
            return connection, connection.getresponse()
        except BaseException as e:
            connection.close()
            raise self._broken(e) from None

    def _read(self, answer: http.client.HTTPResponse) -> bytes:
        try:
            text = answer.read(self._max_answer + 1)
        except Exception as e:
            raise self._broken(e) from None
        if len(text) > self._max_answer:
            raise OpenSkillError(f"the response exceeds {self._max_answer} bytes")
        if answer.length:  # what was announced and has not come; read does not say so
            raise OpenSkillError(f"the server at {self.base} cut off its response")
        return text

    def _events(self, connection: http.client.HTTPConnection, answer: http.client.HTTPResponse, clock: "_Clock") -> Iterator[Tuple[str, bytes]]:
        reader = Reader(self._max_event)
        with _closing(connection, answer):
            while True:
                clock.until = time.monotonic() + self._timeout  # each part has that long
                try:
                    part = answer.read1(65536)
                except Exception as e:
                    raise self._broken(e) from None
                if not part:
                    raise OpenSkillError("the stream ended before the turn")
                yield from reader.feed(part)

    def _broken(self, e: BaseException) -> BaseException:
        """What a failure below HTTP is to a caller: it tells nothing of what was sent."""
        if isinstance(e, OpenSkillError) or not isinstance(e, Exception):
            return e
        if isinstance(e, socket.timeout):
            return TimedOut(f"the host at {self.base} did not answer in time")
        if isinstance(e, (OSError, http.client.HTTPException)):
            return OpenSkillError(f"cannot reach the server at {self.base}, or it disconnected: {type(e).__name__}: {clean(e)}")
        return e


def _again(method: str, refused: Error) -> bool:
    """Whether a refusal says that nothing has begun. Of a 503 in answer to more than reading
    that is so where the host names a time."""
    if refused.status == 429:
        return True
    return refused.status == 503 and (method == "GET" or refused.retry_after is not None)


class _Clock:
    """When a request must have ended."""

    def __init__(self, until: float) -> None:
        self.until = until

    def left(self) -> float:
        left = self.until - time.monotonic()
        if left <= 0:
            raise TimedOut("the server did not answer in time")
        return left


class _Watched:
    """A socket for http.client whose reads end with a clock, however slowly bytes come."""

    def __init__(self, sock: socket.socket, clock: _Clock) -> None:
        self._sock, self._clock = sock, clock

    def makefile(self, mode: str) -> io.BufferedReader:
        return io.BufferedReader(_Bounded(self._sock, self._clock))


class _Bounded(io.RawIOBase):
    def __init__(self, sock: socket.socket, clock: _Clock) -> None:
        self._sock, self._clock = sock, clock
        self._raw = sock.makefile("rb", buffering=0)  # which keeps the socket open

    def readable(self) -> bool:
        return True

    def readinto(self, into: Any) -> Optional[int]:
        self._sock.settimeout(self._clock.left())
        return self._raw.readinto(into)

    def close(self) -> None:
        self._raw.close()
        super().close()


@contextlib.contextmanager
def _closing(connection: http.client.HTTPConnection, answer: http.client.HTTPResponse) -> Iterator[None]:
    try:
        yield
    finally:
        answer.close()
        connection.close()


def _encode(v: Any) -> bytes:
    try:
        return json.dumps(v, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode("utf-8")
    except (TypeError, ValueError, RecursionError) as e:
        raise OpenSkillError(f"cannot encode the request as JSON: {e}") from None


def _decode(text: bytes, headers: Dict[str, str]) -> Any:
    if not text:
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        kind = clean(headers.get("content-type", ""))[:60]
        raise OpenSkillError(f"cannot read the response ({kind}); check that the base URL is an openSkill server") from None


def segment(what: str, s: str) -> str:
    """An id or a name as one part of a path."""
    if not isinstance(s, str) or not s or len(s) > 1024 or s in (".", ".."):
        raise OpenSkillError(f"{clean(s)[:80]!r} is not a valid {what}")
    return quote(s, safe="")


def next_cursor(link: str) -> str:
    """The cursor of the next page in a header Link, "" if there is none. Of its address nothing
    else counts: the key goes nowhere else."""
    for target, parameters in re.findall(r"<([^>]*)>([^<]*)", link):
        if 'rel="next"' in parameters:
            with contextlib.suppress(ValueError):
                return parse_qs(urlsplit(target).query).get("cursor", [""])[0]
    return ""
