"""Arguments against schemas: which fit, and what is said of those that do not."""

from __future__ import annotations

import collections
import dataclasses
import datetime
import decimal
import enum
import json
import subprocess
import sys
import time
import types
import uuid
from pathlib import Path
from typing import Any

import msgspec
import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentguard import SchemaError
from agentguard.schema import Problem, Validator

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
KNOWN = "city, days, unit, when, places"


def problems(schema: dict[str, Any], arguments: Any) -> list[Problem]:
    validator = Validator("weather", schema)
    assert not validator.is_valid(arguments)
    return list(validator.problems(arguments))


def of(rule: dict[str, Any], value: Any) -> list[Problem]:
    return problems({"properties": {"a": rule}}, {"a": value})


def messages(found: list[Problem]) -> list[tuple[str, str]]:
    return [(problem.path, problem.message) for problem in found]


# ---------------------------------------------------------------- what is said


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({}, Problem("$.city", "required", "is required and missing; allowed: string", allowed="string")),
        (
            {"city": 3},
            Problem("$.city", "type", "must be string, not integer", found="3", allowed="string", nearest='"3"'),
        ),
        (
            {"city": "O"},
            Problem(
                "$.city",
                "minLength",
                "must have at least 2 characters, not 1",
                found='"O"',
                allowed="at least 2 characters",
            ),
        ),
        (
            {"city": "Oslo", "days": "3"},
            Problem("$.days", "type", "must be integer, not string", found='"3"', allowed="integer", nearest="3"),
        ),
        (
            {"city": "Oslo", "days": 0},
            Problem("$.days", "minimum", "must be at least 1", found="0", allowed="at least 1", nearest="1"),
        ),
        (
            {"city": "Oslo", "days": 15},
            Problem("$.days", "maximum", "must be at most 14", found="15", allowed="at most 14", nearest="14"),
        ),
        (
            {"city": "Oslo", "unit": "c"},
            Problem("$.unit", "enum", 'must be one of "C", "F"', found='"c"', allowed='"C", "F"', nearest='"C"'),
        ),
        (
            {"city": "Oslo", "dayz": 3},
            Problem(
                "$.dayz",
                "additionalProperties",
                f"is not a known property; known: {KNOWN}",
                allowed=KNOWN,
                nearest="days",
            ),
        ),
        (
            {"city": "Oslo", "when": "soon"},
            Problem(
                "$.when",
                "format",
                "must have the format date, such as 2026-12-31",
                found='"soon"',
                allowed="date, such as 2026-12-31",
            ),
        ),
        (
            {"city": "Oslo", "places": [{"lat": 1}, {}]},
            Problem("$.places[1].lat", "required", "is required and missing; allowed: number", allowed="number"),
        ),
    ],
)
def test_a_problem_names_its_place_what_was_there_and_what_is_allowed(arguments: Any, problem: Problem) -> None:
    assert problems(WEATHER, arguments) == [problem]


def test_all_problems_are_told_at_once() -> None:
    found = problems(WEATHER, {"days": 0, "unit": "K", "town": "x"})
    assert sorted(problem.path for problem in found) == ["$.city", "$.days", "$.town", "$.unit"]


def test_a_missing_property_names_the_one_that_was_meant_to_be_it() -> None:
    assert messages(problems({"properties": {"city": {}}, "required": ["city"]}, {"ctiy": "Oslo"})) == [
        ("$.city", "is required and missing; ctiy was given")
    ]


