"""Declaring tools: every form that is accepted, and what is said of others."""

from __future__ import annotations

import asyncio
import copy
import dataclasses
import datetime
import functools
import pickle
import subprocess
import sys
import types
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, Literal, TypedDict

import msgspec
import pydantic
import pytest

from agentguard import Guard, SchemaError, Tool
from agentguard.tools import declare

SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}


class McpTool(pydantic.BaseModel):
    """Has the fields of `mcp.types.Tool`."""

    name: str
    description: str | None = None
    inputSchema: dict[str, Any]


DEFINITIONS: dict[str, Any] = {
    "Tool": Tool(name="weather", description="The weather.", schema=SCHEMA),
    "OpenAI chat completions": {
        "type": "function",
        "function": {"name": "weather", "description": "The weather.", "parameters": SCHEMA},
    },
    "OpenAI responses": {
        "type": "function",
        "name": "weather",
        "description": "The weather.",
        "parameters": SCHEMA,
        "strict": True,
    },
    "OpenAI object": types.SimpleNamespace(name="weather", description="The weather.", parameters=SCHEMA),
    "Anthropic": {"name": "weather", "description": "The weather.", "input_schema": SCHEMA},
    "MCP dict": {"name": "weather", "description": "The weather.", "inputSchema": SCHEMA},
    "MCP object": McpTool(name="weather", description="The weather.", inputSchema=SCHEMA),
    "plain": {"name": "weather", "description": "The weather.", "schema": SCHEMA},
    "MCP answer": {"tools": [{"name": "weather", "description": "The weather.", "inputSchema": SCHEMA}]},
    "MCP answer object": types.SimpleNamespace(
        tools=[McpTool(name="weather", description="The weather.", inputSchema=SCHEMA)]
    ),
}


@pytest.mark.parametrize("source", DEFINITIONS.values(), ids=DEFINITIONS)
def test_tool_lists_of_every_provider_are_accepted(source: Any) -> None:
    for given in (source, [source], (one for one in [source])):
        (tool,) = declare(given)
        assert (tool.name, tool.description, tool.schema) == ("weather", "The weather.", SCHEMA)


def test_one_list_may_hold_every_form() -> None:
    def search(query: str) -> None: ...

    assert [tool.name for tool in declare([{"name": "weather"}, search, Trip, Tool(name="read")])] == [
        "weather",
        "search",
        "Trip",
        "read",
    ]


@pytest.mark.parametrize(
    "source", [{"name": "weather"}, {"name": "weather", "parameters": None}, {"type": "custom", "name": "weather"}]
)
def test_a_tool_without_a_schema_is_not_checked(source: Any) -> None:
    assert declare(source) == (Tool(name="weather"),)
    assert declare(source)[0].validator is None


def test_a_tool_may_be_copied_and_sent_to_another_process() -> None:
    (tool,) = declare(DEFINITIONS["Tool"])
    for other in (pickle.loads(pickle.dumps(tool)), copy.deepcopy(tool)):
        assert other == tool
        assert not other.validator.is_valid({})


# ---------------------------------------------------------------- classes


class Trip(pydantic.BaseModel):
    """A trip."""

    city: str
    days: int = pydantic.Field(1, ge=1)


@dataclasses.dataclass
class Place:
    lat: float


@pydantic.dataclasses.dataclass
class Checked:
    lat: Annotated[float, pydantic.Field(le=90)]


@dataclasses.dataclass
class Visit:
    trip: Trip


class Query(TypedDict):
    q: str


class Page(msgspec.Struct):
    number: int


@pytest.mark.parametrize(
    ("source", "fit", "unfit"),
    [
        (Trip, {"city": "Oslo"}, {"city": "Oslo", "days": 0}),
        (Place, {"lat": 1.5}, {"lat": "north"}),
        (Checked, {"lat": 1.5}, {"lat": 91}),
        (Visit, {"trip": {"city": "Oslo"}}, {"trip": {"city": 3}}),
        (Query, {"q": "x"}, {}),
        (Page, {"number": 1}, {"number": "one"}),
    ],
)
def test_classes_of_every_kind_are_accepted(source: Any, fit: Any, unfit: Any) -> None:
    (tool,) = declare(source)
    assert tool.name == source.__name__
    assert tool.schema is not None
    assert "properties" in tool.schema
    assert fits(tool, fit)
    assert not fits(tool, unfit)


def fits(tool: Tool, arguments: dict[str, Any]) -> bool:
    assert tool.validator is not None
    return tool.validator.is_valid(arguments)


@pytest.mark.parametrize("source", [int, list[int].__origin__, dict])
def test_a_class_without_fields_declares_no_tool(source: Any) -> None:
    with pytest.raises(SchemaError, match="declare it with a JSON schema"):
        declare(source)


