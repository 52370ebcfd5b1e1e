"""Values, names and places of JSON in short words."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any, Final

import orjson

from agentguard.fingerprint import canonical

_LONGEST: Final = 60
_MOST_LISTED: Final = 12
_MOST_COMPARED: Final = 1_000
_LONGEST_COMPARED: Final = 200
_is_plain_name = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z").match


def path_text(place: Iterable[str | int]) -> str:
    """Return a JSON path.

    >>> path_text(["items", 2, "city"]), path_text(["a b"])
    ('$.items[2].city', '$["a b"]')
    """
    return "$" + "".join(_step(step) for step in place)


def _step(step: str | int) -> str:
    if isinstance(step, str) and _is_plain_name(step):
        return f".{cut(step)}"
    return f"[{step}]" if isinstance(step, int) else f"[{shown(step)}]"


def cut(text: str, longest: int = _LONGEST) -> str:
    """Return the text, or its beginning and three dots."""
    return text if len(text) <= longest else text[:longest] + "..."


def shown(value: Any, longest: int = _LONGEST) -> str:
    """Return a value as JSON text, cut when it is longer than `longest` characters.

    >>> shown({"b": 1.0, "a": None})
    '{"a":null,"b":1}'
    """
    short = value[: longest + 1] if isinstance(value, str) else value
    return cut(canonical(short).decode("utf-8", "replace"), longest)


def listed(words: Sequence[str]) -> str:
    """Return words with commas, the first twelve of them."""
    more = len(words) - _MOST_LISTED
    return ", ".join(words[:_MOST_LISTED]) + (f" and {more} more" if more > 0 else "")


def kind_of(value: Any) -> str:
    """Return the JSON type of a JSON value.

    >>> kind_of(True), kind_of(3.0), kind_of(None)
    ('boolean', 'integer', 'null')
    """
    if value is None or isinstance(value, bool):
        return "null" if value is None else "boolean"
    if isinstance(value, (float, Decimal)):
        return "integer" if value == int(value) else "number"
    return next((word for kind, word in _KINDS if isinstance(value, kind)), "array")


_KINDS: Final[tuple[tuple[type, str], ...]] = ((str, "string"), (int, "integer"), (Mapping, "object"))


def nearest_name(word: str, names: Iterable[str]) -> str | None:
    """Return the name that is most like a word, whatever its case; None when none is near.

    >>> nearest_name("Citty", ["days", "city"])
    'city'
    """
    if len(word) > _LONGEST_COMPARED:
        return None
    folded = {name.casefold(): name for name in list(names)[:_MOST_COMPARED] if len(name) <= _LONGEST_COMPARED}
    near = difflib.get_close_matches(word.casefold(), folded, n=1)
    return folded[near[0]] if near else None


def nearest_value(value: Any, options: Sequence[Any]) -> str | None:
    """Return, as JSON text, the option that is most like a value: 3 for "3", "metric" for "Metrik"; or None."""
    if not isinstance(value, (str, int, float)):
        return None
    by_text = {_bare(option): option for option in options[:_MOST_COMPARED] if isinstance(option, (str, int, float))}
    near = nearest_name(_bare(value), by_text)
    return None if near is None else shown(by_text[near])


def read_as(value: Any, types: Sequence[str]) -> str | None:
    """Return, as JSON text, what a value would be as one of these types without loss; None when it is nothing.

    >>> read_as("3", ["integer"]), read_as(3, ["string"]), read_as("three", ["integer"])
    ('3', '"3"', None)
    """
    if isinstance(value, str):
        return _parsed(value, types)
    if "string" in types and isinstance(value, (int, float)) and not isinstance(value, bool):
        return shown(_bare(value))
    return None


def _parsed(text: str, types: Sequence[str]) -> str | None:
    try:
        value = orjson.loads(text.strip().lower() if text.strip().lower() in ("true", "false") else text)
    except (orjson.JSONDecodeError, UnicodeEncodeError):
        return None
    kind = kind_of(value)
    fits = kind in types or (kind == "integer" and "number" in types)
    return shown(value) if fits and value is not None else None


def _bare(value: Any) -> str:
    return value if isinstance(value, str) else canonical(value).decode()
