"""No argument, result or tool makes the guard raise anything of its own, or the tool behave differently."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from agentguard import Content, Feedback, Guard, Policy, RunHalted
from agentguard.testing import captured_spans


class Hostile:
    """Fails at whatever is asked of it."""

    def __getattribute__(self, name: str) -> Any:
        if name in ("__class__", "__dict__"):
            return object.__getattribute__(self, name)
        raise RuntimeError(name)

    def __repr__(self) -> str:
        return "Hostile()"  # for the report of a failing example; `Mute` has none

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("eq")

    __hash__ = None  # type: ignore[assignment]

    def __bool__(self) -> bool:
        raise RuntimeError("bool")

    def __len__(self) -> int:
        raise RuntimeError("len")

    def __iter__(self) -> Any:
        raise RuntimeError("iter")


class Mute:
    """Cannot be printed."""

    def __repr__(self) -> str:
        raise RuntimeError("repr")


class BadErrorError(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text")


def circular() -> dict[str, Any]:
    value: dict[str, Any] = {}
    value["self"] = value
    return value


leaves = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(st.characters(codec=None)),
    st.binary(),
    st.datetimes(),
    st.decimals(),
    st.frozensets(st.integers()),
    st.builds(Hostile),
    st.builds(Mute),
    st.builds(object),
    st.builds(circular),
    st.just(float),
    st.just(lambda: None),
)
values = st.recursive(
    leaves,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.tuples(inner, inner)
        | st.dictionaries(st.text() | st.integers() | st.none(), inner, max_size=3)
    ),
    max_leaves=12,
)
arguments = st.dictionaries(st.text(max_size=5), values, max_size=4) | values
names = st.text(max_size=10) | st.sampled_from(["a", "b"]) | st.just(7) | st.builds(Hostile)
POLICY = Policy.from_dict({
    "tools": {"a": {"schema": {"type": "object", "properties": {"x": {"type": "integer"}}}, "ignore": ["y"]}},
    "budget": {"steps": 1_000, "warn_at": 0.5},
    "order": [{"tool": "b", "needs": "a", "same": ["x"]}],
})  # fmt: skip


def behaving(what: str, value: Any) -> Callable[..., Any]:
    def tool(name: Any, arguments: Any) -> Any:
        if what == "raise":
            raise BadErrorError
        return value

    return tool


@given(st.lists(st.tuples(names, arguments, values, st.sampled_from(["return", "raise"])), max_size=6), st.booleans())
@settings(deadline=None, max_examples=300)
def test_whatever_is_asked_or_given_back_the_host_sees_only_its_own(script: list[Any], capture: bool) -> None:
    with captured_spans() as spans:
        guard = Guard(
            POLICY, tracer_provider=spans.provider, content=Content(capture=capture), openinference=True, quiet=True
        )
        with guard.run(model="m", harness="h") as run:
            for name, asked, value, what in script:
                try:
                    result = run.wrap(behaving(what, value))(name, asked)
                except (BadErrorError, RunHalted):
                    continue
                assert result is value or isinstance(result, Feedback)
        assert len(run.trajectory.steps) == len(script)


@given(st.lists(st.tuples(names, arguments, values), max_size=4))
@settings(deadline=None, max_examples=100)
def test_the_same_holds_of_asynchronous_tools(script: list[Any]) -> None:
    async def main() -> None:
        async with Guard(POLICY, quiet=True).run(model="m", harness="h") as run:
            for name, asked, value in script:

                async def tool(name: Any, arguments: Any, value: Any = value) -> Any:
                    return value

                try:
                    result = await run.wrap(tool)(name, asked)
                except RunHalted:
                    continue
                assert result is value or isinstance(result, Feedback)

    asyncio.run(main())
