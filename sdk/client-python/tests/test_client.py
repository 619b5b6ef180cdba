"""The client against a server that says what a test wants, and breaks where it wants."""

import contextlib
import io
import json
import logging
import os
import socket
import tempfile
import threading
import traceback
import unittest
import zipfile
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from unittest.mock import patch

from openskill_client import Client, Error, Event, OpenSkillError, StoppedError, TimedOut
from openskill_client._events import Reader

SUCCESS = {"success": True, "skill_id": "echo", "trace_id": "t-1", "data": {"echoed": "hi"}, "error": None, "meta": {"latency_ms": 1}}
KEY = "osk_geheim_0123456789"


def failure(code, status, **details):
    return {"error": {"code": code, "status": status, "message": "why\x1b[31m\n not", "details": details}}


class Server:
    """Answers requests in turn: each answer is (status, headers, body), and a body is a value
    for JSON, bytes, or a function that gets the handler."""

    def __init__(self, *answers):
        self.asked = []
        server, turn = self, iter(answers)

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def handle_any(self):
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                server.asked.append((self.command, self.path, dict(self.headers), body))
                status, headers, body = next(turn)
                if callable(body):
                    self.close_connection = True
                    return body(self)
                body = body if isinstance(body, bytes) else json.dumps(body).encode()
                self.send_response(status)
                headers.setdefault("Content-Type", "application/json")
                for name, value in dict(headers, **{"Content-Length": str(len(body))}).items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(body)

            do_GET = do_POST = do_DELETE = handle_any

            def log_message(self, *args):
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = "http://127.0.0.1:%d" % self._server.server_address[1]
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *args):
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def events(*list_of, end=b""):
    """An answer that is a stream."""

    def write(handler):
        handler.send_response(200)
        for name, value in {"Content-Type": "text/event-stream; charset=utf-8", "X-Trace-Id": "t-9", "Connection": "close"}.items():
            handler.send_header(name, value)
        handler.end_headers()
        for name, data in list_of:
            handler.wfile.write(b": alive\n\nevent: %s\ndata: %s\n\n" % (name.encode(), json.dumps(data).encode()))
        handler.wfile.write(end)

    return 200, {}, write


