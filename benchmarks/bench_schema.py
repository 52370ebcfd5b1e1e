"""What validating arguments costs against `is_valid` of jsonschema-rs: `python -m benchmarks.bench_schema`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import jsonschema_rs

from agentguard.schema import Validator
from benchmarks.bench_live import MEDIUM_SCHEMA, SMALL_SCHEMA, medium, small
from benchmarks.paired import Case, Work, main

TARGET = 1.2
RULE = {
    "type": "object",
    "properties": {
        "op": {"oneOf": [{"const": "and"}, {"const": "or"}]},
        "of": {"type": "array", "items": {"$ref": "#/$defs/rule"}},
        "field": {"type": "string"},
        "value": {"type": ["string", "number"]},
    },
    "required": ["op"],
    "additionalProperties": False,
}
LARGE_SCHEMA = {
    "type": "object",
    "$defs": {"rule": RULE},
    "properties": {
        "filter": {"$ref": "#/$defs/rule"},
        "range": {"type": "array", "prefixItems": [{"type": "integer"}, {"type": "integer"}], "items": False},
        "since": {"type": "string", "format": "date-time"},
        "mail": {"type": "string", "format": "email"},
        "page": {"type": "string", "format": "uri"},
        "id": {"type": "string", "format": "uuid"},
    },
    "dependentRequired": {"since": ["range"]},
    "required": ["filter"],
}
FLAT_SCHEMA = {**LARGE_SCHEMA, "$defs": {"rule": {**RULE, "properties": {**RULE["properties"], "of": {}}}}}
"""The same without recursion."""


def large(i: int) -> dict[str, Any]:
    leaf = {"op": "and", "field": "deep", "value": "x" * 10}
    return {
        "filter": {"op": "and", "of": [{"op": "or", "field": f"f{n}", "value": n, "of": [leaf]} for n in range(6)]},
        "range": [1, i],
        "since": "2026-01-01T00:00:00Z",
        "mail": "a@example.org",
        "page": "https://example.org/a",
        "id": "123e4567-e89b-12d3-a456-426614174000",
    }


def case(name: str, schema: dict[str, Any], arguments: Any, *, quick: bool, target: float | None = TARGET) -> Case:
    validator, bare = Validator(name, schema), jsonschema_rs.validator_for(schema, validate_formats=True).is_valid
    ours = validator.quick_test if quick else validator.is_valid
    return Case(name=name, work=_asked(ours, arguments), reference=_asked(bare, arguments), target=target)


def _asked(test: Any, arguments: Any) -> Work:
    return lambda: test(arguments)


def _all_problems() -> Case:
    validator = Validator("weather", MEDIUM_SCHEMA)
    wrong = {**medium(1), "limit": "25", "tag": []}
    bare = jsonschema_rs.validator_for(MEDIUM_SCHEMA, validate_formats=True).iter_errors
    return Case(
        name="all problems in words", work=lambda: validator.problems(wrong), reference=lambda: list(bare(wrong))
    )


def cases() -> list[Case]:
    """Return the step that the guard takes for each call, with the target, and what lies beyond it without."""
    return [
        case("small", SMALL_SCHEMA, small(1), quick=True),
        case("medium", MEDIUM_SCHEMA, medium(1), quick=True),
        case("large", FLAT_SCHEMA, large(1), quick=True),
        case("large, recursive schema", LARGE_SCHEMA, large(1), quick=True, target=None),
        case("invalid medium", MEDIUM_SCHEMA, {**medium(1), "limit": "25"}, quick=True),
        case("small, never raising", SMALL_SCHEMA, small(1), quick=False, target=None),
        _all_problems(),
    ]


if __name__ == "__main__":
    main(cases())
