"""python3 -m unittest discover -s tests, in the folder sdk/python."""

import contextlib
import io
import json
import math
import os
import subprocess
import sys
import tempfile
import unittest
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Dict, List, Literal, Optional, Tuple, TypedDict, Union

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from openskill_guest import Failure, rehearse, serve_on, typed

HIDDEN = {"code": "INTERNAL", "message": "the skill failed; its standard error says why", "details": {"reason": "failed"}}


@dataclass
class Point:
    lat: float
    lon: float


@dataclass
class Wide:
    name: str
    count: int = 0
    at: Optional[Point] = None
    points: List[Point] = field(default_factory=list)
    kind: Literal["a", "b", 1] = "a"
    pair: Tuple[int, str] = (0, "")
    many: Tuple[int, ...] = ()
    by_name: Dict[str, List[bool]] = field(default_factory=dict)
    anything: Any = None
    plain: list = field(default_factory=list)
    later: "Optional[Point]" = None
    hidden: int = field(default=7, init=False)


class Part(TypedDict, total=False):
    size: int


class Whole(Part):
    name: str


def call(run, given=b'{"input": {}}', kind=dict, root=None):
    """What a function leaves: exit code, answer, logs."""
    logs = io.StringIO()
    code, out = serve_on(given, run, kind, root, logs)
    if out.count(b"\n") != 1 or not out.endswith(b"\n"):
        raise AssertionError("standard output is not one line: %r" % out)
    return code, json.loads(out), logs.getvalue()


class Types(unittest.TestCase):
    def test_takes(self):
        got = typed(
            {"name": "n", "count": 3.0, "at": {"lat": 1, "lon": -0.5, "height": 9}, "points": [{"lat": 0, "lon": 0}], "kind": 1,
             "pair": [1e2, "x"], "many": [1, 2, 3], "by_name": {"": [True]}, "anything": [None, 2**64], "plain": [1, "a"],
             "later": None, "hidden": 8, "unknown": 9},
            Wide,
        )
        want = Wide("n", 3, Point(1.0, -0.5), [Point(0.0, 0.0)], 1, (100, "x"), (1, 2, 3), {"": [True]}, [None, 2**64], [1, "a"], None)
        self.assertEqual(got, want)
        self.assertIs(type(got.count), int)
        self.assertIs(type(got.at.lat), float)
        self.assertEqual(typed({"name": "x"}, Whole), {"name": "x"})
        self.assertEqual(typed([1], List[int]), [1])

    def test_refuses(self):
        for given, kind, want in (
            ({}, Wide, "missing name: required"),
            ({"count": True}, Wide, "type count: must be an integer"),
            ({"count": 0.5}, Wide, "type count: must be an integer"),
            ({"count": None}, Wide, "type count: must be an integer"),
            ({"name": 1, "at": 2}, Wide, "type at: must be an object"),
            ({"name": "", "at": {"lat": 1}}, Wide, "missing at.lon: required"),
            ({"points": [{"lat": 1, "lon": 1}, {"lat": "1"}]}, Wide, "type points[1].lat: must be a number"),
            ({"kind": "c"}, Wide, "unsupported kind: must be one of a, b, 1"),
            ({"kind": True}, Wide, "unsupported kind: must be one of a, b, 1"),
            ({"pair": [1]}, Wide, "length pair: must be a list of 2"),
            ({"pair": [1, 2]}, Wide, "type pair[1]: must be a string"),
            ({"many": [1, "2"]}, Wide, "type many[1]: must be an integer"),
            ({"by_name": {"b": 1, "a": [1]}}, Wide, "type by_name.a[0]: must be true or false"),
            ({"plain": {}}, Wide, "type plain: must be a list"),
            ({"later": {"lat": 1}}, Wide, "missing later.lon: required"),
            ({"k" * 100: 1}, Dict[str, str], "type " + "k" * 64 + ": must be a string"),
            ({"size": 1}, Whole, "missing name: required"),
            ({"name": "", "size": ""}, Whole, "type size: must be an integer"),
            ([], dict, "type input: must be an object"),
            (1, None, "type input: must be null"),
        ):
            with self.subTest(given), self.assertRaises(Failure) as raised:
                typed(given, kind)
            failure = raised.exception
            self.assertEqual((failure.details["reason"] + " " + failure.message, failure.code), (want, "INVALID_ARGUMENT"))
            self.assertTrue(failure.message.startswith(failure.details["field"] + ": "))

    def test_types_that_cannot_be_read(self):
        for kind in (set, Union[int, str], Dict[int, str], complex, List["nowhere"]):
            with self.subTest(kind), self.assertRaises((TypeError, NameError)):
                typed({"a": 1} if "Dict" in str(kind) else [1] if "List" in str(kind) else 1, kind)

    @unittest.skipIf(sys.version_info < (3, 10), "since Python 3.10")
    def test_unions_by_a_bar(self):
        self.assertIsNone(typed(None, eval("int | None")))
        self.assertEqual(typed(1, eval("int | None")), 1)
        self.assertEqual(typed([1], eval("list[int]")), [1])


