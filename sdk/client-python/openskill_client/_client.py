"""The client of one host."""

from __future__ import annotations

import copy
import os
import ssl
import time
from dataclasses import dataclass, field
from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional, Sequence, Union, cast
from urllib.parse import quote, urlencode

from . import _pack
from ._agent import Agent
from ._errors import _TRACE, Error, OpenSkillError, TimedOut, from_answer
from ._events import Event, event_of
from ._http import Transport, next_cursor, segment
from ._types import (
    AgentSkill,
    Approval,
    Change,
    ChatAnswer,
    Conversation,
    ConversationSummary,
    Descriptor,
    Execution,
    FileInfo,
    FileRef,
    Found,
    Limits,
    Meta,
    Outcome,
    Session,
    TenantUsage,
    UploadResult,
    VersionState,
    CodeSession,
    Workspace,
)

KEY_VARIABLE = "OPENSKILL_API_KEY"
BASE_VARIABLE = "OPENSKILL_HTTP_BASE_URL"


@dataclass(frozen=True)
class Result:
    """The answer of a call that succeeded. data is what the skill's output_schema describes."""

    data: Any
    meta: Meta
    skill_id: str
    trace_id: str
    answer: Dict[str, Any] = field(repr=False, compare=False)


class Client:
    """Calls one host. Threads may share it, and it needs no closing.

    base_url is its address; without one the variable OPENSKILL_HTTP_BASE_URL is read, and else
    it is http://127.0.0.1:8000.
    api_key is an API key or a JWT; without one the variable OPENSKILL_API_KEY is read, and ""
    shows none, which hosts on loopback accept. It goes to the base URL as it is: to another
    machine use https. timeout is how many seconds a request with its retries may take, and
    each part of a stream; retries how often one is sent again that the host refused before
    anything began, with 429 or 503. Answers up to max_answer bytes are read, and events of a
    stream up to max_event.
    """

    def __init__(
        self,
        base_url: Optional[str] = None,
        api_key: Optional[str] = None,
        *,
        timeout: float = 60.0,
        retries: int = 2,
        user_agent: str = "openskill-client-python",
        max_answer: int = 64 << 20,
        max_event: int = 16 << 20,
        ssl_context: Optional[ssl.SSLContext] = None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        key = os.environ.get(KEY_VARIABLE, "") if api_key is None else api_key
        if base_url is None:
            base_url = os.environ.get(BASE_VARIABLE) or "http://127.0.0.1:8000"
        self._http = Transport(base_url, key, timeout, retries, user_agent, max_answer, max_event, ssl_context, sleep)
        self._sleep = sleep
        self._trace = ""

    def __repr__(self) -> str:
        return f"Client({self._http.base!r})"  # and never the key

    def with_trace_id(self, trace_id: str) -> "Client":
        """A client whose requests have this name in the host's log, records and answers: 1 to 64
        of 0-9 A-Z a-z . _ -. Otherwise the host makes one up."""
        if not _TRACE.match(trace_id):
            raise OpenSkillError("invalid trace id: use 1 to 64 of 0-9 A-Z a-z . _ -")
        other = copy.copy(self)
        other._trace = trace_id
        return other

    def _call(self, method: str, path: str, body: Any = None, **headers: str) -> Any:
        return self._http.call(method, path, body, self._headers(headers))[2]

    def _headers(self, more: Mapping[str, str] = {}) -> Dict[str, str]:
        return dict(more, **({"X-Trace-Id": self._trace} if self._trace else {}))

    def _object(self, method: str, path: str, body: Any = None, **headers: str) -> Dict[str, Any]:
        v = self._call(method, path, body, **headers)
        if not isinstance(v, dict):
            raise OpenSkillError("the response is not an object; check that the base URL is an openSkill server")
        return v

    def _all(self, path: str, **query: str) -> Iterator[Dict[str, Any]]:
        cursor = ""
        more = "".join(f"&{name}={quote(value, safe='')}" for name, value in query.items() if value)
        while True:
            page = self._object("GET", path + "?limit=100" + more + ("&cursor=" + quote(cursor, safe="") if cursor else ""))
            data = page.get("data")
            if not isinstance(data, list):
                raise OpenSkillError("the response is not a list; check that the base URL is an openSkill server")
            yield from data
            following = page.get("next")
            if not following:
                return
            if following == cursor:
                raise OpenSkillError("the list does not end: the server repeated a cursor")
            cursor = str(following)

    # Skills

    def invoke(
        self, skill_id: str, input: Optional[Mapping[str, Any]] = None, *, version: str = "", files: Optional[Sequence[FileRef]] = None,
        limits: Optional[Limits] = None
    ) -> Result:
        """Calls a skill with what its schema asks for, and waits for its answer. A call that
        failed raises an Error, whose result has the meta of what ran."""
        return _result(self._object("POST", _invoke(skill_id), _request(input, version, files, limits)))

    def start(
        self, skill_id: str, input: Optional[Mapping[str, Any]] = None, *, version: str = "", files: Optional[Sequence[FileRef]] = None,
        limits: Optional[Limits] = None
    ) -> "Run":
        """Begins a call that goes on by itself, and gives it as soon as it is on record. Who may
        not read executions (executions:read) waits for the answer here; the Run has it then."""
        headers = self._headers({"Prefer": "respond-async"})
        status, _, answer = self._http.call("POST", _invoke(skill_id), _request(input, version, files, limits), headers)
        if not isinstance(answer, dict):
            raise OpenSkillError("the response is not an object; check that the base URL is an openSkill server")
        if status != 202:
            done = _result(answer)
            return Run(self, done.meta.get("execution_id", ""), done)
        if not isinstance(answer.get("id"), str):
            raise OpenSkillError("the response names no execution; check that the base URL is an openSkill server")
        return Run(self, answer["id"])

    def skills(self) -> Iterator[Descriptor]:
        """Goes through the catalogue. Pages are asked for as they are needed."""
        return cast(Iterator[Descriptor], self._all("/skills"))

    def skill(self, skill_id: str) -> Descriptor:
        """One skill of the catalogue."""
        return cast(Descriptor, self._object("GET", "/skills/" + segment("skill id", skill_id)))

    def search(self, query: str, limit: int = 5) -> List[Found]:
        """Searches the skills and Agent Skills that you can use. The best match comes first."""
        answer = self._object("GET", "/search?" + urlencode({"q": query, "limit": limit}))
        return cast(List[Found], answer["data"])

    def tools(self, format: str = "openai") -> List[Dict[str, Any]]:
        """What models may call, in the words of a vendor: openai, anthropic or mcp. Requested
        all pages."""
        tools: List[Dict[str, Any]] = []
        cursors = {""}
        cursor = ""
        while True:
            path = "/tools?format=" + quote(format, safe="") + ("&cursor=" + quote(cursor, safe="") if cursor else "")
            headers, v = self._http.call("GET", path, None, self._headers())[1:]
            v = v["tools"] if isinstance(v, dict) and isinstance(v.get("tools"), list) else v
            if not isinstance(v, list):
                raise OpenSkillError("the response is not a list; check that the base URL is an openSkill server")
            tools += v
            cursor = next_cursor(headers.get("link", ""))
            if not cursor:
                return tools
            if cursor in cursors or len(cursors) >= 1000:
                raise OpenSkillError("the list does not end")
            cursors.add(cursor)

    def agent_skills(self) -> Iterator[AgentSkill]:
        """Goes through the Agent Skills."""
        return cast(Iterator[AgentSkill], self._all("/agent-skills"))

    def agent_skill(self, name: str) -> AgentSkill:
        """One Agent Skill, with the text of its SKILL.md as content."""
        return cast(AgentSkill, self._object("GET", "/agent-skills/" + segment("Agent Skill name", name)))

    def run_script(
        self, name: str, script: str, args: Union[Sequence[Union[str, float]], Mapping[str, Any], None] = None, *, input: str = "",
        files: Optional[Sequence[FileRef]] = None, limits: Optional[Limits] = None, wait: int = 0
    ) -> Result:
        """Runs a script of an Agent Skill, and gives what it printed, as invoke does. args is the
        command line, or options by name; input is on standard input. Where the call needs an
        approval, it waits for that for wait seconds: 60 at most, and less than the timeout."""
        path = f"/agent-skills/{segment('name of an Agent Skill', name)}/scripts/{segment('name of a script', script)}:run"
        given = {"args": args, "input": input, "files": files, "limits": limits}
        return _result(self._object("POST", path, {k: v for k, v in given.items() if v}, **({"Prefer": f"wait={int(wait)}"} if wait > 0 else {})))

    # Code and files

    def run_code(self, language: str, code: str, *, files: Optional[Sequence[FileRef]] = None, workspace: Optional[str] = None,
                 commit: Optional[str] = None, busy: Optional[str] = None, limits: Optional[Limits] = None,
                 session: Optional[str] = None, agent_skills: Optional[Sequence[str]] = None,
                 packages: Optional[Sequence[str]] = None, skills: Optional[Sequence[str]] = None) -> Result:
        """Runs a program in a fresh sandbox: python, javascript, typescript or shell. It needs the
        scope skills:invoke:run_code. Calls with the same workspace share a working folder; commit
        "always" saves the changes of failed programs, too, and busy "conflict" does not wait for
        another call that uses the workspace. Python programs with the same session share their
        variables; "new" creates a session, whose id is in the data of the result. The program sees
        the files of agent_skills in /mnt/skills/NAME. NOT_FOUND names one of packages that the host
        does not have. skills are those that it may call; None: all of yours."""
        given = {"language": language, "code": code, "files": files, "workspace": workspace, "commit": commit, "busy": busy, "limits": limits,
                 "session": session, "agent_skills": agent_skills, "packages": packages, "skills": skills}
        return _result(self._object("POST", "/code:run", {k: v for k, v in given.items() if v is not None}))

    def upload_file(self, source: _pack.Source, name: str = "") -> FileInfo:
        """Uploads a file, by its path or its bytes. Calls refer to it by its id."""
        if not name and not isinstance(source, bytes):
            name = os.path.basename(os.fspath(source))
        path = "/files" + ("?name=" + quote(name, safe="") if name else "")
        return cast(FileInfo, self._object("POST", path, (_pack.read(source), "application/octet-stream")))

    def artifact(self, execution_id: str, name: str) -> bytes:
        """Returns an artifact of an execution by its name in the result's meta."""
        path = f"/executions/{segment('execution id', execution_id)}/artifacts/{quote(name, safe='')}"
        return self._http.content(path, self._headers())

    def workspace(self, workspace_id: str) -> Workspace:
        """Returns a workspace of the caller with the ids of its files."""
        return cast(Workspace, self._object("GET", f"/workspaces/{segment('workspace', workspace_id)}"))

    def create_code_session(self, language: str = "python", *, packages: Sequence[str] = ()) -> CodeSession:
        """Creates a session for run_code, whose code needs packages. It needs the scope skills:invoke:run_code."""
        return cast(CodeSession, self._object("POST", "/sessions", {"language": language, "packages": list(packages)}))

    def code_session(self, session_id: str) -> CodeSession:
        """Returns a session of the caller."""
        return cast(CodeSession, self._object("GET", f"/sessions/{segment('session', session_id)}"))

    def fork_code_session(self, session_id: str) -> CodeSession:
        """Creates a session with the variables and files of another one."""
        return cast(CodeSession, self._object("POST", f"/sessions/{segment('session', session_id)}:fork"))

    def freeze_code_session(self, session_id: str) -> CodeSession:
        """Writes a session to the host's database, from which its next call takes it, on any host."""
        return cast(CodeSession, self._object("POST", f"/sessions/{segment('session', session_id)}:freeze"))

    def delete_code_session(self, session_id: str) -> None:
        """Deletes a session and the workspace of its own."""
        self._call("DELETE", f"/sessions/{segment('session', session_id)}")

    # Uploads

    def upload(self, source: _pack.Source, manifest: Optional[_pack.Source] = None, *, dry_run: bool = False) -> UploadResult:
        """Uploads a version of a skill: its folder, which is packed, or an archive, by its path or
        its bytes; or a module with its manifest. It is disabled until it is enabled."""
        if manifest is not None:
            parts = {"module": _pack.read(source), "manifest": _pack.read(manifest)}
        elif not isinstance(source, bytes) and os.path.isdir(source):
            parts = {"archive": _pack.folder(os.fspath(source))}
        else:
            parts = {"archive": _pack.read(source)}
        return cast(UploadResult, self._object("POST", "/skills" + ("?dry_run=true" if dry_run else ""), _pack.form(parts)))

    def enable(self, skill_id: str, version: str = "") -> VersionState:
        """Lets a skill be called: this version of it, or the newest one that never was enabled."""
        return self._decide(skill_id, "enable", version)

    def disable(self, skill_id: str, version: str = "") -> VersionState:
        """Keeps a skill from being called."""
        return self._decide(skill_id, "disable", version)

    def _decide(self, skill_id: str, verb: str, version: str) -> VersionState:
        path = f"/skills/{segment('skill id', skill_id)}:{verb}"
        return cast(VersionState, self._object("POST", path, {"version": version} if version else {}))

    def delete_version(self, skill_id: str, version: str) -> VersionState:
        """Deletes a version of an upload."""
        return cast(VersionState, self._object("DELETE", f"/skills/{segment('skill id', skill_id)}/versions/{segment('version', version)}"))

    # Records

    def execution(self, execution_id: str) -> Execution:
        """The record of a call, with its result where that is kept."""
        return cast(Execution, self._object("GET", "/executions/" + segment("execution id", execution_id)))

    def cancel(self, execution_id: str) -> Execution:
        """Ends a call of one's own that is under way. To ask twice does no harm."""
        return cast(Execution, self._object("DELETE", "/executions/" + segment("execution id", execution_id)))

    def approval(self, approval_id: str) -> Approval:
        """What a script asked, and what became of it, for those who may decide about it."""
        return cast(Approval, self._object("GET", "/approvals/" + segment("approval id", approval_id)))

    def usage(self, tenant: str = "") -> TenantUsage:
        """Returns what a tenant has stored and used today, with its limits. "" is the
        caller's own; another one needs the scope admin."""
        return cast(TenantUsage, self._object("GET", "/usage" + ("?tenant=" + quote(tenant, safe="") if tenant else "")))

    def changes(self, tenant: str = "", since: str = "", until: str = "") -> Iterator[Change]:
        """Goes through the changes of keys, skills, approvals and settings on record, the newest
        first; it needs the scope admin. tenant is whom they concern; since and until are times
        as in 2026-11-22T10:00:00Z."""
        return cast(Iterator[Change], self._all("/audit/changes", tenant=tenant, since=since, until=until))

    # The agent

    def chat(
        self, message: str, conversation: str = "", provider: str = "", model: str = "", *, max_iterations: int = 0, max_tool_calls: int = 0, max_tokens: int = 0,
        max_validation_retries: int = 0, timeout_ms: int = 0, tools: str = "",
        files: Optional[Sequence[FileRef]] = None, workspace: str = ""
    ) -> ChatAnswer:
        """Sends a message and waits for the whole answer. Limits may only lower what the host
        allows; 0 is no opinion. timeout_ms is of each call of a tool. tools is all, code or
        both; by default as many skills as a model can have. files are added to the workspace
        of the conversation, or to the one that is named; the answer names it."""
        return cast(ChatAnswer, self._object("POST", "/agent/chat", _turn(_message(message, files, workspace), conversation, provider, model, max_iterations, max_tool_calls, max_tokens, max_validation_retries, timeout_ms, tools)))

    def chat_stream(
        self, message: str, conversation: str = "", provider: str = "", model: str = "", *, max_iterations: int = 0, max_tool_calls: int = 0, max_tokens: int = 0,
        max_validation_retries: int = 0, timeout_ms: int = 0, tools: str = "",
        files: Optional[Sequence[FileRef]] = None, workspace: str = ""
    ) -> Iterator[Event]:
        """Sends a message and gives what happens as it happens. Nothing is sent before the first
        event is asked for. To leave the loop cancels the turn. The last event is done."""
        body = _turn(_message(message, files, workspace), conversation, provider, model, max_iterations, max_tool_calls, max_tokens, max_validation_retries, timeout_ms, tools)
        return self._stream("/agent/chat", body)

    def approve(
        self, conversation: str, approve: bool, approval_id: str = "", provider: str = "", model: str = "", *, max_iterations: int = 0, max_tool_calls: int = 0, max_tokens: int = 0,
        max_validation_retries: int = 0, timeout_ms: int = 0, tools: str = ""
    ) -> ChatAnswer:
        """Decides about a call of a conversation that waits, and goes on with the turn. Limits
        are as in chat, for what follows."""
        body = _decision(approve, approval_id, provider, model, max_iterations, max_tool_calls, max_tokens, max_validation_retries, timeout_ms, tools)
        return cast(ChatAnswer, self._object("POST", _approve(conversation), body))

    def approve_stream(
        self, conversation: str, approve: bool, approval_id: str = "", provider: str = "", model: str = "", *, max_iterations: int = 0, max_tool_calls: int = 0, max_tokens: int = 0,
        max_validation_retries: int = 0, timeout_ms: int = 0, tools: str = ""
    ) -> Iterator[Event]:
        """approve, which gives what happens as chat_stream does."""
        body = _decision(approve, approval_id, provider, model, max_iterations, max_tool_calls, max_tokens, max_validation_retries, timeout_ms, tools)
        return self._stream(_approve(conversation), body)

    def _stream(self, path: str, body: Dict[str, Any]) -> Iterator[Event]:
        trace, events = self._http.stream(path, dict(body, stream=True), self._headers())
        for name, data in events:
            event = event_of(name, data, trace)
            if event is None:
                continue
            yield event
            if event.kind == "done":
                return

    def conversations(self) -> Iterator[ConversationSummary]:
        """Goes through the caller's conversations, the one that changed last first."""
        return cast(Iterator[ConversationSummary], self._all("/agent/conversations"))

    def conversation(self, conversation_id: str) -> Conversation:
        """One conversation, with the messages that are kept of it."""
        return cast(Conversation, self._object("GET", "/agent/conversations/" + segment("conversation id", conversation_id)))

    def delete_conversation(self, conversation_id: str) -> None:
        """Removes one with its messages. The records of its calls stay."""
        self._call("DELETE", "/agent/conversations/" + segment("conversation id", conversation_id))

    def execute(self, task: str, context: Optional[Mapping[str, Any]] = None, options: Optional[Mapping[str, Any]] = None) -> Outcome:
        """Gives a task to the host's agent, which works on it by itself, and waits for it. options
        are max_iterations, timeout_seconds, skills and kind. The Error of a task that failed has what
        was reached in its result."""
        body: Dict[str, Any] = {"task": task}
        if context is not None:
            body["context"] = context
        if options is not None:
            body["options"] = options
        return cast(Outcome, _enveloped(self._object("POST", "/api/agent/execute", body)))

    def session(self, session_id: str) -> Session:
        """A run of an agent with its calls."""
        return cast(Session, _enveloped(self._object("GET", "/api/agent/executions/" + segment("session id", session_id))))

    def new_agent(self, conversation: str = "", provider: str = "", model: str = "", hear: Optional[Callable[[Event], None]] = None) -> Agent:
        """Begins a conversation, or goes on with one. It sends nothing."""
        return Agent(self, conversation, provider, model, hear)


_UNDER_WAY = ("queued", "running")


class Run:
    """A call that goes on by itself on the host. id is that of its execution."""

    def __init__(self, client: Client, execution_id: str, result: Optional[Result] = None) -> None:
        self.id = execution_id
        self._client = client
        self._result = result

    def __repr__(self) -> str:
        return f"Run({self.id!r})"

    def execution(self) -> Execution:
        """Its record as it is now."""
        return self._client.execution(self.id)

    def done(self) -> bool:
        """Whether it has ended, well or not."""
        return self._result is not None or self.execution().get("status") not in _UNDER_WAY

    def wait(self, timeout: Optional[float] = None) -> Result:
        """Waits until it has ended, and gives its result. A call that failed raises an Error, as
        invoke does; after timeout seconds TimedOut is raised, and the call goes on."""
        until = None if timeout is None else time.monotonic() + timeout
        pause = 0.02
        while self._result is None:
            record = self.execution()
            if record.get("status") not in _UNDER_WAY:
                self._result = _ended(record)
                break
            if until is not None and time.monotonic() + pause > until:
                raise TimedOut(f"the call did not end within {timeout:g} s; it continues as the execution {self.id}")
            self._client._sleep(pause)
            pause = min(2 * pause, 1.0)
        return self._result

    def cancel(self) -> Execution:
        """Ends it."""
        return self._client.cancel(self.id)


def _invoke(skill_id: str) -> str:
    return f"/skills/{segment('skill id', skill_id)}:invoke"


def _approve(conversation: str) -> str:
    return f"/agent/conversations/{segment('id of a conversation', conversation)}:approve"


def _request(input: Optional[Mapping[str, Any]], version: str, files: Optional[Sequence[FileRef]], limits: Optional[Limits]) -> Dict[str, Any]:
    body: Dict[str, Any] = {"input": {} if input is None else input}
    given = {"version": version, "files": files, "limits": limits}
    return dict(body, **{k: v for k, v in given.items() if v})


def _message(message: str, files: Optional[Sequence[FileRef]], workspace: str) -> Dict[str, Any]:
    return {"message": message, **({"files": files} if files else {}), **({"workspace": workspace} if workspace else {})}


def _decision(approve: bool, approval_id: str, *more: Any) -> Dict[str, Any]:
    return _turn({"approve": approve, **({"approval_id": approval_id} if approval_id else {})}, "", *more)


def _turn(
    body: Dict[str, Any], conversation: str, provider: str, model: str, max_iterations: int = 0, max_tool_calls: int = 0, max_tokens: int = 0,
    max_validation_retries: int = 0, timeout_ms: int = 0, tools: str = ""
) -> Dict[str, Any]:
    given = {
        "conversation_id": conversation,
        "provider": provider,
        "model": model,
        "max_iterations": max_iterations,
        "max_tool_calls": max_tool_calls,
        "max_tokens": max_tokens,
        "max_validation_retries": max_validation_retries,
        "timeout_ms": timeout_ms,
        "tools": tools,
    }
    return dict(body, **{k: v for k, v in given.items() if v})


def _result(v: Dict[str, Any]) -> Result:
    if v.get("success") is not True or v.get("error") is not None or v.get("data") is None or not isinstance(v.get("meta"), dict):
        raise OpenSkillError("the response is not a successful Normalized Skill Result; check that the base URL is an openSkill server")
    return Result(v["data"], cast(Meta, v["meta"]), str(v.get("skill_id") or ""), str(v.get("trace_id") or ""), v)


def _ended(record: Execution) -> Result:
    """The result of an execution that has ended."""
    kept = record.get("result")
    if isinstance(kept, dict) and kept.get("success") is True:
        return _result(kept)
    if isinstance(kept, dict) and isinstance(kept.get("error"), dict):
        raise from_answer(int(kept["error"].get("status") or 0), {}, kept)
    failed = record.get("error")
    if failed is not None:
        raise Error(0, failed.get("code", ""), failed.get("message", ""), None, record.get("trace_id", ""), cast(Dict[str, Any], record))
    raise OpenSkillError(f"the execution {record.get('id')} ended as {record.get('status')}, but its result is no longer stored")


def _enveloped(v: Dict[str, Any]) -> Dict[str, Any]:
    data = v.get("data")
    if not isinstance(data, dict):
        raise OpenSkillError("the response has no data; check that the base URL is an openSkill server")
    return data
