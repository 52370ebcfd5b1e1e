"""Arguments against schemas: which are fit, and what is said of those that are not."""

from __future__ import annotations

import collections
import enum
import time
from typing import Any

import pytest

from agentguard import SchemaError
from agentguard.schema import Problem, Validator, parse_error

WEATHER = {
    "type": "object",
    "properties": {
        "city": {"type": "string", "minLength": 2},
        "days": {"type": "integer", "minimum": 1, "maximum": 14},
        "unit": {"enum": ["C", "F"]},
        "when": {"type": "string", "format": "date"},
        "places": {"type": "array", "items": {"$ref": "#/$defs/place"}, "maxItems": 2},
    },
    "required": ["city"],
    "additionalProperties": False,
    "$defs": {"place": {"type": "object", "properties": {"lat": {"type": "number"}}, "required": ["lat"]}},
}


def problems(arguments: Any, schema: dict[str, Any] = WEATHER) -> list[tuple[str, str, str | None]]:
    validator = Validator("weather", schema)
    assert not validator.is_valid(arguments)
    return [(problem.path, problem.message, problem.nearest) for problem in validator.problems(arguments)]


@pytest.mark.parametrize(
    ("arguments", "path", "message", "nearest"),
    [
        ({}, "$.city", "city is required and missing", None),
        ({"ctiy": "Oslo"}, "$.city", "city is required and missing; ctiy was given", "ctiy"),
        ({"city": 3}, "$.city", "city is the integer 3; it must be string", None),
        ({"city": "O"}, "$.city", 'city is "O"; its length must be at least 2', None),
        ({"city": "Oslo", "days": "3"}, "$.days", 'days is the text "3"; it must be integer', None),
        ({"city": "Oslo", "days": 0}, "$.days", "days is 0; it must be at least 1", None),
        ({"city": "Oslo", "days": 15}, "$.days", "days is 15; it must be at most 14", None),
        ({"city": "Oslo", "unit": "c"}, "$.unit", 'unit is "c"; allowed: C, F', "C"),
        ({"city": "Oslo", "unit": None}, "$.unit", "unit is null; allowed: C, F", None),
        ({"city": "Oslo", "dayz": 3}, "$.dayz", "dayz is not allowed; allowed: city, days, unit, when, places", "days"),
        ({"city": "Oslo", "when": "soon"}, "$.when", 'when is "soon"; it must have the format "date"', None),
        ({"city": "Oslo", "places": [{"lat": 1}, {}]}, "$.places[1].lat", "lat is required and missing", None),
        ({"city": "Oslo", "places": [{"lat": 1}] * 3}, "$.places", None, None),
    ],
)
def test_a_problem_names_its_place_what_was_there_and_what_is_allowed(
    arguments: Any, path: str, message: str | None, nearest: str | None
) -> None:
    found = problems(arguments)
    assert path in [place for place, *_ in found]
    assert message is None or (path, message, nearest) in found


def test_all_problems_are_told_at_once() -> None:
    found = problems({"days": 0, "unit": "K", "town": "x"})
    assert sorted(path for path, *_ in found) == ["$.city", "$.days", "$.town", "$.unit"]


@pytest.mark.parametrize("arguments", [{"city": "Oslo", "days": 3.0}, {"city": "Oslo", "places": ({"lat": 1},)}])
def test_what_means_the_same_json_is_fit(arguments: Any) -> None:
    validator = Validator("weather", WEATHER)
    assert validator.is_valid(arguments) or validator.problems(arguments) == ()


class Text(str):
    pass


class Unit(enum.Enum):
    C = "C"


def test_values_that_are_json_in_all_but_type_are_fit() -> None:
    arguments = {"city": Text("Oslo"), "unit": Unit.C, "places": collections.UserDict()}
    assert [p.path for p in Validator("weather", WEATHER).problems(arguments)] == ["$.places"]


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (b"x", "a value of type bytes is no JSON"),
        ({1, 2}, "a value of type set is no JSON"),
        (float("nan"), "nan is no JSON number"),
        (float("inf"), "inf is no JSON number"),
        ("\ud800", "the text holds half a surrogate pair, which is no character"),
        ({1: 2}, "the key 1 is no text"),
    ],
)
def test_what_json_has_no_word_for_is_a_problem_and_never_an_error(value: Any, message: str) -> None:
    validator = Validator("any", {"type": "object"})
    (problem,) = validator.problems({"x": value})
    assert (problem.path, problem.keyword, problem.message) == ("$.x", "json", message)


