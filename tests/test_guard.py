"""Guard and Run: what is decided, what is recorded, and how a host gets on with it."""

from __future__ import annotations

import asyncio
import copy
import inspect
import pickle
from decimal import Decimal
from typing import Any, ClassVar

import msgspec
import pytest
import structlog

from agentguard import (
    Action,
    Budget,
    Content,
    Ending,
    Feedback,
    Guard,
    Mode,
    Policy,
    Poll,
    Run,
    RunHalted,
    Tool,
    ToolCall,
    ToolResult,
    Usage,
    Verdict,
    current_run,
)
from agentguard.attempt import Attempt
from agentguard.ledger import Kind
from agentguard.policy import OnFault
from agentguard.testing import FakeClock, captured_spans, script


def a_run(policy: dict[str, Any] | None = None, **guard: Any) -> Run:
    return Guard(Policy.from_dict(policy or {}), quiet=True, **guard).run(model="m", harness="h")


def echo(name: str, arguments: dict[str, Any]) -> str:
    return f"{name} {arguments}"


def codes(run: Run) -> list[str | None]:
    return [step.decision.code for step in run.trajectory.steps if step.decision is not None]


# --- the block --------------------------------------------------------------------------------------------


def test_a_run_is_current_inside_its_block_only() -> None:
    assert current_run() is None
    with a_run() as run:
        assert current_run() is run
    assert current_run() is None


def test_a_block_that_ends_well_is_finished() -> None:
    with a_run() as run:
        pass
    assert run.trajectory.ending is Ending.FINISHED


def test_a_block_left_by_an_error_is_failed() -> None:
    run = a_run()
    with pytest.raises(ValueError, match="oops"), run:
        raise ValueError("oops")
    assert run.trajectory.ending is Ending.FAILED


def test_a_swallowed_halt_is_halted_all_the_same() -> None:
    with a_run({"budget": {"steps": 0}}) as run, pytest.raises(RunHalted):
        run.wrap(echo)("f", {})
    assert run.trajectory.ending is Ending.HALTED


def test_an_outcome_is_kept_and_never_made_up() -> None:
    with a_run() as told:
        told.finish(outcome=True)
    with a_run() as untold:
        pass
    assert (told.trajectory.outcome, untold.trajectory.outcome) == (True, None)


def test_finishing_twice_says_what_was_said_first() -> None:
    with a_run() as run:
        run.finish(ending=Ending.UNFINISHED)
        run.finish(ending=Ending.FINISHED)
    assert run.trajectory.ending is Ending.UNFINISHED


def test_a_halt_carries_its_decision_and_the_work_so_far() -> None:
    with a_run({"budget": {"steps": 2}}) as run, pytest.raises(RunHalted) as halt:
        script([("f", {"i": i}) for i in range(5)], run.wrap(echo))
    assert halt.value.decision.code == "budget.steps"
    assert [step.executed for step in halt.value.trajectory.steps] == [True, True, False]
    assert str(halt.value) == "would pass the ceiling of 2 steps; 2 are used"


def test_a_resumed_run_goes_on_under_its_new_ceilings() -> None:
    with a_run({"budget": {"steps": 1}}) as run:
        dispatch = run.wrap(echo)
        dispatch("f", {"i": 0})
        with pytest.raises(RunHalted):
            dispatch("f", {"i": 1})
        run.resume(budget=Budget(steps=2))
        assert dispatch("f", {"i": 1}) == "f {'i': 1}"
        with pytest.raises(RunHalted):
            dispatch("f", {"i": 2})


def test_what_a_halted_parent_started_is_halted_too() -> None:
    with a_run({"budget": {"steps": 0}}) as parent:
        with pytest.raises(RunHalted):
            parent.wrap(echo)("f", {})
        with a_run() as child, pytest.raises(RunHalted, match="the run was halted"):
            child.wrap(echo)("g", {})


