"""The tools that a model was given, where its spans say so."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any, cast

from agentguard.traces.messages import parsed
from agentguard.traces.shapes import is_object

if TYPE_CHECKING:
    from agentguard.traces.reading import Reading

Tools = Mapping[str, Mapping[str, Any]]
"""JSON Schema of the arguments by tool. An empty one: the tool was named, its schema not recorded."""

_OPENINFERENCE = "llm.tools."


def declared_tools(readings: Iterable[Reading]) -> Tools:
    """Return the tools that these model and agent spans declare."""
    found: dict[str, Mapping[str, Any]] = {}
    for reading in readings:
        for name, schema in _declared(reading):
            if schema or name not in found:
                found[name] = schema
    return found


def tools_in(value: Any) -> Tools:
    """Return the tools in a list of declarations, in any provider's shape, or in its JSON text."""
    found: dict[str, Mapping[str, Any]] = {}
    for name, schema in _tools(value):
        found.setdefault(name, schema)
    return found


def _declared(reading: Reading) -> Iterator[tuple[str, Mapping[str, Any]]]:
    attributes = reading.span.attributes
    for key in reading.lens.tools:
        if key in attributes:
            yield from _tools(attributes[key])
    at = 0
    while (key := f"{_OPENINFERENCE}{at}.tool.json_schema") in attributes:
        yield from _tools(attributes[key])
        at += 1


def _tools(value: Any) -> tuple[tuple[str, Mapping[str, Any]], ...]:
    return _from_text(value) if isinstance(value, str) else tuple(_from(value))


@lru_cache(maxsize=256)
def _from_text(text: str) -> tuple[tuple[str, Mapping[str, Any]], ...]:
    # every request of every run repeats the same declarations
    return tuple(_from(parsed(text)))


def _from(value: Any) -> Iterator[tuple[str, Mapping[str, Any]]]:
    if isinstance(value, (list, tuple)):
        for each in cast("list[Any]", value):
            yield from [(each, _NO_SCHEMA)] if isinstance(each, str) else _from(each)
    elif is_object(value):
        yield from _one(value)


_NO_SCHEMA: Mapping[str, Any] = {}


def _one(tool: dict[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    inner = tool.get("function")
    if is_object(inner):
        tool = inner
    name = tool.get("name")
    if not isinstance(name, str):
        return
    schemas = (tool.get(key) for key in ("parameters", "input_schema", "inputSchema", "parameters_json_schema"))
    schema = next((each for each in schemas if is_object(each)), _NO_SCHEMA)
    yield name, cast("Mapping[str, Any]", schema.get("json", schema) if schema.keys() == {"json"} else schema)
