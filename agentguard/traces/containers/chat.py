"""Chat transcripts: messages as OpenAI, Anthropic, Google and LangChain write them, with the tools beside them.

A record is one conversation, `{"messages": [...], "tools": [...]}` or the bare list; a file may also hold one message a
line. The answer that a request got (`choices`, `response`, `output`) is read as its last message.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from agentguard.traces.container import FaultyRecord, Items, Session
from agentguard.traces.conversation import Conversation, usage_of
from agentguard.traces.shapes import is_list, is_object
from agentguard.traces.tools import tools_in
from agentguard.traces.values import listed, mapped, moment, string
from agentguard.trajectory import UNKNOWN, RunKey, Trajectory

_ROLES: Final = frozenset({"system", "developer", "user", "assistant", "tool", "function", "model", "human", "ai"})
_ITEMS: Final = frozenset({"message", "function_call", "function_call_output", "reasoning"})
_LISTS: Final = ("messages", "conversation", "input", "contents")
_IDS: Final = ("run_id", "conversation_id", "thread_id", "session_id", "trace_id", "id")


def accepts(record: Any) -> bool:
    """Whether a record is a conversation, or one message of it."""
    if is_list(record):
        return bool(record) and all(_is_message(each) for each in record[:3])
    if not is_object(record):
        return False
    if _is_message(record):
        return True
    return any(is_list(record.get(key)) and accepts(record[key]) for key in _LISTS)


def _is_message(record: Any) -> bool:
    if not is_object(record):
        return False
    role = record.get("role", record.get("type"))
    if not isinstance(role, str):
        return False
    if role in _ITEMS:
        return "content" in record or "call_id" in record or "summary" in record
    return role in _ROLES and any(key in record for key in ("content", "parts", "tool_calls", "data", "function_call"))


def read_records(records: Iterable[tuple[Any, str]], path: str) -> Items:
    """Yield a run for each conversation; messages that stand alone are one conversation together."""
    alone: list[Any] = []
    for number, (record, where) in enumerate(records, 1):
        if is_object(record) and _is_message(record):
            alone.append(record)
        elif accepts(record):
            yield _run(record, where if ":" in where else f"{path}#{number}")
        else:
            yield FaultyRecord("not a message", "neither a message nor a conversation; the others were read")
    if alone:
        yield _run(alone, path)


def _run(record: Any, where: str) -> Trajectory:
    told = mapped(record)
    messages = [*_messages(record), *_response(told)]
    conversation = Conversation(tools_in(told.get("tools") or told.get("functions")))
    for message in messages:
        conversation.tell(message, at=_time(message))
    ending, note = conversation.ending()
    model = _model(told, messages)
    return Trajectory(
        run_id=next((str(told[key]) for key in _IDS if isinstance(told.get(key), (str, int))), where),
        key=RunKey(model or UNKNOWN, UNKNOWN),
        steps=conversation.steps(),
        ending=ending,
        usage=_usage(told),
        tools={name: schema for name, schema in conversation.tools.items() if schema} or None,
        notes=(note,) if note is not None else (),
        meta=mapped(told.get("metadata")),
    )


def _messages(record: Any) -> list[Any]:
    if is_list(record):
        return record
    found = [record[key] for key in _LISTS if is_list(record.get(key))]
    return found[0] if found else []


def _response(told: Mapping[str, Any]) -> Iterator[Any]:
    for answer in (told, mapped(told.get("response"))):
        yield from (mapped(choice).get("message") for choice in listed(answer.get("choices"))[:1])
        yield from listed(answer.get("output"))
    answer = mapped(told.get("response"))
    if answer.get("role") == "assistant":
        yield answer


def _time(message: Any) -> int | None:
    told = mapped(message)
    value = told.get("timestamp") or told.get("created_at")
    return moment(value) if isinstance(value, str) else None


def _model(told: Mapping[str, Any], messages: list[Any]) -> str | None:
    names = {name for message in messages if (name := string(mapped(message).get("model")))}
    own = string(told.get("model")) or string(mapped(told.get("response")).get("model"))
    return own or " + ".join(sorted(names)) or None


def _usage(told: Mapping[str, Any]) -> Any:
    usage = mapped(told.get("usage")) or mapped(mapped(told.get("response")).get("usage"))
    details = mapped(usage.get("prompt_tokens_details")) or mapped(usage.get("input_tokens_details"))
    if "prompt_tokens" in usage:
        return usage_of(usage["prompt_tokens"], usage.get("completion_tokens"), details.get("cached_tokens"))
    # Anthropic counts cached tokens beside the input
    read, made = usage.get("cache_read_input_tokens"), usage.get("cache_creation_input_tokens")
    cached = details.get("cached_tokens", read)
    return usage_of(usage.get("input_tokens"), usage.get("output_tokens"), cached, besides=(read, made))


CHAT: Final = Session(name="chat", accepts=accepts, items=read_records)
