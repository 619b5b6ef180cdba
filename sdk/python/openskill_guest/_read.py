"""Reads a call strictly: no two readers of it see two things in it."""

import json
import re

from ._errors import INVALID_ARGUMENT, Failure, invalid, malformed

# The host takes inputs of 64 levels, and the object around them is one more.
MAX_DEPTH = 65

_INFINITE = float("inf")

_tokens = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*(?:"|\\?\Z)|[\[\]{}]', re.DOTALL)
_pairs = re.compile(r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\[^u]", re.DOTALL)
_halves = re.compile(r"\\u[dD][89a-fA-F]")


def read_call(raw):
    """Gives the skill's id, the trace id and the input."""
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError:
        raise malformed() from None
    if depth(text) > MAX_DEPTH:
        raise Failure(
            INVALID_ARGUMENT,
            "standard input is nested deeper than 65 levels",
            {"reason": "depth"},
        )
    call = parse(text)
    if not isinstance(call, dict):
        raise malformed()
    names = []
    for key in ("skill_id", "trace_id"):
        name = call.get(key)
        names.append(name if isinstance(name, str) else "")
    if "input" not in call:
        raise invalid("input", "missing", "input: required")
    if not isinstance(call["input"], dict):
        raise invalid("input", "type", "input: must be an object")
    return names[0], names[1], call["input"]


def depth(text):
    """How deep the brackets of a text nest that need not be JSON."""
    if text.count("{") + text.count("[") <= MAX_DEPTH:
        return 0
    now = deepest = 0
    for match in _tokens.finditer(text):
        character = match.group()[0]
        if character == '"':
            continue
        if character in "{[":
            now += 1
            if now > deepest:
                deepest = now
        else:
            now -= 1
    return deepest


def parse(text):
    """JSON as the standard has it: no NaN, no half of a surrogate pair, no key twice."""
    if "\\u" in text and _halves.search(_pairs.sub(" ", text)):
        raise malformed()
    try:
        return json.loads(text, parse_constant=_constant, object_pairs_hook=_object, parse_float=_float, parse_int=_int)
    except (ValueError, RecursionError):
        raise malformed() from None


def _constant(name):
    raise ValueError(name)


def _object(pairs):
    made = dict(pairs)
    if len(made) != len(pairs):
        seen = set()
        for key, _ in pairs:
            if key in seen:
                raise Failure(
                    INVALID_ARGUMENT,
                    "standard input has a key twice in one object",
                    {"key": key[:64], "reason": "duplicate"},
                )
            seen.add(key)
    return made


def _beyond():
    return Failure(
        INVALID_ARGUMENT,
        "standard input has a number beyond the range of a double",
        {"reason": "range"},
    )


def _float(text):
    value = float(text)
    if value in (_INFINITE, -_INFINITE):
        raise _beyond()
    return value


def _int(text):
    # Before int(): beyond some thousand digits that one refuses, in words of its own.
    if len(text) < 300:
        return int(text)
    if len(text) > 400 or float(text) in (_INFINITE, -_INFINITE):
        raise _beyond()
    return int(text)
