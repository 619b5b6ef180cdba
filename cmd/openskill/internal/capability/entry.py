# Calls one function of a file with the input of a call, and answers with what it gives.
# Made by openSkill; the two lines that follow say which function, and how its parameters
# are passed.
TARGET = {}
import base64
import collections
import collections.abc
import dataclasses
import datetime
import decimal
import enum
import fractions
import importlib.util
import inspect
import ipaddress
import json
import math
import os
import pathlib
import re
import sys
import traceback
import types
import typing
import uuid

answer = sys.stdout
sys.stdout = sys.stderr  # what the function prints is not its answer


class Wrong(Exception):
    """A value that is not of the type that a parameter has."""


def wrong(path, what):
    return Wrong(f"{path or 'the value'} {what}")


DURATION = re.compile(r"(-?)P(?:(\d+)W)?(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d+)?)S)?)?$")


def duration(text):
    found = DURATION.match(text)
    if not found or not any(found.groups()[1:]):
        raise ValueError("not a duration as in P1DT2H30M")
    weeks, days, hours, minutes, seconds = (float(g or 0) for g in found.groups()[1:])
    length = datetime.timedelta(weeks=weeks, days=days, hours=hours, minutes=minutes, seconds=seconds)
    return -length if found.group(1) else length


# Types that are made of a text.
TEXTS = {
    datetime.datetime: (datetime.datetime.fromisoformat, "must be a date and time as in 2026-01-31T12:00:00Z"),
    datetime.date: (datetime.date.fromisoformat, "must be a date as in 2026-01-31"),
    datetime.time: (datetime.time.fromisoformat, "must be a time as in 12:00:00Z"),
    datetime.timedelta: (duration, "must be a duration as in PT1H30M"),
    uuid.UUID: (uuid.UUID, "must be a UUID"),
    bytes: (lambda s: base64.b64decode(s, validate=True), "must be bytes in base64"),
    bytearray: (lambda s: bytearray(base64.b64decode(s, validate=True)), "must be bytes in base64"),
    fractions.Fraction: (fractions.Fraction, "must be a fraction as in 3/4"),
    re.Pattern: (re.compile, "must be a regular expression"),
    ipaddress.IPv4Address: (ipaddress.IPv4Address, "must be an IPv4 address"),
    ipaddress.IPv6Address: (ipaddress.IPv6Address, "must be an IPv6 address"),
    os.PathLike: (pathlib.Path, "must be a path"),
}


def fields(hint):
    """The fields that the constructor of a class takes by name, with their types; None: it has none."""
    if dataclasses.is_dataclass(hint):
        names = [f.name for f in dataclasses.fields(hint) if f.init]
        # InitVar is no field, and taken all the same.
        names += [n for n, f in getattr(hint, "__dataclass_fields__", {}).items() if f._field_type is dataclasses._FIELD_INITVAR]
    elif hasattr(hint, "_fields") and issubclass(hint, tuple):
        names = hint._fields
    elif hasattr(hint, "__attrs_attrs__"):
        names = [a.name for a in hint.__attrs_attrs__ if a.init]
    else:
        return None
    types_ = hints(hint)
    return {n: types_.get(n, typing.Any) for n in names}


def hints(of):
    try:
        return typing.get_type_hints(of, include_extras=True)
    except Exception:  # a name that is there for type checkers alone
        return {k: v for k, v in getattr(of, "__annotations__", {}).items() if not isinstance(v, str)}


