"""A schema compiled once, and its verdict about arguments."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

import jsonschema_rs
import msgspec
import orjson

from agentguard.errors import SchemaError
from agentguard.schema.alternatives import in_words
from agentguard.schema.plain import Lost, plain_json
from agentguard.schema.problems import Problem
from agentguard.schema.shape import Shape, shape_of
from agentguard.schema.words import cut, path_text

MOST_PROBLEMS: Final = 50
_MOST_PARTS: Final = 1_000_000
"""Parts of a schema, every reference followed. What unfolds to more takes seconds for each call."""
_MOST_TRIED: Final = 20_000
"""Alternatives that are tried when problems are looked for. Where there may be more, it is only said that it fails."""
_MOST_PARTS_TOLD: Final = 100_000
"""The same, for telling errors apart, which costs more than finding that there is one."""
_TOO_MANY: Final = "does not fit; there are too many alternatives to say where"
_LONGEST_PATH: Final = 5
_LINEAR: Final = jsonschema_rs.RegexOptions()
_BOUNDED: Final = jsonschema_rs.FancyRegexOptions(backtrack_limit=10_000)
_dumps: Final = orjson.dumps


class Validator:
    """A schema, compiled once: Draft 2020-12 unless `$schema` names another, formats checked, nothing ever fetched.

    Patterns run in linear time; those with look-around or back references, which cannot, give up after 10,000 steps
    and then do not match. A value is judged as the JSON it means (see `plain_json`); where the schema says nothing, any
    value will do.

    >>> weather = Validator("weather", {"properties": {"days": {"type": "integer", "minimum": 1}}})
    >>> weather.is_valid({"days": 3.0})
    True
    >>> weather.problems({"days": "3"})[0].message
    'must be integer, not string'
    """

    __slots__ = ("_compiled", "_document", "_shape", "quick_test", "schema")

    schema: Mapping[str, Any]
    """The schema as it was given."""
    quick_test: Callable[[Any], bool]
    """As `is_valid`, and faster; raises for values that are no JSON."""

    def __init__(self, tool: str, schema: Mapping[str, Any]) -> None:
        """Compile; `tool` names the tool in the SchemaError about a schema that cannot be used."""
        document = plain_json(schema, instead=_nothing)
        for lost in document.lost:
            raise SchemaError(tool, f"the schema at {path_text(lost.place[:_LONGEST_PATH])} {lost.fault}; {_WAY_OUT}")
        self.schema = schema
        self._document = document.value
        self._shape = _bounded_shape(tool, self._document)
        self._compiled = _compiled(tool, self._document)
        test = self._compiled.is_valid
        self.quick_test = _shallow(test) if self._shape.recursive else test

    def is_valid(self, arguments: Any) -> bool:
        """Whether the arguments fit. Never raises, whatever they are."""
        try:
            return self.quick_test(arguments)
        except Exception:  # a value that is no JSON: ValueError, UnicodeEncodeError, TypeError
            return self._fits_as_json(arguments)

    def problems(self, arguments: Any) -> tuple[Problem, ...]:
        """Return every problem, at most fifty, in the order in which they are found. Empty iff the arguments fit."""
        if self.is_valid(arguments):
            return ()
        plain = plain_json(arguments, instead=partial(self._instead, None))
        if self._may_explode(plain.depth):
            return (*_lost(plain.lost), Problem("$", "schema", _TOO_MANY))
        errors = list(self._compiled.iter_errors(plain.value))
        lost = _that_matter(plain.lost, errors)
        places = {one.place for one in lost}
        found = _lost(lost)
        for error in errors[:MOST_PROBLEMS]:
            if tuple(error.instance_path) not in places:
                found += in_words(error, self._document)
        return tuple(dict.fromkeys(found))[:MOST_PROBLEMS]

    def _may_explode(self, depth: int) -> bool:
        """Whether telling errors apart may take more than a second: alternatives in alternatives multiply."""
        shape = self._shape
        if shape.recursive:
            return int(shape.widest**depth) > _MOST_TRIED
        return shape.unfolded > _MOST_PARTS_TOLD

    def _fits_as_json(self, arguments: Any) -> bool:
        """Try one value of each kind for what is no JSON: where all of them fit, the schema says nothing about it."""
        for stand_in in _STAND_INS:
            plain = plain_json(arguments, instead=partial(self._instead, stand_in), instead_of_key="\ufffd")
            # Only a recursive schema may have had something to say about what was cut.
            if (plain.is_cut and self._shape.recursive) or not self._compiled.is_valid(plain.value):
                return False
            if not plain.lost:
                break
        return True

    def _instead(self, stand_in: Any, value: Any) -> Any:
        if self._shape.binary and isinstance(value, (bytes, bytearray, memoryview)):
            return msgspec.to_builtins(value)
        return stand_in


_STAND_INS: Final[tuple[Any, ...]] = (None, True, 0.5, "\ufffd", [], {})


def _shallow(test: Callable[[Any], bool]) -> Callable[[Any], bool]:
    """Return the test for a recursive schema; it raises for what is nested too deep to be walked into.

    jsonschema-rs 0.61 overflows the stack, which ends the process, on arguments some thousand levels deep.
    """

    def is_valid(arguments: Any) -> bool:
        _dumps(arguments)  # raises beyond 254 levels
        return test(arguments)

    return is_valid


def _that_matter(lost: list[Lost], errors: list[jsonschema_rs.ValidationError]) -> list[Lost]:
    """Return what was lost where the schema asks for something; all of it when nothing else is wrong."""
    places = {tuple(error.instance_path) for error in errors}
    return [one for one in lost if one.place in places] if errors else lost


def _lost(lost: list[Lost]) -> list[Problem]:
    return [Problem(path_text(one.place[:_LONGEST_PATH]), "json", one.fault) for one in lost]


def _nothing(value: Any) -> None:
    return None


# ---------------------------------------------------------------- compiling


def _compiled(tool: str, document: Any) -> jsonschema_rs.Validator:
    try:
        return _compile_either_way(document)
    except jsonschema_rs.ValidationError as error:
        raise SchemaError(tool, _fault(error)) from None
    except (ValueError, jsonschema_rs.ReferencingError) as error:
        raise SchemaError(tool, f"the schema cannot be used: {_first_line(str(error))}; {_WAY_OUT}") from None


def _compile_either_way(document: Any) -> jsonschema_rs.Validator:
    try:
        return _compile(document, _LINEAR)
    except jsonschema_rs.ValidationError:  # perhaps only for a pattern that looks around or back
        return _compile(document, _BOUNDED)


def _compile(document: Any, patterns: Any) -> jsonschema_rs.Validator:
    return jsonschema_rs.validator_for(document, validate_formats=True, offline=True, pattern_options=patterns)


_WAY_OUT: Final = "mend it, or declare the tool without a schema"


def _fault(error: jsonschema_rs.ValidationError) -> str:
    if isinstance(error.kind, jsonschema_rs.ValidationErrorKind.Referencing):
        fault = _first_line(error.message)
        return f"a reference of the schema leads nowhere ({fault}); nothing is fetched: refer to parts of the schema"
    (problem, *_) = in_words(error, {})
    near = f"; did you mean {problem.nearest}?" if problem.nearest else f"; {_WAY_OUT}"
    return f"the schema at {problem.path} {problem.message}{near}"


def _first_line(text: str) -> str:
    return cut(text.partition("\n")[0], 200)


def _bounded_shape(tool: str, document: Any) -> Shape:
    shape = shape_of(document)
    if shape.unfolded > _MOST_PARTS:
        raise SchemaError(tool, f"the schema has more than {_MOST_PARTS} parts when its references are followed; "
                                f"refer less often to what refers to others")  # fmt: skip
    return shape
