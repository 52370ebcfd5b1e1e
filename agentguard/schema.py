"""Arguments against a JSON Schema: a quick test, and every problem in words a model can act on."""

from __future__ import annotations

import difflib
import enum
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import jsonschema_rs
import msgspec
import orjson

from agentguard.errors import SchemaError
from agentguard.fingerprint import canonical

_MOST_PROBLEMS: Final = 50
_DEEPEST: Final = 100
"""Arguments nested deeper are refused: no tool means them, and validators recurse."""
_MOST_CHOICES: Final = 12
_LONGEST_SHOWN: Final = 60
_BRANCHES: Final = ("oneOf", "anyOf")
_PROPERTIES: Final = ("additionalProperties", "unevaluatedProperties")


class Problem(msgspec.Struct, frozen=True):
    """One place where arguments do not fit their schema."""

    path: str
    """JSON path of the value, e.g. "$.days" or "$.items[2].city"."""
    keyword: str
    """The schema's keyword that says no, e.g. "type"; "json" for a value that JSON does not have."""
    message: str
    """What was there and what is allowed, in one sentence."""
    nearest: str | None = None
    """The nearest allowed value or name. None when nothing is near."""


class Validator:
    """A schema, compiled once. Formats are checked; nothing is ever fetched; patterns run in linear time."""

    def __init__(self, tool: str, schema: Mapping[str, Any]) -> None:
        """Compile; a schema that cannot be used is a SchemaError."""
        self.schema = schema
        try:
            self._compiled = jsonschema_rs.validator_for(
                schema if isinstance(schema, dict) else dict(schema),
                validate_formats=True,
                offline=True,
                pattern_options=jsonschema_rs.RegexOptions(),
            )
        except (jsonschema_rs.ValidationError, jsonschema_rs.ReferencingError, ValueError, RecursionError) as error:
            raise SchemaError(tool, f"the schema cannot be used: {_first_line(error)}") from error
        self.quick_test = self._compiled.is_valid
        """As `is_valid`, and faster; raises for values that are no JSON."""

    def is_valid(self, arguments: Any) -> bool:
        """Whether the arguments fit. False also for what is no JSON; `problems` then tells whether that matters."""
        try:
            return self.quick_test(arguments)
        except Exception:  # a value that is no JSON: ValueError, UnicodeEncodeError, RecursionError
            return False

    def problems(self, arguments: Any) -> tuple[Problem, ...]:
        """Return every problem, at most fifty. Empty when the arguments fit, also after a lossless step to JSON."""
        plain, lost = _as_json(arguments)
        if lost:
            return tuple(lost)
        found: list[Problem] = []
        try:
            for error in self._compiled.iter_errors(plain):
                found.extend(self._explained(error, plain))
                if len(found) >= _MOST_PROBLEMS:
                    break
        except Exception as error:
            return (Problem("$", "json", f"cannot be checked: {_first_line(error)}"),)
        return tuple(dict.fromkeys(found))[:_MOST_PROBLEMS]

    def _explained(self, error: jsonschema_rs.ValidationError, whole: Any) -> Iterator[Problem]:
        keyword = str(error.schema_path[-1]) if error.schema_path else "schema"
        keyword = next((str(part) for part in reversed(error.schema_path) if isinstance(part, str)), keyword)
        path, instance = list(error.instance_path), error.instance
        if keyword in _PROPERTIES and not isinstance(instance, Mapping):
            instance = _value_at(whole, path)  # a schema that allows no property at all is told of their values
        schema = self._at(error.schema_path)
        if keyword in _BRANCHES:
            meant = self._meant(schema, instance)
            if meant is not None:
                yield from (_moved(problem, path) for problem in meant)
                return
        yield from _in_words(keyword, schema, path, instance, error.message, self._parent(error.schema_path))

    def _meant(self, branches: Any, instance: Any) -> list[Problem] | None:
        """Return the problems of the branch that was meant: by a constant that fits, else with the fewest problems."""
        if not isinstance(branches, Sequence) or not branches:
            return None
        tried = [(self._fit(branch, instance), number) for number, branch in enumerate(branches)]
        (_, _, problems), number = min(tried, key=lambda one: (one[0][0], one[0][1], one[1]))
        if not problems:
            return [Problem("$", "oneOf", "fits more than one of the alternatives, of which exactly one is allowed")]
        title = self._title(branches[number], number)
        return [msgspec.structs.replace(p, message=f"{p.message} (meant as {title})") for p in problems]

    def _fit(self, branch: Any, instance: Any) -> tuple[int, int, list[Problem]]:
        branch = self._resolved(branch)
        if not isinstance(branch, Mapping):
            return 2, 0, []
        document = {**branch, **{key: self.schema[key] for key in ("$defs", "definitions") if key in self.schema}}
        try:
            problems = list(Validator("", document).problems(instance))
        except SchemaError:
            return 2, 0, []
        return _tag_fit(branch, instance), len(problems), problems

    def _title(self, branch: Any, number: int) -> str:
        resolved = self._resolved(branch)
        if isinstance(resolved, Mapping):
            for name, rule in _properties(resolved).items():
                if isinstance(rule, Mapping) and "const" in rule:
                    return f"the alternative with {name} = {_shown(rule['const'])}"
            if isinstance(resolved.get("title"), str):
                return f"the alternative {resolved['title']}"
        return f"alternative {number + 1}"

    def _resolved(self, schema: Any) -> Any:
        for _ in range(10):
            reference = schema.get("$ref") if isinstance(schema, Mapping) else None
            if not isinstance(reference, str) or not reference.startswith("#/"):
                return schema
            schema = self._at(reference[2:].split("/"))
        return schema

    def _at(self, path: Sequence[Any]) -> Any:
        node: Any = self.schema
        for part in path:
            node = _child(node, part)
            if isinstance(node, Mapping) and "$ref" in node and part != "$ref":
                continue
            if part == "$ref":
                node = self._resolved({"$ref": node}) if isinstance(node, str) else node
        return node

    def _parent(self, path: Sequence[Any]) -> Any:
        return self._at(path[:-1])


