"""The skill calculator: statistics over a list of numbers, and the comparison of
two values. One file for both forms: CPython on WebAssembly and plain python3.

Arithmetic is exact: every number is taken as the fraction that it is, and a
result is rounded once, at the end, to the nearest double. Integers stay
integers, also beyond 2**53, wherever the exact result is one.
"""

import json
import re
import sys

MAX_NUMBERS = 100_000
MAX_OPS = 20
OUT_OF_RANGE = "must be a finite number within the range of a double (about ±1.8e308)"


class Fault(Exception):
    """What is wrong with a call, in the words that its caller reads."""

    def __init__(self, field, reason, message):
        super().__init__(message)
        self.details = {"reason": reason} if field is None else {"field": field, "reason": reason}


def refuse_constant(name):
    raise ValueError("not JSON: " + name)


def parse(text):
    """JSON as the standard has it: no NaN, no Infinity, and no half of a surrogate
    pair, which is no text and could not be answered in UTF-8."""
    whole = re.sub(r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\[^u]", " ", text)
    if re.search(r"\\u[dD][89a-fA-F]", whole):
        raise ValueError("half a surrogate pair")
    return json.loads(text, parse_constant=refuse_constant)


def read_call(raw):
    try:
        call = parse(raw.decode("utf-8"))
    except (ValueError, RecursionError):
        call = None
    if not isinstance(call, dict):
        raise Fault(None, "malformed", 'standard input must be one JSON object in UTF-8: {"input": {…}}')
    if "input" not in call:
        raise Fault("input", "missing", "input: required, an object")
    if not isinstance(call["input"], dict):
        raise Fault("input", "type", "input: must be an object")
    return call["input"]


def check_number(value, field):
    # bool is a subclass of int in Python, but true is no number in JSON.
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise Fault(field, "type", field + ": must be a number")
    try:
        # float() refuses an integer beyond the doubles; 1e999 was read as infinity.
        finite = abs(float(value)) != float("inf")
    except OverflowError:
        finite = False
    if not finite:
        raise Fault(field, "range", field + ": " + OUT_OF_RANGE)
    return value


def quotient(top, bottom, whole, field):
    """top/bottom rounded once; an int where all given numbers were ints and it is one."""
    try:
        if whole and top % bottom == 0:
            float(top // bottom)
            return top // bottom
        return top / bottom + 0.0  # + 0.0 turns -0.0 into 0.0
    except OverflowError:
        raise Fault(field, "range", field + ": the result does not fit a double (about ±1.8e308)") from None


def total(numbers):
    """The exact sum as (top, bottom)."""
    tops = {}  # by denominator, each a power of two: far fewer than numbers
    for value in numbers:
        top, bottom = value.as_integer_ratio()
        tops[bottom] = tops.get(bottom, 0) + top
    bottom = max(tops)
    return sum(top * (bottom // b) for b, top in tops.items()), bottom


def compute(op, numbers, whole, exact):
    """One statistic; exact is total(numbers), None where no op needs it."""
    count = len(numbers)
    if op == "min" or op == "max":
        top, bottom = (min if op == "min" else max)(numbers).as_integer_ratio()
    elif op == "median":
        middle = sorted(numbers)[(count - 1) // 2 : count // 2 + 1]
        top, bottom = total(middle)
        bottom *= len(middle)
    else:
        top, bottom = exact
        if op == "mean":
            bottom *= count
    return quotient(top, bottom, whole, "ops")


OPS = ("mean", "median", "min", "max", "sum")


def compare(pair):
    if not isinstance(pair, dict):
        raise Fault("compare", "type", 'compare: must be an object {"a": number, "b": number}')
    for name in sorted(pair):
        if name not in ("a", "b"):
            raise Fault("compare." + name[:64], "unknown", "unknown field; accepted in compare: a, b")
    for name in ("a", "b"):
        if name not in pair:
            raise Fault("compare." + name, "missing", "compare." + name + ": required, a number")
        check_number(pair[name], "compare." + name)
    a, b = pair["a"], pair["b"]
    top, bottom = total([a, -b])
    whole = isinstance(a, int) and isinstance(b, int)
    return {
        "a": a,
        "b": b,
        "result": "a<b" if a < b else "a>b" if a > b else "a=b",
        "difference": quotient(top, bottom, whole, "compare"),
    }


def run(given):
    for name in sorted(given):
        if name not in ("numbers", "ops", "compare"):
            raise Fault(name[:64], "unknown", "unknown field; accepted: numbers, ops, compare")

    if "numbers" not in given:
        raise Fault("numbers", "missing", "numbers: required, a list of numbers")
    numbers = given["numbers"]
    if not isinstance(numbers, list):
        raise Fault("numbers", "type", "numbers: must be a list of numbers")
    if not 1 <= len(numbers) <= MAX_NUMBERS:
        raise Fault("numbers", "length", "numbers: must hold 1 to 100000 numbers")
    for index, value in enumerate(numbers):
        # The common case without a call: a finite float less itself is 0.
        if type(value) is not float or value - value != 0:
            check_number(value, "numbers[%d]" % index)

    if "ops" not in given:
        raise Fault("ops", "missing", "ops: required, a list of mean, median, min, max, sum")
    ops = given["ops"]
    if not isinstance(ops, list):
        raise Fault("ops", "type", "ops: must be a list of mean, median, min, max, sum")
    if not 1 <= len(ops) <= MAX_OPS:
        raise Fault("ops", "length", "ops: must name 1 to 20 of mean, median, min, max, sum")
    for index, op in enumerate(ops):
        field = "ops[%d]" % index
        if not isinstance(op, str):
            raise Fault(field, "type", field + ": must be a string")
        if op not in OPS:
            raise Fault(field, "unsupported", field + ": not supported; accepted: mean, median, min, max, sum")

    data = {}
    if "compare" in given:
        data["comparison"] = compare(given["compare"])
    whole = all(isinstance(value, int) for value in numbers)
    exact = total(numbers) if "sum" in ops or "mean" in ops else None
    data["results"] = {op: compute(op, numbers, whole, exact) for op in dict.fromkeys(ops)}
    return data


def main():
    try:
        answer = {"success": True, "data": run(read_call(sys.stdin.buffer.read())), "error": None}
    except Fault as fault:
        error = {"code": "INVALID_ARGUMENT", "message": str(fault), "details": fault.details}
        answer = {"success": False, "data": None, "error": error}
    text = json.dumps(answer, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    sys.stdout.buffer.write(text.encode("utf-8") + b"\n")
    return 0 if answer["success"] else 1


if __name__ == "__main__":
    sys.exit(main())
