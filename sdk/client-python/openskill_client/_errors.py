"""What can go wrong."""

from __future__ import annotations

import re
from typing import Any, Dict, Optional

_CODE = re.compile(r"[A-Z0-9_]{0,64}\Z")
_TRACE = re.compile(r"[0-9A-Za-z._-]{1,64}\Z")
_MOST = 1024  # characters of a message


def clean(text: object) -> str:
    """One line of text that a stranger wrote, without what cannot be seen."""
    shown = "".join(c if c.isprintable() else " " if c.isspace() else "" for c in str(text)[: 4 * _MOST])
    return shown.strip()[:_MOST]


class OpenSkillError(Exception):
    """The client could not do what it was asked for."""


class TimedOut(OpenSkillError):
    """There was no answer in time. Whether a call ran is not known."""


class Error(OpenSkillError):
    """A failure that the host answered with.

    status is of HTTP, 0 in the middle of a stream that says none; code is "" where the
    answer was none of openSkill's; message is for the person or model that must mend the
    call; details are as the host sent them; trace_id is the name under which the host's log
    has the reason, or ""; result is the whole answer where it was JSON, which for a call
    that ran has its meta; retry_after is how many seconds the host wants to be left alone.
    """

    def __init__(
        self,
        status: int,
        code: str,
        message: str,
        details: Optional[Dict[str, Any]] = None,
        trace_id: str = "",
        result: Optional[Dict[str, Any]] = None,
        retry_after: Optional[float] = None,
    ) -> None:
        self.status = status
        self.code = code if _CODE.match(code) else ""
        self.message = clean(message) or "the server gave no reason"
        self.details = details or {}
        self.trace_id = trace_id if _TRACE.match(trace_id) else ""
        self.result = result
        self.retry_after = retry_after
        super().__init__(f"{self.code or 'status ' + str(status)}: {self.message}")


def from_answer(status: int, headers: Dict[str, str], body: Any) -> Error:
    """The Error of a decoded answer; of anything that is no failure of openSkill's, one
    without a code."""
    retry = headers.get("retry-after", "")
    retry_after = float(retry) if retry.isascii() and retry.isdigit() and len(retry) < 9 else None
    if 300 <= status < 400:
        to = clean(headers.get("location", ""))[:200]
        message = f'refused to follow a redirect to "{to}" with the API key; if it is right, use it as the base URL'
        return Error(status, "", message)
    failed = body.get("error") if isinstance(body, dict) else None
    if not isinstance(failed, dict) or not isinstance(failed.get("code"), str) or not failed["code"]:
        kind = clean(headers.get("content-type", ""))[:60]
        message = f"the response ({kind}) is not from openSkill; check proxies between client and server"
        return Error(status, "", message, retry_after=retry_after)
    trace = headers.get("x-trace-id", "") or str(body.get("trace_id") or "")
    if not trace and isinstance(body.get("meta"), dict):
        trace = str(body["meta"].get("request_id") or "")
    return of_error(status, failed, trace, body, retry_after)


def of_error(status: int, failed: Dict[str, Any], trace: str, body: Optional[Dict[str, Any]], retry_after: Optional[float] = None) -> Error:
    """The Error of the value of "error"."""
    said = failed.get("status")
    if status == 0 and isinstance(said, int):
        status = said
    details = failed.get("details")
    return Error(
        status, str(failed.get("code") or ""), str(failed.get("message") or ""), details if isinstance(details, dict) else None, trace, body, retry_after
    )
