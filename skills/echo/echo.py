"""The skill echo: gives the text of a call back, to prove that the way there
and back works. The CLI form; it answers exactly as src/main.rs does."""

import json
import re
import sys


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


def run(given):
    for name in sorted(given):
        if name != "text":
            raise Fault(name[:64], "unknown", "unknown field; accepted: text")
    if "text" not in given:
        raise Fault("text", "missing", "text: required, a string")
    if not isinstance(given["text"], str):
        raise Fault("text", "type", "text: must be a string")
    return {"echoed": given["text"]}


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