def convert(value, hint, path=""):
    """A JSON value as the type that a hint names. What is not known stays as it is."""
    if hint is typing.Any or hint is inspect.Parameter.empty or hint is object:
        return value
    if hint is None or hint is type(None):
        if value is not None:
            raise wrong(path, "must be null")
        return None
    if isinstance(hint, dataclasses.InitVar):
        return convert(value, hint.type, path)
    if hasattr(hint, "__supertype__"):
        return convert(value, hint.__supertype__, path)
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if hasattr(typing, "TypeAliasType") and isinstance(origin or hint, typing.TypeAliasType):
        return convert(value, (origin or hint).__value__, path)
    if isinstance(hint, typing.TypeVar):
        return convert(value, hint.__bound__, path) if hint.__bound__ is not None else value
    if origin is typing.Annotated or origin in (typing.Required, typing.NotRequired, typing.Final, typing.ClassVar, getattr(typing, "ReadOnly", None)):
        return convert(value, args[0], path)
    if origin is typing.Union or isinstance(hint, types.UnionType):
        return one_of(value, args, path)
    if origin is typing.Literal:
        for a in args:
            if a == value and type(a) is type(value):
                return a
            if isinstance(a, enum.Enum) and a.value == value:
                return a
        return value
    kind = origin or hint
    if not isinstance(kind, type):
        return value
    if issubclass(kind, enum.Enum):
        return member(value, kind, path)
    if typing.is_typeddict(kind):
        known = hints(kind)
        return {k: convert(v, known.get(k, typing.Any), at(path, k)) for k, v in want(value, dict, path, "an object").items()}
    if hasattr(kind, "model_validate"):
        return kind.model_validate(value)
    inner = fields(kind)
    if inner is not None:
        given = want(value, dict, path, "an object")
        return kind(**{k: convert(v, inner.get(k, typing.Any), at(path, k)) for k, v in given.items()})
    if kind in TEXTS:
        make, says = TEXTS[kind]
        try:
            return make(want(value, str, path, "a text"))
        except (ValueError, re.error):
            raise wrong(path, says) from None
    if issubclass(kind, pathlib.PurePath):
        return kind(want(value, str, path, "a text"))
    if issubclass(kind, decimal.Decimal):
        try:
            return kind(str(value))
        except decimal.InvalidOperation:
            raise wrong(path, "must be a decimal number") from None
    if issubclass(kind, bool):
        return want(value, bool, path, "true or false")
    if issubclass(kind, int):
        if isinstance(value, bool) or not isinstance(value, (int, float)) or value != int(value):
            raise wrong(path, "must be a whole number")
        return kind(value)
    if issubclass(kind, float):
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise wrong(path, "must be a number")
        return kind(value)
    if issubclass(kind, str):
        return kind(want(value, str, path, "a text"))
    return container(value, kind, args, path)


def one_of(value, args, path):
    if value is None and type(None) in args:
        return None
    for a in args:  # a type that fits as it is goes before one that is made of it
        if isinstance(a, type) and type(value) is a:
            return value
    said = None
    for a in args:
        if a is type(None):
            continue
        try:
            return convert(value, a, path)
        except (Wrong, ValueError, TypeError, ArithmeticError) as e:
            said = said or e
    if isinstance(said, Wrong):
        raise said
    raise wrong(path, "is of none of the types that it may have")


def member(value, kind, path):
    try:
        return kind(value)
    except (ValueError, TypeError):
        pass
    if isinstance(value, str) and value in kind.__members__:
        return kind[value]
    raise wrong(path, "must be one of " + ", ".join(json.dumps(plain(m.value)) for m in kind))


def container(value, kind, args, path):
    if kind in (tuple,):
        list_ = want(value, list, path, "a list")
        if len(args) == 2 and args[1] is Ellipsis:
            return tuple(convert(v, args[0], at(path, i)) for i, v in enumerate(list_))
        return tuple(convert(v, args[i] if i < len(args) else typing.Any, at(path, i)) for i, v in enumerate(list_))
    if issubclass(kind, collections.abc.Mapping):
        key, val = args if len(args) == 2 else (typing.Any, typing.Any)
        made = {convert(word(k, key), key, at(path, k)): convert(v, val, at(path, k)) for k, v in want(value, dict, path, "an object").items()}
        if kind is collections.defaultdict:
            return collections.defaultdict(None, made)
        return kind(made) if kind in (collections.OrderedDict, collections.Counter) else made
    if issubclass(kind, collections.abc.Iterable):
        item = args[0] if args else typing.Any
        list_ = [convert(v, item, at(path, i)) for i, v in enumerate(want(value, list, path, "a list"))]
        if issubclass(kind, collections.abc.Iterator):
            return iter(list_)
        if issubclass(kind, collections.abc.Set):
            return frozenset(list_) if kind is frozenset else set(list_)
        return collections.deque(list_) if kind is collections.deque else list_
    return value


def word(key, hint):
    """A key of an object, which is a text, as a number where the hint wants one."""
    if isinstance(hint, type) and issubclass(hint, (int, float)) and not issubclass(hint, enum.Enum):
        try:
            return json.loads(key)
        except ValueError:
            return key
    return key


def want(value, kind, path, what):
    if not isinstance(value, kind):
        raise wrong(path, f"must be {what}")
    return value


def at(path, key):
    return f"{path}.{key}" if isinstance(key, str) else f"{path}[{key}]"


