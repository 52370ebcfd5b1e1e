"""The turns of the main agent, put together from the stream of messages."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from claude_agent_sdk import AssistantMessage, ToolUseBlock
from claude_agent_sdk.types import StreamEvent

from agentguard import ToolCall

if TYPE_CHECKING:
    from claude_agent_sdk import Message

__all__ = ["Turn", "Turns"]

_PATIENCE: Final = 10.0
"""Seconds that a call waits for the message that it is in to end; then it is judged by itself."""


@dataclass(frozen=True)
class Turn:
    """The calls of one message of the model."""

    key: str
    """The message's id."""
    calls: list[ToolCall] = field(default_factory=list[ToolCall])


class Turns:
    """Tells which turn a call is in. The CLI asks about a call while the rest of its message is still coming."""

    def __init__(self) -> None:
        self._coming: Turn | None = None
        """The turn whose message is being streamed."""
        self._whole: dict[str, asyncio.Future[Turn | None]] = {}
        """By the id of a call; done when its message has ended."""
        self._over = False

    async def of(self, call_id: str) -> Turn | None:
        """Return the turn that the call is in once it is whole. None when no message tells."""
        if self._over:
            return None
        try:
            return await asyncio.wait_for(self._future(call_id), _PATIENCE)
        except TimeoutError:
            return None
        finally:
            self._whole.pop(call_id, None)

    def note(self, message: Message, calls: Mapping[str, tuple[ToolCall, Any]]) -> None:
        """Take in a message. `calls` holds those that it asks for, by id."""
        if isinstance(message, StreamEvent) and message.parent_tool_use_id is None:
            self._note_event(message.event)
        if isinstance(message, AssistantMessage) and message.parent_tool_use_id is None:
            asked = [calls[block.id][0] for block in message.content if isinstance(block, ToolUseBlock)]
            self._note_calls(message.message_id, asked)

    def end(self) -> None:
        """Let go of whoever still waits: no message comes any more."""
        self._over = True
        for future in self._whole.values():
            if not future.done():
                future.set_result(None)

    def _note_event(self, event: Mapping[str, Any]) -> None:
        if event["type"] == "message_start":
            self._finish()
            self._whole = {call: future for call, future in self._whole.items() if not future.done()}
            self._coming = Turn(event["message"]["id"])
        elif event["type"] == "message_stop":
            self._finish()

    def _note_calls(self, key: str | None, calls: list[ToolCall]) -> None:
        if self._coming is not None and self._coming.key == key:
            self._coming.calls.extend(calls)
        else:
            self._tell(Turn(key or "", calls))

    def _finish(self) -> None:
        if self._coming is not None:
            self._tell(self._coming)
            self._coming = None

    def _tell(self, turn: Turn) -> None:
        for call in turn.calls:
            future = self._future(call.id or "")
            if not future.done():
                future.set_result(turn)

    def _future(self, call_id: str) -> asyncio.Future[Turn | None]:
        return self._whole.setdefault(call_id, asyncio.get_running_loop().create_future())
