"""JSON shapes, told apart for the type checkers."""

from __future__ import annotations

from typing import Any, TypeGuard


def is_list(value: Any) -> TypeGuard[list[Any]]:
    """Whether a value is a JSON array."""
    return isinstance(value, list)


def is_object(value: Any) -> TypeGuard[dict[str, Any]]:
    """Whether a value is a JSON object."""
    return isinstance(value, dict)
