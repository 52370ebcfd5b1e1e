"""JSON Schemas of what Python types say: classes with fields, and functions with type hints."""

from __future__ import annotations

import functools
import inspect
import sys
import types
import typing
from collections.abc import Callable, Collection, Mapping
from typing import Any, Final, NotRequired, Optional, Required, cast

import msgspec

from agentguard.errors import SchemaError

_PYDANTIC: Final = {"pydantic", "pydantic_core", "annotated_types"}
_WAY_OUT: Final = "declare it with a JSON schema"


def schema_of_class(kind: type[Any]) -> dict[str, Any]:
    """Return the schema of a class's fields; a class that has none that can be described is a SchemaError."""
    describe = getattr(kind, "model_json_schema", None)
    if describe is not None:
        schema = cast("dict[str, Any]", describe())
    else:
        schema = _described(kind.__name__, kind, by_pydantic=hasattr(kind, "__pydantic_validator__"))
    if "properties" not in schema:
        raise SchemaError(kind.__name__, f"is a class without fields that arguments could fill; {_WAY_OUT}")
    return schema


def schema_of_function(name: str, function: Callable[..., Any], leave_out: Collection[str]) -> dict[str, Any]:
    """Return the schema of a function's parameters; see `declare` for what each of them means."""
    hints, signature = _read(name, function, leave_out)
    fields: dict[str, Any] = {}
    is_open, by_pydantic = False, False
    for parameter in signature.parameters.values():
        hint = Any if parameter.name in leave_out else hints.get(parameter.name, Any)
        by_pydantic = by_pydantic or _is_of_pydantic(hint) or _is_of_pydantic(parameter.default)
        if parameter.kind is parameter.VAR_KEYWORD:
            is_open = True
        else:
            fields[parameter.name] = _field(parameter, hint, is_left_out=parameter.name in leave_out)
    schema = _described(name, _arguments(fields), by_pydantic=by_pydantic)
    schema.pop("title", None)
    return {**schema, "additionalProperties": is_open}


def name_of(function: Callable[..., Any]) -> str:
    """Return the name under which a function is declared: its own, of a partial one the inner one's."""
    inner = _inner(function)
    return str(getattr(inner, "__name__", type(inner).__name__))


def description_of(function: Callable[..., Any]) -> str | None:
    """Return the first paragraph of a function's documentation; None without one."""
    text = inspect.getdoc(_inner(function))
    return " ".join(text.split("\n\n", 1)[0].split()) if text else None


def _inner(function: Any) -> Any:
    while isinstance(function, functools.partial):
        function = cast("functools.partial[Any]", function).func
    return function


def _read(
    name: str, function: Callable[..., Any], leave_out: Collection[str]
) -> tuple[Mapping[str, Any], inspect.Signature]:
    inner = _inner(function)
    told = inner if inspect.isroutine(inner) else type(inner).__call__
    try:
        return _hints(inspect.unwrap(told), {"return", *leave_out}), inspect.signature(function)
    except (NameError, TypeError, ValueError, AttributeError) as error:
        raise SchemaError(name, f"its signature cannot be read: {error}; {_WAY_OUT}") from error


def _hints(function: Any, without: Collection[str]) -> Mapping[str, Any]:
    """Return the type hints but for some, which need not be names that can be found."""
    needed = types.FunctionType(_needed.__code__, getattr(function, "__globals__", {}))
    hints = cast("Mapping[str, Any]", getattr(function, "__annotations__", {}))
    needed.__annotations__ = {name: hint for name, hint in hints.items() if name not in without}
    return typing.get_type_hints(needed, include_extras=True)


def _needed() -> None:
    """Stand in for a function that has only the needed type hints."""


def _field(parameter: inspect.Parameter, hint: Any, *, is_left_out: bool) -> Any:
    if parameter.kind is parameter.VAR_POSITIONAL:
        return NotRequired[list[hint]]
    if is_left_out:
        return NotRequired[hint]
    if parameter.default is parameter.empty:
        return Required[hint]
    if parameter.default is None:
        return NotRequired[Optional[hint]]  # noqa: UP045 - `|` does not take every hint
    if not _is_of_pydantic(parameter.default):
        return NotRequired[hint]
    is_required = getattr(parameter.default, "is_required", bool)()
    with_rules = typing.Annotated[hint, parameter.default]
    return Required[with_rules] if is_required else NotRequired[with_rules]


def _arguments(fields: Mapping[str, Any]) -> Any:
    # pydantic refuses typing.TypedDict before Python 3.12; its own dependency brings one that it takes.
    module = sys.modules.get("typing_extensions", typing)
    return cast("Any", module).TypedDict("Arguments", dict(fields))


def _is_of_pydantic(hint: Any) -> bool:
    """Whether a hint or default holds what only pydantic reads, such as `Field(ge=1)`."""
    if type(hint).__module__.partition(".")[0] in _PYDANTIC:
        return True
    return any(_is_of_pydantic(inner) for inner in (*typing.get_args(hint), *getattr(hint, "__metadata__", ())))


# ---------------------------------------------------------------- libraries


def _described(name: str, kind: Any, *, by_pydantic: bool) -> dict[str, Any]:
    if by_pydantic:
        return _by_pydantic(name, kind, None)
    try:
        schema = msgspec.json.schema(kind)
    except TypeError as error:
        return _by_pydantic(name, kind, error)
    return _outermost(_with_decimal_numbers(schema))


def _by_pydantic(name: str, kind: Any, error: TypeError | None) -> dict[str, Any]:
    try:
        from pydantic import TypeAdapter
        from pydantic.errors import PydanticUserError
    except ImportError:
        raise SchemaError(name, f"{error}; {_WAY_OUT}") from error
    try:
        return _outermost(TypeAdapter(kind).json_schema())
    except PydanticUserError as fault:
        told = " ".join(str(error or fault.message).split())
        raise SchemaError(name, f"{told}; {_WAY_OUT}") from fault


def _outermost(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the schema with its outermost reference followed, so that it shows its properties."""
    definitions = dict(schema.get("$defs", {}))
    name = str(schema.get("$ref", "")).removeprefix("#/$defs/")
    inner = definitions.pop(name, None)
    if inner is None:
        return schema
    if f'"#/$defs/{name}"'.encode() in msgspec.json.encode([inner, definitions]):  # it holds itself
        definitions[name] = inner
    return {**inner, "$defs": definitions} if definitions else inner


def _with_decimal_numbers(schema: Any) -> Any:
    """Return the schema with numbers allowed for decimals: msgspec reads both and tells of texts only."""
    if isinstance(schema, list):
        return [_with_decimal_numbers(part) for part in cast("list[Any]", schema)]
    if not isinstance(schema, dict):
        return schema
    rules = {word: _with_decimal_numbers(part) for word, part in cast("dict[str, Any]", schema).items()}
    return rules | {"type": ["string", "number"]} if rules.get("format") == "decimal" else rules
