"""Tools of the SDK as a guard takes them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypedDict, cast

from agentguard.tools import Tool, declare

if TYPE_CHECKING:
    from claude_agent_sdk import SdkMcpTool

__all__ = ["declared"]

_record: Any = TypedDict  # called with names that no type checker can know


def declared(tools: Iterable[SdkMcpTool[Any]]) -> list[Tool]:
    """Return what was made with the SDK's `@tool`, for `Guard(tools=...)`.

    Their schemas are JSON Schema, a TypedDict, or names with types, which all are required then.
    """
    return [Tool(name=tool.name, description=tool.description, schema=_schema(tool)) for tool in tools]


def _schema(tool: SdkMcpTool[Any]) -> Mapping[str, Any] | None:
    given: Any = tool.input_schema
    if isinstance(given, Mapping):
        fields = cast("Mapping[str, Any]", given)
        if isinstance(fields.get("type"), str):
            return fields
        given = _record(tool.name, dict(fields))
    (made,) = declare(given)
    # The SDK tells the model no more, and lets arguments through that it does not know.
    return {word: value for word, value in (made.schema or {}).items() if word not in ("title", "additionalProperties")}