def _child(node: Any, part: Any) -> Any:
    if isinstance(node, Mapping):
        return node.get(part, node.get(str(part).replace("~1", "/").replace("~0", "~")))
    if isinstance(node, Sequence) and not isinstance(node, str) and str(part).isdigit() and int(part) < len(node):
        return node[int(part)]
    return None


def _value_at(value: Any, path: Sequence[Any]) -> Any:
    for part in path:
        value = _child(value, part)
    return value


def _in_words(keyword: str, rule: Any, path: list[Any], instance: Any, message: str, schema: Any) -> Iterator[Problem]:
    where, name = _path(path), str(path[-1]) if path else "the arguments"
    if keyword == "required":
        missing = [key for key in _strings(rule) if isinstance(instance, Mapping) and key not in instance]
        given = [str(key) for key in instance] if isinstance(instance, Mapping) else []
        known = list(_properties(schema))
        for key in missing:
            near = _near(key, [one for one in given if one not in known])
            told = f"; {near} was given" if near else ""
            yield Problem(_path([*path, key]), keyword, f"{key} is required and missing{told}", near)
    elif keyword in _PROPERTIES and isinstance(instance, Mapping):
        known = list(_properties(schema))
        extra = [str(key) for key in instance if key not in known] if rule is False else []
        for key in extra:
            near = _near(key, known)
            allowed = f"; allowed: {_listed(known)}" if known else ""
            yield Problem(_path([*path, key]), keyword, f"{key} is not allowed{allowed}", near)
        if not extra:
            yield Problem(where, keyword, message[:300])
    elif keyword == "enum":
        choices = [choice for choice in rule if choice is not None] if isinstance(rule, Sequence) else []
        near = _near(instance, [choice for choice in choices if isinstance(choice, str)])
        yield Problem(where, keyword, f"{name} is {_shown(instance)}; allowed: {_listed(choices)}", near)
    elif keyword == "const":
        yield Problem(where, keyword, f"{name} is {_shown(instance)}; allowed: {_shown(rule)}", _text(rule))
    elif keyword == "type":
        wanted = " or ".join(_strings(rule)) or str(rule)
        yield Problem(where, keyword, f"{name} is {_kind(instance)} {_shown(instance)}; it must be {wanted}")
    elif keyword in _LIMITS:
        yield Problem(where, keyword, f"{name} is {_shown(instance)}; {_LIMITS[keyword]} {_shown(rule)}", None)
    else:
        yield Problem(where, keyword, f"{name}: {message[:300]}")


_LIMITS: Final = {
    "minimum": "it must be at least",
    "maximum": "it must be at most",
    "exclusiveMinimum": "it must be more than",
    "exclusiveMaximum": "it must be less than",
    "multipleOf": "it must be a multiple of",
    "minLength": "its length must be at least",
    "maxLength": "its length must be at most",
    "minItems": "its number of items must be at least",
    "maxItems": "its number of items must be at most",
    "pattern": "it must match the pattern",
    "format": "it must have the format",
}