@pytest.mark.parametrize(
    ("rule", "value", "message"),
    [
        ({"const": {"x": 1}}, 2, 'must be {"x":1}'),
        ({"enum": [1, 2]}, True, "must be one of 1, 2"),
        ({"type": ["string", "null"]}, [], "must be null or string, not array"),
        ({"exclusiveMinimum": 9}, 9, "must be more than 9"),
        ({"exclusiveMaximum": 9}, 9, "must be less than 9"),
        ({"multipleOf": 0.5}, 1.3, "must be a multiple of 0.5"),
        ({"maxLength": 1}, "abc", "must have at most 1 character, not 3"),
        ({"minItems": 2}, [1], "must have at least 2 items, not 1"),
        ({"maxItems": 0}, [1], "must have at most 0 items, not 1"),
        ({"minProperties": 2}, {"b": 1}, "must have at least 2 properties, not 1"),
        ({"maxProperties": 1}, {"b": 1, "c": 2}, "must have at most 1 property, not 2"),
        ({"uniqueItems": True}, [1, 1], "must not hold the same item twice"),
        ({"pattern": "^x"}, "ax", "must be text that matches ^x"),
        ({"format": "hostname"}, "-", "must have the format hostname, such as example.org"),
        ({"contains": {"type": "string"}}, [1], "must hold at least 1 items that are string"),
        (
            {"contains": {"minimum": 1}, "minContains": 2, "maxContains": 3},
            [1],
            "must hold at least 2 items of the kind that the schema asks for, at most 3",
        ),
        ({"not": {"type": "null"}}, None, 'must not fit {"type":"null"}'),
        ({"propertyNames": {"pattern": "^x"}}, {"b": 1}, "has a property whose name must be text that matches ^x"),
        ({"unevaluatedItems": False}, [1], "does not fit the keyword unevaluatedItems"),
    ],
)
def test_every_keyword_has_words_of_its_own(rule: dict[str, Any], value: Any, message: str) -> None:
    assert messages(of(rule, value)) == [("$.a", message)]


@pytest.mark.parametrize(
    ("schema", "arguments", "found"),
    [
        ({"properties": {"a": False}}, {"a": 1}, ("$.a", "falseSchema", "is not allowed here")),
        ({"dependentRequired": {"a": ["b"]}}, {"a": 1}, ("$.b", "dependentRequired", "is required and missing")),
        (
            {"unevaluatedProperties": False, "allOf": [{"properties": {"city": {}}}, {"$ref": "#/$defs/day"}],
             "$defs": {"day": {"if": {"required": ["x"]}, "then": {"properties": {"day": {}}}}}},
            {"town": 1},
            ("$.town", "unevaluatedProperties", "is not a known property; known: city, day"),
        ),
        (
            {"additionalProperties": False},
            {"a": 1},
            ("$", "additionalProperties", "must have no properties"),
        ),
        (
            {"$schema": "http://json-schema.org/draft-07/schema#",
             "properties": {"a": {"items": [{}], "additionalItems": False}}},
            {"a": [1, 2]},
            ("$.a", "additionalItems", "must have at most 1 items"),
        ),
        ({"properties": {"a b": {"type": "null"}}}, {"a b": 1}, ('$["a b"]', "type", "must be null, not integer")),
        ({"type": "object"}, [], ("$", "type", "must be object, not array")),
    ],
)  # fmt: skip
def test_rules_about_properties_and_whole_arguments(
    schema: dict[str, Any], arguments: Any, found: tuple[str, str, str]
) -> None:
    assert [(one.path, one.keyword, one.message) for one in problems(schema, arguments)] == [found]


@pytest.mark.parametrize(
    ("types", "value", "nearest"),
    [
        ("integer", "3", "3"),
        ("integer", "3.5", None),
        ("number", "3", "3"),
        ("boolean", "True", "true"),
        ("array", '["x"]', '["x"]'),
        ("object", "not json", None),
        ("string", 3.5, '"3.5"'),
        ("string", True, None),
        ("integer", "\ud800", None),
    ],
)
def test_a_value_that_only_needs_another_type_is_offered_in_it(types: str, value: Any, nearest: str | None) -> None:
    assert [problem.nearest for problem in of({"type": types}, value)] == [nearest]


@pytest.mark.parametrize(
    ("options", "value", "nearest"),
    [
        (["metric", "imperial"], "Metrik", '"metric"'),
        ([1, 2, 3], "3", "3"),
        (["metric"], [], None),
        (["metric"], "x" * 1_000, None),
        ([None, "on"], "onn", '"on"'),
    ],
)
def test_the_nearest_option_is_offered(options: list[Any], value: Any, nearest: str | None) -> None:
    assert [problem.nearest for problem in of({"enum": options}, value)] == [nearest]


