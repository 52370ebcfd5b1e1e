"""Paths into arguments: names and list positions joined by dots."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import reduce
from itertools import accumulate
from operator import getitem
from typing import Any, cast

from agentguard.matching.rules import MISSING


def look_up(value: Any, path: str) -> Any:
    """Return what stands at `path`, MISSING when nothing does. Where a name holds dots, the longest name wins.

    >>> look_up({"who": [{"id": 3}]}, "who.0.id"), look_up({"who.id": 4, "who": {"id": 3}}, "who.id")
    (3, 4)
    """
    trail = _trail(value, path)
    return MISSING if trail is None else reduce(getitem, trail, value)


def without(value: Any, paths: Iterable[str]) -> Any:
    """Return `value` without what stands at `paths`; what is shared with `value` is not changed.

    Positions in lists are those of `value`, however many are left out. Without the empty path nothing is left: `{}`.

    >>> without({"q": 1, "rows": [{"id": 7, "n": 0}, 8, 9]}, ["rows.0.id", "rows.1"])
    {'q': 1, 'rows': [{'n': 0}, 9]}
    """
    trails = {trail for path in paths if (trail := _trail(value, path)) is not None}
    # Backwards, so that nothing moves or vanishes which is yet to be left out.
    for trail in sorted(trails, reverse=True):
        value = _without(value, trail)
    return value


def covers(outer: str, path: str) -> bool:
    """Whether `path` is `outer` or leads further into it.

    >>> covers("who", "who.id"), covers("who", "whose"), covers("", "who")
    (True, False, True)
    """
    return not outer or path == outer or path.startswith(f"{outer}.")


def inside(outer: str, paths: Iterable[str]) -> list[str]:
    """Return those of `paths` that lead further into `outer`, as paths from there.

    >>> inside("who", ["who.id", "who", "whose"])
    ['id']
    """
    return [path[len(outer) + 1 :] for path in paths if path.startswith(f"{outer}.")]


Trail = tuple[Any, ...]
"""Names and list positions, each on its own."""


def _trail(value: Any, path: str) -> Trail | None:
    """Return the way to what stands at `path`; None when nothing does."""
    trail: list[Any] = []
    rest = path.split(".") if path else []
    while rest:
        name, rest = _step(value, rest)
        if name is MISSING:
            return None
        trail.append(name)
        value = value[name]
    return tuple(trail)


def _without(value: Any, trail: Trail) -> Any:
    if not trail:
        return {}
    *before, last = trail
    holders: list[Any] = list(accumulate(before, getitem, initial=value))
    result = _dropped(holders.pop(), last)
    for holder, name in zip(reversed(holders), reversed(before), strict=True):
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
