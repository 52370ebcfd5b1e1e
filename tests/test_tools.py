"""Declaring tools: every form that is accepted, and what is said of others."""

from __future__ import annotations

import dataclasses
import types
from typing import Annotated, Any, Literal, TypedDict

import msgspec
import pydantic
import pytest

from agentguard import SchemaError, Tool
from agentguard.tools import declare

SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}


@pytest.mark.parametrize(
    "source",
    [
        Tool(name="weather", description="The weather.", schema=SCHEMA),
        {"type": "function", "function": {"name": "weather", "description": "The weather.", "parameters": SCHEMA}},
        {"type": "function", "name": "weather", "description": "The weather.", "parameters": SCHEMA},
        {"name": "weather", "description": "The weather.", "input_schema": SCHEMA},
        {"name": "weather", "description": "The weather.", "inputSchema": SCHEMA},
        types.SimpleNamespace(name="weather", description="The weather.", inputSchema=SCHEMA),
    ],
    ids=["Tool", "OpenAI chat", "OpenAI responses", "Anthropic", "MCP dict", "MCP object"],
)
def test_tool_lists_of_every_provider_are_accepted(source: Any) -> None:
    for given in (source, [source]):
        (tool,) = declare(given)
        assert (tool.name, tool.description, tool.schema) == ("weather", "The weather.", SCHEMA)


def test_a_tool_without_a_schema_is_not_checked() -> None:
    (tool,) = declare({"name": "weather"})
    assert tool.validator is None


class Trip(pydantic.BaseModel):
    """A trip."""

    city: str
    days: int = 1


@dataclasses.dataclass
class Place:
    lat: float


class Query(TypedDict):
    q: str


class Page(msgspec.Struct):
    number: int


@pytest.mark.parametrize(
    ("source", "fit", "unfit"),
    [
        (Trip, {"city": "Oslo"}, {"city": 3}),
        (Place, {"lat": 1.5}, {"lat": "north"}),
        (Query, {"q": "x"}, {}),
        (Page, {"number": 1}, {"number": "one"}),
    ],
)
def test_models_of_every_kind_are_accepted(source: Any, fit: Any, unfit: Any) -> None:
    (tool,) = declare(source)
    assert tool.name == source.__name__
    assert tool.validator is not None
    assert tool.validator.is_valid(fit)
    assert not tool.validator.is_valid(unfit)


def test_a_typed_function_is_accepted() -> None:
    def search(
        query: Annotated[str, msgspec.Meta(min_length=1)],
        *,
        kind: Literal["web", "docs"] = "web",
        limit: int | None = None,
    ) -> list[str]:
        """Search for something.

        With more to say.
        """
        return []

    (tool,) = declare(search)
    assert (tool.name, tool.description) == ("search", "Search for something.")
    assert tool.validator is not None
    assert tool.validator.is_valid({"query": "x", "kind": "docs", "limit": None})
    for unfit in ({}, {"query": ""}, {"query": "x", "kind": "news"}, {"query": "x", "page": 1}):
        assert not tool.validator.is_valid(unfit)


def test_keyword_arguments_leave_a_function_open() -> None:
    def search(query: str, *more: str, **options: str) -> None: ...

    (tool,) = declare(search)
    assert tool.validator is not None
    assert tool.validator.is_valid({"query": "x", "page": "1"})


def test_types_that_only_pydantic_knows_are_asked_of_it() -> None:
    def book(trip: Trip, note: str = "") -> None: ...

    (tool,) = declare(book)
    assert tool.validator is not None
    assert tool.validator.is_valid({"trip": {"city": "Oslo"}})
    assert not tool.validator.is_valid({"trip": {"city": 3}})


class Unknown:
    pass


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (3, "a int declares no tool; accepted: a Tool, a tool list of OpenAI"),
        ("weather", "a str declares no tool"),
        ({"parameters": {}}, r"a tool definition without a name, with the keys \['parameters'\]"),
        ({"name": "f", "parameters": 3}, "its schema is a int; it must be an object"),
        ({"name": "f", "parameters": {"type": "objet"}}, r"the schema at \$\.type must be .*; did you mean \"object\"\?"),
        ([{"name": "f"}, {"name": "f"}], "is declared twice"),
    ],
)
def test_what_declares_no_tool_is_told_so(source: Any, message: str) -> None:
    with pytest.raises(SchemaError, match=message):
        declare(source)


def test_a_function_whose_types_cannot_be_described_is_told_so() -> None:
    def search(query: Unknown) -> None: ...

    with pytest.raises(SchemaError, match="declare it with a JSON schema"):
        declare(search)


def test_a_function_whose_hints_cannot_be_read_is_told_so() -> None:
    def search(query: Missing) -> None: ...  # type: ignore[name-defined] # noqa: F821

    with pytest.raises(SchemaError, match="its signature cannot be read"):
        declare(search)
