"""Tools of the SDK as a guard takes them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypedDict

from agentguard.tools import Tool, declare

if TYPE_CHECKING:
    from claude_agent_sdk import SdkMcpTool

__all__ = ["declared"]


def declared(tools: Iterable[SdkMcpTool[Any]]) -> list[Tool]:
    """Return what was made with the SDK's `@tool`, for `Guard(tools=...)`.

    Their schemas are JSON Schema, a TypedDict, or names with types, which all are required then.
    """
    return [Tool(name=tool.name, description=tool.description, schema=_schema(tool)) for tool in tools]


def _schema(tool: SdkMcpTool[Any]) -> Mapping[str, Any] | None:
    given: Any = tool.input_schema
    if isinstance(given, Mapping) and isinstance(given.get("type"), str):
        return given
    fields: Any = given if isinstance(given, type) else TypedDict(tool.name, dict(given))  # type: ignore[operator]
    (made,) = declare(fields)
    # The SDK tells the model nothing of that, and its tools take arguments that they do not know.
    return {word: value for word, value in (made.schema or {}).items() if word != "additionalProperties"}