# ---------------------------------------------------------------- functions


def test_a_typed_function_is_accepted() -> None:
    def search(
        query: Annotated[str, msgspec.Meta(min_length=1)],
        *,
        kind: Literal["web", "docs"] = "web",
        limit: int | None = None,
    ) -> list[str]:
        """Search for
        something.

        With more to say.
        """
        return []

    (tool,) = declare(search)
    assert (tool.name, tool.description) == ("search", "Search for something.")
    assert fits(tool, {"query": "x", "kind": "docs", "limit": None})
    for unfit in ({}, {"query": ""}, {"query": "x", "kind": "news"}, {"query": "x", "page": 1}):
        assert not fits(tool, unfit)


async def fetch(url: str) -> str:
    return url


class Client:
    def get(self, url: str) -> str:
        return url

    @classmethod
    def make(cls, url: str) -> str:
        return url

    @staticmethod
    def of(url: str) -> str:
        return url

    def __call__(self, url: str) -> str:
        """Fetch."""
        return url


@functools.wraps(fetch)
def wrapped(*args: Any, **kwargs: Any) -> Any:
    return fetch(*args, **kwargs)


def fetch_with(session: object, url: str) -> str:
    return url


@pytest.mark.parametrize(
    ("function", "name"),
    [
        (fetch, "fetch"),
        (Client().get, "get"),
        (Client.make, "make"),
        (Client.of, "of"),
        (Client(), "Client"),
        (wrapped, "fetch"),
        (functools.partial(fetch_with, object()), "fetch_with"),
    ],
)
def test_everything_that_can_be_called_is_a_function(function: Callable[..., Any], name: str) -> None:
    (tool,) = declare(function)
    assert tool.name == name
    assert tool.schema == {
        "type": "object",
        "properties": {"url": {"type": "string"}},
        "required": ["url"],
        "additionalProperties": False,
    }


def test_the_self_of_a_method_that_is_not_bound_is_an_argument_like_any_other() -> None:
    (tool,) = declare(Client.get)
    assert tool.schema is not None
    assert tool.schema["required"] == ["self", "url"]


def test_a_parameter_that_is_not_the_models_to_give_is_left_out_by_name() -> None:
    class Context:
        pass

    def search(context: Context, query: str) -> None: ...

    with pytest.raises(SchemaError, match="declare it with a JSON schema"):
        declare(search)
    (tool,) = declare(search, leave_out=["context"])
    assert fits(tool, {"query": "x"})
    assert fits(tool, {"query": "x", "context": Context()})
    assert not fits(tool, {"context": Context()})


def test_further_positional_arguments_are_a_list_under_their_name() -> None:
    def add(first: int, /, *more: int) -> None: ...

    (tool,) = declare(add)
    assert fits(tool, {"first": 1, "more": (2, 3)})
    assert fits(tool, {"first": 1})
    for unfit in ({"first": 1, "more": ["2"]}, {"first": 1, "rest": [2]}):
        assert not fits(tool, unfit)


def test_keyword_arguments_leave_a_function_open() -> None:
    def search(query: str, **options: str) -> None: ...

    (tool,) = declare(search)
    assert fits(tool, {"query": "x", "page": "1"})
    assert not fits(tool, {"page": "1"})


def test_without_a_hint_anything_will_do_and_a_default_of_none_allows_null() -> None:
    def search(query, limit: int = None) -> None: ...  # type: ignore[no-untyped-def,assignment]  # noqa: RUF013

    (tool,) = declare(search)
    assert fits(tool, {"query": [1], "limit": None})
    assert not fits(tool, {"query": 1, "limit": "x"})


def test_what_only_pydantic_reads_is_asked_of_it() -> None:
    def book(
        trip: Trip,
        *others: Annotated[int, pydantic.Field(ge=1)],
        note: str = pydantic.Field("", max_length=3),
        code: str = pydantic.Field(max_length=3),
    ) -> None: ...

    (tool,) = declare(book)
    assert fits(tool, {"trip": {"city": "Oslo"}, "code": "abc"})
    for unfit in (
        {"trip": {"city": "Oslo"}},
        {"trip": {"city": 3}, "code": "abc"},
        {"trip": {"city": "Oslo", "days": 0}, "code": "abc"},
        {"trip": {"city": "Oslo"}, "code": "abcd"},
        {"trip": {"city": "Oslo"}, "code": "abc", "note": "long"},
        {"trip": {"city": "Oslo"}, "code": "abc", "others": [0]},
        {"trip": {"city": "Oslo"}, "code": "abc", "x": 1},
    ):
        assert not fits(tool, unfit)


