"""Results of tools as instrumentations write them."""

from __future__ import annotations

from typing import Any

import msgspec

from agentguard.traces.arguments import python_literal
from agentguard.traces.shapes import NOT_JSON, from_json, is_list, is_object, text

_WRAPPERS = frozenset(
    {
        "response",
        "tool_output",
        "raw_output",
        "isError",
        "structuredContent",
        "data",
        "kwargs",
        "tool_call_id",
        "output",
    }
)
"""A result without any of these is no message around a result."""

_GOOGLE = frozenset({"id", "name", "response"})
_MESSAGE_KEYS = ("data", "kwargs")


Source = tuple[str, str]
"""Id of a span, and the attribute or event of it."""

NOWHERE: Source = ("", "")


class Outcome(msgspec.Struct, frozen=True):
    """What became of a call."""

    content: Any = None
    is_error: bool = False
    recorded: bool = False
    """Whether anything about the result was recorded at all."""
    source: Source = NOWHERE
    error: str | None = None
    """The failure in the span's words. None when nothing says that it failed."""
    call_id: str | None = None
    """The call that the result itself says it answers."""


def decode_result(value: Any) -> Outcome:
    """Undo JSON, Python repr, and the messages and content blocks that frameworks wrap results in."""
    return _unwrapped(_plain(value))


def _plain(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    found = from_json(value)
    if found is not NOT_JSON:
        return found
    literal = python_literal(value)
    return value if literal is None else literal


def _unwrapped(value: Any) -> Outcome:
    if is_object(value):
        return Outcome(value) if _WRAPPERS.isdisjoint(value) else _out_of(value)
    return _blocks(value) if is_list(value) else Outcome(value)


def _out_of(found: dict[str, Any]) -> Outcome:
    if found.keys() == _GOOGLE:
        return Outcome(found["response"], call_id=text(found["id"]))
    if "tool_output" in found and "tool_id" in found:
        return msgspec.structs.replace(_unwrapped(found["tool_output"]), call_id=text(found["tool_id"]))
    if "raw_output" in found and "is_error" in found:
        return _llama_index(found)
    if is_list(found.get("content")) and ("isError" in found or "structuredContent" in found):
        return _mcp(found)
    message = _tool_message(found)
    if message is not None:
        inner = _plain(message.get("content"))
        return Outcome(inner, message.get("status") == "error", call_id=text(message["tool_call_id"]))
    return Outcome(found)


def _llama_index(found: dict[str, Any]) -> Outcome:
    content = found["raw_output"]
    if content is None and is_list(found.get("blocks")):
        content = _blocks(
            [{key: each for key, each in block.items() if key != "block_type"} for block in found["blocks"]]
        ).content
    return Outcome(content, found["is_error"] is True)


def _mcp(found: dict[str, Any]) -> Outcome:
    structured = found.get("structuredContent")
    content = structured if structured is not None else _blocks(found["content"]).content
    return Outcome(content, found.get("isError") is True)


def _tool_message(found: dict[str, Any]) -> dict[str, Any] | None:
    for key in _MESSAGE_KEYS:
        inner = found.get(key)
        if is_object(inner) and "tool_call_id" in inner:
            return inner
    if "tool_call_id" in found and "content" in found:
        return found
    output = found.get("output")
    return _tool_message(output) if is_object(output) else None


def _blocks(blocks: list[Any]) -> Outcome:
    if len(blocks) != 1 or not is_object(blocks[0]):
        return Outcome(blocks)
    block = blocks[0]
    if isinstance(block.get("text"), str) and block.keys() <= {"text", "type", "annotations"}:
        return Outcome(_plain(block["text"]))
    if block.keys() == {"json"}:
        return Outcome(block["json"])
    if is_object(block.get("toolResult")):
        return _bedrock(block["toolResult"])
    return Outcome(blocks)


def _bedrock(result: dict[str, Any]) -> Outcome:
    content = result.get("content")
    inner = _blocks(content).content if is_list(content) else content
    return Outcome(inner, result.get("status") == "error")
