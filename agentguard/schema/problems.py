"""What a validator found, in words: where, what is wrong, what is allowed, and what was probably meant."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, cast

import jsonschema_rs
import msgspec

from agentguard.schema.shape import as_list, at, resolved, rules_of
from agentguard.schema.words import cut, kind_of, listed, nearest_name, nearest_value, path_text, read_as, shown

Error = jsonschema_rs.ValidationError
Schema = Mapping[str, Any]
_Kind = jsonschema_rs.ValidationErrorKind


_FOUND_CHARS: Final = 300
"""More than is quoted, so that a secret is known as one before it is cut."""


class Problem(msgspec.Struct, frozen=True):
    """One place where arguments do not fit their schema."""

    path: str
    """JSON path of the value, e.g. "$.days" or "$.items[2].city"."""
    keyword: str
    """The schema's keyword that says no, e.g. "type"; "json" for a value that JSON does not have."""
    message: str
    """What is wrong and what is allowed, in one short sentence that holds no argument's value."""
    found: str | None = None
    """What was there, as JSON text of at most some 300 characters. None when nothing was, or it could not be read."""
    allowed: str | None = None
    """What is allowed, e.g. `"C", "F"` or `integer`. None when the schema does not say it in a few words."""
    nearest: str | None = None
    """The nearest allowed name, or the nearest allowed value as JSON text. None when nothing is near."""


def told(error: Error, schema: Schema) -> list[Problem]:
    """Return the problems that an error stands for, if it is not about alternatives: one for each unknown property."""
    return _TELLERS.get(error.kind.name, _other)(error, schema)


def problem(error: Error, message: str, *, allowed: str | None = None, nearest: str | None = None) -> Problem:
    """Return a problem with the value at which an error stands."""
    return Problem(
        path_text(error.instance_path), _keyword(error), message, shown(error.instance, _FOUND_CHARS), allowed, nearest
    )


def _keyword(error: Error) -> str:
    if isinstance(error.kind, _Kind.FalseSchema):
        return error.kind.name
    return next((part for part in reversed(error.schema_path) if isinstance(part, str)), error.kind.name)


# ---------------------------------------------------------------- properties


def _required(error: Error, schema: Schema) -> list[Problem]:
    name = cast("Any", error.kind).property
    around = at(schema, error.schema_path[:-1])
    given = rules_of(error.instance)
    known = property_names(schema, around)
    near = nearest_name(name, [key for key in given if key not in known])
    allowed = _allowed(resolved(schema, properties_of(around).get(name)))
    message = "is required and missing" + (f"; {near} was given" if near else "")
    message += f"; allowed: {allowed}" if allowed else ""
    return [Problem(path_text([*error.instance_path, name]), _keyword(error), message, None, allowed)]


def _unexpected(error: Error, schema: Schema) -> list[Problem]:
    known = property_names(schema, at(schema, error.schema_path[:-1]))
    allowed = listed(known) or None
    message = f"is not a known property; known: {allowed}" if allowed else "is not allowed: no property is"
    free = [name for name in known if name not in rules_of(error.instance)]
    found: list[Problem] = []
    for name in cast("Any", error.kind).unexpected:
        path = path_text([*error.instance_path, name])
        found.append(Problem(path, _keyword(error), message, None, allowed, nearest_name(name, free)))
    return found


def property_names(schema: Schema, part: Any, depth: int = 5) -> list[str]:
    """Return the names of the properties that a part of a schema knows, also through what it is composed of."""
    rules = rules_of(resolved(schema, part))
    if not depth:
        return []
    composed = [one for word in ("allOf", "anyOf", "oneOf") for one in as_list(rules.get(word))]
    composed += [rules[word] for word in ("then", "else") if word in rules]
    deeper = (name for one in composed for name in property_names(schema, one, depth - 1))
    return list(dict.fromkeys([*properties_of(rules), *deeper]))


def _names_of_properties(error: Error, schema: Schema) -> list[Problem]:
    inner = told(cast("Any", error.kind).error, schema)
    message = f"has a property whose name {inner[0].message}"
    return [Problem(path_text(error.instance_path), "propertyNames", message, inner[0].found)]


def properties_of(part: Any) -> Mapping[str, Any]:
    """Return the properties of a part of a schema with their rules; empty when it has none."""
    return rules_of(rules_of(part).get("properties"))


def _allowed(rule: Any) -> str | None:
    """Return what a rule allows, where it says it in a word."""
    rules = rules_of(rule)
    if "const" in rules or "enum" in rules:
        return listed([shown(one) for one in options_of(rules)])
    types = [rules["type"]] if isinstance(rules.get("type"), str) else as_list(rules.get("type"))
    return " or ".join(map(str, types)) or None


def options_of(rule: Any) -> list[Any]:
    """Return the values that a rule lists by `const` or `enum`; empty when it lists none."""
    rules = rules_of(rule)
    return [rules["const"]] if "const" in rules else as_list(rules.get("enum"))


# ---------------------------------------------------------------- values


def _type(error: Error, schema: Schema) -> list[Problem]:
    types = cast("list[str]", cast("Any", error.kind).types)
    return [of_types(error, types)]


def of_types(error: Error, types: Sequence[str]) -> Problem:
    """Return the problem of a value that is of none of these JSON types."""
    allowed = " or ".join(types)
    message = f"must be {allowed}, not {kind_of(error.instance)}"
    return problem(error, message, allowed=allowed, nearest=read_as(error.instance, types))


