"""Tool calls and tool results inside chat messages, in the shapes that providers and conventions write."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agentguard.traces.arguments import literals_in
from agentguard.traces.convention import Answered, Asked
from agentguard.traces.shapes import NOT_JSON, from_json, is_list, is_object, text

if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_DEPTH = 12
"""Deeper nesting is no message."""

_INNER = ("parts", "content", "contents", "tool_calls", "toolCalls", "message", "choices", "output", "candidates",
          "generations", "kwargs", "data", "update")  # fmt: skip


def parsed(value: Any) -> Any:
    """Return what a JSON text says; anything else, and text that is no JSON, as it is."""
    if not isinstance(value, str):
        return value
    found = from_json(value)
    return value if found is NOT_JSON else found


def calls_in(value: Any, attribute: str) -> list[Asked]:
    """Return the tool calls in a message, a list of messages or a provider's response, in order."""
    return list(_calls(parsed(value), attribute, 0))


def conversations_in(value: Any) -> list[list[Any]]:
    """Return the lists of messages in an agent's output: JSON, or the `messages=[...]` of Python reprs."""
    messages = parsed(value)
    if isinstance(messages, str):
        return [found for found in literals_in(messages, "messages=") if is_list(found)]
    while is_object(messages):
        messages = next((messages[key] for key in _TRANSCRIPT if key in messages), None)
    return [messages] if is_list(messages) else []


def transcript_in(messages: list[Any], attribute: str) -> list[list[Asked]]:
    """Return the calls of a conversation, a list for each message: user messages come as empty lists."""
    turns: list[list[Asked]] = []
    for message in messages:
        calls = list(_calls(message, attribute, 1))
        if calls or (is_object(message) and message.get("role", message.get("type")) in ("user", "human")):
            turns.append(calls)
    return turns


_TRANSCRIPT = ("messages", "output", "outputs", "update", "new_messages")


def results_in(value: Any) -> Iterator[tuple[str, Answered]]:
    """Yield call id and result of every tool message in a list of messages."""
    yield from _results(parsed(value), 0)


def text_in(value: Any) -> str | None:
    """Return the last text that a message or a list of messages holds; None when there is none."""
    return _text(parsed(value), 0)


def _calls(value: Any, attribute: str, depth: int) -> Iterator[Asked]:
    if depth > MAX_DEPTH:
        return
    if is_list(value):
        for item in value:
            yield from _calls(item, attribute, depth + 1)
    elif is_object(value):
        call = _call(value, attribute)
        if call is not None:
            yield call
            return
        yield from _calls_inside(value, attribute, depth)


def _calls_inside(message: dict[str, Any], attribute: str, depth: int) -> Iterator[Asked]:
    # a LangChain message repeats its calls in content blocks and tool_calls
    seen: set[tuple[str | None, str]] = set()
    for key in _INNER:
        inner = message.get(key)
        if inner is None:
            continue
        for call in _calls(parsed(inner) if key == "message" else inner, attribute, depth + 1):
            if call.id is None or (call.id, call.name) not in seen:
                seen.add((call.id, call.name))
                yield call


def _call(part: dict[str, Any], attribute: str) -> Asked | None:
    nested = part.get("toolUse") or part.get("functionCall") or part.get("function_call") or part.get("function")
    if is_object(nested):
        inner = nested
        name = inner.get("name")
        if isinstance(name, str) and name:
            return Asked(_id(part) or _id(inner), name, _arguments(inner), attribute)
    if text(part.get("type")) not in _CALL_TYPES and "toolName" not in part and not part.keys() >= _BARE_CALL:
        return None
    name = part.get("name") or part.get("toolName") or part.get("tool_name")
    return Asked(_id(part), name, _arguments(part), attribute) if isinstance(name, str) and name else None


_CALL_TYPES = frozenset({"tool_call", "tool-call", "tool_use", "function_call", "toolCall", "functionCall"})
_BARE_CALL = frozenset({"id", "name", "arguments"})
_IDS = ("call_id", "tool_call_id", "toolCallId", "toolUseId", "tool_use_id", "id")


def _id(part: dict[str, Any]) -> str | None:
    for key in _IDS:
        value = part.get(key)
        if isinstance(value, str) and value:
            return value
    return None


def _arguments(part: dict[str, Any]) -> Any:
    for key in ("arguments", "args", "input"):
        if key in part:
            return part[key]
    return None


_RESULT_TYPES = frozenset({"tool_call_response", "tool_result", "function_call_output", "tool-result"})
_RESULTS = ("response", "result", "output", "content")


def _results(value: Any, depth: int) -> Iterator[tuple[str, Answered]]:
    if depth > MAX_DEPTH:
        return
    if is_list(value):
        for item in value:
            yield from _results(item, depth + 1)
    elif is_object(value):
        message = value
        found = _result(message)
        if found is not None:
            yield found
            return
        for key in (*_INNER, "messages"):
            if key in message:
                yield from _results(message[key], depth + 1)


def _result(part: dict[str, Any]) -> tuple[str, Answered] | None:
    nested = part.get("toolResult") or part.get("functionResponse") or part.get("function_response")
    if is_object(nested):
        part = nested
    elif text(part.get("type")) not in _RESULT_TYPES and not (
        part.get("role", part.get("type")) == "tool" and "content" in part
    ):
        return None
    call_id = _id(part) if "parts" not in part else None
    if call_id is None:
        return None
    failed = part.get("is_error") is True or part.get("status") == "error"
    return call_id, Answered(next((part[key] for key in _RESULTS if key in part), None), failed)


def _text(value: Any, depth: int) -> str | None:
    if depth > MAX_DEPTH:
        return None
    if isinstance(value, str):
        return value or None
    if is_list(value):
        for item in reversed(value):
            found = _text(item, depth + 1)
            if found is not None:
                return found
        return None
    if not is_object(value):
        return None
    message = value
    for key in ("text", "content", "parts", "contents", "message", "choices", "output", "raw"):
        found = _text(message.get(key), depth + 1)
        if found is not None:
            return found
    return None
