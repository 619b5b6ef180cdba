"""Puts values as they come in JSON into the types that a skill asks for."""

import dataclasses
import sys
import typing

from ._errors import invalid

_missing = dataclasses.MISSING


def typed(value, kind, field=""):
    """Value as the type `kind`, or a Failure that names what is wrong by `field`, the
    value's name in the input. Types are dataclasses, TypedDict, str, int, float, bool,
    list, dict, tuple, Optional, Union with None, Literal and Any."""
    if kind is typing.Any or kind is object or kind is dataclasses.MISSING:
        return value
    if kind is None or kind is type(None):
        if value is not None:
            raise _must(field, "null")
        return None
    plain = _plain.get(kind)
    if plain is not None:
        return plain(value, field)
    if dataclasses.is_dataclass(kind):
        return kind(**_fields(value, _of_dataclass(kind), field))
    if isinstance(kind, type) and issubclass(kind, dict) and hasattr(kind, "__total__"):
        return _fields(value, _of_typed_dict(kind), field)
    origin, args = typing.get_origin(kind), typing.get_args(kind)
    if origin is list:
        return [typed(v, args[0], "%s[%d]" % (field, i)) for i, v in enumerate(_list(value, field))]
    if origin is tuple:
        items = _list(value, field)
        if len(args) == 2 and args[1] is Ellipsis:
            args = args[:1] * len(items)
        if len(items) != len(args):
            raise invalid(field, "length", "%s: must be a list of %d" % (field, len(args)))
        return tuple(typed(v, a, "%s[%d]" % (field, i)) for i, (v, a) in enumerate(zip(items, args)))
    if origin is dict and args[0] is str:
        given = _dict(value, field)
        return {key: typed(given[key], args[1], below(field, key)) for key in sorted(given)}
    if origin is typing.Literal:
        if not any(type(value) is type(word) and value == word for word in args):
            words = ", ".join(str(word) for word in args)
            raise invalid(field, "unsupported", "%s: must be one of %s" % (field, words))
        return value
    if _is_union(origin):
        kinds = [a for a in args if a is not type(None)]
        if value is None and len(kinds) < len(args):
            return None
        if len(kinds) == 1:
            return typed(value, kinds[0], field)
    raise TypeError("the field %s has the type %r, which cannot be read from JSON" % (field or "input", kind))


def _is_union(origin):
    if origin is typing.Union:
        return True
    # int | None, since Python 3.10
    return origin is not None and getattr(origin, "__name__", "") == "UnionType"


def below(field, name):
    name = name[:64]
    return field + "." + name if field else name


def _must(field, what):
    field = field or "input"
    return invalid(field, "type", field + ": must be " + what)


def _string(value, field):
    if not isinstance(value, str):
        raise _must(field, "a string")
    return value


def _integer(value, field):
    """3.0 is the integer 3, as in JSON Schema."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if isinstance(value, float) and value.is_integer():
        return int(value)
    raise _must(field, "an integer")


def _number(value, field):
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise _must(field, "a number")
    return float(value)


def _boolean(value, field):
    if not isinstance(value, bool):
        raise _must(field, "true or false")
    return value


def _list(value, field):
    if not isinstance(value, list):
        raise _must(field, "a list")
    return value


def _dict(value, field):
    if not isinstance(value, dict):
        raise _must(field, "an object")
    return value


_plain = {str: _string, int: _integer, float: _number, bool: _boolean, list: _list, dict: _dict}


def _fields(value, fields, field):
    """What is wrong with fields that are there comes before what is missing, as in the
    SDKs for other languages. Fields that are not known are left to the schema."""
    given = _dict(value, field)
    made = {}
    for name in sorted(given):
        if name in fields:
            made[name] = typed(given[name], fields[name][0], below(field, name))
    for name, (_, required) in fields.items():
        if required and name not in given:
            raise invalid(below(field, name), "missing", below(field, name) + ": required")
    return made


_known = {}


def _of_dataclass(kind):
    """The fields of a class, which are looked up once."""
    fields = _known.get(kind)
    if fields is None:
        hints = _hints(kind)
        fields = _known[kind] = {
            f.name: (hints.get(f.name, typing.Any), f.default is _missing and f.default_factory is _missing)
            for f in dataclasses.fields(kind)
            if f.init
        }
    return fields


def _of_typed_dict(kind):
    fields = _known.get(kind)
    if fields is None:
        required = kind.__required_keys__
        fields = _known[kind] = {name: (hint, name in required) for name, hint in _hints(kind).items()}
    return fields


def _hints(kind):
    if not any(isinstance(hint, str) for hint in vars(kind).get("__annotations__", {}).values()):
        if kind.__mro__[1:] == (object,) and "__annotations__" in vars(kind):
            return vars(kind)["__annotations__"]  # resolving takes its time
    return typing.get_type_hints(kind, vars(sys.modules.get(kind.__module__, sys)))
