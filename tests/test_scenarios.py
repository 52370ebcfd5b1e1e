"""What goes wrong in agents, and what other guards got wrong about it: each scenario sync and async."""

from __future__ import annotations

import asyncio
import contextlib
import datetime as dt
import math
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from typing import Any

import pytest

from agentguard import Action, Feedback, Guard, Policy, Run, RunHalted
from agentguard.testing import FakeClock

WEATHER = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
    "required": ["city"],
    "additionalProperties": False,
}


class Agent:
    """Calls tools through a guarded dispatcher, synchronous or not, and remembers what really ran."""

    def __init__(self, run: Run, tool: Callable[[str, Any], Any], *, is_async: bool) -> None:
        self.ran: list[str] = []
        self.is_async = is_async

        def dispatch(name: str, arguments: Any) -> Any:
            self.ran.append(name)
            return tool(name, arguments)

        async def dispatch_async(name: str, arguments: Any) -> Any:
            await asyncio.sleep(0)
            return dispatch(name, arguments)

        self.dispatch = run.wrap(dispatch_async if is_async else dispatch)

    def __call__(self, name: str, arguments: Any = None) -> Any:
        """Return the result, or the halt that ended the run."""
        try:
            value = self.dispatch(name, {} if arguments is None else arguments)
            return asyncio.run(value) if self.is_async else value
        except RunHalted as halt:
            return halt