def test_long_lists_and_values_are_cut() -> None:
    (problem,) = of({"enum": [f"choice {i}" for i in range(99)]}, "x" * 1_000)
    assert problem.message.endswith('"choice 11" and 87 more')
    assert problem.found is not None
    assert len(problem.found) < 310


def test_at_most_fifty_problems_are_told() -> None:
    assert (
        len(problems({"properties": {"a": {}}, "additionalProperties": False}, {f"p{i}": i for i in range(500)})) == 50
    )


# ---------------------------------------------------------------- alternatives

SHAPES = {
    "properties": {"shape": {"oneOf": [{"$ref": "#/$defs/circle"}, {"$ref": "#/$defs/square"}]}},
    "$defs": {
        "circle": {
            "type": "object",
            "properties": {"kind": {"const": "circle"}, "radius": {"type": "number"}},
            "required": ["kind", "radius"],
            "additionalProperties": False,
        },
        "square": {
            "type": "object",
            "title": "Square",
            "properties": {"kind": {"const": "square"}, "side": {"type": "number", "minimum": 1}},
            "required": ["kind", "side"],
        },
    },
}


@pytest.mark.parametrize(
    ("shape", "told"),
    [
        ({"kind": "square", "side": 0}, [("$.shape.side", "must be at least 1; taken as Square")]),
        (
            {"kind": "circle", "raduis": 1},
            [
                ("$.shape.radius", "is required and missing; raduis was given; "
                                   'allowed: number; taken as the one with kind = "circle"'),
                ("$.shape.raduis", 'is not a known property; known: kind, radius; taken as the one with '
                                   'kind = "circle"'),
            ],
        ),
        ({"kind": "sqare", "side": 2}, [("$.shape.kind", 'must be one of "circle", "square"')]),
        ({"side": 2}, [("$.shape.kind", 'is required and missing; allowed: "circle", "square"')]),
        (3, [("$.shape", "must be object, not integer")]),
    ],
)  # fmt: skip
def test_a_failed_alternative_names_the_one_that_was_meant(shape: Any, told: list[tuple[str, str]]) -> None:
    assert messages(problems(SHAPES, {"shape": shape})) == told


def test_a_misspelt_tag_is_offered_the_nearest() -> None:
    assert [one.nearest for one in problems(SHAPES, {"shape": {"kind": "sqare"}})] == ['"square"']


def test_tags_may_be_enums_and_kinds_may_share_one() -> None:
    branches = [
        {"properties": {"op": {"enum": ["eq", "ne"]}, "value": {"type": "string"}}, "required": ["op", "value"]},
        {"properties": {"op": {"enum": ["in"]}, "value": {"type": "array"}}, "required": ["op", "value"]},
    ]
    assert messages(of({"anyOf": branches}, {"op": "in", "value": 3})) == [
        ("$.a.value", "must be array, not integer; taken as alternative 2")
    ]
    assert [one.keyword for one in of({"anyOf": branches}, {"op": "like", "value": 3})] == ["enum"]


def test_without_a_tag_the_alternative_with_the_fewest_problems_was_meant() -> None:
    branches = [{"required": ["b", "c", "d"]}, {"title": "the short form", "required": ["e"]}]
    assert messages(of({"anyOf": branches}, {})) == [
        ("$.a.e", "is required and missing; taken as the short form")
    ]  # fmt: skip


def test_among_as_many_problems_the_deeper_ones_are_nearer() -> None:
    deep = {"properties": {"x": {"properties": {"y": {"type": "string"}}}}, "required": ["x"]}
    assert messages(of({"oneOf": [{"required": ["z"]}, deep]}, {"x": {"y": 3}})) == [
        ("$.a.x.y", "must be string, not integer; taken as alternative 2")
    ]


def test_an_optional_model_is_taken_as_the_model() -> None:
    schema = {"anyOf": [{"type": "object", "required": ["city"]}, {"type": "null"}]}
    assert messages(of(schema, {})) == [("$.a.city", "is required and missing")]