def test_a_trajectory_says_when_it_is_not_all_there() -> None:
    with Guard(history=3, quiet=True).run(model="m", harness="h") as run:
        script([("f", {"i": i}) for i in range(5)], run.wrap(echo))
    assert [step.call.arguments for step in run.trajectory.steps] == [{"i": 2}, {"i": 3}, {"i": 4}]
    assert run.trajectory.complete is False


# --- wrapping ---------------------------------------------------------------------------------------------


def test_a_wrapped_dispatcher_keeps_its_signature_and_name() -> None:
    wrapped = a_run().wrap(echo)
    assert inspect.signature(wrapped) == inspect.signature(echo)
    assert wrapped.__name__ == "echo"
    assert wrapped.__wrapped__ is echo


def test_an_asynchronous_dispatcher_stays_a_coroutine_function() -> None:
    async def dispatch(name: str, arguments: Any) -> None: ...

    assert inspect.iscoroutinefunction(a_run().wrap(dispatch))


@pytest.mark.parametrize(
    "dispatch",
    [
        lambda name, arguments: (name, arguments),
        lambda arguments, name: (name, arguments),
        lambda context, tool_name, tool_input: (tool_name, tool_input),
        lambda tool, args: (tool, args),
    ],
    ids=["name first", "arguments first", "with a context", "other words"],
)
def test_name_and_arguments_are_found_by_the_signature(dispatch: Any) -> None:
    run = a_run()
    names = list(inspect.signature(dispatch).parameters)
    name = next(n for n in names if n in ("name", "tool_name", "tool"))
    arguments = next(n for n in names if n in ("arguments", "tool_input", "args"))
    given = dict.fromkeys(names) | {arguments: {"x": 1}, name: "f"}
    run.wrap(dispatch)(**given)
    run.wrap(dispatch)(*[given[n] for n in names])
    assert [(step.call.name, step.call.arguments) for step in run.trajectory.steps] == [("f", {"x": 1})] * 2


def test_parameters_may_be_named() -> None:
    run = a_run()
    run.wrap(lambda first, second: None, name="second", arguments="first")({"x": 1}, "f")
    assert run.trajectory.steps[0].call == ToolCall("f", {"x": 1})


def test_a_function_without_name_and_arguments_is_told_so() -> None:
    with pytest.raises(TypeError, match=r"name them: wrap\(f, name=..., arguments=...\)"):
        a_run().wrap(lambda only: None)


def test_arguments_may_be_json_text() -> None:
    run = a_run()
    assert run.wrap(echo)("f", '{"x": 1}') == 'f {"x": 1}'
    assert run.trajectory.steps[0].call.arguments == {"x": 1}


@pytest.mark.parametrize("nothing", [None, ""])
def test_no_arguments_are_an_empty_object(nothing: Any) -> None:
    run = a_run()
    run.wrap(lambda name, arguments: "ok")("f", nothing)
    assert run.trajectory.steps[0].call.arguments == {}


def test_a_tools_arguments_are_named_by_its_signature() -> None:
    def tool(a: int, b: int = 2, *rest: int, **more: int) -> int:
        return a + b

    run = a_run()
    guarded = run.tool(tool)
    guarded(1, 3)
    guarded(a=1)
    guarded(1, 2, 3, x=4)
    assert [step.call.arguments for step in run.trajectory.steps] == [
        {"a": 1, "b": 3},
        {"a": 1},
        {"a": 1, "b": 2, "rest": (3,), "more": {"x": 4}},
    ]


def test_a_call_with_too_many_arguments_fails_as_it_would_without_a_guard() -> None:
    def tool(*, a: int) -> None: ...

    with pytest.raises(TypeError, match="takes 0 positional arguments"):
        a_run().tool(tool)(1, 2)  # type: ignore[misc]


def test_a_method_keeps_its_self() -> None:
    run = a_run()

    class Box:
        @run.tool
        def double(self, x: int) -> int:
            return 2 * x

    assert Box().double(x=4) == 8