@pytest.fixture(params=[False, True], ids=["sync", "async"])
def is_async(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


def same(name: str, arguments: Any) -> str:
    return "same"


def counting() -> Callable[[str, Any], str]:
    counter = iter(range(10**9))
    return lambda name, arguments: f"result {next(counter)}"


@contextlib.contextmanager
def agent(tool: Callable[[str, Any], Any], *, is_async: bool, **policy: Any) -> Iterator[Agent]:
    with Guard(Policy.from_dict(policy), quiet=True).run(model="m", harness="h") as run:
        yield Agent(run, tool, is_async=is_async)


def refused(value: Any) -> bool:
    return isinstance(value, (Feedback, RunHalted))


# --- loops ------------------------------------------------------------------------------------------------


def test_a_back_to_back_repeat_is_refused_at_the_third_call(is_async: bool) -> None:
    with agent(same, is_async=is_async) as call:
        assert [refused(call("search", {"q": 1})) for _ in range(3)] == [False, False, True]


def test_test_edit_test_is_never_refused(is_async: bool) -> None:
    with agent(counting(), is_async=is_async) as call:
        values = [call(*step) for i in range(11) for step in (("run_tests", {}), ("edit", {"patch": i}))]
    assert not any(refused(value) for value in values)


def test_twelve_pages_are_never_refused(is_async: bool) -> None:
    with agent(counting(), is_async=is_async) as call:
        assert not any(refused(call("list", {"page": page})) for page in range(12))


def test_polling_with_changing_results_is_never_refused(is_async: bool) -> None:
    with agent(counting(), is_async=is_async) as call:
        assert not any(refused(call("status", {"job": 7})) for _ in range(12))


def test_polling_with_equal_results_is_refused(is_async: bool) -> None:
    with agent(same, is_async=is_async) as call:
        assert [refused(call("status", {"job": 7})) for _ in range(4)] == [False, False, True, True]


def test_key_order_makes_no_other_call_at_the_top(is_async: bool) -> None:
    with agent(same, is_async=is_async) as call:
        values = [call("f", {"a": 1, "b": 2}), call("f", {"b": 2, "a": 1}), call("f", {"a": 1, "b": 2})]
    assert [refused(value) for value in values] == [False, False, True]


def test_key_order_makes_no_other_call_below_the_top(is_async: bool) -> None:
    with agent(same, is_async=is_async) as call:
        one, other = {"x": {"a": [{"p": 1, "q": 2}], "b": 2}}, {"x": {"b": 2, "a": [{"q": 2, "p": 1}]}}
        assert [refused(call("f", arguments)) for arguments in (one, other, one)] == [False, False, True]


def test_one_true_and_the_text_one_are_three_arguments(is_async: bool) -> None:
    with agent(same, is_async=is_async) as call:
        assert not any(refused(call("f", {"v": value})) for value in (1, True, "1", 1, True, "1"))


@pytest.mark.parametrize(
    "value",
    [
        math.nan,
        math.inf,
        "\ud800",
        {3, 1, 2},
        b"\xff\x00",
        dt.datetime(2026, 12, 1, tzinfo=dt.UTC),
        Decimal("1.50"),
        2**70,
    ],
    ids=["nan", "inf", "surrogate", "set", "bytes", "datetime", "decimal", "big"],
)
def test_any_value_is_recognised_again(value: Any, is_async: bool) -> None:
    with agent(same, is_async=is_async) as call:
        assert [refused(call("f", {"v": value})) for _ in range(3)] == [False, False, True]


class Plain:
    def __init__(self, x: int) -> None:
        self.x = x


def test_equal_objects_make_equal_calls(is_async: bool) -> None:
    with agent(same, is_async=is_async) as call:
        assert [refused(call("f", {"v": Plain(1)})) for _ in range(3)] == [False, False, True]


def test_a_circular_argument_is_recognised_again(is_async: bool) -> None:
    circular: dict[str, Any] = {"name": "loop"}
    circular["self"] = circular
    with agent(same, is_async=is_async) as call:
        assert [refused(call("f", circular)) for _ in range(3)] == [False, False, True]


@pytest.mark.parametrize("names", ["ab", "abc"])
def test_a_cycle_is_warned_about_and_never_halts_an_innocent_call(names: str, is_async: bool) -> None:
    guard = Guard(quiet=True)
    with guard.run(model="m", harness="h") as run:
        call = Agent(run, same, is_async=is_async)
        values = [call(name) for _ in range(4) for name in names]
        assert not any(refused(value) for value in values)
        assert not refused(call("innocent"))
    codes = [step.decision.code for step in run.trajectory.steps if step.decision]
    assert codes[: 6 - 1] == [None] * 5
    assert codes[5] == "cycle"


def test_of_sixteen_threads_with_the_same_call_two_run() -> None:
    ran: list[int] = []
    together = threading.Barrier(16)

    def slow(name: str, arguments: Any) -> str:
        ran.append(1)
        time.sleep(0.2)
        return "same"

    def one(_: int) -> Any:
        together.wait()
        try:
            return dispatch("f", {"x": 1})
        except RunHalted as halt:
            return halt

    with Guard(quiet=True).run(model="m", harness="h") as run, ThreadPoolExecutor(16) as pool:
        dispatch = run.wrap(slow)
        values = list(pool.map(one, range(16)))
    assert len(ran) == 2
    assert sum(refused(value) for value in values) == 14


def test_of_sixteen_tasks_with_the_same_call_two_run() -> None:
    async def main() -> tuple[int, list[Any]]:
        ran: list[int] = []

        async def slow(name: str, arguments: Any) -> str:
            ran.append(1)
            await asyncio.sleep(0.05)
            return "same"

        async with Guard(quiet=True).run(model="m", harness="h") as run:
            dispatch = run.wrap(slow)

            async def one() -> Any:
                try:
                    return await dispatch("f", {"x": 1})
                except RunHalted as halt:
                    return halt

            return len(ran) or 0, [len(ran), *await asyncio.gather(*(one() for _ in range(16))), len(ran)]

    _, values = asyncio.run(main())
    assert values[-1] == 2
    assert sum(refused(value) for value in values[1:-1]) == 14


class ToolBrokeError(RuntimeError):
    pass


def test_the_tools_exception_keeps_its_type_and_traceback_and_its_repeats_are_counted(is_async: bool) -> None:
    def broken(name: str, arguments: Any) -> Any:
        raise ToolBrokeError("disk on fire")

    with agent(broken, is_async=is_async) as call:
        for _ in range(2):
            with pytest.raises(ToolBrokeError, match="disk on fire") as caught:
                call("f", {"x": 1})
            assert any(frame.name == "broken" for frame in traceback.extract_tb(caught.value.__traceback__))
        assert refused(call("f", {"x": 1}))


def test_a_generator_stays_lazy() -> None:
    started: list[int] = []

    def rows(count: int) -> Iterator[int]:
        started.append(1)
        yield from range(count)

    with Guard(quiet=True).run(model="m", harness="h") as run:
        lazy = run.tool(rows)(3)
        assert started == []
        assert next(lazy) == 0
        assert started == [1]
        assert list(lazy) == [1, 2]
    assert [step.call.name for step in run.trajectory.steps] == ["rows"]


def test_an_asynchronous_generator_stays_lazy() -> None:
    started: list[int] = []

    async def rows(count: int) -> Any:
        started.append(1)
        for i in range(count):
            yield i

    async def main() -> list[int]:
        async with Guard(quiet=True).run(model="m", harness="h") as run:
            lazy = run.tool(rows)(3)
            assert started == []
            return [item async for item in lazy]

    assert asyncio.run(main()) == [0, 1, 2]


def test_a_megabyte_argument_is_recognised_again(is_async: bool) -> None:
    with agent(same, is_async=is_async) as call:
        assert [refused(call("f", {"text": "x" * 2**20})) for _ in range(3)] == [False, False, True]


def test_a_megabyte_that_differs_only_at_the_end_is_another_argument(is_async: bool) -> None:
    with agent(same, is_async=is_async) as call:
        assert not any(refused(call("f", {"text": "x" * 2**20 + str(i)})) for i in range(5))


def test_ten_thousand_varied_calls_run() -> None:
    with agent(counting(), is_async=False) as call:
        assert not any(refused(call(f"tool{i % 7}", {"i": i})) for i in range(10_000))


def test_after_a_refusal_the_same_call_is_refused_and_another_runs(is_async: bool) -> None:
    with agent(same, is_async=is_async) as call:
        for _ in range(2):
            call("f", {"x": 1})
        assert refused(call("f", {"x": 1}))
        assert refused(call("f", {"x": 1}))
        assert not refused(call("g", {"x": 1}))


# --- budgets ----------------------------------------------------------------------------------------------


def test_a_cap_of_five_runs_five(is_async: bool) -> None:
    with agent(counting(), is_async=is_async, budget={"steps": 5}) as call:
        values = [call("f", {"i": i}) for i in range(20)]
    assert len(call.ran) == 5
    assert [refused(value) for value in values] == [False] * 5 + [True] * 15


def threads_through(policy: dict[str, Any]) -> int:
    ran: list[int] = []
    together = threading.Barrier(20)

    def slow(name: str, arguments: Any) -> str:
        ran.append(1)
        time.sleep(0.02)
        return str(arguments)

    def one(i: int) -> None:
        together.wait()
        with contextlib.suppress(RunHalted):
            dispatch("f", {"i": i})

    with Guard(Policy.from_dict(policy), quiet=True).run(model="m", harness="h") as run, ThreadPoolExecutor(20) as pool:
        dispatch = run.wrap(slow)
        list(pool.map(one, range(20)))
    return len(ran)


def tasks_through(policy: dict[str, Any]) -> int:
    ran: list[int] = []

    async def slow(name: str, arguments: Any) -> str:
        ran.append(1)
        await asyncio.sleep(0.01)
        return str(arguments)

    async def main() -> None:
        async with Guard(Policy.from_dict(policy), quiet=True).run(model="m", harness="h") as run:
            dispatch = run.wrap(slow)

            async def one(i: int) -> None:
                with contextlib.suppress(RunHalted):
                    await dispatch("f", {"i": i})

            await asyncio.gather(*(one(i) for i in range(20)))

    asyncio.run(main())
    return len(ran)


@pytest.mark.parametrize("through", [threads_through, tasks_through])
def test_twenty_parallel_calls_through_a_cap_of_five_run_five(through: Callable[[dict[str, Any]], int]) -> None:
    assert through({"budget": {"steps": 5}}) == 5


@pytest.mark.parametrize("through", [threads_through, tasks_through])
def test_twenty_parallel_calls_at_thirty_cents_through_a_dollar_run_three(
    through: Callable[[dict[str, Any]], int],
) -> None:
    assert through({"budget": {"cost_usd": "1.00"}, "tools": {"f": {"cost_usd": "0.30"}}}) == 3


def test_a_dollar_at_thirty_cents_runs_three(is_async: bool) -> None:
    policy = {"budget": {"cost_usd": "1.00"}, "tools": {"f": {"cost_usd": "0.30"}}}
    with agent(counting(), is_async=is_async, **policy) as call:
        for i in range(6):
            call("f", {"i": i})
    assert len(call.ran) == 3


def test_wall_time_ends_a_run(is_async: bool) -> None:
    clock = FakeClock()
    with Guard(Policy.from_dict({"budget": {"seconds": 60}}), clock=clock, quiet=True).run(
        model="m", harness="h"
    ) as run:
        call = Agent(run, counting(), is_async=is_async)
        assert not refused(call("f", {"i": 0}))
        clock.at(61)
        assert refused(call("f", {"i": 1}))


def test_sub_agents_share_the_cap_of_their_parent(is_async: bool) -> None:
    guard = Guard(Policy.from_dict({"budget": {"steps": 5}}), quiet=True)
    ran = 0
    with guard.run(model="m", harness="h", agent="parent") as parent:
        for _ in range(2):
            with Guard(quiet=True).run(model="m", harness="h", agent="child") as child:
                call = Agent(child, counting(), is_async=is_async)
                for i in range(4):
                    call("f", {"i": i})
                ran += len(call.ran)
        assert parent.ledger.steps == 5
    assert ran == 5


def test_a_cancelled_task_releases_its_reservation() -> None:
    async def main() -> tuple[int, int]:
        async def endless(name: str, arguments: Any) -> None:
            await asyncio.sleep(60)

        async with Guard(Policy.from_dict({"budget": {"steps": 1}})).run(model="m", harness="h") as run:
            task = asyncio.create_task(run.wrap(endless)("f", {}))
            await asyncio.sleep(0.01)
            held = run.ledger.steps
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            return held, run.ledger.steps

    assert asyncio.run(main()) == (1, 0)


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit, BaseException])
def test_a_base_exception_out_of_a_tool_leaves_no_reservation(kind: type[BaseException], is_async: bool) -> None:
    def leaving(name: str, arguments: Any) -> Any:
        raise kind

    with Guard(quiet=True).run(model="m", harness="h") as run:
        call = Agent(run, leaving, is_async=False)
        with pytest.raises(kind):
            call("f")
        assert run.ledger.steps == 0


# --- arguments --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "arguments", "code"),
    [
        ("forecast", {"city": "Oslo"}, "tool.unknown"),
        ("wether", {"city": "Oslo"}, "tool.unknown"),
        ("weather", {"days": 3}, "arguments.invalid"),
        ("weather", {"city": 3}, "arguments.invalid"),
        ("weather", {"city": "Oslo", "town": "Oslo"}, "arguments.invalid"),
        ("weather", '{"city": "Oslo"', "arguments.malformed"),
    ],
    ids=["unknown", "near miss", "missing", "wrong type", "extra", "malformed"],
)
def test_a_call_that_no_tool_can_take_is_refused_and_nothing_runs(
    name: str, arguments: Any, code: str, is_async: bool
) -> None:
    with agent(same, is_async=is_async, tools={"weather": {"schema": WEATHER}}) as call:
        value = call(name, arguments)
        assert isinstance(value, Feedback)
        assert (value.decision.action, value.decision.code) == (Action.BLOCK, code)
        assert call.ran == []