@pytest.mark.parametrize(
    ("branches", "value", "message", "nearest"),
    [
        ([{"type": "string"}, {"type": "null"}], 3, "must be string or null, not integer", '"3"'),
        ([{"const": "a"}, {"enum": ["b", "c"]}], "d", 'must be one of "a", "b", "c"', None),
        ([{"type": "integer"}, {"const": "auto"}], "atuo", 'must be integer or "auto", not string', '"auto"'),
        ([False, False], 1, "must be something else, not integer", None),
    ],
)
def test_a_value_of_another_kind_is_told_all_the_kinds(
    branches: list[Any], value: Any, message: str, nearest: str | None
) -> None:
    (problem,) = of({"anyOf": branches}, value)
    assert (problem.message, problem.nearest) == (message, nearest)


def test_alternatives_within_alternatives_name_the_innermost() -> None:
    inner = {"oneOf": [{"title": "Left", "required": ["l", "m"]}, {"title": "Right", "required": ["r"]}]}
    outer = {"oneOf": [{"title": "Outer", "required": ["x", "y", "z"]}, inner]}
    assert messages(of(outer, {})) == [("$.a.r", "is required and missing; taken as Right")]


def test_what_fits_more_than_one_alternative_is_told_which() -> None:
    branches = [{"title": "Whole", "type": "integer"}, {"minimum": 2}, {"$ref": "#/$defs/big"}]
    schema = {"properties": {"a": {"oneOf": branches}}, "$defs": {"big": {"minimum": 99}}}
    assert messages(problems(schema, {"a": 3})) == [
        ("$.a", "must fit exactly one alternative, not 2: Whole and alternative 2")
    ]


def test_a_definition_gives_its_name_to_an_alternative() -> None:
    schema = {
        "properties": {"a": {"oneOf": [{"$ref": "#/$defs/Near"}, {"$ref": "#/$defs/Far"}]}},
        "$defs": {"Near": {"required": ["b"]}, "Far": {"required": ["c", "d"]}},
    }
    assert messages(problems(schema, {"a": {}})) == [("$.a.b", "is required and missing; taken as Near")]


# ---------------------------------------------------------------- values that are not plain JSON


class Text(str):
    pass


class Whole(int):
    pass


class Unit(enum.Enum):
    C = "C"


class Place(pydantic.BaseModel):
    lat: float


@dataclasses.dataclass
class Spot:
    lat: Whole


class Point(msgspec.Struct):
    lat: float


class Column:
    """As arrays do it."""

    dtype = "float64"

    def tolist(self) -> list[float]:
        return [1.5]


@pytest.mark.parametrize(
    ("rule", "value"),
    [
        ({"type": "integer"}, 3.0),
        ({"type": "integer"}, 2**70),
        ({"type": "integer"}, Whole(3)),
        ({"type": "number"}, decimal.Decimal("1.5")),
        ({"type": "string", "maxLength": 4}, Text("Oslo")),
        ({"enum": ["C"]}, Unit.C),
        ({"type": "object", "required": ["k"]}, types.MappingProxyType({"k": 1})),
        ({"type": "object", "required": ["k"]}, {Text("k"): 1}),
        ({"type": "array", "items": {"type": "integer"}}, (1, 2)),
        ({"type": "array"}, collections.namedtuple("Pair", "x y")(1, 2)),
        ({"type": "array", "items": {"type": "string"}}, {"a", "b"}),
        ({"type": "string", "format": "date"}, datetime.date(2026, 1, 2)),
        ({"type": "string", "format": "date-time"}, datetime.datetime(2026, 1, 2, 3, 4)),
        ({"type": "string", "format": "time"}, datetime.time(3, 4)),
        ({"type": "string", "format": "date-time"}, datetime.datetime(2026, 1, 2, tzinfo=datetime.UTC)),
        ({"type": "string", "format": "uuid"}, uuid.UUID(int=7)),
        ({"type": "string", "format": "binary"}, b"x"),
        ({"type": "string", "contentEncoding": "base64"}, bytearray(b"x")),
        ({"type": "object", "required": ["lat"]}, Place(lat=1)),
        ({"type": "object", "required": ["lat"]}, Spot(Whole(1))),
        ({"type": "object", "required": ["lat"]}, Point(1.5)),
        ({"type": "array", "items": {"type": "number"}}, Column()),
        ({"type": "string", "maxLength": 5}, Path("a.txt")),
        ({"type": "string"}, "Ω"),
    ],
    ids=lambda value: f"{type(value).__name__}",
)
def test_what_means_the_same_json_fits(rule: dict[str, Any], value: Any) -> None:
    validator = Validator("t", {"properties": {"a": rule}})
    assert validator.is_valid({"a": value})
    assert validator.problems({"a": value}) == ()