def test_rules_that_only_pydantic_reads_are_found_inside_other_types() -> None:
    def pick(numbers: list[Annotated[int, pydantic.Field(ge=1)]]) -> None: ...

    (tool,) = declare(pick)
    assert fits(tool, {"numbers": [1]})
    assert not fits(tool, {"numbers": [0]})


def test_names_that_pydantic_models_keep_for_themselves_are_fine() -> None:
    def dump(model_config: Trip, json: str, copy: str, schema: str, _hidden: str) -> None: ...

    arguments = dict.fromkeys(["json", "copy", "schema", "_hidden"], "x") | {"model_config": Trip(city="x")}
    assert fits(declare(dump)[0], arguments)


def test_calls_with_python_values_fit_the_function_that_takes_them() -> None:
    def pay(amount: Decimal, day: datetime.date, at: datetime.datetime, tags: set[str], data: bytes, to: Place) -> str:
        return "paid"

    guard = Guard(tools=declare(pay))
    with guard.run() as run:
        pay = run.tool(pay)
        said = pay(Decimal("1.5"), datetime.date(2026, 1, 2), datetime.datetime(2026, 1, 2), {"a"}, b"x", Place(1.5))
        assert said == "paid"
        refused = pay(Decimal("1.5"), "soon", datetime.datetime(2026, 1, 2), {"a"}, b"x", Place(1.5))
        assert str(refused).splitlines()[:2] == [
            "The arguments of pay are not valid; nothing was run.",
            '- $.day: must have the format date, such as 2026-12-31; got "soon"',
        ]


def test_calls_with_paths_fit_the_function_that_takes_them() -> None:
    def read(path: Path, note: Annotated[str, pydantic.Field(max_length=9)] = "") -> None: ...

    assert fits(declare(read)[0], {"path": Path("a.txt")})


def test_asynchronous_functions_are_declared_by_their_parameters() -> None:
    assert fits(declare(fetch)[0], {"url": asyncio.run(fetch("x"))})


# ---------------------------------------------------------------- faults

ACCEPTED = (
    "a Tool, a tool list of OpenAI, Anthropic or MCP, {'name': ..., 'parameters': {...}}, a pydantic model, "
    "a dataclass, a TypedDict, a msgspec Struct or a typed function"
)


class Unknown:
    pass


def with_unknown_type(query: Unknown) -> None: ...


def with_unknown_type_for_pydantic(query: Unknown, limit: Annotated[int, pydantic.Field(ge=1)]) -> None: ...


def with_missing_type(query: Missing) -> None: ...  # type: ignore[name-defined] # noqa: F821


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (3, f"tool 'int': a value of this type declares no tool; accepted: {ACCEPTED}"),
        ("weather", f"tool 'str': a value of this type declares no tool; accepted: {ACCEPTED}"),
        (
            {"type": "web_search"},
            "tool '?': a definition with the keys type has no name; leave out tools that the provider runs itself; "
            f"accepted: {ACCEPTED}",
        ),
        (
            {"name": "f", "parameters": 3},
            "tool 'f': its schema is of type int; it must be an object, as JSON Schema has it",
        ),
        (
            {"name": "f", "parameters": {"type": "objet"}},
            'tool \'f\': the schema at $.type must be array or "array" or "boolean" or "integer" or "null" or "number" '
            'or "object" or "string", not string; did you mean "object"?',
        ),
        ([{"name": "f"}, {"name": "f"}], "tool 'f': is declared twice; give each tool a name of its own"),
        (
            with_missing_type,
            "tool 'with_missing_type': its signature cannot be read: name 'Missing' is not defined; declare it with a "
            "JSON schema",
        ),
    ],
)
def test_what_declares_no_tool_is_told_so(source: Any, message: str) -> None:
    with pytest.raises(SchemaError) as error:
        declare(source)
    assert str(error.value) == message


@pytest.mark.parametrize("function", [with_unknown_type, with_unknown_type_for_pydantic])
def test_a_function_whose_types_cannot_be_described_is_told_so(function: Callable[..., Any]) -> None:
    with pytest.raises(SchemaError, match=r"Unknown.*declare it with a JSON schema") as error:
        declare(function)
    assert error.value.tool == function.__name__


def test_without_pydantic_functions_are_declared_and_unknown_types_are_told() -> None:
    code = """
import sys
sys.modules["pydantic"] = None
from agentguard import SchemaError
from agentguard.tools import declare
class Unknown: pass
def search(query: str, limit: int = 3): ...
def other(query: Unknown): ...
print(declare(search)[0].schema["required"])
try:
    declare(other)
except SchemaError as error:
    print(error.fault.endswith("declare it with a JSON schema"))
"""
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert ran.stdout.split("\n")[:2] == ["['query']", "True"], ran.stderr