class Requests(unittest.TestCase):
    def test_what_is_sent(self):
        with Server((200, {}, SUCCESS), (200, {}, {"id": "a b/c"})) as s:
            c = Client(s.url + "/", api_key=KEY, user_agent="mine").with_trace_id("t-1")
            r = c.invoke("echo", {"text": "héllo"}, version="1.0.0", limits={"fuel": 7})
            self.assertEqual((r.data, r.meta["latency_ms"], r.skill_id, r.trace_id), ({"echoed": "hi"}, 1, "echo", "t-1"))
            c.skill("a b/c")
            method, path, headers, body = s.asked[0]
            self.assertEqual((method, path), ("POST", "/skills/echo:invoke"))
            self.assertEqual(body.decode(), '{"input":{"text":"héllo"},"version":"1.0.0","limits":{"fuel":7}}')
            want = {"Authorization": "Bearer " + KEY, "User-Agent": "mine", "X-Trace-Id": "t-1", "Accept": "application/json", "Content-Type": "application/json"}
            self.assertEqual({k: headers.get(k) for k in want}, want)
            self.assertEqual(s.asked[1][1], "/skills/a%20b%2Fc")
            self.assertNotIn("Content-Type", s.asked[1][2])

    def test_a_script(self):
        with Server(*[(200, {}, SUCCESS)] * 3) as s:
            c = Client(s.url)
            self.assertEqual(c.run_script("a b", "sub/s.py", ["--n", 1], input="x", limits={"fuel": 7}, wait=60).data, {"echoed": "hi"})
            c.run_script("a", "s.py", {"n": 1}, wait=0)
            c.run_script("a", "s.py")
            self.assertEqual([(a[1], a[2].get("Prefer"), a[3].decode()) for a in s.asked], [
                ("/agent-skills/a%20b/scripts/sub%2Fs.py:run", "wait=60", '{"args":["--n",1],"input":"x","limits":{"fuel":7}}'),
                ("/agent-skills/a/scripts/s.py:run", None, '{"args":{"n":1}}'),
                ("/agent-skills/a/scripts/s.py:run", None, "{}"),
            ])

    def test_code_sessions(self):
        with Server((201, {}, {"id": "s-1"}), (200, {}, SUCCESS), *[(200, {}, {"id": "s-1"})] * 3, (204, {}, b"")) as s:
            c = Client(s.url)
            self.assertEqual(c.create_code_session()["id"], "s-1")
            c.run_code("python", "x", session="s-1")
            c.code_session("s-1")
            c.fork_code_session("s-1")
            c.freeze_code_session("s-1")
            c.delete_code_session("s-1")
            self.assertEqual([(a[0], a[1]) for a in s.asked], [
                ("POST", "/sessions"), ("POST", "/code:run"), ("GET", "/sessions/s-1"), ("POST", "/sessions/s-1:fork"),
                ("POST", "/sessions/s-1:freeze"), ("DELETE", "/sessions/s-1"),
            ])
            self.assertEqual(json.loads(s.asked[1][3]), {"language": "python", "code": "x", "session": "s-1"})

    def test_a_decision(self):
        done = events(("done", {"conversation_id": "c", "answer": "x", "stop_reason": "completed"}))
        limits = {"max_iterations": 1, "max_tool_calls": 2, "max_tokens": 3, "max_validation_retries": 4, "timeout_ms": 5, "tools": "code"}
        with Server((200, {}, {"answer": "x"}), done) as s:
            c = Client(s.url)
            c.approve("c", False, "ap-1", "openai", **limits)
            list(c.approve_stream("c", True, **limits))
            self.assertEqual([json.loads(a[3]) for a in s.asked], [
                dict(limits, approve=False, approval_id="ap-1", provider="openai"), dict(limits, approve=True, stream=True),
            ])

    def test_key_of_the_environment(self):
        with Server((200, {}, {}), (200, {}, {}), (200, {}, {})) as s:
            before = os.environ.get("OPENSKILL_API_KEY")
            os.environ["OPENSKILL_API_KEY"] = KEY
            try:
                Client(s.url).skill("a")
                Client(s.url, api_key="").skill("a")
                Client(s.url, api_key="other").skill("a")
            finally:
                if before is None:
                    del os.environ["OPENSKILL_API_KEY"]
                else:
                    os.environ["OPENSKILL_API_KEY"] = before
            self.assertEqual([a[2].get("Authorization") for a in s.asked], ["Bearer " + KEY, None, "Bearer other"])

    def test_address_of_the_environment(self):
        with Server((200, {}, {}), (200, {}, {})) as s:
            with patch.dict(os.environ, {"OPENSKILL_HTTP_BASE_URL": s.url}):
                Client().skill("a")
            with patch.dict(os.environ, {"OPENSKILL_HTTP_BASE_URL": "http://127.0.0.1:1"}):
                Client(s.url).skill("a")
            self.assertEqual(len(s.asked), 2)
        with patch.dict(os.environ, {"OPENSKILL_HTTP_BASE_URL": ""}):
            self.assertIn("http://127.0.0.1:8000", repr(Client()))

    def test_wrong_arguments(self):
        for url in ("", "127.0.0.1:8000", "ftp://host", "http://", "http://:80", "http://u:geheim@host", "http://host?key=geheim", "http://host/#x", "http://ho st", "http://host:x", "http://host\r\nX: y"):
            with self.assertRaises(OpenSkillError, msg=url) as e:
                Client(url)
            self.assertNotIn("geheim", str(e.exception))
        for key in ("a b", "osk_x\n", "ä"):
            with self.assertRaises(OpenSkillError) as e:
                Client("http://host", api_key=key)
            self.assertNotIn(key, str(e.exception))
        for more in ({"timeout": 0}, {"retries": -1}):
            with self.assertRaises(OpenSkillError):
                Client("http://host", **more)
        c = Client("http://127.0.0.1:9", api_key=KEY)
        for wrong in (
            lambda: c.skill(""),
            lambda: c.skill(".."),
            lambda: c.with_trace_id("a\r\nX: y"),
            lambda: c.invoke("echo", {"a": float("nan")}),
            lambda: c.invoke("echo", {"a": object()}),
        ):
            with self.assertRaises(OpenSkillError):
                wrong()

    def test_the_key_is_told_to_nobody(self):
        log = io.StringIO()
        handler = logging.StreamHandler(log)
        logging.getLogger().addHandler(handler)
        logging.getLogger().setLevel(logging.DEBUG)
        said = []
        with Server((401, {}, failure("UNAUTHORIZED", 401)), (302, {"Location": "http://127.0.0.1:9/"}, {}), (200, {}, b"<html>")) as s, contextlib.redirect_stderr(log):
            c = Client(s.url, api_key=KEY)
            said.append(repr(c) + str(vars(c)))
            for _ in range(3):
                try:
                    c.invoke("echo")
                except OpenSkillError as e:
                    said.append(traceback.format_exc() + repr(e) + repr(vars(e)))
        with self.assertRaises(OpenSkillError):
            c.invoke("echo")  # nobody is there any more
        logging.getLogger().removeHandler(handler)
        self.assertEqual(len(said), 4)
        self.assertNotIn(KEY, "".join(said) + log.getvalue())
        self.assertIn("refused to follow", said[2])
        self.assertIn("is an openSkill server", said[3])

    def test_errors(self):
        with Server(
            (408, {"X-Trace-Id": "t-2"}, dict(failure("TIMEOUT", 408, n=1), success=False, data=None, meta={"execution_id": "e-1"})),
            (502, {"Content-Type": "text/html"}, b"<html>\x1b[2J"),
            (422, {}, {"error": {"code": "a\nb", "message": 5, "details": []}}),
            (500, {}, {"error": {"code": "AGENT_LOOP_ERROR", "message": "x"}, "meta": {"request_id": "r-1"}}),
            (200, {}, {"id": "no result"}),
            (200, {}, dict(SUCCESS, success=False)),
        ) as s:
            c = Client(s.url)
            got = []
            for _ in range(4):
                with self.assertRaises(Error) as e:
                    c.invoke("echo")
                got.append((e.exception.status, e.exception.code, e.exception.message[:30], e.exception.trace_id))
            self.assertEqual(got[0], (408, "TIMEOUT", "why[31m  not", "t-2"))
            self.assertEqual(got[1][:2] + got[1][3:], (502, "", ""))
            self.assertEqual(got[2], (422, "", "5", ""))
            self.assertEqual(got[3], (500, "AGENT_LOOP_ERROR", "x", "r-1"))
            for _ in range(2):
                with self.assertRaises(OpenSkillError) as wrong:
                    c.invoke("echo")
                self.assertNotIsInstance(wrong.exception, Error)

    def test_details_and_meta_of_a_failed_call(self):
        with Server((400, {}, dict(failure("INVALID_ARGUMENT", 400, fields=[{"field": "/a"}]), success=False, data=None, meta={"execution_id": "e-1"}))) as s:
            with self.assertRaises(Error) as e:
                Client(s.url).invoke("echo")
        self.assertEqual(e.exception.details, {"fields": [{"field": "/a"}]})
        self.assertEqual(e.exception.result["meta"]["execution_id"], "e-1")

    def test_pages(self):
        with Server((200, {}, {"data": [{"id": "a"}], "next": "x&y"}), (200, {}, {"data": [{"id": "b"}], "next": None})) as s:
            self.assertEqual([d["id"] for d in Client(s.url).skills()], ["a", "b"])
            self.assertEqual([a[1] for a in s.asked], ["/skills?limit=100", "/skills?limit=100&cursor=x%26y"])
        with Server(*[(200, {}, {"data": [], "next": "x"})] * 3) as s, self.assertRaisesRegex(OpenSkillError, "does not end"):
            list(Client(s.url).skills())

    def test_search(self):
        with Server((200, {}, {"data": [{"type": "skill", "name": "a"}]})) as s:
            self.assertEqual(Client(s.url).search("a&b", limit=2), [{"type": "skill", "name": "a"}])
            self.assertEqual([a[1] for a in s.asked], ["/search?q=a%26b&limit=2"])

    def test_pages_of_tools(self):
        def link(cursor):
            return {"Link": f'</x>; rel="prev", <https://other.example/x?cursor={cursor}&limit=1>; rel="next"'}

        with Server((200, link("a%26b"), [{"name": "a"}]), (200, link("c"), [{"name": "b"}]), (200, {"Link": '<%zz>; rel="next"'}, [])) as s:
            self.assertEqual(Client(s.url).tools("mcp"), [{"name": "a"}, {"name": "b"}])
            self.assertEqual([a[1] for a in s.asked], ["/tools?format=mcp", "/tools?format=mcp&cursor=a%26b", "/tools?format=mcp&cursor=c"])
        with Server((200, {}, {"tools": [{"name": "a"}]})) as s:
            self.assertEqual(Client(s.url).tools(), [{"name": "a"}])
        with Server(*[(200, link("a"), [])] * 2) as s, self.assertRaisesRegex(OpenSkillError, "does not end"):
            Client(s.url).tools()
        with Server((200, {}, {})) as s, self.assertRaisesRegex(OpenSkillError, "not a list"):
            Client(s.url).tools()

    def test_changes(self):
        change = {"id": "1", "tenant": "a b", "action": "key.create", "subject": "k", "principal": "local"}
        with Server((200, {}, {"data": [change], "next": "1"}), (200, {}, {"data": [], "next": None}), (200, {}, {"data": [], "next": None})) as s:
            self.assertEqual(list(Client(s.url).changes("a b", since="2026-11-26T09:00:00+01:00")), [change])
            self.assertEqual(list(Client(s.url).changes()), [])
            first = "/audit/changes?limit=100&tenant=a%20b&since=2026-11-26T09%3A00%3A00%2B01%3A00"
            self.assertEqual([a[1] for a in s.asked], [first, first + "&cursor=1", "/audit/changes?limit=100"])

    def test_usage(self):
        usage = {"tenant": "a b", "stored": [], "today": [{"kind": "calls", "used": 1, "limit": 9}], "resets_at": "2026-01-03T00:00:00Z"}
        with Server((200, {}, usage), (200, {}, usage)) as s:
            self.assertEqual(Client(s.url).usage("a b"), usage)
            self.assertEqual(Client(s.url).usage()["today"][0]["limit"], 9)
            self.assertEqual([a[1] for a in s.asked], ["/usage?tenant=a%20b", "/usage"])