class Answers(unittest.TestCase):
    def test_answers(self):
        def boom(error):
            raise error

        circle = {}
        circle["a"] = circle
        number = lambda path: {"code": "INTERNAL", "message": path + ": NaN and infinite numbers are no JSON", "details": {"field": path, "reason": "number"}}
        no_object = {"code": "INTERNAL", "message": "data: must be an object", "details": {"field": "data", "reason": "type"}}
        for name, run, want, logged in (
            ("a dataclass", lambda c, g: Point(1, 2), {"lat": 1, "lon": 2}, ""),
            ("dataclasses within", lambda c, g: {"p": [Point(1, 2)], "t": (1,)}, {"p": [{"lat": 1, "lon": 2}], "t": [1]}, ""),
            ("large integers", lambda c, g: {"n": 10**30}, {"n": 10**30}, ""),
            ("half a pair", lambda c, g: {"a\ud83d": "\ude00😀"}, {"a\ufffd": "\ufffd😀"}, ""),
            ("NaN", lambda c, g: {"b": 1, "a": [0.5, math.nan]}, number("data.a[1]"), ""),
            ("infinite", lambda c, g: Point(1.0, -math.inf), number("data.lon"), ""),
            ("nothing", lambda c, g: None, no_object, ""),
            ("a list", lambda c, g: [], no_object, ""),
            ("a class", lambda c, g: Point, no_object, ""),
            ("a set", lambda c, g: {"a": {1}}, HIDDEN, "ERROR uncaught: a value of the type set is no JSON\nTraceback"),
            ("a circle", lambda c, g: circle, HIDDEN, "ERROR uncaught: Circular reference detected\nTraceback"),
            ("an exception", lambda c, g: boom(KeyError("a\nb")), HIDDEN, "ERROR uncaught: 'a\\nb'\nTraceback"),
            ("its end", lambda c, g: sys.exit(0), HIDDEN, "ERROR uncaught: 0\nTraceback"),
            ("no end", lambda c, g: (lambda f: f(f))(lambda f: f(f)), HIDDEN, "ERROR uncaught: maximum recursion depth exceeded"),
            ("no memory", lambda c, g: boom(MemoryError()), HIDDEN, "ERROR uncaught: \nTraceback"),
            ("NaN in details", lambda c, g: boom(Failure("X", "x", {"a": [math.inf]})), number("details.a[0]"), ""),
            ("details that are none", lambda c, g: boom(Failure("X", "x", {"a": {1}})), HIDDEN, "ERROR uncaught: a value of the type set"),
            ("no code", lambda c, g: boom(Failure("", "x")), HIDDEN, "ERROR uncaught: a Failure needs"),
            ("no message", lambda c, g: boom(Failure("X", None)), HIDDEN, "ERROR uncaught: a Failure needs"),
            ("its own code", lambda c, g: boom(Failure("X", "x")), {"code": "X", "message": "x"}, ""),
        ):
            with self.subTest(name):
                code, answer, logs = call(run)
                failed = "code" in want
                self.assertEqual(answer, {"success": not failed, "data": None if failed else want, "error": want if failed else None})
                self.assertEqual(code, int(failed))
                self.assertTrue(logs.startswith(logged) and bool(logs) == bool(logged), logs)

    def test_an_exception_that_cannot_be_shown(self):
        class Silent(Exception):
            def __str__(self):
                raise RuntimeError("no")

        def run(c, g):
            raise Silent()

        self.assertEqual(call(run)[:2], (1, {"success": False, "data": None, "error": HIDDEN}))

    def test_logs(self):
        def run(c, g):
            c.debug("a\r\n\x1b[31m\x9b\u2028\ud800😀", n=1, e=ValueError("x"), l=["\u2029<"])
            c.warn(7)
            return {}

        self.assertEqual(call(run)[2], 'DEBUG a\\u000d\\u000a\\u001b[31m\\u009b\\u2028?😀 {"n":1,"e":"x","l":["\\u2029<"]}\nWARN 7\n')

    def test_rehearsals(self):
        seen = []

        def run(c, given):
            print("nobody reads this")
            seen.append(given.lat)
            for f in (lambda: c.read_data("data/a"), lambda: c.write_artifact("a", b"")):
                with self.assertRaises(Failure) as raised:
                    f()
                seen.append(raised.exception.details["reason"])
            raise RuntimeError("nor this")

        out = io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
            rehearse(run, {"lat": 1, "lon": 2}, Point)
        self.assertEqual((seen, out.getvalue()), ([1.0, "no_data", "no_scratch"], ""))

    def test_a_script(self):
        """Prints cannot spoil the answer, whatever the locale; streams that are gone end it."""
        script = "import sys\nfrom openskill_guest import serve\ndef run(c, g):\n    print('größe')\n    c.info('größe')\n    return {'ö': g}\nsys.exit(serve(run))\n"
        env = {**os.environ, "PYTHONPATH": sys.path[0], "PYTHONIOENCODING": "ascii:backslashreplace"}
        for given, code, want in (
            ('{"input": {"ä": "\u2028"}}', 0, {"success": True, "data": {"ö": {"ä": "\u2028"}}, "error": None}),
            ("\udcff", 1, None),
        ):
            done = subprocess.run([sys.executable, "-c", script], input=given.encode("utf-8", "surrogateescape"), capture_output=True, env=env)
            self.assertEqual(done.returncode, code, done)
            if want:
                self.assertEqual(json.loads(done.stdout), want)
                self.assertEqual(done.stderr.decode(), "gr\\xf6\\xdfe\nINFO größe\n".replace("\n", os.linesep))
            else:
                self.assertIn(b'"malformed"', done.stdout)


