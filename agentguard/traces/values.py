"""Ids, times and attributes as exports write them, read without raising."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, Final

from agentguard.traces.shapes import is_list, is_object

TRACE_DIGITS: Final = 32
SPAN_DIGITS: Final = 16
_SECOND: Final = 1_000_000_000
_FRACTION: Final = re.compile(r"[.,](\d+)")
_DEEPEST: Final = 64


def listed(value: Any) -> list[Any]:
    """Return a JSON array; an empty one for anything else."""
    return value if is_list(value) else []


def mapped(value: Any) -> Mapping[str, Any]:
    """Return a JSON object; an empty one for anything else."""
    return value if is_object(value) else {}


def string(value: Any) -> str:
    """Return a text; an empty one for anything else."""
    return value if isinstance(value, str) else ""


def hex_id(value: Any, digits: int) -> str:
    """Return an id in lower-case hex: base64 and `0x` are undone, anything else stays as it is."""
    if not isinstance(value, str):
        return str(value) if isinstance(value, int) else ""
    if len(value) == digits or not value:
        return value.lower()
    if value.startswith("0x"):
        return value[2:].lower()
    try:
        raw = base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError):
        return value
    return raw.hex() if len(raw) * 2 == digits else value


def integer(value: Any) -> int | None:
    """Return a whole number that stands as a number or a text; None for anything else."""
    if value is None or value == "" or isinstance(value, bool):
        return None
    try:
        return int(value)
    except (TypeError, ValueError, OverflowError):
        return None


def decimal(value: Any) -> float | None:
    """Return a number that stands as a number or a text; None for anything else."""
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return None


def moment(value: Any) -> int | None:
    """Return nanoseconds since the epoch of an ISO time, which is in UTC where it does not say; None for no time."""
    if not isinstance(value, str):
        return integer(value)
    fraction = _FRACTION.search(value)
    whole = value if fraction is None else value[: fraction.start()] + value[fraction.end() :]
    try:
        at = datetime.fromisoformat(whole.strip())
        seconds = int((at if at.tzinfo is not None else at.replace(tzinfo=UTC)).timestamp())
    except (ValueError, OverflowError):
        return integer(value)
    return seconds * _SECOND + (int(fraction[1][:9].ljust(9, "0")) if fraction is not None else 0)


def scaled(value: Any, factor: int) -> int | None:
    """Return a count of nanoseconds from one of a larger unit, `factor` of them each; None for no number."""
    number = value if isinstance(value, (int, float)) and not isinstance(value, bool) else integer(value)
    try:
        return None if number is None else int(number * factor)
    except (OverflowError, ValueError):
        return None


def flattened(value: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return nested attributes by their dotted names; objects and lists also stay whole under their own."""
    return dict(_flat(value, prefix, 0))


def _flat(value: Any, name: str, depth: int) -> Iterator[tuple[str, Any]]:
    if name:
        yield name, value
    if depth > _DEEPEST:
        return
    if is_object(value):
        inner = ((str(key), each) for key, each in value.items())
    elif is_list(value) and any(is_object(each) for each in value):
        inner = ((str(key), each) for key, each in enumerate(value))
    else:
        return
    for key, each in inner:
        if each is not None:
            yield from _flat(each, f"{name}.{key}" if name else key, depth + 1)