def _tag_fit(branch: Mapping[str, Any], instance: Any) -> int:
    """0 when a constant of the branch fits the instance, 1 when the branch has none, 2 when one does not fit."""
    if not isinstance(instance, Mapping):
        return 1
    tags = {name: rule for name, rule in _properties(branch).items() if isinstance(rule, Mapping) and "const" in rule}
    given = {name: rule for name, rule in tags.items() if name in instance}
    if not given:
        return 1
    return 0 if all(canonical(instance[name]) == canonical(rule["const"]) for name, rule in given.items()) else 2


def _moved(problem: Problem, path: list[Any]) -> Problem:
    return msgspec.structs.replace(problem, path=_path(path) + problem.path[1:])


def _path(parts: Sequence[Any]) -> str:
    """Return a JSON path.

    >>> _path(["items", 2, "city"])
    '$.items[2].city'
    """
    return "$" + "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in parts)


def _properties(schema: Any) -> Mapping[str, Any]:
    properties = schema.get("properties") if isinstance(schema, Mapping) else None
    return properties if isinstance(properties, Mapping) else {}


def _strings(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    return [item for item in value if isinstance(item, str)] if isinstance(value, Sequence) else []


def _near(word: Any, choices: Sequence[str]) -> str | None:
    if not isinstance(word, str) or len(word) > 200:
        return None
    folded = {choice.casefold(): choice for choice in choices[:1_000]}
    near = difflib.get_close_matches(word.casefold(), list(folded), n=1)
    return folded[near[0]] if near else None


def _listed(values: Sequence[Any]) -> str:
    shown = ", ".join(value if isinstance(value, str) else _shown(value) for value in values[:_MOST_CHOICES])
    more = len(values) - _MOST_CHOICES
    return f"{shown} and {more} more" if more > 0 else shown


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _shown(value: Any) -> str:
    text = canonical(value).decode("utf-8", "replace")
    return text if len(text) <= _LONGEST_SHOWN else text[:_LONGEST_SHOWN] + "..."


def _kind(value: Any) -> str:
    for kind, name in _KINDS:
        if isinstance(value, kind):
            return name
    return type(value).__name__


_KINDS: Final[tuple[tuple[type | tuple[type, ...], str], ...]] = (
    (bool, "the boolean"),
    (type(None), "the value"),
    (str, "the text"),
    (int, "the integer"),
    (float, "the number"),
    (Mapping, "the object"),
    (Sequence, "the array"),
)


def _as_json(value: Any) -> tuple[Any, list[Problem]]:
    """Return the plain JSON that a value means, or the places that JSON has no word for."""
    lost: list[Problem] = []
    plain = _plain(value, [], lost)
    return plain, lost


def _plain(value: Any, path: list[Any], lost: list[Problem]) -> Any:
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, enum.Enum):
        return _plain(value.value, path, lost)
    if isinstance(value, str):
        return _plain_text(value, path, lost)
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        if not math.isfinite(value):
            lost.append(Problem(_path(path), "json", f"{value} is no JSON number"))
        return float(value)
    if len(path) >= _DEEPEST:
        lost.append(Problem(_path(path[:3]), "json", f"is nested more than {_DEEPEST} levels deep"))
        return None
    if isinstance(value, Mapping):
        return {_key(key, path, lost): _plain(item, [*path, str(key)], lost) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item, [*path, index], lost) for index, item in enumerate(value)]
    lost.append(Problem(_path(path), "json", f"a value of type {type(value).__name__} is no JSON"))
    return None


def _plain_text(value: str, path: list[Any], lost: list[Problem]) -> str:
    try:
        value.encode()
    except UnicodeEncodeError:
        lost.append(Problem(_path(path), "json", "the text holds half a surrogate pair, which is no character"))
    return str(value)


def _key(key: Any, path: list[Any], lost: list[Problem]) -> str:
    if not isinstance(key, str):
        lost.append(Problem(_path(path), "json", f"the key {key!r} is no text"[:200]))
        return repr(key)
    return _plain_text(key, path, lost)


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0][:300]


def parse_error(text: str) -> str:
    """Return in words why a text is not a JSON object.

    >>> parse_error('[1, 2]')
    'a JSON object was expected, not an array'
    """
    try:
        value = orjson.loads(text)
    except (orjson.JSONDecodeError, UnicodeEncodeError, RecursionError) as error:
        return _first_line(error)
    names = {list: "an array", str: "a text", bool: "a boolean", type(None): "null"}
    return f"a JSON object was expected, not {names.get(type(value), 'a number')}"