class Retries(unittest.TestCase):
    def tries(self, answers, method="invoke", **options):
        slept = []
        with Server(*answers) as s:
            c = Client(s.url, sleep=slept.append, **options)
            try:
                result = c.invoke("echo", {"n": 1}) if method == "invoke" else c.skill("echo")
            except OpenSkillError as e:
                result = e
            self.assertEqual({a[3] for a in s.asked}, {s.asked[0][3]})
            return result, slept, len(s.asked)

    def busy(self, status=429, after=None):
        code = {429: "RATE_LIMITED", 503: "AUDIT_UNAVAILABLE"}.get(status, "INTERNAL")
        return status, {} if after is None else {"Retry-After": after}, failure(code, status)

    def test_as_long_as_the_host_says(self):
        result, slept, asked = self.tries([self.busy(after="3"), self.busy(after="1"), (200, {}, SUCCESS)])
        self.assertEqual((result.data, slept, asked), ({"echoed": "hi"}, [3.0, 1.0], 3))

    def test_longer_each_time(self):
        result, slept, asked = self.tries([self.busy()] * 3 + [(200, {}, SUCCESS)], retries=3)
        self.assertEqual((result.data, asked), ({"echoed": "hi"}, 4))
        for got, least in zip(slept, (0.25, 0.5, 1.0)):
            self.assertTrue(least <= got <= least * 1.25, slept)

    def test_not_for_ever(self):
        result, slept, asked = self.tries([self.busy(after="1")] * 4)
        self.assertEqual((result.code, result.status, result.retry_after, slept, asked), ("RATE_LIMITED", 429, 1.0, [1.0, 1.0], 3))
        result, slept, asked = self.tries([self.busy()], retries=0)
        self.assertEqual((result.status, slept, asked), (429, [], 1))

    def test_not_longer_than_there_is_time(self):
        for after, options in (("3600", {}), ("61", {"timeout": 600}), ("5", {"timeout": 3}), ("1" * 400, {})):
            result, slept, asked = self.tries([self.busy(after=after)] + [(200, {}, SUCCESS)], **options)
            if len(after) == 400:  # no number of seconds: as if it were not said
                self.assertEqual((result.data, asked), ({"echoed": "hi"}, 2))
            else:
                self.assertEqual((result.status, slept, asked), (429, [], 1))

    def test_unavailable(self):
        # A call may have run where the host cannot say so; one that names a time has not.
        result, _, asked = self.tries([self.busy(503)])
        self.assertEqual((result.status, asked), (503, 1))
        result, slept, _ = self.tries([self.busy(503, "2"), (200, {}, SUCCESS)])
        self.assertEqual((result.data, slept), ({"echoed": "hi"}, [2.0]))
        result, _, asked = self.tries([self.busy(503), (200, {}, {"id": "echo"})], method="skill")
        self.assertEqual((result, asked), ({"id": "echo"}, 2))

    def test_nothing_else(self):
        for status in (400, 408, 409, 500, 502, 504):
            self.assertEqual(self.tries([self.busy(status, "1")])[1:], ([], 1))
        result, slept, asked = self.tries([(200, {}, lambda handler: None)])
        self.assertIn("disconnected", str(result))
        self.assertEqual((slept, asked), ([], 1))

    def test_a_stream_that_has_not_begun(self):
        slept = []
        with Server(self.busy(after="1"), events(("done", {"answer": "x"}))) as s:
            got = list(Client(s.url, sleep=slept.append).chat_stream("hi"))
        self.assertEqual((got[-1].answer, slept), ({"answer": "x"}, [1.0]))