def _enum(error: Error, schema: Schema) -> list[Problem]:
    return [of_options(error, cast("Any", error.kind).options)]


def _const(error: Error, schema: Schema) -> list[Problem]:
    return [of_options(error, [cast("Any", error.kind).expected_value])]


def of_options(error: Error, options: Sequence[Any]) -> Problem:
    """Return the problem of a value that is none of these."""
    message, allowed = one_of(options)
    return problem(error, message, allowed=allowed, nearest=nearest_value(error.instance, options))


def one_of(options: Sequence[Any]) -> tuple[str, str]:
    """Return the message about a value that must be one of these, and the list of them."""
    allowed = listed([shown(one) for one in options])
    return (f"must be {allowed}" if len(options) == 1 else f"must be one of {allowed}"), allowed


def _limit(words: str, near: Callable[[Any], str] | None = None) -> Callable[[Error, Schema], list[Problem]]:
    def tell(error: Error, schema: Schema) -> list[Problem]:
        limit = _figure(error)
        nearest = near(limit) if near is not None else None
        return [problem(error, f"must be {words} {shown(limit)}", allowed=f"{words} {shown(limit)}", nearest=nearest)]

    return tell


def _size(words: str, unit: str, units: str) -> Callable[[Error, Schema], list[Problem]]:
    def tell(error: Error, schema: Schema) -> list[Problem]:
        limit = _figure(error)
        allowed = f"{words} {limit} {unit if limit == 1 else units}"
        return [problem(error, f"must have {allowed}, not {len(cast('Any', error.instance))}", allowed=allowed)]

    return tell


def _figure(error: Error) -> Any:
    kind = cast("Any", error.kind)
    return kind.multiple_of if isinstance(kind, _Kind.MultipleOf) else kind.limit


def _pattern(error: Error, schema: Schema) -> list[Problem]:
    pattern = at(schema, error.schema_path)
    allowed = f"text that matches {cut(str(pattern), 120)}"
    return [problem(error, f"must be {allowed}", allowed=allowed)]


def _format(error: Error, schema: Schema) -> list[Problem]:
    name = cast("Any", error.kind).format
    example = _EXAMPLES.get(name)
    allowed = f"{cut(name)}, such as {example}" if example else cut(name)
    return [problem(error, f"must have the format {allowed}", allowed=allowed)]


_EXAMPLES: Final = {
    "date": "2026-12-31",
    "date-time": "2026-12-31T23:59:00Z",
    "time": "23:59:00Z",
    "duration": "P1DT2H",
    "email": "name@example.org",
    "uri": "https://example.org/page",
    "uuid": "123e4567-e89b-12d3-a456-426614174000",
    "ipv4": "192.0.2.1",
    "ipv6": "2001:db8::1",
    "hostname": "example.org",
}


def _contains(error: Error, schema: Schema) -> list[Problem]:
    rules = rules_of(at(schema, error.schema_path[:-1]))
    wanted = _allowed(resolved(schema, rules.get("contains")))
    kind = f"items that are {wanted}" if wanted else "items of the kind that the schema asks for"
    least, most = rules.get("minContains", 1), rules.get("maxContains")
    allowed = f"at least {least} {kind}" + (f", at most {most}" if most is not None else "")
    return [problem(error, f"must hold {allowed}", allowed=allowed)]


def _unique(error: Error, schema: Schema) -> list[Problem]:
    return [problem(error, "must not hold the same item twice")]


def _false(error: Error, schema: Schema) -> list[Problem]:
    keyword = str(error.schema_path[-1]) if error.schema_path else ""
    if keyword in ("additionalProperties", "unevaluatedProperties"):  # and no properties: told once, of the whole
        return [Problem(path_text(error.instance_path), keyword, "must have no properties")]
    return [problem(error, "is not allowed here")]


def _not(error: Error, schema: Schema) -> list[Problem]:
    return [problem(error, f"must not fit {shown(at(schema, error.schema_path))}")]


def _too_many(error: Error, schema: Schema) -> list[Problem]:
    allowed = f"at most {_figure(error)} items"
    return [problem(error, f"must have {allowed}", allowed=allowed)]


def _other(error: Error, schema: Schema) -> list[Problem]:
    return [problem(error, f"does not fit the keyword {_keyword(error)}")]


_TELLERS: Final[Mapping[str, Callable[[Error, Schema], list[Problem]]]] = {
    "additionalItems": _too_many,
    "additionalProperties": _unexpected,
    "const": _const,
    "contains": _contains,
    "enum": _enum,
    "exclusiveMaximum": _limit("less than"),
    "exclusiveMinimum": _limit("more than"),
    "falseSchema": _false,
    "format": _format,
    "maximum": _limit("at most", shown),
    "maxItems": _size("at most", "item", "items"),
    "maxLength": _size("at most", "character", "characters"),
    "maxProperties": _size("at most", "property", "properties"),
    "minimum": _limit("at least", shown),
    "minItems": _size("at least", "item", "items"),
    "minLength": _size("at least", "character", "characters"),
    "minProperties": _size("at least", "property", "properties"),
    "multipleOf": _limit("a multiple of"),
    "not": _not,
    "pattern": _pattern,
    "propertyNames": _names_of_properties,
    "required": _required,
    "type": _type,
    "unevaluatedProperties": _unexpected,
    "uniqueItems": _unique,
}
