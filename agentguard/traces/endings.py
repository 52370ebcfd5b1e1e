"""How a run ended, from evidence. The rules and their order are told in docs/endings.md."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from agentguard import semconv
from agentguard.traces.calls import failure
from agentguard.traces.convention import Role
from agentguard.traces.requests import answer_text
from agentguard.traces.span import Status
from agentguard.trajectory import Ending

if TYPE_CHECKING:
    from agentguard.traces.grouping import Fragment
    from agentguard.traces.joining import Turn
    from agentguard.traces.reading import Reading

LIMITS = frozenset(
    {
        "UsageLimitExceeded",
        "GraphRecursionError",
        "MaxTurnsExceeded",
        "LlmCallsLimitExceededError",
        "AgentMaxStepsError",
        "MaxStepsExceeded",
        "LimitExceededError",
        "RunHalted",
    }
)
"""Exceptions by which frameworks say that they stopped a run at a limit."""

_WHAT = r"(?:steps?|turns?|iterations?|recursions?|llm calls?|model calls?|requests?|invocations?|tokens?|budget|cost)"
_LIMIT_SENTENCE = re.compile(
    rf"\bmax(?:imum)?\.? (?:number of |allowed )?{_WHAT}\b[^.]{{0,60}}?(?:reached|exceeded|limit)"
    rf"|\bmax(?:imum)?\.? {_WHAT} (?:of|\()\s?\d"
    rf"|\b{_WHAT} limit\b"
    rf"|\breached max(?:imum)? {_WHAT}"
    r"|\bnot making progress\b",
    re.IGNORECASE,
)
"""Sentences that say that a limit of steps, turns, calls or tokens ended a run."""

ANSWER_TOOLS = frozenset({"final_answer", "final_result", "finish", "submit", "attempt_completion"})
"""Tools by which a model gives its answer: asking for one is an end, not a wish to go on."""


class Evidence(NamedTuple):
    """An ending and what it was read from."""

    ending: Ending
    note: str | None = None


def ending_of(fragment: Fragment, turns: list[Turn], last_result: object) -> Evidence:
    """Judge how a run ended. `turns` are those of the main lane, `last_result` is what its last call returned."""
    told = _told(fragment)
    if told is not None:
        return Evidence(told)
    limit = _limit(fragment)
    if limit is not None:
        return Evidence(Ending.HALTED, f"stopped at a limit: {limit}")
    last = next((turn for turn in reversed(turns) if turn.request is not None), None)
    failed = _failed(fragment, last)
    if failed is not None:
        return Evidence(Ending.FAILED, f"ended with an error: {failed}")
    if fragment.root is None and fragment.started:
        return Evidence(Ending.UNFINISHED, "a run began and no end of it was recorded")
    return _from_turns(fragment, last, last_result)


def _from_turns(fragment: Fragment, last: Turn | None, last_result: object) -> Evidence:
    if last is None or last.request is None:
        return _from_answer(fragment, last_result)
    if any(entry.name in ANSWER_TOOLS for entry in last.entries):
        return Evidence(Ending.FINISHED)
    if last.request.wants_tools or last.entries:
        if all(entry.ran for entry in last.entries) and _answered(fragment, last_result):
            return Evidence(Ending.FINISHED, "the run gave an answer after its last recorded model turn")
        if fragment.root is None:
            return Evidence(Ending.UNFINISHED, "the last model turn still asked for tools and no end was recorded")
        return Evidence(Ending.HALTED, "the last model turn still asked for tools when the run was closed")
    return Evidence(Ending.FINISHED)


def _from_answer(fragment: Fragment, last_result: object) -> Evidence:
    if _answered(fragment, last_result):
        return Evidence(Ending.FINISHED)
    return Evidence(Ending.UNFINISHED, "no model span, answer or error says how it ended")


def _answered(fragment: Fragment, last_result: object) -> bool:
    root = fragment.root
    if root is None:
        return False
    agents = [each for each in root.children if each.role is Role.AGENT]
    texts = [text for each in (root, *agents) if (text := answer_text(each)) is not None]
    return bool(texts) and not any(_is_result(text, last_result) for text in texts)


def _is_result(text: str, last_result: object) -> bool:
    return last_result is not None and (text == last_result or text.strip() == str(last_result).strip())


def _told(fragment: Fragment) -> Ending | None:
    for reading in fragment.members:
        value = reading.span.attributes.get(semconv.RUN_ENDING)
        if isinstance(value, str) and value in _ENDINGS:
            return Ending(value)
    return None


_ENDINGS = frozenset(each.value for each in Ending)


def _limit(fragment: Fragment) -> str | None:
    for reading in fragment.members:
        # a sub-agent's limit is its caller's error, not the end of the run
        if reading.role is Role.TOOL or reading.inside_call:
            continue
        if reading.span.status_code != Status.ERROR and not reading.span.events:
            continue
        for text in _failure_texts(reading):
            limit = limit_in(text)
            if limit is not None:
                return limit
    return None


def limit_in(text: str) -> str | None:
    """Return the words of an error that name a limit; None when it is about something else."""
    name = next((each for each in LIMITS if each in text), None)
    if name is not None:
        return name
    sentence = _LIMIT_SENTENCE.search(text)
    return sentence.group() if sentence is not None else None


def _failure_texts(reading: Reading) -> list[str]:
    span = reading.span
    texts = [span.status_message or "", str(span.attributes.get(semconv.ERROR_TYPE) or "")]
    for name, _, attributes in span.events:
        if name == "exception":
            texts += [str(attributes.get(key) or "")[:_CAP] for key in ("exception.type", "exception.message")]
    return [text[:_CAP] for text in texts]


_CAP = 2000
"""Characters of a message that are searched."""


def _failed(fragment: Fragment, last: Turn | None) -> str | None:
    root = fragment.root
    if root is None:
        return None
    for reading in (root, _last_agent(fragment), _open_step(last)):
        why = failure(reading) if reading is not None else None
        if why is not None:
            return _short(why)
    return None


def _last_agent(fragment: Fragment) -> Reading | None:
    agents = [each for each in fragment.members if each.role is Role.AGENT and not each.inside_call]
    return max(agents, key=lambda each: each.span.end_ns or 0, default=None)


def _open_step(last: Turn | None) -> Reading | None:
    # the span around the last request, when what it asked for never ran
    if last is None or last.request is None or any(entry.ran for entry in last.entries) or not last.entries:
        return None
    around = last.request.parts[0].parent
    return around if around is not None and around.role is Role.CHAIN else None


def _short(text: str) -> str:
    first = text.strip().splitlines()[0] if text.strip() else ""
    return first if len(first) <= 200 else first[:199] + "…"
