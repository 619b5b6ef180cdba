"""What a script may use when it is compiled ahead of time. Each line that this prints
is the same that CPython prints; features.txt holds them.
"""

import argparse
import asyncio
import collections
import contextlib
import csv
import dataclasses
import datetime
import decimal
import enum
import fractions
import functools
import hashlib
import heapq
import io
import itertools
import json
import math
import random
import re
import statistics
import string
import struct
import sys
import textwrap
import traceback
import typing
import unicodedata
import urllib.parse

FEATURES = []


def feature(f):
    FEATURES.append(f)
    return f


@dataclasses.dataclass(order=True, frozen=True)
class Point:
    x: int
    y: int = 0
    tags: list = dataclasses.field(default_factory=list, compare=False)


@feature
def dataclass():
    a, b = Point(1, 2), Point(1, 3, ["t"])
    try:
        a.x = 5
    except dataclasses.FrozenInstanceError as e:
        return a < b, dataclasses.asdict(b), dataclasses.replace(a, y=9), str(e)


def logged(f):
    @functools.wraps(f)
    def inner(*args, **kwargs):
        return ["called", f(*args, **kwargs)]

    return inner


@logged
def add(a, *, b=2):
    "Adds."
    return a + b


@feature
def wraps():
    return add(1, b=3), add.__name__, add.__doc__, add.__wrapped__(1)


@feature
def generator():
    def counting():
        got = yield 1
        try:
            while True:
                got = yield got * 2
        except ValueError as e:
            yield str(e)
        finally:
            yield "end"

    g = counting()
    return next(g), g.send(5), g.send(6), g.throw(ValueError("thrown")), next(g), g.gi_frame is None, list(itertools.islice((n * n for n in itertools.count()), 4))


@feature
def coroutine():
    async def twice(n):
        return n * 2

    async def stream():
        for n in range(3):
            yield await twice(n)

    async def main():
        return [n async for n in stream()]

    c = main()
    try:
        c.send(None)
    except StopIteration as stop:
        return stop.value


@feature
def json_round_trip():
    text = '{"a": [1, 2.5, null, true], "ü": "\\ud83d\\ude00"}'
    return json.dumps(json.loads(text), ensure_ascii=False, sort_keys=True), json.loads("1e400"), json.dumps({"k": [1, {"n": None}]}, indent=1)


@feature
def json_error():
    try:
        json.loads("[1,")
    except json.JSONDecodeError as e:
        return str(e)


@feature
def regular_expressions():
    return (
        re.findall(r"(?P<k>\w+)=(\d+)", "a=1, bé=22"), re.sub(r"(?<=a)b+", lambda m: str(len(m[0])), "abbb ab"),
        re.split(r"[;,]\s*", "1, 2;3"), bool(re.fullmatch(r"(?i)straße", "STRASSE")), re.match(r"(a|b)*?c", "ababc").span(),
    )


@feature
def dates():
    d = datetime.datetime(2024, 2, 29, 12, 30, tzinfo=datetime.timezone.utc)
    return (
        d.isoformat(), (d + datetime.timedelta(days=366)).strftime("%Y-%m-%d %A"), datetime.date.fromisoformat("2026-11-21").isocalendar()[1],
        datetime.datetime.strptime("21/11/26 08:05", "%d/%m/%y %H:%M").timetuple()[:5],
    )


@feature
def numbers():
    return (
        2**200, (7**150) % (10**30), math.isqrt(10**40), -7 // 2, -7 % 3, divmod(10**25, 7**13), hex(2**70), 0.1 + 0.2, round(2.675, 2), 1e22,
        math.fsum([0.1] * 10), math.comb(50, 25), int("9" * 60) + 1, complex(1, 2) ** 2, float("nan") != float("nan"), (255).to_bytes(2, "big"),
    )


@feature
def exact_numbers():
    with decimal.localcontext() as c:
        c.prec = 40
        return str(decimal.Decimal(1) / 7), str(decimal.Decimal("0.1") + decimal.Decimal("0.2")), fractions.Fraction(3, 9) + fractions.Fraction("0.25")


@feature
def statistics_of_lists():
    data = [2, 4, 4, 4, 5, 5, 7, 9]
    return statistics.mean(data), statistics.pstdev(data), statistics.median(data), statistics.mode(data), statistics.quantiles(data, n=4)