def test_a_guarded_function_can_be_copied() -> None:
    run = a_run()
    guarded = run.tool(echo)
    for copied in (copy.copy(guarded), copy.deepcopy(guarded)):
        assert copied("f", {}) == "f {}"
    assert len(run.trajectory.steps) == 2


def test_a_guarded_function_travels_to_another_process_without_its_guard() -> None:
    assert pickle.loads(pickle.dumps(a_run().tool(echo))) is echo


def test_a_plain_function_that_returns_an_awaitable_is_recorded_when_it_is_done() -> None:
    async def work() -> str:
        await asyncio.sleep(0.01)
        return "done"

    async def main() -> list[Any]:
        run = a_run()
        dispatch = run.wrap(lambda name, arguments: work())
        results = [await dispatch("f", {}) for _ in range(3)]
        assert codes(run) == [None, "repeat.identical", "repeat.identical"]
        return results

    *ran, refused = asyncio.run(main())
    assert ran == ["done", "done"]
    assert isinstance(refused, Feedback)


def test_a_plain_function_may_be_declared_asynchronous() -> None:
    async def main() -> str:
        async def work() -> str:
            return "done"

        return await a_run().wrap(lambda name, arguments: work(), is_async=True)("f", {})

    assert asyncio.run(main()) == "done"


def test_a_generator_gets_what_is_sent_thrown_and_closed() -> None:
    seen: list[Any] = []

    def rows() -> Any:
        try:
            seen.append((yield 1))
            try:
                yield 2
            except KeyError as error:
                seen.append(error)
            yield 3
        finally:
            seen.append("closed")

    run = a_run()
    stream = run.tool(rows)()
    assert next(stream) == 1
    assert stream.send("sent") == 2
    assert stream.throw(KeyError("thrown")) == 3
    stream.close()
    assert [str(item) for item in seen] == ["sent", "'thrown'", "closed"]
    assert run.ledger.steps == 1


def test_an_asynchronous_generator_gets_what_is_sent_thrown_and_closed() -> None:
    seen: list[Any] = []

    async def rows() -> Any:
        try:
            seen.append((yield 1))
            try:
                yield 2
            except KeyError as error:
                seen.append(error)
            yield 3
        finally:
            seen.append("closed")

    async def main() -> int:
        run = a_run()
        stream = run.tool(rows)()
        assert await stream.__anext__() == 1
        assert await stream.asend("sent") == 2
        assert await stream.athrow(KeyError("thrown")) == 3
        await stream.aclose()
        return run.ledger.steps

    assert asyncio.run(main()) == 1
    assert [str(item) for item in seen] == ["sent", "'thrown'", "closed"]


def test_a_generators_return_value_and_error_come_through() -> None:
    def rows(fails: bool) -> Any:
        yield 1
        if fails:
            raise KeyError("broken")
        return "end"

    def outer() -> Any:
        return (yield from guarded(False))

    run = a_run()
    guarded = run.tool(rows)
    stream = outer()
    assert next(stream) == 1
    with pytest.raises(StopIteration) as end:
        next(stream)
    assert end.value.value == "end"
    with pytest.raises(KeyError, match="broken"):
        list(guarded(True))
    assert [step.result.is_error for step in run.trajectory.steps if step.result] == [False, True]


def test_a_refused_generator_yields_the_feedback_once() -> None:
    run = a_run({"budget": {"calls_per_tool": {"rows": 0}}})

    def rows() -> Any:
        yield 1

    (only,) = list(run.tool(rows)())
    assert isinstance(only, Feedback)


def test_a_refused_asynchronous_generator_yields_the_feedback_once() -> None:
    async def rows() -> Any:
        yield 1

    async def main() -> list[Any]:
        return [item async for item in a_run({"budget": {"calls_per_tool": {"rows": 0}}}).tool(rows)()]

    (only,) = asyncio.run(main())
    assert isinstance(only, Feedback)


