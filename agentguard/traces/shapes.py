"""JSON shapes, told apart for the type checkers, and JSON text read and written without raising."""

from __future__ import annotations

from typing import Any, Final, TypeGuard

import msgspec

NOT_JSON: Final[Any] = object()
"""What a text says that is no JSON."""

_decode = msgspec.json.Decoder().decode


def is_list(value: Any) -> TypeGuard[list[Any]]:
    """Whether a value is a JSON array."""
    return isinstance(value, list)


def is_object(value: Any) -> TypeGuard[dict[str, Any]]:
    """Whether a value is a JSON object."""
    return isinstance(value, dict)


def whole(value: Any) -> int | None:
    """Return a count; None for anything that is none, true and false included."""
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def text(value: Any) -> str | None:
    """Return a text; None for anything else and for an empty one."""
    return value if isinstance(value, str) and value else None


def bare_name(value: Any) -> str | None:
    """Return a name; None for anything else. Where an attribute is written as JSON a name has quotes of its own.

    >>> bare_name('gpt-5'), bare_name('"gpt-5"'), bare_name(5)
    ('gpt-5', 'gpt-5', None)
    """
    told = text(value)
    return told[1:-1] if told is not None and len(told) > 2 and told[0] == told[-1] == '"' else told


def from_json(text: str) -> Any:
    """Return what a JSON text says; `NOT_JSON` when it is none, nested too deep, or no Unicode."""
    try:
        return _decode(text)
    except (msgspec.DecodeError, ValueError, RecursionError):
        return NOT_JSON


def as_text(value: Any) -> str:
    """Return a value as JSON text, or as its repr where JSON has no way to write it."""
    try:
        return msgspec.json.encode(value).decode()
    except (TypeError, ValueError, OverflowError, RecursionError):
        return repr(value)
