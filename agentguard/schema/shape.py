"""How a schema refers to itself, and how large it is when every reference is followed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, cast

import msgspec

_DYNAMIC: Final = ("$dynamicRef", "$recursiveRef")


class Shape(msgspec.Struct, frozen=True):
    """What decides how long validating may take, and how deep it may go."""

    recursive: bool
    """Whether arguments can be nested as deep as they like and are followed all the way down."""
    unfolded: int
    """Parts of the schema with every reference written out, a reference to what is around it not."""
    widest: int
    """The greatest number of alternatives in one place that lead back to what is around them."""
    binary: bool
    """Whether some text is declared to hold bytes."""


def shape_of(schema: Mapping[str, Any]) -> Shape:
    """Return the shape of a schema of JSON values; a reference that is no plain pointer counts as recursive."""
    sizes: dict[int, int] = {}
    returning: set[int] = set()
    around: set[int] = set()
    widest, binary = 0, False
    steps: list[tuple[Any, bool]] = [(schema, False)]
    while steps:
        node, is_left = steps.pop()
        if is_left:
            parts = list(_parts(schema, node))
            sizes[id(node)] = 1 + sum(sizes.get(id(part), 1) for part in parts)
            if _leaves_the_pointers(node) or any(id(part) in around or id(part) in returning for part in parts):
                returning.add(id(node))
            widest = max(widest, sum(id(one) in returning for one in _alternatives(node)))
            around.discard(id(node))
        elif id(node) not in sizes and id(node) not in around:
            around.add(id(node))
            binary = binary or _is_binary(node)
            steps.append((node, True))
            steps.extend((part, False) for part in _parts(schema, node))
    return Shape(bool(returning), sizes[id(schema)], widest, binary)


def resolved(schema: Mapping[str, Any], part: Any) -> Any:
    """Return what a part of a schema refers to, through up to ten references; the part itself when it does not."""
    for _ in range(10):
        reference = _reference(part)
        if reference is None or not reference.startswith("#"):
            return part
        part = at(schema, _pointer(reference))
    return part


def at(schema: Any, place: Sequence[str | int]) -> Any:
    """Return the part of a schema at a place; None when there is none."""
    node = schema
    for step in place:
        items = as_list(node)
        if not items:
            node = rules_of(node).get(str(step))
        elif str(step).isdecimal() and int(step) < len(items):
            node = items[int(step)]
        else:
            return None
    return node


def rules_of(part: Any) -> Mapping[str, Any]:
    """Return a part of a schema that is an object as it is, and anything else as an empty one."""
    is_object = isinstance(part, Mapping)
    return cast("Mapping[str, Any]", part) if is_object else {}


def as_list(part: Any) -> list[Any]:
    """Return a part of a schema that is a list as it is, and anything else as an empty one."""
    is_list = isinstance(part, list)
    return cast("list[Any]", part) if is_list else []


def _parts(schema: Mapping[str, Any], node: Any) -> Iterator[Any]:
    yield from (value for value in (*rules_of(node).values(), *as_list(node)) if isinstance(value, (dict, list)))
    reference = _reference(node)
    if reference is not None and reference.startswith("#"):
        target = at(schema, _pointer(reference))
        if isinstance(target, Mapping):
            yield target


def _leaves_the_pointers(node: Any) -> bool:
    reference = _reference(node)
    if reference is not None and reference != "#" and not reference.startswith("#/"):
        return True
    return any(isinstance(rules_of(node).get(word), str) for word in _DYNAMIC)


def _reference(node: Any) -> str | None:
    reference = rules_of(node).get("$ref")
    return reference if isinstance(reference, str) else None


def _pointer(reference: str) -> list[str]:
    return [step.replace("~1", "/").replace("~0", "~") for step in reference.split("/")[1:]]


def _alternatives(node: Any) -> Iterator[Any]:
    for word in ("anyOf", "oneOf", "allOf"):
        yield from as_list(rules_of(node).get(word))


def _is_binary(node: Any) -> bool:
    rules = rules_of(node)
    return isinstance(rules.get("contentEncoding"), str) or rules.get("format") in ("binary", "byte", "base64url")