def test_a_generator_that_a_plain_function_returns_is_passed_through_lazily() -> None:
    run = a_run()
    assert list(run.wrap(lambda name, arguments: (i for i in range(3)))("f", {})) == [0, 1, 2]

    async def rows() -> Any:
        yield 1

    async def main() -> list[int]:
        return [item async for item in run.wrap(lambda name, arguments: rows())("g", {})]

    assert asyncio.run(main()) == [1]
    assert [step.call.name for step in run.trajectory.steps] == ["f", "g"]


def test_equal_streams_are_equal_results() -> None:
    run = a_run()
    guarded = run.tool(lambda: iter(()), name="plain")
    stream = run.tool(lambda n: (i for i in range(n)), name="rows")
    for _ in range(3):
        list(stream(n=3))
    guarded()
    assert codes(run)[:3] == [None, "repeat.identical", "repeat.identical"]


def test_a_call_that_two_layers_guard_is_counted_once() -> None:
    run = a_run()
    search = run.tool(lambda q: f"found {q}", name="search")
    dispatch = run.wrap(lambda name, arguments: search(**arguments))
    assert dispatch("search", {"q": "a"}) == "found a"
    assert len(run.trajectory.steps) == 1
    search(q="b")
    assert len(run.trajectory.steps) == 2


def test_a_call_that_two_asynchronous_layers_guard_is_counted_once() -> None:
    run = a_run()

    @run.tool
    async def search(q: str) -> str:
        return f"found {q}"

    async def dispatch(name: str, arguments: Any) -> Any:
        return await search(**arguments)

    assert asyncio.run(run.wrap(dispatch)("search", {"q": "a"})) == "found a"
    assert len(run.trajectory.steps) == 1


def test_streams_that_two_layers_guard_are_counted_once() -> None:
    run = a_run()

    @run.tool
    def rows(n: int) -> Any:
        yield from range(n)

    assert list(run.wrap(lambda name, arguments: rows(**arguments))("rows", {"n": 2})) == [0, 1]
    assert len(run.trajectory.steps) == 1


# --- judging by hand --------------------------------------------------------------------------------------


def test_judging_never_raises_and_recording_needs_a_judged_call() -> None:
    run = a_run({"budget": {"steps": 1}})
    first = ToolCall("f", {"i": 0})
    assert run.judge(first).allowed
    run.record(first, "ok")
    assert run.judge(ToolCall("f", {"i": 1})).action is Action.HALT
    with pytest.raises(ValueError, match="no call of 'f' is waiting for a result"):
        run.record(first, "ok")


def test_an_unknown_result_equals_nothing() -> None:
    run = a_run()
    for _ in range(6):
        call = ToolCall("f", {})
        assert run.judge(call).allowed
        run.record(call, None)
    assert codes(run) == [None, "repeat.identical", None, None, None, None]


def test_a_result_type_of_the_dispatchers_own_can_be_read() -> None:
    run = a_run(as_result=lambda value: ToolResult(value["text"], value["failed"]))
    run.wrap(lambda name, arguments: {"text": "no", "failed": True})("f", {})
    assert run.trajectory.steps[0].result == ToolResult("no", True)


def test_a_result_reader_that_fails_costs_the_result_not_the_call() -> None:
    run = a_run(as_result=lambda value: value.missing)
    assert run.wrap(echo)("f", {}) == "f {}"
    assert run.trajectory.steps[0].executed is True


# --- what tools declare -----------------------------------------------------------------------------------


def test_a_repeatable_tool_is_never_spoken_of() -> None:
    run = a_run({"tools": {"f": {"repeatable": True}}})
    script([("f", {})] * 30, run.wrap(lambda name, arguments: "same"))
    assert codes(run) == [None] * 30


def test_a_poller_is_stopped_at_its_limit() -> None:
    run = a_run({"tools": {"f": {"poll": {"max": 3}}}})
    results = script([("f", {})] * 5, run.wrap(lambda name, arguments: "pending"))
    assert [isinstance(result, Feedback) for result in results] == [False, False, False, True, True]
    assert codes(run)[3] == "repeat.poll"