class Unreadable(collections.UserDict[str, Any]):
    def items(self) -> Any:
        raise RuntimeError("no")


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (b"x", "is of type bytes, which is no JSON"),
        (object(), "is of type object, which is no JSON"),
        (Spot(object()), "is of type Spot, which is no JSON"),  # type: ignore[arg-type]
        (Unreadable(), "is of type Unreadable and cannot be read"),
        (float("nan"), "is nan, which is no JSON number"),
        (float("-inf"), "is -inf, which is no JSON number"),
        (decimal.Decimal("sNaN"), "is sNaN, which is no JSON number"),
        (decimal.Decimal("1e1000000"), "is a number of more than 1000 digits"),
        (1 << 10_000, "is a number of more than 1000 digits"),
        ({1: 2}, "has a key of type int; keys are texts"),
    ],
)
def test_what_json_has_no_word_for_is_a_problem_and_never_an_error(value: Any, message: str) -> None:
    assert of({"type": "string", "pattern": "x"}, value) == [Problem("$.a", "json", message)]


def test_half_a_surrogate_pair_is_a_problem_where_the_text_is_looked_into() -> None:
    assert of({"pattern": "x"}, "\ud800") == [
        Problem("$.a", "json", "holds half a surrogate pair, which is no character")
    ]


@pytest.mark.parametrize("value", [object(), b"x", float("nan"), {1: 2}])
def test_where_the_schema_says_nothing_any_value_will_do(value: Any) -> None:
    validator = Validator("t", {"properties": {"city": {"type": "string"}}})
    for arguments in ({"context": value, "city": "Oslo"}, {"context": value, "city": Text("Oslo")}):
        assert validator.is_valid(arguments)
        assert validator.problems(arguments) == ()
    assert messages(list(validator.problems({"context": value, "city": 3}))) == [
        ("$.city", "must be string, not integer")
    ]


def test_where_the_schema_only_names_a_property_any_value_will_do() -> None:
    schema = {"properties": {"context": {}, "city": {"type": "string"}}, "additionalProperties": False}
    for value in (object(), b"x", {1: 2}, {"\ud800": 1}):
        assert Validator("t", schema).is_valid({"context": value, "city": "Oslo"})
    assert messages(problems(schema, {"context": {"\ud800": 1}, 1: 2, "city": 3})) == [
        ("$.city", "must be string, not integer")
    ]
    assert messages(problems(schema, {"city": "Oslo", 1: 2})) == [("$", "has a key of type int; keys are texts")]
    assert messages(problems(schema, {"city": "Oslo", "\ud800": 2})) == [
        ("$", "has a key with half a surrogate pair, which is no character")
    ]


def test_arguments_that_hold_themselves_are_a_problem() -> None:
    arguments: dict[str, Any] = {}
    arguments["a"] = arguments
    schema = {"$defs": {"node": {"properties": {"a": {"$ref": "#/$defs/node"}}}}, "$ref": "#/$defs/node"}
    assert problems(schema, arguments) == [Problem("$.a", "json", "holds itself")]


def test_more_values_than_anyone_means_are_a_problem() -> None:
    found = of({"type": "string"}, [None] * 500_001)
    assert [problem.message for problem in found] == [
        "holds more than 500000 values in all",
    ]


