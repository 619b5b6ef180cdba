"""A conversation with the host's agent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Callable, Optional

from ._errors import OpenSkillError
from ._events import Event
from ._types import ChatAnswer

if TYPE_CHECKING:
    from ._client import Client


class StoppedError(OpenSkillError):
    """A turn ended without being completed: a limit was reached, or a call waits for a person's
    approval. answer is what it came to."""

    def __init__(self, answer: ChatAnswer) -> None:
        self.answer = answer
        reason = answer.get("stop_reason", "")
        super().__init__("the turn waits for an approval" if reason == "approval_required" else f"the turn ended before it was completed: {reason!r}")


class Agent:
    """A conversation: each message is answered with what was said before in mind, and with the
    skills that the caller may use. The host does the work: it asks the model, runs what that
    asks for, and keeps the messages. One thread at a time uses an Agent.

    conversation is its id, "" before the first message; one that was had before goes on.
    provider and model choose who answers, "" leaves that to the host. hear, where it is not
    None, is told what happens while run waits. last is the last turn's answer.
    """

    def __init__(self, client: "Client", conversation: str = "", provider: str = "", model: str = "", hear: Optional[Callable[[Event], None]] = None) -> None:
        self._client = client
        self.conversation = conversation
        self.provider = provider
        self.model = model
        self.hear = hear
        self.last: Optional[ChatAnswer] = None

    def run(self, text: str) -> str:
        """Says something to the agent and gives its answer; raises StoppedError where the turn
        has ended otherwise than completed."""
        if self.hear is None:
            return self._ended(self._client.chat(text, self.conversation, self.provider, self.model))
        for event in self._client.chat_stream(text, self.conversation, self.provider, self.model):
            if event.conversation:
                self.conversation = event.conversation  # also of a turn that fails later
            self.hear(event)
            if event.answer is not None:
                return self._ended(event.answer)
        raise OpenSkillError("the stream ended early")  # it has, by the contract of chat_stream

    def _ended(self, answer: ChatAnswer) -> str:
        self.conversation, self.last = answer.get("conversation_id", self.conversation), answer
        if answer.get("stop_reason") != "completed":
            raise StoppedError(answer)
        return answer.get("answer", "")
