"""Every form in which tools can be told, and what makes a `Tool` of it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, Final, cast

from agentguard.errors import SchemaError
from agentguard.tools.tool import Tool
from agentguard.tools.typed import description_of, name_of, schema_of_class, schema_of_function

_SCHEMAS: Final = ("parameters", "input_schema", "inputSchema", "schema")
"""What OpenAI, Anthropic, MCP and everybody else call the schema of the arguments."""
_ACCEPTED: Final = (
    "a Tool, a tool list of OpenAI, Anthropic or MCP, {'name': ..., 'parameters': {...}}, a pydantic model, "
    "a dataclass, a TypedDict, a msgspec Struct or a typed function"
)


def declare(source: Any, *, leave_out: Collection[str] = ()) -> tuple[Tool, ...]:
    """Return the tools that `source` declares: one thing, or an iterable of things.

    Accepted are `Tool`, tool definitions of OpenAI (chat completions and responses), Anthropic and MCP (dicts, objects,
    or the whole answer with its `tools`), pydantic models, dataclasses, TypedDicts, msgspec Structs, and functions with
    type hints, methods and partial ones among them. Anything else, a schema that cannot be used, or a name given twice
    is a SchemaError.

    Every parameter of a function is an argument, `self` of a method that is not bound among them. Without a type hint
    it may be anything; with the default None it may be null. `*args` is an argument that holds a list; `**kwargs`
    leaves the function open to names that it does not know. `leave_out` names parameters that are not the model's to
    give, e.g. a context: they are accepted, whatever they are, and never asked for.

    >>> def search(query: str, limit: int = 10) -> list[str]:
    ...     "Search the documentation."
    >>> [(tool.name, tool.schema["required"]) for tool in declare(search)]
    [('search', ['query'])]
    """
    tools: dict[str, Tool] = {}
    for one in _each(source):
        for tool in _declared(one, leave_out):
            if tool.name in tools:
                raise SchemaError(tool.name, "is declared twice; give each tool a name of its own")
            tools[tool.name] = tool
            _ = tool.validator  # a schema that cannot be used is told here, not at the first call
    return tuple(tools.values())


def _each(source: Any) -> Iterable[Any]:
    is_one = isinstance(source, (str, bytes, Mapping, type)) or callable(source) or _has_tools(source)
    # A pydantic object, as MCP's, is iterable: over its fields.
    if is_one or _is_definition(source) or not isinstance(source, Iterable):
        return [source]
    return cast("Iterable[Any]", source)


def _declared(one: Any, leave_out: Collection[str]) -> Iterator[Tool]:
    if isinstance(one, Tool):
        yield one
    elif isinstance(one, Mapping):
        yield from _from_mapping(cast("Mapping[str, Any]", one), leave_out)
    elif isinstance(one, type):
        schema = schema_of_class(one)
        yield Tool(name=one.__name__, description=schema.get("description"), schema=schema)
    elif _has_tools(one):
        yield from declare(one.tools, leave_out=leave_out)
    elif _is_definition(one):
        fields = {word: getattr(one, word, None) for word in ("name", "description", *_SCHEMAS)}
        yield _defined({word: value for word, value in fields.items() if value is not None})
    elif callable(one):
        name = name_of(one)
        yield Tool(name=name, description=description_of(one), schema=schema_of_function(name, one, leave_out))
    else:
        raise SchemaError(type(one).__name__, f"a value of this type declares no tool; accepted: {_ACCEPTED}")


def _is_definition(one: Any) -> bool:
    return isinstance(getattr(one, "name", None), str) and any(hasattr(one, word) for word in _SCHEMAS)


def _has_tools(one: Any) -> bool:
    return isinstance(getattr(one, "tools", None), (list, tuple))


def _from_mapping(one: Mapping[str, Any], leave_out: Collection[str]) -> Iterator[Tool]:
    if "name" not in one and isinstance(one.get("tools"), (list, tuple)):
        yield from declare(one["tools"], leave_out=leave_out)
        return
    function = one.get("function")
    yield _defined(cast("Mapping[str, Any]", function) if isinstance(function, Mapping) else one)


def _defined(definition: Mapping[str, Any]) -> Tool:
    name = definition.get("name")
    if not isinstance(name, str) or not name:
        keys = ", ".join(sorted(map(str, definition))[:10])
        told = f"a definition with the keys {keys} has no name; leave out tools that the provider runs itself"
        raise SchemaError("?", f"{told}; accepted: {_ACCEPTED}")
    schema = next((definition[word] for word in _SCHEMAS if definition.get(word) is not None), None)
    if schema is not None and not isinstance(schema, Mapping):
        given = type(schema).__name__
        raise SchemaError(name, f"its schema is of type {given}; it must be an object, as JSON Schema has it")
    description = definition.get("description")
    return Tool(name=name, description=description, schema=cast("Mapping[str, Any] | None", schema))
