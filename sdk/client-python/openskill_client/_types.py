"""What a host answers, as it is in JSON. A host of a later release may send more; what it
leaves out is missing."""

from __future__ import annotations

from typing import Any, Dict, List, Optional, TypedDict


class Limits(TypedDict, total=False):
    """For a call. They lower the limits of a skill; code and scripts may get more than the defaults of the host, up to
    its maximum."""

    timeout_ms: int
    memory_mb: int
    fuel: int
    output_kb: int
    scratch_mb: int


class FileRef(TypedDict, total=False):
    """A file for a call: a name, and one source of its content."""

    name: str  # a path in the working folder
    text: str
    base64: str
    id: str  # of a file that was uploaded
    execution_id: str  # with artifact, a file that an earlier execution left
    artifact: str


class FileInfo(TypedDict, total=False):
    """A file that was uploaded."""

    id: str
    name: str
    size: int
    created_at: str
    expires_at: str


class Workspace(TypedDict, total=False):
    """A working folder between two calls: files have name, id and size."""

    id: str
    files: List[Dict[str, Any]]
    size: int
    revision: int
    created_at: str
    updated_at: str
    expires_at: str


class CodeSession(TypedDict, total=False):
    """An interpreter whose variables stay between calls."""

    id: str
    language: str
    workspace: str
    packages: List[str]
    memory_mb: int
    size: int
    runs: int
    fuel_used: int
    frozen: bool
    created_at: str
    used_at: str
    expires_at: str


class Artifact(TypedDict, total=False):
    name: str
    size: int
    url: str  # below the base URL; missing: it is not kept


class Meta(TypedDict, total=False):
    """How a result came about."""

    latency_ms: int
    version: str
    execution_id: str
    runner: str
    digest: str
    fuel_used: int
    memory_peak_bytes: int
    truncated: bool
    artifacts: List[Artifact]


class Descriptor(TypedDict, total=False):
    """A skill of the catalogue."""

    id: str
    version: str
    description: str
    runner: str
    fallback: str
    trust: str
    digest: str
    enabled: bool
    state: str
    reason: str
    shared: bool
    limits: Limits
    permissions: Dict[str, Any]
    requires: List[str]
    input_schema: Dict[str, Any]
    output_schema: Dict[str, Any]
    cost_metadata: Dict[str, int]


class Found(TypedDict, total=False):
    """A result of a search."""

    type: str
    name: str
    description: str
    input_schema: Dict[str, Any]


class AgentFile(TypedDict, total=False):
    name: str
    description: str
    media_type: str
    size: int
    parameters: Dict[str, Any]


class AgentSkill(TypedDict, total=False):
    """An Agent Skill; content, the text of its SKILL.md, where it was loaded."""

    name: str
    description: str
    license: str
    compatibility: str
    allowed_tools: List[str]
    metadata: Dict[str, str]
    digest: str
    trust: str
    resources: List[AgentFile]
    scripts: List[AgentFile]
    content: str


class ResultError(TypedDict, total=False):
    code: str
    status: int
    message: str
    details: Dict[str, Any]


class Payload(TypedDict, total=False):
    """What a record keeps of an input or output; how much, the operator decides."""

    bytes: int
    sha256: str
    json: Any
    truncated: bool


class Execution(TypedDict, total=False):
    """One call as its records tell it. status is queued, running, success, failed, terminated or timeout."""

    id: str
    status: str
    skill: str
    script: str
    version: str
    digest: str
    runner: str
    tenant: str
    principal: str
    principal_type: str
    key: str
    trace_id: str
    session: str
    iteration: int
    replay_of: str
    started_at: str
    finished_at: str
    duration_ms: int
    fuel_used: int
    memory_peak_bytes: int
    tokens: int
    reported_tokens: int
    error: ResultError
    limits: Limits
    input: Payload
    output: Payload
    artifacts: List[Dict[str, Any]]
    result: Dict[str, Any]


class UploadResult(TypedDict, total=False):
    id: str
    version: str
    digest: str
    state: str
    report: Dict[str, Any]


class VersionState(TypedDict, total=False):
    id: str
    version: str
    digest: str
    state: str
    reason: str
    shared: bool


class Usage(TypedDict, total=False):
    """What models took in a turn."""

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int
    estimated: bool
    cost_usd: float


class ToolCall(TypedDict, total=False):
    id: str
    skill_id: str
    arguments: Any
    success: bool
    error: Optional[ResultError]
    latency_ms: int
    execution_id: str


class Awaited(TypedDict, total=False):
    """An approval that a turn waits for."""

    approval_id: str
    tool_call_id: str
    skill_id: str
    script: str


class ChatAnswer(TypedDict, total=False):
    """What a turn came to. stop_reason is completed, approval_required, or the limit that was
    reached."""

    conversation_id: str
    answer: str
    tool_calls: List[ToolCall]
    iterations: int
    usage: Usage
    stop_reason: str
    trace_id: str
    provider: str
    model: str
    approvals: List[Awaited]
    workspace: str


class ConversationSummary(TypedDict, total=False):
    id: str
    title: str
    created_at: str
    updated_at: str
    messages: int


class Conversation(TypedDict, total=False):
    id: str
    title: str
    created_at: str
    updated_at: str
    iterations: int
    total_tokens: int
    messages: List[Dict[str, Any]]
    pending: List[Awaited]


class Outcome(TypedDict, total=False):
    """What a task came to. status is completed, terminated, timeout or failed."""

    session_id: str
    status: str
    iterations: int
    total_token_usage: int
    total_duration_ms: int
    result: Dict[str, Any]


class Session(TypedDict, total=False):
    """A run of an agent: a task, or a conversation."""

    session_id: str
    principal_id: str
    principal_type: str
    status: str
    iterations: List[Dict[str, Any]]
    total_token_usage: int
    total_duration_ms: int
    created_at: str


class StoredUsage(TypedDict):
    """What a tenant has stored of one kind. A limit is None where there is none."""

    kind: str
    count: int
    count_limit: Optional[int]
    bytes: Optional[int]
    bytes_limit: Optional[int]


class DailyUsage(TypedDict):
    """What a tenant has used today of one kind; model_cost is in millionths of a US dollar."""

    kind: str
    used: int
    limit: int


class TenantUsage(TypedDict):
    """What a tenant has stored and used today."""

    tenant: str
    stored: List[StoredUsage]
    today: List[DailyUsage]
    resets_at: str


class Change(TypedDict, total=False):
    """A change of a key, skill, approval or setting. failed is missing where it was made."""

    id: str
    tenant: str
    action: str
    subject: str
    details: Dict[str, str]
    failed: str
    principal: str
    principal_type: str
    principal_tenant: str
    time: str


class Approval(TypedDict, total=False):
    """What a script of an Agent Skill asked, or a proposed version of a skill, and what became of it."""

    id: str
    state: str
    policy: str
    skill: str
    version: str
    script: str
    digest: str
    previous_digest: str
    trust: str
    arguments: List[str]
    arguments_cut: bool
    tenant: str
    caller: str
    asked_at: str
    expires_at: str