class Hostile(unittest.TestCase):
    def test_too_long(self):
        with Server((200, {}, b"[" + b"1," * 1000 + b"1]")) as s, self.assertRaisesRegex(OpenSkillError, "exceeds 100 bytes"):
            Client(s.url, max_answer=100).skill("a")
        with Server((400, {}, b"x" * 1000)) as s, self.assertRaisesRegex(OpenSkillError, "exceeds 100 bytes"):
            Client(s.url, max_answer=100).skill("a")

    def test_cut_off(self):
        def cut(handler):
            handler.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\nContent-Type: application/json\r\n\r\n{}")

        def junk(handler):
            handler.wfile.write(b"\x00\xff" * 50 + b"\n\n")

        for broken in (cut, junk):
            with Server((0, {}, broken)) as s, self.assertRaises(OpenSkillError) as e:
                Client(s.url).skill("a")
            self.assertNotIsInstance(e.exception, Error)

    def test_slow(self):
        stop = threading.Event()
        self.addCleanup(stop.set)

        def silent(handler):
            stop.wait(30)

        def drips(handler):  # each byte comes in time, and the whole never does
            with contextlib.suppress(OSError):
                handler.wfile.write(b"HTTP/1.1 200 OK\r\nX: ")
                while not stop.wait(0.02):
                    handler.wfile.write(b"x")

        def drips_in_body(handler):
            with contextlib.suppress(OSError):
                handler.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n")
                while not stop.wait(0.02):
                    handler.wfile.write(b"x")

        for slow in (silent, drips, drips_in_body):
            with Server((0, {}, slow)) as s, self.assertRaises(TimedOut, msg=slow.__name__):
                Client(s.url, timeout=0.3).skill("a")

    def test_nobody_there(self):
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            with self.assertRaises(OpenSkillError):
                Client("http://127.0.0.1:%d" % s.getsockname()[1]).skill("a")

    def test_deep(self):
        with Server((200, {}, b"[" * 100_000)) as s, self.assertRaises(OpenSkillError):
            Client(s.url).skill("a")