def test_a_poller_that_does_not_wait_is_told_to() -> None:
    clock = FakeClock()
    run = a_run(tools=[Tool(name="f", poll=Poll(max=10, min_interval=5))], clock=clock)
    dispatch = run.wrap(lambda name, arguments: "pending")
    dispatch("f", {})
    clock.advance(2)
    assert isinstance(dispatch("f", {}), Feedback)
    clock.advance(5)
    assert dispatch("f", {}) == "pending"
    assert codes(run) == [None, "repeat.poll_interval", None]


def test_an_empty_result_counts_as_a_failure_where_a_tool_says_so() -> None:
    run = a_run({"tools": {"f": {"empty_is_error": True}}})
    script(
        [("f", {"i": i}) for i in range(5)],
        lambda name, arguments: _swallow(run.wrap(lambda n, a: []), name, arguments),
    )
    assert run.halted is not None
    assert run.halted.code == "failures.error"


def _swallow(dispatch: Any, name: str, arguments: Any) -> Any:
    try:
        return dispatch(name, arguments)
    except RunHalted as halt:
        return halt


def test_a_tools_own_normalising_decides_what_equal_results_are() -> None:
    counter = iter(range(10))
    run = a_run(tools=[Tool(name="f", normalize=lambda text: text.rstrip("0123456789"))])
    results = script([("f", {})] * 3, run.wrap(lambda name, arguments: f"id {next(counter)}"))
    assert isinstance(results[2], Feedback)


def test_a_normaliser_that_fails_costs_the_comparison_not_the_call() -> None:
    run = a_run(tools=[Tool(name="f", normalize=lambda text: 1 / 0)])  # type: ignore[arg-type,return-value]
    assert script([("f", {})] * 3, run.wrap(lambda name, arguments: "same")) == ["same"] * 3


def test_a_rule_of_order_is_kept_across_lanes() -> None:
    run = a_run({"order": [{"tool": "charge", "needs": "authorise", "same": ["order_id"]}]})
    dispatch = run.wrap(echo)
    assert isinstance(dispatch("charge", {"order_id": 1}), Feedback)
    with run.lane("sub"):
        dispatch("authorise", {"order_id": 1.0})
    assert dispatch("charge", {"order_id": 1}) == "charge {'order_id': 1}"


def test_a_failed_call_meets_no_rule_of_order() -> None:
    run = a_run({"order": [{"tool": "charge", "needs": "authorise"}]})

    def dispatch(name: str, arguments: Any) -> str:
        if name == "authorise":
            raise ValueError("declined")
        return "charged"

    results = script([("authorise", {}), ("charge", {})], run.wrap(dispatch))
    assert isinstance(results[1], Feedback)


def test_an_asynchronous_call_is_cut_at_the_tools_deadline() -> None:
    async def main() -> tuple[Any, Run]:
        run = a_run(tools=[Tool(name="f", deadline=0.02)])

        async def slow(name: str, arguments: Any) -> None:
            await asyncio.sleep(30)

        return await run.wrap(slow)("f", {}), run

    feedback, run = asyncio.run(main())
    assert isinstance(feedback, Feedback)
    assert feedback.decision.code == "deadline"
    assert run.ledger.unresolved_calls == 1


def test_an_asynchronous_call_is_cut_where_the_runs_seconds_end() -> None:
    async def main() -> Run:
        run = a_run({"budget": {"seconds": 0.02}})

        async def slow(name: str, arguments: Any) -> None:
            await asyncio.sleep(30)

        with pytest.raises(RunHalted, match="the run's seconds"):
            await run.wrap(slow)("f", {})
        return run

    run = asyncio.run(main())
    assert run.halted is not None
    assert run.halted.code == "budget.seconds"