def plain(value, deep=0):
    """A value as JSON can say it."""
    if deep > 200:
        raise TypeError("the result is nested too deeply, or contains itself")
    deep += 1
    if isinstance(value, enum.Enum):
        return plain(value.value, deep)
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        if not math.isfinite(value):
            raise TypeError(f"the result holds {float(value)!r}, which JSON has no word for")
        return float(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: plain(getattr(value, f.name), deep) for f in dataclasses.fields(value)}
    if hasattr(value, "_asdict"):
        return {k: plain(v, deep) for k, v in value._asdict().items()}
    if isinstance(value, collections.abc.Mapping):
        return {key(k): plain(v, deep) for k, v in value.items()}
    if isinstance(value, (set, frozenset)):
        try:
            value = sorted(value)
        except TypeError:
            pass
        return [plain(v, deep) for v in value]
    if isinstance(value, (bytes, bytearray, memoryview)):
        return base64.b64encode(bytes(value)).decode("ascii")
    if isinstance(value, (datetime.datetime, datetime.date, datetime.time)):
        return value.isoformat()
    if isinstance(value, datetime.timedelta):
        return f"PT{value.total_seconds():g}S"
    if isinstance(value, (decimal.Decimal, uuid.UUID, pathlib.PurePath, fractions.Fraction, ipaddress.IPv4Address, ipaddress.IPv6Address)):
        return str(value)
    if isinstance(value, re.Pattern):
        return value.pattern
    for name in ("model_dump", "tolist", "item"):  # of pydantic, numpy, pandas
        if callable(getattr(value, name, None)):
            return plain(getattr(value, name)(), deep)
    if callable(getattr(value, "to_dict", None)):
        return plain(value.to_dict(), deep)
    if isinstance(value, collections.abc.Iterable):
        return [plain(v, deep) for v in value]
    raise TypeError(f"the result holds a {type(value).__name__}, which cannot be written as JSON")


def key(k):
    if isinstance(k, enum.Enum):
        k = k.value
    if isinstance(k, str):
        return k
    if k is None or isinstance(k, (bool, int, float)):
        return json.dumps(k)
    return str(k)


def load():
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), *TARGET["file"].split("/"))
    sys.path.append(os.path.dirname(path))
    name = os.path.splitext(os.path.basename(path))[0]
    if name in sys.modules:  # a module of the library has that name
        name = "capability_" + name
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return getattr(module, TARGET["function"])


def bind(function, types_, given):
    """The arguments of a call, by place and by name."""
    args, named = [], {}
    given = dict(given)
    parameters = TARGET["parameters"]
    more = next((n for n, kind in parameters if kind == "var_positional"), None)
    rest = given.get(more) if more else None
    for name, kind in parameters:
        hint = types_.get(name, typing.Any)
        if kind == "var_positional":
            given.pop(name, None)
            args += [convert(v, hint, at(name, i)) for i, v in enumerate(want(rest, list, name, "a list") if rest is not None else [])]
        elif kind == "var_keyword":
            if typing.get_origin(hint) is getattr(typing, "Unpack", None):
                inner = hints(typing.get_args(hint)[0])
                named |= {k: convert(v, inner.get(k, typing.Any), k) for k, v in given.items()}
            else:
                named |= {k: convert(v, hint, k) for k, v in given.items()}
            given = {}
        elif kind == "positional_only" or kind == "positional_or_keyword" and rest:
            if name in given:
                args.append(convert(given.pop(name), hint, name))
            else:  # those behind it may be given
                args.append(inspect.signature(function).parameters[name].default)
        elif name in given:
            named[name] = convert(given.pop(name), hint, name)
    return args, named


def finish(result):
    """What a function gave, waited for and listed."""
    if inspect.isasyncgen(result):
        async def gather(items):
            return [item async for item in items]

        result = gather(result)
    if inspect.iscoroutine(result):
        loop = events()
        try:
            result = loop.run_until_complete(result)
        finally:
            loop.close()
    return result


def events():
    """A loop of events without sockets, which there are none of."""
    import asyncio
    import time

    class Loop(asyncio.BaseEventLoop):
        def __init__(self):
            super().__init__()
            self._selector = self

        def select(self, timeout):
            if timeout is None:
                raise RuntimeError("the function waits for something that never comes")
            if timeout > 0:
                time.sleep(timeout)
            return []

        def _process_events(self, events):
            pass

        def _write_to_self(self):
            pass

    return Loop()


def failed(code, message, **details):
    return {"success": False, "data": None, "error": {"code": code, "message": message, "details": details}}


def call(function, types_, text):
    try:
        given = json.loads(text)["input"]
        args, named = bind(function, types_, given)
    except Wrong as e:
        return failed("INVALID_ARGUMENT", str(e))
    try:
        return {"success": True, "data": {"result": plain(finish(function(*args, **named)))}, "error": None}
    except SystemExit as e:
        return failed("TOOL_INVOCATION_ERROR", f"the function ended the program, with {e.code!r}", exception="SystemExit")
    except Exception as e:
        traceback.print_exc()
        return failed("TOOL_INVOCATION_ERROR", f"{type(e).__name__}: {e}", exception=type(e).__name__)


function = load()
types_ = hints(inspect.unwrap(function))
if inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function):
    events().close()
json.loads(json.dumps({"input": {"a": [1.5, None]}}))

out = call(function, types_, sys.stdin.buffer.read())
answer.buffer.write(json.dumps(out, ensure_ascii=False, allow_nan=False).encode("utf-8", "replace"))
answer.flush()