class Streams(unittest.TestCase):
    def test_events(self):
        call = {"id": "c", "skill_id": "s", "result": "r"}
        answer = {"conversation_id": "v", "answer": "Hi.", "stop_reason": "completed"}
        list_of = (("start", {"conversation_id": "v", "trace_id": "t"}), ("later", {"x": 1}), ("text", {"text": "Hi."}), ("tool_start", call), ("tool_end", call), ("usage", {"total_tokens": 3}), ("approval_required", {"approval_id": "a"}), ("done", answer), ("text", {"text": "late"}))
        with Server(events(*list_of)) as s:
            got = list(Client(s.url).chat_stream("hi", model="m", max_tokens=5))
            self.assertEqual(json.loads(s.asked[0][3]), {"message": "hi", "model": "m", "max_tokens": 5, "stream": True})
            self.assertEqual(s.asked[0][2]["Accept"], "text/event-stream")
        want = [
            Event("start", conversation="v", trace_id="t"),
            Event("text", text="Hi."),
            Event("tool_start", tool=call, result="r"),
            Event("tool_end", tool=call, result="r"),
            Event("usage", usage={"total_tokens": 3}),
            Event("approval_required", approval={"approval_id": "a"}),
            Event("done", answer=answer, conversation="v"),
        ]
        self.assertEqual(got, want)

    def test_failures(self):
        for end, kind, words in (
            (events(("error", {"code": "AGENT_LOOP_ERROR", "status": 500, "message": "m"})), Error, "AGENT_LOOP_ERROR: m"),
            (events(("text", {"text": "x"})), OpenSkillError, "ended before the turn"),
            (events(end=b"event: text\ndata: {]\n\n"), OpenSkillError, "cannot read the event"),
            (events(end=b"event: text\ndata: []\n\n"), OpenSkillError, "not an object"),
            (events(end=b"data: " + b"x" * 2000), OpenSkillError, "exceeds 1000 bytes"),
            ((200, {}, {"answer": "no stream"}), OpenSkillError, "not an event stream"),
            ((409, {}, failure("CONFLICT", 409)), Error, "CONFLICT"),
        ):
            with Server(end) as s, self.assertRaisesRegex(kind, words):
                list(Client(s.url, max_event=1000).chat_stream("hi"))

    def test_one_that_waits_is_alive_as_long_as_it_says_so(self):
        alive = threading.Event()
        self.addCleanup(alive.set)

        def slow(handler):
            handler.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n")
            for _ in range(25):  # longer than the timeout in all
                handler.wfile.write(b": alive\n\n")
                alive.wait(0.1)
            handler.wfile.write(b'event: done\ndata: {"answer": "x"}\n\n')

        with Server((0, {}, slow)) as s:
            self.assertEqual(list(Client(s.url, timeout=2).chat_stream("hi"))[0].kind, "done")

        def silent(handler):
            handler.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n")
            alive.wait(30)

        with Server((0, {}, silent)) as s, self.assertRaises(TimedOut):
            list(Client(s.url, timeout=0.3).chat_stream("hi"))

    def test_an_agent_that_stops(self):
        stopped = {"conversation_id": "v", "answer": "So far.", "stop_reason": "max_tokens"}
        with Server((200, {}, stopped), events(("start", {"conversation_id": "w"}), ("done", stopped))) as s:
            a = Client(s.url).new_agent()
            with self.assertRaises(StoppedError) as e:
                a.run("hi")
            self.assertEqual((e.exception.answer, a.last, a.conversation), (stopped, stopped, "v"))
            heard = []
            a.hear = heard.append
            with self.assertRaises(StoppedError):
                a.run("on")
            self.assertEqual([h.kind for h in heard], ["start", "done"])
            self.assertEqual(json.loads(s.asked[1][3])["conversation_id"], "v")

    def test_the_standard(self):
        for name, text, want in (
            ("all line ends", b"data: a\r\n\r\ndata: b\n\ndata: c\r\r", [("message", b"a"), ("message", b"b"), ("message", b"c")]),
            ("fields", b"event: e\nid: 1\nretry: 5\ndata:x\ndata: y\ndata\n\n", [("e", b"x\ny\n")]),
            ("no data, no event", b"event: e\n\n: c\n\ndata: x\n\n", [("message", b"x")]),
            ("a mark at the beginning", b"\xef\xbb\xbfdata: x\n\n", [("message", b"x")]),
            ("cut off", b"data: x\n", []),
        ):
            self.assertEqual(list(Reader(100).feed(text)), want, name)
            one = Reader(100)
            self.assertEqual([e for i in range(len(text)) for e in one.feed(text[i : i + 1])], want, name + ", byte by byte")
        with self.assertRaises(OpenSkillError):
            list(Reader(10).feed(b": " + b"x" * 11))