def test_a_tools_own_timeout_is_no_cut() -> None:
    async def main() -> None:
        async def failing(name: str, arguments: Any) -> None:
            raise TimeoutError("of the tool")

        with pytest.raises(TimeoutError, match="of the tool"):
            await a_run(tools=[Tool(name="f", deadline=30)]).wrap(failing)("f", {})

    asyncio.run(main())


def test_after_a_synchronous_overrun_the_next_call_of_the_tool_is_refused_once() -> None:
    import time

    run = a_run(tools=[Tool(name="f", deadline=0.01)])
    pause = iter([0.03, 0.0])
    dispatch = run.wrap(lambda name, arguments: time.sleep(next(pause)))
    assert dispatch("f", {"i": 0}) is None
    assert isinstance(dispatch("f", {"i": 1}), Feedback)
    assert dispatch("f", {"i": 2}) is None


# --- budgets ----------------------------------------------------------------------------------------------


def test_usage_is_priced_and_a_ceiling_of_dollars_halts_the_next_call() -> None:
    run = a_run({"budget": {"cost_usd": "0.01"}})
    run.charge(Usage(1_000, 1_000), model="gpt-4o")
    assert run.ledger.cost_usd == Decimal("0.0125")
    with pytest.raises(RunHalted, match="cost usd"):
        run.wrap(echo)("f", {})


def test_an_unknown_price_stays_unknown_and_is_said_once() -> None:
    with structlog.testing.capture_logs() as logs:
        run = Guard(Policy.from_dict({"budget": {"cost_usd": "1"}})).run(model="nobody's", harness="h")
        for _ in range(3):
            run.charge(Usage(10, 10))
    assert run.ledger.cost_usd == 0
    assert run.ledger.unknown_costs == 3
    assert run.trajectory.usage == Usage(30, 30, None, None)
    assert [log["event"] for log in logs] == ["agentguard.cost_unknown"]


def test_a_ceiling_of_tokens_halts_the_next_call() -> None:
    run = a_run({"budget": {"tokens": 100}})
    run.charge(Usage(90, 10))
    with pytest.raises(RunHalted, match="100 tokens"):
        run.wrap(echo)("f", {})


def test_a_ceiling_of_failures_halts_the_next_call() -> None:
    run = a_run({"budget": {"failures": 2}})
    for i in range(2):
        call = ToolCall(f"f{i}", {})
        run.judge(call)
        run.record(call, ToolResult("no", True))
    assert run.judge(ToolCall("g", {})).code == "budget.failures"


def test_one_warning_comes_before_a_ceiling() -> None:
    run = a_run({"budget": {"steps": 5, "warn_at": 0.6}})
    script([("f", {"i": i}) for i in range(5)], run.wrap(echo))
    assert codes(run) == [None, None, "budget.near", None, None]


def test_a_lane_has_ceilings_of_its_own_and_draws_on_the_run() -> None:
    run = a_run({"budget": {"steps": 3, "per_lane": {"calls_per_tool": 1}}})
    dispatch = run.wrap(echo)
    for name in ("a", "b", "c"):
        with run.lane(name):
            assert dispatch("f", {"lane": name, "i": 0}) == f"f {{'lane': '{name}', 'i': 0}}"
            if name != "c":
                assert isinstance(dispatch("f", {"lane": name, "i": 1}), Feedback)
    assert run.ledger.remaining() == {Kind.STEPS: 0}


def test_a_budget_that_is_not_checked_is_charged_all_the_same() -> None:
    run = a_run({"budget": {"steps": 1}, "disabled": ["budget"]})
    script([("f", {"i": i}) for i in range(3)], run.wrap(echo))
    assert run.ledger.steps == 3


def test_observing_counts_on_past_a_ceiling_and_says_so() -> None:
    run = a_run({"mode": "observe", "budget": {"steps": 1}})
    script([("f", {"i": i}) for i in range(3)], run.wrap(echo))
    assert codes(run) == [None, "budget.steps", "budget.steps"]
    assert run.ledger.steps == 3
    assert run.halted is None


