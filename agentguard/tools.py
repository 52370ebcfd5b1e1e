"""What a guard is told about tools, and the forms in which it can be told."""

from __future__ import annotations

import functools
import inspect
import typing
from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal
from typing import Any

import msgspec

from agentguard.errors import SchemaError
from agentguard.schema import Validator


class Poll(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Identical calls back to back are polling, within these limits."""

    max: int
    """Identical calls that may stand just before one more."""
    min_interval: float = 0.0
    """Seconds that are to pass between them."""


class Tool(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """What is declared about one tool."""

    name: str
    description: str | None = None
    schema: Mapping[str, Any] | None = None
    """JSON Schema of the arguments. None means that they are not checked."""
    writes: bool = False
    """An identical call back to back does harm: it is blocked at once."""
    repeatable: bool = False
    """Identical calls back to back are normal and never spoken of."""
    poll: Poll | None = None
    """Identical calls back to back are polling. None means that they are not."""
    ignore: tuple[str, ...] = ()
    """Arguments that do not make a call another call, e.g. a request id."""
    normalize: Callable[[str], str] | None = None
    """Applied to the text of a result before it is compared with others. None means the guard's own normalising."""
    empty_is_error: bool = False
    """An empty result counts as a failure."""
    cost_usd: Decimal | None = None
    """Price of one call in US dollars. None means free."""
    deadline: float | None = None
    """Seconds that one call may take. None means no limit."""

    @functools.cached_property
    def validator(self) -> Validator | None:
        """The compiled schema; None without one."""
        return None if self.schema is None else Validator(self.name, self.schema)


_ACCEPTED = (
    "a Tool, a tool list of OpenAI, Anthropic or MCP, {'name': ..., 'parameters': {...}}, a pydantic model, "
    "a dataclass, a TypedDict, a msgspec Struct or a typed function"
)


def declare(source: Any) -> tuple[Tool, ...]:
    """Return the tools that `source` declares: one thing, an iterable of things, or a mapping of name to schema.

    Accepted are `Tool`, tool definitions of OpenAI (chat completions and responses), Anthropic and MCP (dicts or
    objects), pydantic models, dataclasses, TypedDicts, msgspec Structs, and functions with type hints (every parameter
    is an argument). Anything else, a schema that cannot be used, or a name given twice is a SchemaError.

    >>> def search(query: str, limit: int = 10) -> list[str]:
    ...     "Search the documentation."
    >>> [(tool.name, tool.schema["required"]) for tool in declare(search)]
    [('search', ['query'])]
    """
    many = isinstance(source, Iterable) and not isinstance(source, (str, bytes, Mapping, type))
    tools = tuple(_declared(one) for one in (source if many else [source]))
    seen: set[str] = set()
    for tool in tools:
        if tool.name in seen:
            raise SchemaError(tool.name, "is declared twice; give each tool a name of its own")
        seen.add(tool.name)
        if tool.schema is not None:
            _ = tool.validator  # a schema that cannot be used is told here, not at the first call
    return tools


def _declared(one: Any) -> Tool:
    if isinstance(one, Tool):
        return one
    if isinstance(one, Mapping):
        return _from_mapping(one)
    if isinstance(one, type):
        return _from_type(one)
    if hasattr(one, "inputSchema") or hasattr(one, "input_schema"):
        schema = getattr(one, "inputSchema", None) or getattr(one, "input_schema", None)
        description = getattr(one, "description", None)
        return Tool(name=one.name, description=description, schema=_object_schema(one.name, schema))
    if callable(one):
        return _from_function(one)
    raise SchemaError(str(one)[:60], f"a {type(one).__name__} declares no tool; accepted: {_ACCEPTED}")


def _from_mapping(one: Mapping[str, Any]) -> Tool:
    function = one.get("function")
    inner: Mapping[str, Any] = function if isinstance(function, Mapping) else one
    name = inner.get("name")
    if not isinstance(name, str) or not name:
        raise SchemaError("?", f"a tool definition without a name, with the keys {sorted(map(str, one))[:10]}")
    schema = next((inner[key] for key in ("parameters", "input_schema", "inputSchema", "schema") if key in inner), None)
    return Tool(name=name, description=inner.get("description"), schema=_object_schema(name, schema))


def _object_schema(name: str, schema: Any) -> Mapping[str, Any] | None:
    if schema is None or isinstance(schema, Mapping):
        return schema
    raise SchemaError(name, f"its schema is a {type(schema).__name__}; it must be an object")


def _from_type(one: type[Any]) -> Tool:
    describe = getattr(one, "model_json_schema", None)
    schema = describe() if callable(describe) else _schema_of(one.__name__, one)
    schema = _flat(schema)
    return Tool(name=one.__name__, description=schema.get("description"), schema=schema)


def _from_function(function: Callable[..., Any]) -> Tool:
    name = getattr(function, "__name__", None) or type(function).__name__
    try:
        hints = typing.get_type_hints(function, include_extras=True)
        parameters = inspect.signature(function).parameters
    except (NameError, TypeError, ValueError) as error:
        raise SchemaError(name, f"its signature cannot be read: {error}; declare it with a JSON schema") from error
    fields: list[Any] = []
    open_ended = False
    for parameter in parameters.values():
        if parameter.kind is parameter.VAR_KEYWORD:
            open_ended = True
        elif parameter.kind is not parameter.VAR_POSITIONAL:
            kind = hints.get(parameter.name, Any)
            default = () if parameter.default is parameter.empty else (_default(parameter.default),)
            fields.append((parameter.name, kind, *default))
    model = msgspec.defstruct("Arguments", fields, kw_only=True, forbid_unknown_fields=not open_ended)
    schema = _flat(_schema_of(name, model))
    schema.pop("title", None)
    return Tool(name=name, description=_first_paragraph(function), schema=schema)


def _default(value: Any) -> Any:
    return msgspec.field(default_factory=lambda: value)


def _schema_of(name: str, kind: Any) -> dict[str, Any]:
    try:
        return msgspec.json.schema(kind)
    except TypeError as error:
        schema = _schema_by_pydantic(kind)
        if schema is None:
            raise SchemaError(name, f"{error}; declare it with a JSON schema") from error
        return schema


def _schema_by_pydantic(kind: Any) -> dict[str, Any] | None:
    """Types that msgspec does not know may be known to pydantic, where it is installed."""
    try:
        from pydantic import TypeAdapter
        from pydantic.errors import PydanticUserError
    except ImportError:
        return None
    fields = getattr(kind, "__struct_fields__", None)
    if fields is None:
        return None
    properties: dict[str, Any] = {}
    try:
        for field in msgspec.structs.fields(kind):
            properties[field.name] = TypeAdapter(field.type).json_schema()
    except PydanticUserError:
        return None
    required = [field.name for field in msgspec.structs.fields(kind) if field.required]
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def _flat(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the schema with its outermost reference followed, so that it shows its properties."""
    reference = schema.get("$ref", "")
    definitions = schema.get("$defs", {})
    inner = definitions.get(reference.rpartition("/")[2]) if reference.startswith("#/$defs/") else None
    return schema if inner is None else {**inner, "$defs": definitions}


def _first_paragraph(function: Callable[..., Any]) -> str | None:
    text = inspect.getdoc(function)
    return text.split("\n\n", 1)[0].replace("\n", " ") if text else None
