"""Claude Code's own session files (`~/.claude/projects/*/*.jsonl`): one entry a line, sub-agents as sidechains."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from agentguard.call import Usage
from agentguard.traces.container import Items, Session
from agentguard.traces.convention import Answered
from agentguard.traces.conversation import Conversation, total, usage_of
from agentguard.traces.messages import calls_in, results_in, text_in
from agentguard.traces.shapes import is_list, is_object
from agentguard.traces.values import mapped, moment, string
from agentguard.trajectory import MAIN_LANE, UNKNOWN, Ending, RunKey, Trajectory

_ENTRIES: Final = frozenset({"user", "assistant", "system", "progress", "attachment"})
_NOTES: Final = frozenset({"summary", "file-history-snapshot", "queue-operation", "last-prompt", "permission-mode"})
_DENIED: Final = "User rejected tool use"
_FORBIDDEN: Final = "Permission to use "
_INTERRUPTED: Final = "[Request interrupted by user"


def accepts(record: Any) -> bool:
    """Whether a record is an entry of a session."""
    if not is_object(record):
        return False
    kind = string(record.get("type"))
    if kind in _NOTES:
        return any(key in record for key in ("leafUuid", "messageId", "sessionId"))
    return kind in _ENTRIES and ("sessionId" in record or ("uuid" in record and "message" in record))


def read_records(records: Iterable[tuple[Any, str]], path: str) -> Items:
    """Yield a run for each session of a file."""
    sessions: dict[str, list[Mapping[str, Any]]] = {}
    for record, _ in records:
        entry = mapped(record)
        if string(entry.get("type")) in _ENTRIES and is_object(entry.get("message")):
            sessions.setdefault(string(entry.get("sessionId")) or path, []).append(entry)
    for session, entries in sessions.items():
        yield _run(session, entries)


def _run(session: str, entries: list[Mapping[str, Any]]) -> Trajectory:
    # a sub-agent's file of its own has nothing but sidechain: there it is the run
    alone = all(entry.get("isSidechain") is True for entry in entries)
    conversation = Conversation()
    for entry in entries:
        _tell(conversation, entry, MAIN_LANE if alone else _lane(entry))
    ending, note = _ending(conversation, entries)
    agent = string(entries[0].get("agentId")) if alone else ""
    versions = [version for entry in entries if (version := string(entry.get("version")))]
    times = [time for entry in entries if (time := moment(entry.get("timestamp"))) is not None]
    return Trajectory(
        run_id=f"{session}/{agent}" if agent else session,
        key=RunKey(_models(entries), f"claude-code {versions[-1]}" if versions else "claude-code"),
        steps=conversation.steps(),
        ending=ending,
        usage=total(_usages(entries)),
        started_at=min(times, default=None),
        ended_at=max(times, default=None),
        notes=(note,) if note is not None else (),
    )


def _lane(entry: Mapping[str, Any]) -> str:
    if entry.get("isSidechain") is not True:
        return MAIN_LANE
    return string(entry.get("agentId")) or "sidechain"


def _tell(conversation: Conversation, entry: Mapping[str, Any], lane: str) -> None:
    message, at = mapped(entry.get("message")), moment(entry.get("timestamp"))
    if entry.get("type") == "assistant":
        calls = calls_in(dict(message), "message.content")
        if calls:
            # one answer of the model is written block by block, an entry each
            conversation.ask(calls, at=at, lane=lane, request=f"{lane} {message.get('id') or entry.get('uuid')}")
        elif text_in(message) is not None:
            conversation.close(lane=lane)
        return
    answers = list(results_in([message]))
    for call_id, answered in answers:
        conversation.answer(call_id, answered, at=at, executed=False if _was_denied(entry, answered) else None)
    if not answers and entry.get("isMeta") is not True:
        conversation.user(announced=lane == MAIN_LANE, lane=lane)


def _was_denied(entry: Mapping[str, Any], answered: Answered) -> bool:
    if entry.get("toolDenialKind") is not None or entry.get("toolUseResult") == _DENIED:
        return True
    return answered.is_error and isinstance(answered.content, str) and answered.content.startswith(_FORBIDDEN)


def _ending(conversation: Conversation, entries: list[Mapping[str, Any]]) -> tuple[Ending, str | None]:
    last = entries[-1]
    if last.get("isApiErrorMessage") is True:
        return Ending.FAILED, f"ended with an error: {text_in(mapped(last.get('message'))) or 'of the interface'}"
    if last.get("type") == "user" and _INTERRUPTED in _said(last):
        return Ending.UNFINISHED, "interrupted by the user"
    return conversation.ending()


def _said(entry: Mapping[str, Any]) -> str:
    content = mapped(entry.get("message")).get("content")
    if is_list(content):
        return " ".join(string(mapped(block).get("text")) for block in content)
    return string(content)


def _models(entries: list[Mapping[str, Any]]) -> str:
    names = {name for entry in entries if (name := string(mapped(entry.get("message")).get("model")))}
    return " + ".join(sorted(name for name in names if not name.startswith("<"))) or UNKNOWN


def _usages(entries: list[Mapping[str, Any]]) -> list[Usage]:
    # each entry of one answer repeats its tokens, the last says them in full
    counted: dict[str, Usage] = {}
    for entry in entries:
        message = mapped(entry.get("message"))
        told = mapped(message.get("usage"))
        cached, made = told.get("cache_read_input_tokens"), told.get("cache_creation_input_tokens")
        usage = usage_of(told.get("input_tokens"), told.get("output_tokens"), cached, besides=(cached, made))
        if usage is not None:
            counted[str(message.get("id") or entry.get("uuid"))] = usage
    return list(counted.values())


CLAUDE_CODE: Final = Session(name="claude-code", accepts=accepts, items=read_records)
