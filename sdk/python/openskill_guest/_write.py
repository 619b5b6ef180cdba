"""Makes answers JSON."""

import dataclasses
import json
import math

from ._errors import INTERNAL, Failure, no_json
from ._types import below


def encode(value, path="answer"):
    """One line of JSON in UTF-8. Half of a surrogate pair becomes U+FFFD."""
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=_plain)
        return text.encode("utf-8")
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode("utf-8")
    except (ValueError, TypeError, RecursionError):
        where = _no_number(value, path, 0)
        if where:
            raise no_json(where) from None
        raise


def _plain(value):
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: getattr(value, f.name) for f in dataclasses.fields(value)}
    raise TypeError("a value of the type %s is no JSON" % type(value).__name__)


def _no_number(value, path, deep):
    """Finds the number that JSON has no word for."""
    if isinstance(value, float) and not math.isfinite(value):
        return path
    if deep > 100:
        return ""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        value = _plain(value)
    if isinstance(value, dict):
        below_it = ((below(path, str(key)), value[key]) for key in sorted(value, key=str))
    elif isinstance(value, (list, tuple)):
        below_it = (("%s[%d]" % (path, i), v) for i, v in enumerate(value))
    else:
        return ""
    for where, v in below_it:
        found = _no_number(v, where, deep + 1)
        if found:
            return found
    return ""


def check_object(data):
    if not isinstance(data, dict) and (not dataclasses.is_dataclass(data) or isinstance(data, type)):
        raise Failure(INTERNAL, "data: must be an object", {"field": "data", "reason": "type"})
