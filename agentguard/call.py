"""One tool call, its result, and what model use costs."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import msgspec

from agentguard.fingerprint import fingerprint


class ToolCall(msgspec.Struct, frozen=True):
    """A call that a model asked for.

    >>> ToolCall("page", {"n": 1}).fingerprint == ToolCall("page", {"n": 1.0}).fingerprint
    True
    """

    name: str
    """The tool's name as the model wrote it."""
    arguments: Mapping[str, Any] | None = None
    """Arguments by name. None means not known (not recorded, or not JSON); no arguments at all is `{}`."""
    id: str | None = None
    """The provider's tool-call id. None when there was none."""
    raw_arguments: str | None = None
    """The model's own text of the arguments, kept where it is not a JSON object; then `arguments` is None."""

    @property
    def fingerprint(self) -> bytes:
        """Equal for two calls iff they name the same tool with the same canonical arguments."""
        value = self.arguments if self.raw_arguments is None else self.raw_arguments
        return self.name.encode("utf-8", "surrogatepass") + b"\0" + fingerprint(value)


class ToolResult(msgspec.Struct, frozen=True):
    """What a tool gave back."""

    content: Any = None
    """The value returned, or for an error its text."""
    is_error: bool = False
    """True when the tool raised, or its protocol marked the result as an error. Never guessed from words."""

    @property
    def fingerprint(self) -> bytes:
        """Equal for two results iff both are errors or neither is, and the contents are canonically equal."""
        return (b"!" if self.is_error else b"=") + fingerprint(self.content)


class Usage(msgspec.Struct, frozen=True):
    """What model calls used. None always means unknown, never 0."""

    input_tokens: int | None = None
    """Tokens read, cached ones included."""
    output_tokens: int | None = None
    """Tokens written, reasoning included."""
    cached_tokens: int | None = None
    """The part of `input_tokens` that was read from a cache."""
    cost_usd: Decimal | None = None
    """US dollars."""

    def __add__(self, other: Usage) -> Usage:
        """Return both together; what only one of them knows is taken from it.

        >>> Usage(10, 2) + Usage(5)
        Usage(input_tokens=15, output_tokens=2, cached_tokens=None, cost_usd=None)
        """
        pairs = zip(msgspec.structs.astuple(self), msgspec.structs.astuple(other), strict=True)
        return Usage(*(b if a is None else a if b is None else a + b for a, b in pairs))
