"""Arguments as instrumentations write them, undone without guessing."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from typing import Any, cast

import msgspec

from agentguard.traces.shapes import NOT_JSON, as_text, from_json, is_object

LITERAL_CAP = 262_144
"""Characters of Python repr that are evaluated; longer text stays raw."""

_JSON_LAYERS = 3


class Arguments(msgspec.Struct, frozen=True):
    """Arguments of one call, as far as they could be read."""

    named: Mapping[str, Any] | None = None
    """By name. None when not recorded or not undone."""
    raw: str | None = None
    """The text that could not be undone."""
    bare: Any = None
    """A value whose argument's name is lost. None when there is none."""
    note: str | None = None
    """How an unusual encoding was undone."""


NOTHING = Arguments()


def plain(value: Any) -> Mapping[str, Any] | None:
    """Return arguments that stand as a plain JSON object and need no undoing; None for all others."""
    found = from_json(value) if type(value) is str and value[:1] == "{" else value
    return found if is_object(found) and "kwargs" not in found and "input_str" not in found else None


def decode(value: Any, schema: Mapping[str, Any] | None = None) -> Arguments:
    """Undo JSON, JSON in JSON, Python repr, keyword wrappers and LangChain's `input_str`.

    `schema` is the tool's JSON Schema (or the bare map of its properties), where the trace has one: it keeps a real
    argument named `kwargs` from being unwrapped, and names a bare value when the tool has one argument only.
    """
    if value is None:
        return NOTHING
    if is_object(value):
        return _unwrapped(value, schema)
    if type(value) is not str:
        return _named_by_schema(value, as_text(value), schema)
    inner = _json(value)
    if is_object(inner):
        return _unwrapped(inner, schema)
    if inner is not NOT_JSON:
        return _named_by_schema(inner, value, schema)
    literal = python_literal(value)
    if is_object(literal) and all(isinstance(key, str) for key in cast("dict[Any, Any]", literal)):
        return _unwrapped(literal, schema, "read from a Python repr")
    return _named_by_schema(value, value, schema)


def python_literal(text: str) -> Any:
    """Return what a Python repr of containers says; None when it is none, too long or too deep. Nothing is called."""
    if len(text) > LITERAL_CAP or text[:1] not in ("{", "[", "("):
        return None
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return None


def literals_in(text: str, key: str) -> Iterator[Any]:
    """Yield what follows each `key` in a repr, where that is a Python literal in brackets."""
    at = text.find(key)
    while at >= 0:
        start = at + len(key)
        end = _closing(text, start)
        if end is not None:
            yield python_literal(text[start:end])
        at = text.find(key, end or start)


def _closing(text: str, start: int) -> int | None:
    depth, quote = 0, ""
    at, last = start, min(len(text), start + LITERAL_CAP)
    while at < last:
        char = text[at]
        if quote:
            if char == "\\":
                at += 1
            elif char == quote:
                quote = ""
        elif char in "'\"":
            quote = char
        elif char in "[({":
            depth += 1
        elif char in "])}":
            depth -= 1
        if depth == 0 and not quote:
            return at + 1 if at > start else None
        at += 1
    return None


def properties(schema: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    """Return the properties of a JSON Schema, or of a bare map of properties; None when there is no schema."""
    if not schema:
        return None
    inner = schema.get("properties")
    if isinstance(inner, Mapping):
        return cast("Mapping[str, Any]", inner)
    is_schema = isinstance(schema.get("type"), str) or "$schema" in schema
    return {} if is_schema else schema


def looks_like_schema(value: Any) -> bool:
    """Whether a value under `tool.parameters` declares arguments rather than giving them."""
    if not isinstance(value, Mapping):
        return False
    declared = cast("Mapping[str, Any]", value)
    if isinstance(declared.get("properties"), Mapping):
        return True
    inner = list(declared.values())
    return bool(inner) and all(isinstance(each, Mapping) and "type" in each for each in inner)


def _json(text: str) -> Any:
    for _ in range(_JSON_LAYERS):
        value = from_json(text)
        if not isinstance(value, str) or value[:1] not in ("{", "["):
            return value
        text = value
    return NOT_JSON


def _unwrapped(found: dict[str, Any], schema: Mapping[str, Any] | None, note: str | None = None) -> Arguments:
    if "kwargs" in found:
        return _keywords(found, schema, note)
    if "input_str" in found:
        return _input_str(found, schema, note)
    return Arguments(found, note=note)


def _keywords(found: dict[str, Any], schema: Mapping[str, Any] | None, note: str | None) -> Arguments:
    keywords, declared = found["kwargs"], properties(schema)
    if not is_object(keywords) or (declared is not None and "kwargs" in declared):
        return Arguments(found, note=note)
    if "input_str" in found:
        return _input_str(found, schema, note)
    if len(found) > 1 and "args" not in found:
        return Arguments(found, note=note)
    if found.get("args"):
        return Arguments(raw=as_text(found))
    return Arguments(keywords, note=note or "unwrapped from kwargs")


def _input_str(found: dict[str, Any], schema: Mapping[str, Any] | None, note: str | None) -> Arguments:
    declared = properties(schema)
    text = found["input_str"]
    if not isinstance(text, str) or (declared is not None and "input_str" in declared):
        return Arguments(found, note=note)
    if declared is None and not found.keys() & {"tags", "metadata", "inputs", "kwargs"}:
        return Arguments(found, note=note)
    inputs = found.get("inputs")
    if is_object(inputs) and inputs:
        return Arguments(inputs, note="unwrapped from inputs beside input_str")
    return msgspec.structs.replace(decode(text, schema), note="unwrapped from input_str")


def _named_by_schema(value: Any, text: str, schema: Mapping[str, Any] | None) -> Arguments:
    declared = properties(schema)
    if declared is not None and not declared and not text.strip():
        return Arguments({}, note="nothing was sent to a tool without arguments")
    if declared is not None and len(declared) == 1 and value is not None:
        return Arguments({next(iter(declared)): value}, note="named by the tool's only argument")
    return Arguments(raw=text, bare=value)
