"""Which alternative of a failed `oneOf` or `anyOf` was meant, and what is wrong with it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

import jsonschema_rs
import msgspec

from agentguard.fingerprint import canonical
from agentguard.schema.problems import (
    Error,
    Problem,
    Schema,
    of_options,
    of_types,
    one_of,
    options_of,
    problem,
    properties_of,
    told,
)
from agentguard.schema.shape import as_list, at, resolved, rules_of
from agentguard.schema.words import cut, kind_of, nearest_value, path_text, shown

_Kind = jsonschema_rs.ValidationErrorKind


def in_words(error: Error, schema: Schema) -> list[Problem]:
    """Return the problems that an error stands for; for failed alternatives those of the one that was meant."""
    if isinstance(error.kind, _Kind.OneOfMultipleValid):
        return [_too_many(error, schema)]
    if isinstance(error.kind, (_Kind.OneOfNotValid, _Kind.AnyOf)):
        return _meant(error, error.kind.context, schema)
    return told(error, schema)


def _meant(error: Error, context: Sequence[Sequence[Error]], schema: Schema) -> list[Problem]:
    """Speak of the tag when no alternative has it, else of the nearest alternative among those that have it."""
    branches = as_list(at(schema, error.schema_path))
    tag = _tag([resolved(schema, branch) for branch in branches])
    likely = [number for number, errors in enumerate(context) if not _is_of_another_kind(errors, error)]
    if not likely:
        return [_of_another_kind(error, context)]
    if tag is not None and isinstance(error.instance, Mapping):
        tagged = _with_tag(error, *tag)
        if isinstance(tagged, Problem):
            return [tagged]
        likely = tagged
    number = min(likely, key=lambda one: _distance(context[one]))
    found = [one for each in context[number] for one in in_words(each, schema)]
    name = _name(branches, number, schema)
    if sum(not _is_of_another_kind(errors, error) for errors in context) < 2:  # e.g. one model, or null
        return found
    return [_named(one, name) for one in found]


def _distance(errors: Sequence[Error]) -> tuple[int, int]:
    """Few errors are near, and among as few the deeper ones: there more has fitted already."""
    return len(errors), -max((len(error.instance_path) for error in errors), default=0)


# ---------------------------------------------------------------- kinds of values


def _is_of_another_kind(errors: Sequence[Error], whole: Error) -> bool:
    return any(_is_about_all_of_it(error, whole) for error in errors)


def _is_about_all_of_it(error: Error, whole: Error) -> bool:
    kinds = (_Kind.Type, _Kind.Constant, _Kind.Enum, _Kind.FalseSchema)
    return isinstance(error.kind, kinds) and len(error.instance_path) == len(whole.instance_path)


def _of_another_kind(error: Error, context: Sequence[Sequence[Error]]) -> Problem:
    """Return the one problem of a value that is of none of the kinds: all that would do, in one list."""
    types: dict[str, None] = {}
    options: list[Any] = []
    for errors in context:
        kind = cast("Any", next(one.kind for one in errors if _is_about_all_of_it(one, error)))
        if isinstance(kind, _Kind.Type):
            types |= dict.fromkeys(kind.types)
        elif isinstance(kind, _Kind.Enum):
            options += kind.options
        elif isinstance(kind, _Kind.Constant):
            options.append(kind.expected_value)
    if not options and types:
        return of_types(error, list(types))
    if not types and options:
        return of_options(error, options)
    words = " or ".join([*types, *map(shown, options[:12])]) or "something else"
    nearest = nearest_value(error.instance, options)
    return problem(error, f"must be {words}, not {kind_of(error.instance)}", allowed=words, nearest=nearest)


# ---------------------------------------------------------------- tags


_Tag = tuple[str, list[list[Any]]]


def _tag(branches: Sequence[Any]) -> _Tag | None:
    """Return the property that tells the alternatives apart and its values in each; None when there is none."""
    objects = [properties_of(branch) for branch in branches]
    names = dict.fromkeys(name for properties in objects for name in properties)
    for name in names:
        options = [options_of(properties.get(name)) for properties in objects]
        distinct = {canonical(one) for one in options if one}
        if len(distinct) > 1 and all(one or not properties for one, properties in zip(options, objects, strict=True)):
            return name, options
    return None


def _with_tag(error: Error, name: str, options: Sequence[Sequence[Any]]) -> list[int] | Problem:
    """Return the alternatives with the tag that was given, or the problem that none has it."""
    given = rules_of(error.instance)
    every = [one for values in options for one in values]
    path = path_text([*error.instance_path, name])
    message, allowed = one_of(every)
    if name not in given:
        return Problem(path, "required", f"is required and missing; allowed: {allowed}", None, allowed)
    tag = canonical(given[name])
    fitting = [number for number, values in enumerate(options) if tag in map(canonical, values)]
    if fitting:
        return fitting
    keyword = "const" if all(len(values) < 2 for values in options) else "enum"
    return Problem(path, keyword, message, shown(given[name], 300), allowed, nearest_value(given[name], every))


# ---------------------------------------------------------------- names


def _too_many(error: Error, schema: Schema) -> Problem:
    branches = as_list(at(schema, error.schema_path))
    context: Sequence[Sequence[Error]] = cast("Any", error.kind).context
    names = [_name(branches, number, schema) for number, errors in enumerate(context) if not errors]
    return problem(error, f"must fit exactly one alternative, not {len(names)}: {' and '.join(names)}")


def _named(one: Problem, name: str) -> Problem:
    if "; taken as " in one.message:  # the innermost alternative says enough
        return one
    return msgspec.structs.replace(one, message=f"{one.message}; taken as {name}")


def _name(branches: Sequence[Any], number: int, schema: Schema) -> str:
    """Return what an alternative is called: its title, its tag, its definition's name or its number."""
    branch = branches[number] if number < len(branches) else None
    rules = resolved(schema, branch)
    title = rules_of(rules).get("title")
    if isinstance(title, str) and title:
        return cut(title)
    for name, rule in properties_of(rules).items():
        if "const" in rules_of(rule):
            return f"the one with {cut(name)} = {shown(rule['const'])}"
    reference = rules_of(branch).get("$ref")
    if isinstance(reference, str) and "/" in reference:
        return cut(reference.rpartition("/")[2])
    return f"alternative {number + 1}"