class Uploads(unittest.TestCase):
    def folder(self, **files):
        dir = tempfile.mkdtemp()
        for name, text in files.items():
            path = os.path.join(dir, *name.split("__in__"))
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w") as f:
                f.write(text)
        self.addCleanup(__import__("shutil").rmtree, dir)
        return dir

    def test_a_folder(self):
        dir = self.folder(**{"skill.yaml": "id: a", "src__in__main.py": "x", ".hidden": "x", "__pycache____in__a.pyc": "x", ".git__in__config": "x", "target__in__a": "x"})
        with Server((201, {}, {"id": "a"}), (201, {}, {"id": "a"})) as s:
            c = Client(s.url)
            self.assertEqual(c.upload(dir)["id"], "a")
            c.upload(dir, dry_run=True)
            _, path, headers, body = s.asked[0]
            boundary = headers["Content-Type"].split("boundary=")[1]
            head, _, rest = body.partition(b"\r\n\r\n")
            self.assertIn(b'name="archive"', head)
            archive = rest[: -len(b"\r\n--%s--\r\n" % boundary.encode())]
            with zipfile.ZipFile(io.BytesIO(archive)) as z:
                self.assertEqual(z.namelist(), ["skill.yaml", "src/main.py"])
            self.assertEqual([a[1] for a in s.asked], ["/skills", "/skills?dry_run=true"])
            again = s.asked[1][3].partition(b"\r\n\r\n")[2]
            self.assertTrue(again.startswith(archive), "the same files give other bytes")

    def test_a_module(self):
        with Server((201, {}, {"id": "a"})) as s:
            Client(s.url).upload(b"\0asm", b"id: a")
            self.assertIn(b'name="module"', s.asked[0][3])
            self.assertIn(b'name="manifest"', s.asked[0][3])

    def test_what_is_no_skill(self):
        c = Client("http://127.0.0.1:9")
        linked = self.folder(**{"skill.yaml": "id: a"})
        os.symlink("/etc/passwd", os.path.join(linked, "link"))
        for source in (self.folder(), linked, os.path.join(linked, "nothing.zip")):
            with self.assertRaises(OpenSkillError):
                c.upload(source)


