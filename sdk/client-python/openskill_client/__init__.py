"""Calls an openSkill host over HTTP: its skills, its agent, and the records of both.

    c = Client("http://127.0.0.1:8000")
    r = c.invoke("calculator", {"numbers": [3, 5], "ops": ["mean"]})
    answer = c.new_agent().run("What is the mean of 3 and 5?")

What the host refuses, and what failed there, is an Error with one of the published codes;
whatever else goes wrong is another OpenSkillError. Answers are what the host, skills and
models said: text for people in them is as they wrote it, and must be cleaned before it is
shown on a terminal or a page.

It needs the standard library alone. Answers are read up to a size, streams one event at a
time, and no redirect is followed: it would take the key along.
"""

from ._agent import Agent, StoppedError
from ._client import Client, Result, Run
from ._errors import Error, OpenSkillError, TimedOut
from ._events import Event
from ._types import (
    AgentSkill,
    Approval,
    Awaited,
    Change,
    ChatAnswer,
    Conversation,
    ConversationSummary,
    DailyUsage,
    Descriptor,
    Execution,
    FileInfo,
    FileRef,
    Found,
    Limits,
    Meta,
    Outcome,
    Session,
    StoredUsage,
    TenantUsage,
    ToolCall,
    UploadResult,
    Usage,
    VersionState,
    CodeSession,
    Workspace,
)

__all__ = [
    "Agent",
    "AgentSkill",
    "Approval",
    "Awaited",
    "Change",
    "ChatAnswer",
    "Client",
    "Conversation",
    "ConversationSummary",
    "DailyUsage",
    "Descriptor",
    "Error",
    "Event",
    "Execution",
    "FileInfo",
    "FileRef",
    "Found",
    "Limits",
    "Meta",
    "OpenSkillError",
    "Outcome",
    "Result",
    "Run",
    "Session",
    "StoppedError",
    "StoredUsage",
    "TenantUsage",
    "TimedOut",
    "ToolCall",
    "UploadResult",
    "Usage",
    "VersionState",
    "CodeSession",
    "Workspace",
]

__version__ = "0.1.0"