# --- approval, advice, faults -----------------------------------------------------------------------------


def test_an_approved_call_runs_and_says_why() -> None:
    run = a_run(ask=lambda call, decision: "ann said so")
    results = script([("f", {})] * 3, run.wrap(lambda name, arguments: "same"))
    assert results == ["same"] * 3
    decision = run.trajectory.steps[2].decision
    assert decision is not None
    assert (decision.action, decision.code, decision.reason) == (Action.ALLOW, "approved", "approved: ann said so")


def test_a_call_that_nobody_approves_stays_blocked() -> None:
    run = a_run(ask=lambda call, decision: None)
    assert isinstance(script([("f", {})] * 3, run.wrap(lambda name, arguments: "same"))[2], Feedback)


def test_an_approval_may_be_awaited() -> None:
    async def ask(call: ToolCall, decision: Any) -> str:
        await asyncio.sleep(0)
        return "ann said so"

    async def main() -> list[Any]:
        async def dispatch(name: str, arguments: Any) -> str:
            return "same"

        guarded = a_run(ask=ask).wrap(dispatch)
        return [await guarded("f", {}) for _ in range(3)]

    assert asyncio.run(main()) == ["same"] * 3


def test_an_asynchronous_approval_of_a_synchronous_tool_leaves_it_blocked_and_is_told() -> None:
    async def ask(call: ToolCall, decision: Any) -> str:
        return "never awaited"

    with structlog.testing.capture_logs() as logs:
        run = a_run(ask=ask)
        results = script([("f", {})] * 3, run.wrap(lambda name, arguments: "same"))
    assert isinstance(results[2], Feedback)
    assert logs[0]["error"] == "TypeError: an asynchronous approval needs an asynchronous tool"


@pytest.mark.parametrize("is_async", [False, True])
def test_an_approval_that_fails_leaves_the_call_blocked(is_async: bool) -> None:
    def ask(call: ToolCall, decision: Any) -> Any:
        if is_async:
            return _failing()
        raise ValueError("phone is off")

    async def _failing() -> str:
        raise ValueError("phone is off")

    async def main() -> list[Any]:
        async def dispatch(name: str, arguments: Any) -> str:
            return "same"

        guarded = a_run(ask=ask).wrap(dispatch)
        return [await guarded("f", {}) for _ in range(3)]

    assert isinstance(asyncio.run(main())[2], Feedback)


def test_an_approved_call_still_needs_room_in_the_budget() -> None:
    run = a_run({"budget": {"steps": 2}}, ask=lambda call, decision: "go on")
    results = script([("f", {})] * 2, run.wrap(lambda name, arguments: "same"))
    assert results == ["same", "same"]
    with pytest.raises(RunHalted, match="2 steps"):
        run.wrap(echo)("g", {})


def test_advice_is_appended_to_text_where_the_policy_says_so() -> None:
    run = a_run({"advise": True})
    results = script([("f", {})] * 2, run.wrap(lambda name, arguments: "same"))
    assert results == ["same", "same\n\n[the identical call stands just before, once]"]


class BrokenCheck(msgspec.Struct, frozen=True):
    name: ClassVar[str] = "broken"

    def before(self, attempt: Attempt) -> Verdict | None:
        raise RuntimeError("of the check's own")


@pytest.mark.parametrize(("on_fault", "action"), [(OnFault.ALLOW, Action.ALLOW), (OnFault.HALT, Action.HALT)])
def test_a_check_that_fails_is_answered_as_the_policy_says(on_fault: OnFault, action: Action) -> None:
    run = Guard(Policy(checks=(BrokenCheck(),), on_fault=on_fault), quiet=True).run(model="m", harness="h")
    decision = run.judge(ToolCall("f", {}))
    assert (decision.action, decision.code) == (action, "guard.fault")


