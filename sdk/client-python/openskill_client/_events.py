"""Server-sent events, and what they mean."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any, Dict, Iterator, Optional, Tuple, cast

from ._errors import OpenSkillError, of_error
from ._types import Awaited, ChatAnswer, ToolCall, Usage

KINDS = ("start", "text", "tool_start", "tool_end", "approval_required", "usage", "done")


@dataclass(frozen=True)
class Event:
    """Something that happened in a turn. kind is one of start (conversation, trace_id), text
    (text), tool_start (tool without outcome), tool_end (tool, result), approval_required
    (approval), usage (usage so far) and done (answer). What a kind does not name is None or ""."""

    kind: str
    conversation: str = ""
    trace_id: str = ""
    text: str = ""
    tool: Optional[ToolCall] = None
    result: str = ""
    approval: Optional[Awaited] = None
    usage: Optional[Usage] = None
    answer: Optional[ChatAnswer] = None
    data: Dict[str, Any] = field(default_factory=dict, repr=False, compare=False)


class Reader:
    """Cuts a stream into events, by the rules of the HTML standard: a line ends with CR LF, LF
    or CR, one that begins with a colon is a comment, an empty one ends an event, one without
    data is none, and what is cut off at the end of the stream is none either. It never waits
    for the byte behind a CR: the event is there already."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._line = bytearray()
        self._data: "list[bytes]" = []
        self._name = b""
        self._size = 0
        self._begun = False
        self._cr = False

    def feed(self, part: bytes) -> Iterator[Tuple[str, bytes]]:
        """Takes a part of the stream, and gives the events that end in it."""
        at = 0
        while at < len(part):
            if self._cr and part[at] == 0x0A:
                at += 1
            self._cr = False
            ends = [i for i in (part.find(b"\n", at), part.find(b"\r", at)) if i >= 0]
            end = min(ends) if ends else len(part)
            self._line += part[at:end]
            self._size += end - at
            if self._size > self._most:
                raise OpenSkillError(f"an event exceeds {self._most} bytes")
            if not ends:
                return
            self._cr = part[end] == 0x0D
            at = end + 1
            line = bytes(self._line)
            self._line.clear()
            if not self._begun:
                self._begun = True
                if line.startswith(b"\xef\xbb\xbf"):
                    line = line[3:]
            event = self._end_line(line)
            if event is not None:
                yield event

    def _end_line(self, line: bytes) -> Optional[Tuple[str, bytes]]:
        if not line:
            name, data = self._name, self._data
            self._name, self._data, self._size = b"", [], 0
            return (name.decode("utf-8", "replace") or "message", b"\n".join(data)) if data else None
        key, _, value = line.partition(b":")
        if value.startswith(b" "):
            value = value[1:]
        if key == b"event":
            self._name = value
        elif key == b"data":
            self._data.append(value)
        elif not key and not self._data and not self._name:
            self._size = 0  # a comment, which keeps the connection alive
        return None


def event_of(name: str, data: bytes, trace: str) -> Optional[Event]:
    """Reads one event. Kinds that are not known, which a host of a later release may send,
    are None; an error is raised."""
    if name not in KINDS and name != "error":
        return None
    try:
        v = json.loads(data)
        if not isinstance(v, dict):
            raise ValueError("not an object")
    except ValueError as e:
        raise OpenSkillError(f"cannot read the event {name}: {e}") from None
    if name == "error":
        raise of_error(0, v, trace, None)

    def said(key: str) -> str:
        return v[key] if isinstance(v.get(key), str) else ""

    if name == "start":
        return Event(name, conversation=said("conversation_id"), trace_id=said("trace_id"), data=v)
    if name == "text":
        return Event(name, text=said("text"), data=v)
    if name in ("tool_start", "tool_end"):
        return Event(name, tool=cast(ToolCall, v), result=said("result"), data=v)
    if name == "approval_required":
        return Event(name, approval=cast(Awaited, v), data=v)
    if name == "usage":
        return Event(name, usage=cast(Usage, v), data=v)
    return Event(name, answer=cast(ChatAnswer, v), conversation=said("conversation_id"), data=v)
