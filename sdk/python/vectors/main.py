"""The vector skill in Python: what the calls in sdk/vectorstest ask for, by the SDK alone."""

import sys
from dataclasses import dataclass, field
from typing import Any, Dict, List, Optional

from openskill_guest import Failure, invalid, serve


@dataclass
class Item:
    """A field of each kind."""

    name: str
    count: int
    ratio: float
    on: bool
    tags: List[str]
    note: Optional[str] = None


@dataclass
class File:
    name: str
    text: str


@dataclass
class Input:
    """The arguments of all operations."""

    op: str
    item: Optional[Item] = None
    code: str = ""
    message: str = ""
    details: Dict[str, Any] = field(default_factory=dict)
    path: str = ""
    paths: List[str] = field(default_factory=list)
    files: List[File] = field(default_factory=list)
    value: Any = None


def refused(do, *args):
    try:
        do(*args)
    except Failure as failure:
        return {"code": failure.code, "message": failure.message}
    return None


def write(call, files):
    call.debug("writing", files=len(files))
    call.info("größe 😀")
    call.warn("two\nlines")
    errors = []
    for file in files:
        errors.append(refused(call.write_artifact, file.name, file.text))
        if errors[-1]:
            call.error("refused", name=file.name, why=None)
    return {"errors": errors}


def run(call, given):
    if given.op == "echo":
        return {"item": given.item, "skill_id": call.skill_id, "trace_id": call.trace_id}
    if given.op == "fail":
        raise Failure(given.code, given.message, given.details)
    if given.op == "panic":
        call.info("about to fail")
        raise RuntimeError(given.message)
    if given.op == "read":
        text = call.read_data(given.path)
        return {"text": text.decode(), "bytes": len(text)}
    if given.op == "probe":
        return {"errors": [refused(call.read_data, path) for path in given.paths]}
    if given.op == "write":
        return write(call, given.files)
    if given.op == "value":
        return {"value": given.value}
    raise invalid("op", "unsupported", "op: must be one of echo, fail, panic, read, probe, write, value")


sys.exit(serve(run, Input))
