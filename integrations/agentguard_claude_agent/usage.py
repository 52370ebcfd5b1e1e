"""What model calls used, charged once: as each message ends, and by the CLI's own count when a turn does."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import msgspec
from claude_agent_sdk import AssistantMessage, ResultMessage
from claude_agent_sdk.types import StreamEvent

from agentguard import Run, Usage
from agentguard.prices import cost

if TYPE_CHECKING:
    from claude_agent_sdk import Message

__all__ = ["Meter"]


@dataclass
class _Coming:
    """A message that is being streamed."""

    id: str
    model: str
    used: dict[str, Any]
    """The counts so far, by the names that the API gives them."""


class Meter:
    """Charges a run. What sub-agents write, and calls beside the conversation, only the CLI's count shows."""

    def __init__(self, *, fresh: bool) -> None:
        """Count from nothing. `fresh` is False where the CLI goes on with a session, and counts from its start."""
        self._charged = Usage(0, 0, 0, Decimal(0))
        """In all, while this meter looked on."""
        self._before = Usage(0, 0, 0, Decimal(0)) if fresh else None
        """What the CLI counts and this meter did not see. None when that is not known yet."""
        self._coming: _Coming | None = None
        self._last: dict[str | None, str] = {}
        """The message that was charged last, by the call that it was written inside of."""

    def note(self, message: Message, run: Run) -> None:
        """Charge what a message tells."""
        if isinstance(message, StreamEvent) and message.parent_tool_use_id is None:
            self._note_event(message.event, run)
        elif isinstance(message, AssistantMessage):
            self._note_answer(message, run)
        elif isinstance(message, ResultMessage) and message.model_usage:
            self._note_total(message, run)

    def _note_event(self, event: Mapping[str, Any], run: Run) -> None:
        if event["type"] == "message_start":
            message = event["message"]
            self._coming = _Coming(message["id"], message["model"], dict(message.get("usage") or {}))
        elif event["type"] == "message_delta" and self._coming is not None:
            counts: Mapping[str, Any] = event.get("usage") or {}
            self._coming.used.update((name, count) for name, count in counts.items() if count is not None)
        elif event["type"] == "message_stop" and self._coming is not None:
            self._charge(run, _usage(self._coming.used), self._coming.model)
            self._last[None], self._coming = self._coming.id, None

    def _note_answer(self, message: AssistantMessage, run: Run) -> None:
        """Charge a message that is not streamed. It comes in parts, which all tell the same."""
        key, inside = message.message_id, message.parent_tool_use_id
        streamed = inside is None and self._coming is not None and self._coming.id == key
        if streamed or key is None or not message.usage or self._last.get(inside) == key:
            return
        self._last[inside] = key
        self._charge(run, _usage(message.usage), message.model)

    def _note_total(self, message: ResultMessage, run: Run) -> None:
        """Charge what the CLI has counted in the session beyond what was charged."""
        total = _total(message)
        if self._before is None:
            self._before = _rest(total, self._charged)
            return
        rest = _rest(_rest(total, self._before), self._charged)
        if rest.input_tokens or rest.output_tokens or rest.cost_usd:
            self._charge(run, rest, run.key.model)

    def _charge(self, run: Run, usage: Usage, model: str) -> None:
        if usage.cost_usd is None:
            usage = msgspec.structs.replace(usage, cost_usd=cost(usage, model))
        self._charged += usage
        run.charge(usage, model=model)


def _usage(used: Mapping[str, Any]) -> Usage:
    """Return the counts of the API, where tokens of the cache are counted beside the others."""
    cached = used.get("cache_read_input_tokens")
    read = (used.get("input_tokens"), used.get("cache_creation_input_tokens"), cached)
    return Usage(_sum(read), used.get("output_tokens"), cached)


def _total(message: ResultMessage) -> Usage:
    """Return what the CLI counts since the session began, of all models; a price that it guessed is not known."""
    models: list[Mapping[str, Any]] = list((message.model_usage or {}).values())
    cached = _sum(used.get("cacheReadInputTokens") for used in models)
    read = (_sum(used.get(name) for used in models) for name in ("inputTokens", "cacheCreationInputTokens"))
    guessed = any(used.get("costBasis") == "unknown" for used in models)
    priced = None if guessed or message.total_cost_usd is None else Decimal(str(message.total_cost_usd))
    return Usage(_sum((*read, cached)), _sum(used.get("outputTokens") for used in models), cached, priced)


def _sum(counts: Iterable[int | None]) -> int | None:
    known = [count for count in counts if count is not None]
    return sum(known) if known else None


def _rest(whole: Usage, part: Usage) -> Usage:
    """Return what is left of each count, never below zero."""
    pairs = zip(msgspec.structs.astuple(whole), msgspec.structs.astuple(part), strict=True)
    return Usage(*(None if a is None else max(a - (b or 0), 0) for a, b in pairs))