class Runs(unittest.TestCase):
    def test_states(self):
        slept = []
        accepted = (202, {"Location": "/executions/e-1"}, {"id": "e-1", "status": "queued", "trace_id": "t"})
        running = (200, {}, {"id": "e-1", "status": "running"})
        queued = (200, {}, {"id": "e-1", "status": "queued"})
        with Server(accepted, queued, running, (200, {}, {"id": "e-1", "status": "success", "result": SUCCESS})) as s:
            run = Client(s.url, sleep=slept.append).start("echo", {"text": "hi"})
            self.assertEqual(s.asked[0][2]["Prefer"], "respond-async")
            self.assertFalse(run.done())
            self.assertEqual((run.id, run.wait().data, run.wait().data, run.done()), ("e-1", {"echoed": "hi"}, {"echoed": "hi"}, True))
            self.assertEqual((len(slept), [a[1] for a in s.asked[1:]]), (1, ["/executions/e-1"] * 3))
        with Server(accepted, running) as s, self.assertRaisesRegex(TimedOut, "e-1"):
            Client(s.url).start("echo").wait(timeout=0)
        kept = dict(failure("TIMEOUT", 408), trace_id="t-5")
        for record, code, status in (
            ({"status": "timeout", "result": kept}, "TIMEOUT", 408),
            ({"status": "failed", "error": {"code": "TRAP", "message": "m"}}, "TRAP", 0),
            ({"status": "success"}, None, None),
        ):
            with Server(accepted, (200, {}, record)) as s, self.assertRaises(OpenSkillError) as e:
                Client(s.url).start("echo").wait()
            self.assertEqual((getattr(e.exception, "code", None), getattr(e.exception, "status", None)), (code, status))
        with Server((200, {}, SUCCESS)) as s:  # who may not read executions
            run = Client(s.url).start("echo")
            self.assertEqual((run.done(), run.wait().data), (True, {"echoed": "hi"}))


if __name__ == "__main__":
    unittest.main()