any_text = st.text(st.characters(codec=None))
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | any_text,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(any_text | st.integers(), inner, max_size=4),
    max_leaves=10,
)
odd_values = json_values | st.binary() | st.datetimes() | st.decimals() | st.sets(st.integers()) | st.builds(object)
names = st.sampled_from(["city", "days", "unit", "when", "places", "town"]) | any_text | st.integers()


@given(st.dictionaries(names, odd_values))
def test_there_are_problems_exactly_when_the_arguments_do_not_fit(arguments: dict[Any, Any]) -> None:
    validator = Validator("weather", WEATHER)
    found = validator.problems(arguments)
    assert validator.is_valid(arguments) is (found == ())
    assert json.loads(msgspec.json.encode(found)) is not None


def test_no_message_holds_an_argument() -> None:
    secret = "s3cr3t-value"
    found = problems(
        WEATHER, {"city": [secret], "days": secret, "when": secret, "unit": secret, "places": {"a": secret}}
    )
    assert [problem.path for problem in found if secret in problem.message] == []
    assert len(found) == 5


# ---------------------------------------------------------------- schemas


@pytest.mark.parametrize(
    ("schema", "fault"),
    [
        ({"properties": {"a": {"type": "strng"}}}, "the schema at $.properties.a.type must be array or "),
        ({"properties": []}, "the schema at $.properties must be object, not array; mend it, or declare the tool "
                             "without a schema"),
        ({"required": "city"}, "the schema at $.required must be array, not string; mend it"),
        ({"properties": {"a": {"pattern": "("}}}, "the schema at $.properties.a.pattern must have the format regex"),
        ({"$ref": "http://127.0.0.1:9/x.json"}, "a reference of the schema leads nowhere (Resource "),
        ({"$ref": "file:///etc/hostname"}, "a reference of the schema leads nowhere (Resource "),
        ({"$ref": "#/$defs/missing"}, "a reference of the schema leads nowhere (Pointer "),
        ({"$schema": "http://127.0.0.1:9/meta"}, "a reference of the schema leads nowhere (Unknown meta-schema"),
        ({"a": object()}, "the schema at $.a is of type object, which is no JSON; mend it"),
        ({"enum": list(range(600_000))}, "the schema at $.enum holds more than 500000 values in all"),
    ],
)  # fmt: skip
def test_a_schema_that_cannot_be_used_is_told_with_its_place(schema: dict[str, Any], fault: str) -> None:
    with pytest.raises(SchemaError) as error:
        Validator("weather", schema)
    assert error.value.tool == "weather"
    assert error.value.fault.startswith(fault)


def test_a_schema_may_be_any_mapping_and_hold_enums_and_tuples() -> None:
    schema = types.MappingProxyType({"required": ("unit",), "properties": {"unit": {"enum": (Unit.C,)}}})
    assert Validator("t", schema).is_valid({"unit": "C"})
    assert Validator("t", schema).schema is schema


def test_a_schema_may_name_another_draft() -> None:
    draft_7 = {"$schema": "http://json-schema.org/draft-07/schema#", "items": [{"type": "string"}]}
    assert not Validator("t", draft_7).is_valid([1])
    assert Validator("t", draft_7).is_valid(["a", 1])


@pytest.mark.parametrize("pattern", ["^(a+)+$", r"^(a|aa)+\1$", r"^(?=(a+)+$).*!!$"])
def test_a_pattern_bomb_takes_no_time(pattern: str) -> None:
    validator = Validator("bomb", {"properties": {"a": {"pattern": pattern}}})
    began = time.process_time()
    assert [one.path for one in validator.problems({"a": "a" * 60 + "!"})] == ["$.a"]
    assert time.process_time() - began < 2


def test_a_pattern_may_look_around() -> None:
    validator = Validator("mail", {"properties": {"to": {"pattern": r"^(?!\.)(?!.*\.\.)[a-z.]+@[a-z.]+$"}}})
    assert validator.is_valid({"to": "a.b@c.org"})
    assert not validator.is_valid({"to": "a..b@c.org"})


NODE = {
    "type": "object",
    "properties": {"next": {"$ref": "#"}, "value": {"type": "integer"}},
    "additionalProperties": False,
}


