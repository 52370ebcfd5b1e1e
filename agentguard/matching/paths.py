"""Paths into arguments: names and list positions joined by dots."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from agentguard.matching.rules import MISSING


def look_up(value: Any, path: str) -> Any:
    """Return what stands at `path`, MISSING when nothing does. Where a name holds dots, the longest name wins.

    >>> look_up({"who": [{"id": 3}]}, "who.0.id"), look_up({"who.id": 4, "who": {"id": 3}}, "who.id")
    (3, 4)
    """
    rest = path.split(".") if path else []
    while rest:
        name, rest = _step(value, rest)
        if name is MISSING:
            return MISSING
        value = value[name]
    return value


def without(value: Mapping[str, Any], paths: Sequence[str]) -> Mapping[str, Any]:
    """Return `value` without what stands at `paths`; what is shared with `value` is not changed.

    >>> without({"q": 1, "meta": {"id": 7, "lang": "nb"}}, ["meta.id"])
    {'q': 1, 'meta': {'lang': 'nb'}}
    """
    for path in paths:
        value = {} if not path else cast("Mapping[str, Any]", _without(value, path))
    return value


def _without(value: Any, path: str) -> Any:
    trail: list[tuple[Any, Any]] = []
    here, rest = value, path.split(".")
    while rest:
        name, rest = _step(here, rest)
        if name is MISSING:
            return value
        trail.append((here, name))
        here = here[name]
    holder, name = trail.pop()
    result = _dropped(holder, name)
    for holder, name in reversed(trail):
        result = _replaced(holder, name, result)
    return result


def _step(value: Any, parts: list[str]) -> tuple[Any, list[str]]:
    """Return the name or position that the path goes through next, and the rest of the path."""
    if isinstance(value, Mapping):
        for count in range(len(parts), 0, -1):
            name = ".".join(parts[:count])
            if name in value:
                return name, parts[count:]
    elif isinstance(value, list | tuple) and parts[0].isdecimal() and int(parts[0]) < len(cast("list[Any]", value)):
        return int(parts[0]), parts[1:]
    return MISSING, []


def _dropped(holder: Any, name: Any) -> Any:
    if isinstance(holder, Mapping):
        return {key: value for key, value in cast("dict[Any, Any]", holder).items() if key != name}
    return [item for index, item in enumerate(holder) if index != name]


def _replaced(holder: Any, name: Any, value: Any) -> Any:
    if isinstance(holder, Mapping):
        return {**cast("dict[Any, Any]", holder), name: value}
    return [value if index == name else item for index, item in enumerate(holder)]
