"""What an MCP tool gave back, as the guard records it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from agentguard import ToolResult

__all__ = ["recorded"]


def recorded(blocks: Sequence[Any], *, is_error: bool = False) -> ToolResult:
    """Return the text of content blocks; blocks as JSON where one is no text."""
    if all(block.type == "text" for block in blocks):
        return ToolResult("\n".join(block.text for block in blocks), is_error)
    return ToolResult([block.model_dump(by_alias=True, mode="json", exclude_none=True) for block in blocks], is_error)
