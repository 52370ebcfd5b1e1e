"""One span read through the conventions that apply to it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from agentguard import semconv
from agentguard.traces.convention import Answered, AskedReader, Convention, Role
from agentguard.traces.conventions import BUILT_IN

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from agentguard.call import Usage
    from agentguard.traces.span import Span

_MARKERS: frozenset[str] = frozenset[str]().union(*(convention.markers for convention in BUILT_IN.values()))


class Lens(NamedTuple):
    """All conventions that apply to spans with the same markers, laid over one another: the first to answer wins."""

    names: tuple[str, ...]
    roles: tuple[tuple[str, Mapping[Any, Role]], ...]
    present: tuple[tuple[str, Role], ...]
    tool_name: tuple[str, ...]
    call_id: tuple[str, ...]
    arguments: tuple[str, ...]
    result: tuple[str, ...]
    schema: tuple[str, ...]
    tools: tuple[str, ...]
    failed: tuple[tuple[str, frozenset[Any]], ...]
    refused: tuple[tuple[str, frozenset[Any]], ...]
    asked: tuple[AskedReader, ...]
    history: tuple[Callable[[Span], Iterable[tuple[str, Answered]]], ...]
    usage: tuple[Callable[[Span], Usage | None], ...]
    answer: tuple[str, ...]
    finish: tuple[str, ...]
    model: tuple[str, ...]
    model_inside: tuple[Callable[[Span], str | None], ...]
    agent: tuple[str, ...]
    conversation: tuple[str, ...]
    input_tokens: tuple[str, ...]
    output_tokens: tuple[str, ...]
    cached_tokens: tuple[str, ...]
    input_besides: tuple[str, ...]
    cost: tuple[str, ...]


class Reading:
    """A span that matters: its role, the lens to read it with, and its place among the others."""

    __slots__ = ("children", "encloses_calls", "inside_call", "lens", "mixed", "parent", "role", "span")

    def __init__(self, span: Span, role: Role, lens: Lens) -> None:
        self.span = span
        self.role = role
        self.lens = lens
        self.parent: Reading | None = None
        self.children: list[Reading] = []
        self.encloses_calls = False
        """A tool span lies below."""
        self.inside_call = False
        """A tool span lies above."""
        self.mixed = False
        """Whether several requests were written over one another here, so that no count of it can be trusted."""

    def first(self, keys: tuple[str, ...]) -> Any:
        """Return the first recorded of these attributes; None when none is."""
        attributes = self.span.attributes
        for key in keys:
            value = attributes.get(key)
            if value is not None:
                return value
        return None

    def found(self, keys: tuple[str, ...]) -> str:
        """Return the name of the first recorded of these attributes; empty when none is."""
        attributes = self.span.attributes
        return next((key for key in keys if attributes.get(key) is not None), "")


_lenses: dict[frozenset[str], Lens] = {}


def read(span: Span) -> Reading | None:
    """Read a span; None when no convention knows it."""
    markers = _MARKERS.intersection(span.attributes)
    if not markers:
        return None
    lens = _lenses.get(markers)
    if lens is None:
        lens = _lenses[markers] = _lens([each for each in BUILT_IN.values() if each.markers & markers])
    return Reading(span, _role(span, lens), lens)


def failed_by_attribute(reading: Reading) -> bool:
    """Whether an attribute of the span says that it failed."""
    return _told(reading.span.attributes, reading.lens.failed)


def refused_by_attribute(reading: Reading) -> bool:
    """Whether an attribute of the span says that the call never reached the tool."""
    return _told(reading.span.attributes, reading.lens.refused)


def _told(attributes: Mapping[str, Any], table: tuple[tuple[str, frozenset[Any]], ...]) -> bool:
    for key, values in table:
        value = attributes.get(key)
        if value is not None and (not values or (isinstance(value, (str, bool)) and value in values)):
            return True
    return False


def _role(span: Span, lens: Lens) -> Role:
    if span.name == semconv.RUN_STARTED:
        return Role.STARTED
    attributes = span.attributes
    for key, present in lens.present:
        if key in attributes:
            return present
    for key, values in lens.roles:
        value = attributes.get(key)
        if value is not None and isinstance(value, str):
            role = values.get(value)
            if role is not None:
                return role
    return Role.OTHER


def _lens(conventions: list[Convention]) -> Lens:
    def merged(field: str) -> tuple[str, ...]:
        return tuple(dict.fromkeys(key for each in conventions for key in getattr(each, field)))

    def tables(field: str) -> Iterator[tuple[str, Any]]:
        return ((key, values) for each in conventions for key, values in getattr(each, field).items())

    return Lens(
        names=tuple(each.name for each in conventions),
        roles=tuple(tables("roles")),
        present=tuple(tables("present")),
        model_inside=tuple(each.model_inside for each in conventions if each.model_inside is not None),
        usage=tuple(each.usage for each in conventions if each.usage is not None),
        failed=tuple(tables("failed")),
        refused=tuple(tables("refused")),
        asked=tuple(each.asked for each in conventions if each.asked is not None),
        history=tuple(each.history for each in conventions if each.history is not None),
        **{field: merged(field) for field in _MERGED},
    )


_MERGED = (
    "tool_name", "call_id", "arguments", "result", "schema", "tools", "answer", "finish", "model", "agent",
    "conversation", "input_tokens", "output_tokens", "cached_tokens", "input_besides", "cost",
)  # fmt: skip