class Files(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name)
        (self.root / "granted" / "docs").mkdir(parents=True)
        (self.root / "work").mkdir()
        (self.root / "secret").write_text("secret")
        (self.root / "granted" / "a").write_bytes(b"a\0\xff")
        try:
            (self.root / "data").symlink_to(self.root / "granted")
            (self.root / "granted" / "link").symlink_to(self.root / "secret")
            (self.root / "granted" / "docs" / "up").symlink_to("..")
            (self.root / "granted" / "dangling").symlink_to("nowhere")
        except OSError as why:
            self.skipTest(why)

    def reasons(self, f, names):
        got = {}

        def run(c, g):
            for name in names:
                try:
                    f(c, name)
                    got[name] = None
                except Failure as failure:
                    got[name] = failure.code + " " + failure.details["reason"]
                    self.assertLessEqual(len(failure.details.get("path", "")), 200)
            return {}

        self.assertEqual(call(run, root=str(self.root))[0], 0)
        return got

    def test_data(self):
        want = {
            "./data/./a": None, "data/link": "FORBIDDEN_PATH link", "data/docs/up/a": "FORBIDDEN_PATH link", "data/dangling": "FORBIDDEN_PATH link",
            "data/docs": "INVALID_ARGUMENT no_file", "data/a/b": "NOT_FOUND not_found", "data/" + "x" * 300: "NOT_FOUND not_found",
            "data/" + "x" * 1100: "FORBIDDEN_PATH outside_data", "data/\ud800": "FORBIDDEN_PATH outside_data", "secret": "FORBIDDEN_PATH outside_data",
            7: "FORBIDDEN_PATH outside_data", None: "FORBIDDEN_PATH outside_data",
        }
        self.assertEqual(self.reasons(lambda c, name: c.read_data(name), want), want)
        self.assertEqual(call(lambda c, g: {"n": len(c.read_data("data/a"))}, root=str(self.root))[1]["data"], {"n": 3})

    def test_artifacts(self):
        name = "FORBIDDEN_PATH name"
        want = {"": name, ".": name, "..": name, "a..b": name, "/a": name, "a\\b": name, "a\0": name, "\ud800": name, "é" * 101: name, 7: name,
                "folder": "INTERNAL unwritable", "é" * 100: None, ".hidden": None}
        (self.root / "work" / "folder").mkdir()
        self.assertEqual(self.reasons(lambda c, name: c.write_artifact(name, b"x"), want), want)
        call(lambda c, g: [c.write_artifact("twice", "longer"), c.write_artifact("twice", "ü")], root=str(self.root))
        self.assertEqual((self.root / "work" / "twice").read_bytes(), "ü".encode())


if __name__ == "__main__":
    unittest.main()
