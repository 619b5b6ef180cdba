"""The skill greeter: it greets somebody by name."""

import sys
from dataclasses import dataclass

from openskill_guest import invalid, rehearse, serve


@dataclass
class Input:
    """What a caller sends. Times may be left out."""

    name: str
    times: int = 1


def greet(call, given):
    name = given.name.strip()
    if not name:
        raise invalid("name", "blank", "name: must not be blank")
    if not 1 <= given.times <= 9:
        raise invalid("times", "range", "times: must be from 1 to 9")
    call.info("greeting", times=given.times)
    return {"greeting": " ".join(["Hello, %s!" % name] * given.times)}


rehearse(greet, {"name": "nobody"}, Input)
sys.exit(serve(greet, Input))