@feature
def text():
    return (
        "straße".upper(), "ǅ".swapcase(), "İ".lower(), unicodedata.normalize("NFKD", "ﬁé"), unicodedata.name("😀"), "a\u0301".encode("utf-8"),
        "技能".center(8, "*"), f"{3.14159:>10.3f}|{1234567:,}|{'x'!r:>5}|{255:#06x}", "%s %05d" % ("x", 42), string.Template("$a-$b").substitute(a=1, b=2),
        textwrap.wrap("the quick brown fox jumps", 10), "ab".translate({97: "X"}), b"\xff".decode("utf-8", "replace"), "€".encode("cp1252"),
    )


@feature
def exceptions():
    try:
        try:
            [][3]
        except IndexError as inner:
            raise KeyError("outer") from inner
    except KeyError as e:
        chain = repr(e), repr(e.__cause__)
    some, rest = ExceptionGroup("several", [ValueError(1), TypeError(2)]).split(ValueError)

    def order():
        seen = []
        for n in range(4):
            try:
                if n == 1:
                    continue
                if n == 3:
                    break
                seen.append(1 // n)
            except ZeroDivisionError as e:
                seen.append(str(e))
            else:
                seen.append("else")
            finally:
                seen.append("finally %d" % n)
        else:
            seen.append("never")
        return seen

    def last():
        try:
            return "tried"
        finally:
            chain.append("after return")

    chain = list(chain)
    return last(), chain, some, rest, order()


@feature
def traces():
    def fails():
        return {}["missing"]

    try:
        fails()
    except KeyError:
        lines = traceback.format_exc().splitlines()
    return lines[0], lines[-1], [line.split(", in ")[1] for line in lines if ", in " in line]


class Shape(enum.Enum):
    ROUND = "r"
    SQUARE = "s"


class Flags(enum.IntFlag):
    A = 1
    B = 2


@feature
def enums():
    return Shape("r"), list(Shape), Flags.A | Flags.B, Flags(3) & Flags.B


class Meta(type):
    def __new__(cls, name, bases, body, **kwargs):
        made = super().__new__(cls, name, bases, body)
        made.options = kwargs
        return made


class Base:
    def __init_subclass__(cls, **kwargs):
        cls.kind = cls.__name__.lower()

    def __class_getitem__(cls, item):
        return "%s of %s" % (cls.__name__, item.__name__)


class Child(Base):
    __slots__ = ("_v",)

    def __init__(self, v):
        self._v = v

    @property
    def v(self):
        return self._v

    @v.setter
    def v(self, value):
        self._v = value * 2

    @functools.cached_property
    def no(self):
        return 1

    @staticmethod
    def s():
        return "s"

    @classmethod
    def c(cls):
        return cls.kind


@feature
def classes():
    made = Meta("Made", (), {}, flag=True)
    child = Child(1)
    child.v = 4
    return made.options, child.v, child.s(), child.c(), Base[int], super(Child, child).__class__.__name__, Child.__mro__[1].__name__


@feature
def matching():
    def of(v):
        match v:
            case {"kind": "p", "at": [x, *rest]} if x > 0:
                return x, rest
            case Point(x=1, y=y):
                return "point", y
            case [first, *middle, last] if len(middle) > 1:
                return first, middle, last
            case [*_, "end"]:
                return "ends"
            case [first, *rest]:
                return first, rest
            case {"a": 1 | 2 as n}:
                return "one or two", n
            case int(n) | float(n) if n > 100:
                return "large", n
            case Shape.ROUND:
                return "round"
            case str() | bytes():
                return "text"
            case None:
                return "none"
            case _:
                return "other"

    return [of(v) for v in ({"kind": "p", "at": [1, 2, 3]}, Point(1, 7), "s", None, 5, [1, 2, 3, 4], [0, "end"], [1], (1, 2), {"a": 2, "b": 3}, 1e3, Shape.ROUND)]


@feature
def contexts():
    order = []

    @contextlib.contextmanager
    def around(name):
        order.append("in " + name)
        try:
            yield name
        finally:
            order.append("out " + name)

    with contextlib.suppress(ZeroDivisionError), contextlib.ExitStack() as stack:
        stack.enter_context(around("a"))
        stack.callback(order.append, "callback")
        with around("b"):
            1 / 0
    return order


@feature
def containers():
    counts = collections.Counter("abracadabra")
    d = collections.defaultdict(list)
    d["x"].append(1)
    N = collections.namedtuple("N", "a b")
    heap = [5, 1, 4]
    heapq.heapify(heap)
    return (
        counts.most_common(2), dict(d), N(1, b=2)._asdict(), heapq.heappop(heap), collections.deque(range(5), maxlen=3), collections.OrderedDict(a=1),
        collections.ChainMap({"a": 1}, {"b": 2})["b"], {1, 2} ^ {2, 3}, sorted({"b": 1, "a": 2}.items(), key=lambda kv: kv[1]), [1, 2, 3][::-1],
    )


@feature
def csv_files():
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows([["a", 'say "x"'], [1, "b,c"]])
    return out.getvalue(), list(csv.DictReader(io.StringIO(out.getvalue())))


@feature
def arguments():
    p = argparse.ArgumentParser(prog="p")
    p.add_argument("n", type=int)
    p.add_argument("--name", default="x", choices=["x", "y"])
    p.add_argument("-v", action="count", default=0)
    return p.parse_args(["5", "--name", "y", "-vv"]), p.format_usage()


@feature
def hashes():
    return hashlib.sha256(b"abc").hexdigest()[:16], hashlib.md5(b"abc").hexdigest()[:8], hashlib.blake2b(b"abc", digest_size=8).hexdigest(), hashlib.sha3_256(b"").hexdigest()[:8]


@feature
def randomness():
    r = random.Random(42)
    return r.random(), r.randint(1, 100), r.sample(range(50), 3), r.gauss(0, 1)


@feature
def packing():
    return struct.pack("<IhQ", 1, -2, 2**40), struct.unpack(">d", struct.pack(">d", 1.5)), struct.calcsize("P") * 8 > 0


@feature
def addresses():
    return urllib.parse.urlparse("https://u@h:8/p;q?x=1#f").port, urllib.parse.quote("a b/ü"), urllib.parse.parse_qs("a=1&a=2")


@feature
def types_at_run_time():
    T = typing.TypeVar("T")

    def f(a: int, b: "str" = "x", *c: float) -> list[int] | None: ...

    class P(typing.Protocol[T]):
        def m(self) -> T: ...

    class D(typing.TypedDict, total=False):
        a: int

    return typing.get_type_hints(f), D.__optional_keys__, typing.get_origin(list[int])


@feature
def closures():
    def make():
        n = 0

        def up():
            nonlocal n
            n += 1
            return n

        return up

    up = make()
    lambdas = [lambda i=i: i * 10 for i in range(3)]
    cached = functools.lru_cache(maxsize=None)(lambda n: n if n < 2 else cached(n - 1) + cached(n - 2))
    return up(), up(), [f() for f in lambdas], cached(80), functools.reduce(lambda a, b: a * b, range(1, 20)), functools.partial(pow, 2)(10), (y := 5) + y


@feature
def dispatch():
    @functools.singledispatch
    def show(v):
        return "any"

    @show.register
    def _(v: int):
        return "int"

    @show.register(list)
    def _(v):
        return "list"

    return show(1), show([]), show("")


@feature
def made_at_run_time():
    names = {}
    exec(compile("def f(x):\n    return [x for x in range(x)]", "made", "exec"), names)
    return eval("1 + len(s)", {"s": "abc"}), names["f"](4), type("T", (), {"a": 1})().a


@feature
def recursion_below_the_limit():
    def depth(n):
        return 0 if n == 0 else 1 + depth(n - 1)

    return depth(900)


@feature
def calls():
    def f(a, b=2, /, c=3, *args, d, e=5, **kw):
        return a, b, c, args, d, e, kw

    def default(a, seen=[]):
        seen.append(a)
        return seen

    first, *rest = "abc"
    (a, (b, *c)), d = (1, (2, 3, 4)), 5
    try:
        f(1)
    except TypeError as e:
        wrong = str(e)
    default(1)
    return f(1, d=4), f(1, 2, 3, 4, *[5], d=6, **{"z": 7}), default(2), first, rest, a, b, c, d, wrong, {**{"a": 1}, "b": 2, **{"a": 3}}, [*range(2), *"ab"]


@feature
def comprehensions():
    n = 10
    return (
        [n for n in range(3)], n, {a: b for a, b in zip("ab", range(2))}, {x % 3 for x in range(9)}, [(i, j) for i in range(3) for j in range(i) if i + j > 1],
        sum(x * x for x in range(10)), [y for x in range(3) if (y := x * 2) > 1], [[c for c in r] for r in ("ab", "cd")], 1 < n < 20 != 3,
    )


@feature
def object_protocols():
    class V:
        log = []

        def __init__(self, v):
            self.v = v

        def __add__(self, o):
            return V(self.v + getattr(o, "v", o))

        __radd__ = __add__

        def __iadd__(self, o):
            self.log.append("iadd")
            return self + o

        def __eq__(self, o):
            return self.v == o.v

        def __hash__(self):
            return hash(self.v)

        def __bool__(self):
            return self.v > 0

        def __len__(self):
            return self.v

        def __getitem__(self, i):
            if i == 3:
                raise IndexError
            return i

        def __contains__(self, i):
            return i == 99

        def __call__(self, *a):
            return a

        def __getattr__(self, name):
            return "no " + name

        def __enter__(self):
            return self

        def __exit__(self, *what):
            self.log.append(what[0].__name__)
            return True

        def __format__(self, spec):
            return "V" + spec

        def __index__(self):
            return self.v

        def __del__(self):
            self.log.append("del")

    v = V(1)
    v += 2
    with v:
        raise OSError
    return (3 + v).v, V(1) == V(1), len({V(1), V(1)}), bool(V(0)), list(v), 99 in v, v(1, 2), v.missing, f"{v:x}", "abcd"[v], sorted(set(V.log))


class Kept:
    def __init__(self, n):
        self.n = n

    def __repr__(self):
        return "Kept(%r)" % self.n


@feature
def copies():
    import copy
    import pickle

    inner = [1, [2]]
    shallow, deep = copy.copy(inner), copy.deepcopy(inner)
    inner[1].append(3)
    return shallow, deep, pickle.loads(pickle.dumps({"k": Kept(5), "f": add_one}))["k"], pickle.loads(pickle.dumps(add_one))(1)


def add_one(n):
    return n + 1


@feature
def looking_inside():
    import inspect
    import weakref

    def f(a, b: int = 1, *, c="x") -> str:
        "Documented."

    k = Kept(1)
    w = weakref.ref(k)
    alive = w() is k
    del k
    return str(inspect.signature(f)), f.__annotations__, inspect.isgeneratorfunction(f), f.__defaults__, f.__kwdefaults__, alive, w() is None, f.__qualname__, callable(f)


@feature
def files_in_memory():
    import logging
    import pathlib
    import warnings

    out = io.StringIO()
    handler = logging.StreamHandler(out)
    log = logging.getLogger("a.b")
    log.addHandler(handler)
    log.warning("%s is %d", "x", 5)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        warnings.warn("careful", DeprecationWarning)
    return out.getvalue(), str(seen[0].message), pathlib.PurePosixPath("/a/b/../c.txt").suffix, io.BytesIO(b"abc").read(2), contextlib.redirect_stdout.__name__


@feature
def generators_that_delegate():
    def inner():
        x = yield 1
        return x * 2

    def outer():
        r = yield from inner()
        yield "got", r
        yield from [3, 4]

    g = outer()
    return next(g), g.send(21), list(g)


@feature
def global_names():
    global made_here
    made_here = 1
    exec("made_here += 1", globals())
    local = locals()
    return made_here, sorted(local), "made_here" in globals(), __name__


@feature
def sorted_by_keys():
    rows = [{"n": n, "k": (n * 7919) % 13} for n in range(20)]
    return [r["n"] for r in sorted(rows, key=lambda r: (r["k"], -r["n"]))]


def shown(v):
    if isinstance(v, (set, frozenset)):
        return sorted(v)
    return v


for f in FEATURES:
    try:
        print(f.__name__, repr(shown(f())))
    except Exception as e:
        print(f.__name__, "RAISED", type(e).__name__, e)
sys.stdout.flush()