def test_a_check_that_keeps_failing_is_logged_once_and_left_out() -> None:
    with structlog.testing.capture_logs() as logs:
        run = Guard(Policy(checks=(BrokenCheck(),)), quiet=True).run(model="m", harness="h")
        script([("f", {"i": i}) for i in range(8)], run.wrap(echo))
    assert codes(run) == ["guard.fault"] * 5 + [None] * 3
    assert [log["event"] for log in logs] == ["agentguard.fault", "agentguard.check_left_out"]


def test_the_other_checks_speak_when_one_fails() -> None:
    policy = Policy(checks=(BrokenCheck(), *Policy().checks))
    run = Guard(policy, quiet=True).run(model="m", harness="h")
    script([("f", {})] * 3, run.wrap(lambda name, arguments: "same"))
    assert codes(run)[2] == "repeat.identical"


class Hostile:
    def __getattr__(self, name: str) -> Any:
        raise ValueError("nothing here")


@pytest.mark.parametrize(("on_fault", "runs"), [("allow", True), ("halt", False)])
def test_a_call_on_which_the_guard_itself_fails_is_answered_as_the_policy_says(on_fault: str, runs: bool) -> None:
    run = a_run({"on_fault": on_fault})
    decision = run.judge(Hostile())  # type: ignore[arg-type]
    assert (decision.allowed, decision.code) == (runs, "guard.fault")


# --- logs -------------------------------------------------------------------------------------------------


def test_every_verdict_above_allow_is_one_log_event() -> None:
    with structlog.testing.capture_logs() as logs, Guard().run(model="m", harness="h", run_id="r") as run:
        script([("f", {})] * 3, run.wrap(lambda name, arguments: "same"))
    assert [(log["event"], log["tool"], log["code"], log["action"], log["run_id"], log["seq"]) for log in logs] == [
        ("agentguard.call_flagged", "f", "repeat.identical", "warn", "r", 1),
        ("agentguard.call_refused", "f", "repeat.identical", "block", "r", 2),
    ]


def test_a_log_event_names_its_trace_and_span() -> None:
    with (
        structlog.testing.capture_logs() as logs,
        captured_spans() as spans,
        Guard(tracer_provider=spans.provider).run(model="m", harness="h") as run,
    ):
        script([("f", {})] * 3, run.wrap(lambda name, arguments: "same"))
    by_id = {f"{span.context.span_id:016x}": span for span in spans() if span.context}
    assert [by_id[log["span_id"]].name for log in logs] == ["execute_tool f", "execute_tool f"]
    assert len({log["trace_id"] for log in logs}) == 1


def test_no_secret_reaches_the_feedback() -> None:
    secret = "sk-abcdefghijklmnopqrstuvwx"
    run = a_run(content=Content())
    results = script([("f", {"key": secret})] * 3, run.wrap(lambda name, arguments: f"the key is {secret}"))
    assert secret not in results[2]
    assert "[redacted]" in results[2]


# --- identity ---------------------------------------------------------------------------------------------


def test_two_scaffolds_never_share_a_digest() -> None:
    tool = {"name": "f", "parameters": {"type": "object"}}
    digests = {
        Guard().harness_digest(),
        Guard().harness_digest("You are a tester."),
        Guard(tools=[tool]).harness_digest(),
        Guard(Policy(budget=Budget(steps=3))).harness_digest(),
        Guard(Policy(mode=Mode.OBSERVE)).harness_digest(),
    }
    assert len(digests) == 5
    assert Guard().harness_digest() in digests


def test_a_call_that_checks_looked_at_and_let_pass_counts_as_executed():
    for policy in (Policy(), Policy.from_dict({"mode": "observe"})):
        run = Guard(policy, tools=[Tool(name="look", repeatable=True)], quiet=True).run()
        look = run.tool(lambda: "same", name="look")
        for _ in range(3):
            look()
        assert [step.executed for step in run.trajectory.steps] == [True, True, True]