def test_arguments_ten_thousand_levels_deep_are_a_problem() -> None:
    deep: dict[str, Any] = {}
    for _ in range(10_000):
        deep = {"a": deep}
    assert problems(deep, {"type": "object", "additionalProperties": {"type": "integer"}})[0][1].startswith("is nested")


SHAPES = {
    "type": "object",
    "properties": {
        "shape": {
            "oneOf": [
                {
                    "title": "a circle",
                    "properties": {"kind": {"const": "circle"}, "radius": {"type": "number"}},
                    "required": ["kind", "radius"],
                },
                {"$ref": "#/$defs/square"},
            ]
        }
    },
    "$defs": {
        "square": {
            "properties": {"kind": {"const": "square"}, "side": {"type": "number"}},
            "required": ["kind", "side"],
        }
    },
}


def test_a_failed_alternative_names_the_one_that_was_meant() -> None:
    assert problems({"shape": {"kind": "square", "side": "long"}}, SHAPES) == [
        (
            "$.shape.side",
            'side is the text "long"; it must be number (meant as the alternative with kind = "square")',
            None,
        )
    ]


def test_without_a_constant_the_alternative_with_the_fewest_problems_was_meant() -> None:
    schema = {"anyOf": [{"required": ["a", "b", "c"]}, {"title": "the short form", "required": ["d"]}]}
    assert problems({}, schema) == [
        ("$.d", "d is required and missing (meant as the alternative the short form)", None)
    ]


def test_what_fits_two_alternatives_of_which_one_is_allowed_is_told_so() -> None:
    schema = {"oneOf": [{"required": ["a"]}, {"required": ["b"]}]}
    assert problems({"a": 1, "b": 2}, schema)[0][1] == (
        "fits more than one of the alternatives, of which exactly one is allowed"
    )


def test_other_keywords_are_told_in_the_validators_words() -> None:
    assert problems({"a": 1}, {"not": {"required": ["a"]}})[0][0] == "$"
    assert problems({"a": [1, 1]}, {"properties": {"a": {"uniqueItems": True}}})[0][0] == "$.a"


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "objet"},
        {"$ref": "http://127.0.0.1:9/never-fetched.json"},
        {"$ref": "#/$defs/missing"},
        {"properties": {"a": {"pattern": "("}}},
    ],
    ids=["unknown type", "remote reference", "missing reference", "bad pattern"],
)
def test_a_schema_that_cannot_be_used_is_told_with_its_tool(schema: dict[str, Any]) -> None:
    with pytest.raises(SchemaError, match="tool 'weather': the schema cannot be used") as error:
        Validator("weather", schema)
    assert error.value.tool == "weather"


def test_a_pattern_bomb_takes_no_time() -> None:
    validator = Validator("bomb", {"properties": {"a": {"pattern": "^(a+)+$"}}})
    began = time.monotonic()
    assert validator.problems({"a": "a" * 40 + "!"})[0].path == "$.a"
    assert time.monotonic() - began < 5


def test_a_schema_that_refers_to_itself_is_fine() -> None:
    schema = {"$defs": {"node": {"properties": {"next": {"$ref": "#/$defs/node"}}, "additionalProperties": False}}}
    schema |= {"$ref": "#/$defs/node"}
    assert problems({"next": {"next": {"x": 1}}}, schema)[0][0] == "$.next.next.x"


def test_at_most_fifty_problems_are_told() -> None:
    found = Validator("many", {"additionalProperties": False}).problems({f"p{i}": i for i in range(500)})
    assert len(found) == 50


def test_long_lists_of_choices_are_cut() -> None:
    ((_, message, _),) = problems({"a": "x"}, {"properties": {"a": {"enum": [f"choice {i}" for i in range(99)]}}})
    assert message.endswith("choice 11 and 87 more")


def test_a_problem_is_a_record() -> None:
    assert Problem("$", "type", "m") == Problem("$", "type", "m", None)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('{"a": 1', "unexpected end of data: line 1 column 8 (char 7)"),
        ("[1]", "a JSON object was expected, not an array"),
        ('"a"', "a JSON object was expected, not a text"),
        ("null", "a JSON object was expected, not null"),
        ("3", "a JSON object was expected, not a number"),
    ],
)
def test_text_that_is_no_object_is_told_why(text: str, why: str) -> None:
    assert parse_error(text) == why
