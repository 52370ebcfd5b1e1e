"""Calls that only a whole conversation tells: an agent's output with its messages, where no model span has any."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agentguard.traces.calls import same_name
from agentguard.traces.convention import Role
from agentguard.traces.joining import Entry, Turn, overlapping
from agentguard.traces.messages import conversations_in, results_in, transcript_in

if TYPE_CHECKING:
    from collections.abc import Iterator

    from agentguard.traces.calls import Ran
    from agentguard.traces.convention import Answered, Asked
    from agentguard.traces.reading import Reading

_KEYS = ("pydantic_ai.all_messages",)
_CONTAINERS = frozenset({Role.AGENT, Role.WORKFLOW, Role.CHAIN})


def from_transcript(readings: list[Reading], ran: list[Ran]) -> list[Turn] | None:
    """Return the turns that a recorded conversation tells, joined with the calls; None when there is none.

    A conversation may repeat earlier runs: only what follows the user's message before the first call is taken.
    """
    for source, value in _conversations(readings):
        told = [transcript_in(messages, source) for messages in conversations_in(value)]
        if any(any(turns) for turns in told):
            return _joined(told, ran)
    return None


def left_open(readings: list[Reading], turns: list[Turn]) -> list[Asked]:
    """Return the calls that a run's output ends with and that none of the turns has: asked for, and never run."""
    had = {entry.ran[0].call_id for turn in turns for entry in turn.entries if entry.ran}
    for source, value in _conversations(readings[:1]):
        for messages in conversations_in(value)[-1:]:
            told = transcript_in(messages[-1:], source)
            return [asked for asked in (told[-1] if told else []) if asked.id is not None and asked.id not in had]
    return []


def answers_in(readings: list[Reading]) -> dict[str, Answered]:
    """Return the tool results by call id that recorded conversations tell."""
    return {
        call_id: answer
        for _, value in _conversations(readings)
        for messages in conversations_in(value)
        for call_id, answer in results_in(messages)
    }


def _conversations(readings: list[Reading]) -> Iterator[tuple[str, Any]]:
    for reading in readings:
        if reading.role not in _CONTAINERS:
            continue
        for key in (*_KEYS, *reading.lens.answer):
            value = reading.span.attributes.get(key)
            if value is not None:
                yield f"span {reading.span.span_id} {key}", value


def _joined(told: list[list[list[Asked]]], ran: list[Ran]) -> list[Turn]:
    calls = sorted(ran, key=lambda each: (each.start or 0, each.end or 0))
    turns = [_turn(asked) for conversation in told for asked in _this_run(conversation, calls)]
    unfilled = [entry for turn in turns for entry in turn.entries]
    left = [call for call in calls if not _placed(unfilled, call)]
    start = calls[0].start or 0 if calls else 0
    for turn in turns:
        starts = [call.start or 0 for entry in turn.entries for call in entry.ran]
        turn.start = start = max(start, min(starts, default=start))
    return sorted([*turns, *overlapping(left)], key=lambda turn: turn.start)


def _this_run(told: list[list[Asked]], calls: list[Ran]) -> list[list[Asked]]:
    first = next((at for at, asked in enumerate(told) if any(_alike(Entry(each), calls) for each in asked)), len(told))
    users = [at for at, asked in enumerate(told[: first + 1]) if not asked]
    return [asked for asked in told[users[-1] if users else 0 :] if asked]


def _alike(entry: Entry, calls: list[Ran]) -> bool:
    return any(_matches(entry, call) for call in calls)


def _turn(asked: list[Asked]) -> Turn:
    turn = Turn(0, None)
    turn.entries = [Entry(each) for each in asked]
    return turn


def _placed(unfilled: list[Entry], call: Ran) -> bool:
    for entry in unfilled[:_NEAR]:
        if _matches(entry, call):
            entry.ran.append(call)
            unfilled.remove(entry)
            return True
    return False


_NEAR = 64
"""How many calls ahead of a conversation a call that ran is looked for."""


def _matches(entry: Entry, call: Ran) -> bool:
    if entry.asked is None or not same_name(entry.name, call.name):
        return False
    if entry.asked.id is not None and call.call_id is not None:
        return entry.asked.id == call.call_id
    asked, ran = entry.arguments.named, call.arguments.named
    return asked is None or ran is None or asked == ran