def nested(levels: int, innermost: Any) -> Any:
    value = innermost
    for _ in range(levels):
        value = {"next": value}
    return value


def test_a_schema_may_refer_to_itself() -> None:
    assert Validator("t", NODE).is_valid(nested(200, {"value": 3}))
    assert messages(problems(NODE, nested(2, {"value": "3"}))) == [("$.next.next.value", "must be integer, not string")]


@pytest.mark.parametrize("levels", [300, 10_000, 200_000])
def test_arguments_of_any_depth_are_harmless(levels: int) -> None:
    assert messages(problems(NODE, nested(levels, {}))) == [
        ("$.next.next.next.next.next", "is nested more than 100 levels deep")
    ]
    assert Validator("t", {"type": "object"}).is_valid(nested(levels, {}))


def test_a_deep_argument_does_not_end_a_thread_with_a_small_stack() -> None:
    code = """
import threading
from agentguard.schema import Validator
from tests_of_depth import NODE, nested
def judge():
    assert not Validator("t", NODE).is_valid(nested(2_000, {}))
    assert Validator("t", NODE).problems(nested(90, {"value": "x"}))
threading.stack_size(512 * 1024)
thread = threading.Thread(target=judge)
thread.start()
thread.join()
print("alive")
"""
    code = code.replace("from tests_of_depth import NODE, nested", f"NODE = {NODE!r}\n{_NESTED}")
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (ran.stdout.strip(), ran.returncode) == ("alive", 0), ran.stderr


_NESTED = """
def nested(levels, value):
    for _ in range(levels):
        value = {"next": value}
    return value
"""


def doubling(levels: int) -> dict[str, Any]:
    steps = {f"d{i}": {"anyOf": [{"$ref": f"#/$defs/d{i + 1}"}] * 2} for i in range(levels)}
    return {"properties": {"a": {"$ref": "#/$defs/d0"}}, "$defs": {**steps, f"d{levels}": {"type": "string"}}}


def test_references_that_multiply_without_end_are_refused() -> None:
    with pytest.raises(SchemaError, match="has more than 1000000 parts when its references are followed"):
        Validator("t", doubling(60))


TOO_MANY = Problem("$", "schema", "does not fit; there are too many alternatives to say where")


def test_references_that_multiply_are_not_all_tried_for_the_sake_of_words() -> None:
    assert problems(doubling(15), {"a": 1}) == [TOO_MANY]


def test_alternatives_that_multiply_with_the_depth_of_arguments_are_not_all_tried() -> None:
    schema = {"type": "object", "properties": {"next": {"anyOf": [{"$ref": "#"}, {"$ref": "#"}]}}}
    assert problems(schema, nested(30, 1)) == [TOO_MANY]
    assert [one.path for one in problems(schema, nested(3, 1))] == ["$.next.next.next"]


@pytest.mark.parametrize(
    "schema",
    [
        {"$anchor": "here", "properties": {"next": {"$ref": "#here"}}, "additionalProperties": False},
        {"$dynamicAnchor": "node", "properties": {"next": {"$dynamicRef": "#node"}}, "additionalProperties": False},
        {"$id": "https://x.org/n", "properties": {"next": {"$ref": "https://x.org/n"}}, "additionalProperties": False},
        {"$ref": "#/$defs/a~1b", "$defs": {"a/b": {"properties": {"next": {"$ref": "#"}},
                                                   "additionalProperties": False}}},
    ],
)  # fmt: skip
def test_references_of_every_kind_are_followed_and_bounded(schema: dict[str, Any]) -> None:
    validator = Validator("t", schema)
    assert not validator.is_valid(nested(2, {"x": 1}))
    assert [one.path for one in validator.problems(nested(2, {"x": 1}))] == ["$.next.next.x"]
    assert not validator.is_valid(nested(100_000, {}))


def test_the_quick_test_is_the_validators_own_where_depth_is_bounded_by_the_schema() -> None:
    assert Validator("t", WEATHER).quick_test.__self__ is not None  # type: ignore[attr-defined]
    with pytest.raises(TypeError):
        Validator("t", NODE).quick_test(nested(300, {}))
