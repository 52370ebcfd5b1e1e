"""What every integration must do, as one test class that each of them runs on its real framework.

An integration's tests hold a `Driver`, which plays a scripted model through the framework, and

    class TestContract(Contract):
        driver = MyDriver()
"""

from __future__ import annotations

import asyncio
import enum
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol

from agentguard import Action, Budget, Guard, Mode, Policy, Run, RunHalted, Usage
from agentguard.testing import CapturedSpans, captured_spans

MODEL, HARNESS = "scripted", "contract"


@dataclass(frozen=True)
class Asked:
    """One call in a scripted model answer."""

    name: str
    arguments: Mapping[str, Any]
    id: str = ""
    """Given by the driver's framework or by the script; unique in a script."""


@dataclass(frozen=True)
class Reply:
    """One scripted answer of the model."""

    calls: tuple[Asked, ...] = ()
    text: str = ""
    usage: Usage = field(default_factory=lambda: Usage(10, 5))


class Feature(enum.Enum):
    """What not every framework makes possible. A feature that a driver leaves out stands in docs/integrations.md."""

    ASYNC = "asynchronous runs"
    STREAMING = "streamed runs"
    USAGE = "usage of model calls reaches the budget"
    UNKNOWN_TOOL = "calls of unknown tools reach the guard"
    INVALID_ARGUMENTS = "invalid arguments reach the guard before the framework's own check"
    TOOL_EXCEPTION = "an exception of a tool leaves the framework with its type"
    PARALLEL = "several calls in one turn"
    HALT_RAISES = "a halt leaves the framework as RunHalted"


@dataclass
class Played:
    """What happened when a script was played."""

    ran: list[tuple[str, dict[str, Any]]] = field(default_factory=list[tuple[str, dict[str, Any]]])
    """Tool functions that were really entered, in order."""
    requests: list[list[tuple[str, str]]] = field(default_factory=list[list[tuple[str, str]]])
    """For each request to the model its history: ("call", id) and ("answer", id) in order."""
    answers: dict[str, str] = field(default_factory=dict[str, str])
    """What the model saw as the result of each call, by call id."""
    final: str | None = None
    """The text that the run ended with. None when it ended otherwise."""
    error: BaseException | None = None
    """What left the framework."""


class Driver(Protocol):
    """Plays a script through one framework."""

    features: frozenset[Feature]

    def play(
        self,
        replies: Sequence[Reply],
        tools: Mapping[str, Callable[..., Any]],
        *,
        run: Run | None,
        streaming: bool = False,
    ) -> Played:
        """Run an agent whose model gives these replies, guarded by `run`, or unguarded with None."""
        ...

    async def play_async(
        self, replies: Sequence[Reply], tools: Mapping[str, Callable[..., Any]], *, run: Run | None
    ) -> Played:
        """The same, asynchronously."""
        ...


class Tools:
    """The tools of the contract; they note that they were entered."""

    def __init__(self) -> None:
        self.ran: list[tuple[str, dict[str, Any]]] = []

    def search(self, query: str) -> str:
        """Search the documentation."""
        self.ran.append(("search", {"query": query}))
        return f"no hits for {query}"

    def fail(self, path: str) -> str:
        """Fail always."""
        self.ran.append(("fail", {"path": path}))
        raise ToolBrokeError(f"cannot read {path}")

    async def wait(self, seconds: float) -> str:
        """Wait a while."""
        self.ran.append(("wait", {"seconds": seconds}))
        await asyncio.sleep(seconds)
        return "waited"

    @property
    def by_name(self) -> dict[str, Callable[..., Any]]:
        """Return the synchronous tools by name."""
        return {"search": self.search, "fail": self.fail}


class ToolBrokeError(RuntimeError):
    """What the failing tool of the contract raises."""


SEARCH_SCHEMA = {
    "name": "search",
    "parameters": {
        "type": "object",
        "properties": {"query": {"type": "string"}},
        "required": ["query"],
        "additionalProperties": False,
    },
}
FAIL_SCHEMA = {"name": "fail", "parameters": {"type": "object", "properties": {"path": {"type": "string"}}}}


def asking(*queries: str, first: int = 0) -> list[Reply]:
    """Return one reply for each query, each with one call of the search tool, and a last one with text."""
    calls = [Reply((Asked("search", {"query": query}, f"call-{first + i}"),)) for i, query in enumerate(queries)]
    return [*calls, Reply(text="done")]


class Contract:
    """The behaviours. A test whose feature the driver lacks is skipped, visibly, by its name."""

    driver: ClassVar[Driver]

    def _play(
        self, replies: Sequence[Reply], policy: Policy | None = None, *, streaming: bool = False, **guard: Any
    ) -> tuple[Played, Run]:
        tools = Tools()
        made = Guard(policy, tools=[SEARCH_SCHEMA, FAIL_SCHEMA], quiet=True, **guard)
        with made.run(model=MODEL, harness=HARNESS) as run:
            played = self.driver.play(replies, tools.by_name, run=run, streaming=streaming)
        played.ran = tools.ran
        return played, run

    def _needs(self, feature: Feature) -> None:
        import pytest

        if feature not in self.driver.features:
            pytest.skip(f"not reachable here: {feature.value}")

    # --- decisions -----------------------------------------------------------------------------------------

    def test_an_allowed_call_runs_and_its_result_reaches_the_model(self) -> None:
        """Allow."""
        played, run = self._play(asking("a"))
        assert played.error is None
        assert played.ran == [("search", {"query": "a"})]
        assert "no hits for a" in played.answers["call-0"]
        assert played.final == "done"
        assert [step.executed for step in run.trajectory.steps] == [True]

    def test_a_warning_changes_nothing_and_is_recorded(self) -> None:
        """Warn."""
        played, run = self._play(asking("a", "a"))
        assert len(played.ran) == 2
        assert [step.decision.action for step in run.trajectory.steps if step.decision] == [Action.ALLOW, Action.WARN]

    def test_a_blocked_call_does_not_run_and_the_model_gets_one_result(self) -> None:
        """Block."""
        played, _ = self._play(asking("a", "a", "a"))
        assert played.error is None
        assert len(played.ran) == 2
        assert "was not run again" in played.answers["call-2"]
        assert played.final == "done"

    def test_every_request_to_the_model_is_well_formed_after_a_refusal(self) -> None:
        """Message history."""
        played, _ = self._play(asking("a", "a", "a", "b"))
        assert len(played.requests) == 5
        for request in played.requests:
            called = [call for kind, call in request if kind == "call"]
            answered = [call for kind, call in request if kind == "answer"]
            assert sorted(called) == sorted(answered)

    def test_an_innocent_call_runs_after_a_refusal(self) -> None:
        """Judge the call, never the window."""
        played, _ = self._play(asking("a", "a", "a", "b"))
        assert played.ran[-1] == ("search", {"query": "b"})

    def test_a_halt_ends_the_run_and_the_work_so_far_is_reachable(self) -> None:
        """Halt."""
        played, run = self._play(asking(*"aaaaaaaa"))
        assert run.halted is not None
        assert run.halted.code == "repeat.identical"
        assert len(played.ran) == 2
        assert len(played.requests) == 5
        assert played.final is None
        assert len(run.trajectory.steps) == 5

    def test_a_halt_leaves_the_framework_as_itself(self) -> None:
        """Halt, its way out."""
        self._needs(Feature.HALT_RAISES)
        played, _ = self._play(asking(*"aaaaaaaa"))
        assert isinstance(played.error, RunHalted)
        assert len(played.error.trajectory.steps) == 5

    def test_observing_changes_nothing(self) -> None:
        """Observe mode: the same requests, results and end as without a guard."""
        tools = Tools()
        unguarded = self.driver.play(asking(*"aaaaa"), tools.by_name, run=None)
        played, run = self._play(asking(*"aaaaa"), Policy(mode=Mode.OBSERVE))
        assert played.ran == tools.ran
        assert (played.requests, played.answers, played.final) == (
            unguarded.requests,
            unguarded.answers,
            unguarded.final,
        )
        assert [d.code for step in run.trajectory.steps if (d := step.decision)][2:] == ["repeat.identical"] * 3

    # --- budgets -------------------------------------------------------------------------------------------

    def test_parallel_calls_through_a_cap_run_as_many_as_it_allows(self) -> None:
        """Budgets under parallel calls."""
        self._needs(Feature.PARALLEL)
        turn = Reply(tuple(Asked("search", {"query": str(i)}, f"call-{i}") for i in range(4)))
        policy = Policy(budget=Budget(calls_per_tool={"search": 2}))
        played, run = self._play([turn, Reply(text="done")], policy)
        assert len(played.ran) == 2
        assert run.ledger.steps == 2
        assert len(played.answers) == 4
        assert played.final == "done"

    def test_the_same_parallel_turn_again_and_again_is_a_repeat(self) -> None:
        """Turns."""
        self._needs(Feature.PARALLEL)
        turns = [Reply(tuple(Asked("search", {"query": q}, f"call-{turn}-{q}") for q in "ab")) for turn in range(3)]
        played, run = self._play([*turns, Reply(text="done")])
        codes = [d.code for step in run.trajectory.steps if (d := step.decision)]
        assert codes == [None, None, "repeat.turn", "repeat.turn", "repeat.turn", "repeat.turn"]
        assert len(played.ran) == 4

    def test_usage_is_charged_once_for_each_model_call(self) -> None:
        """Usage."""
        self._needs(Feature.USAGE)
        _, run = self._play(asking("a", "b"))
        assert run.ledger.tokens == 3 * 15

    # --- arguments and names -------------------------------------------------------------------------------

    def test_invalid_arguments_are_refused_with_what_is_wrong(self) -> None:
        """Schema-invalid."""
        self._needs(Feature.INVALID_ARGUMENTS)
        wrong = Reply((Asked("search", {"query": "a", "limit": 3}, "call-0"),))
        played, run = self._play([wrong, *asking("b", first=1)])
        assert played.ran == [("search", {"query": "b"})]
        assert "$.limit" in played.answers["call-0"]
        assert run.trajectory.steps[0].executed is False

    def test_an_unknown_tool_is_refused_with_the_nearest_name(self) -> None:
        """Unknown tool."""
        self._needs(Feature.UNKNOWN_TOOL)
        played, run = self._play([Reply((Asked("serch", {"query": "a"}, "call-0"),)), *asking("b", first=1)])
        assert played.ran == [("search", {"query": "b"})]
        assert "Did you mean search?" in played.answers["call-0"]
        assert run.trajectory.steps[0].call.name == "serch"

    # --- what tools do -------------------------------------------------------------------------------------

    def test_a_tools_exception_is_recorded_as_a_failure(self) -> None:
        """Tool exception, recorded."""
        _, run = self._play([Reply((Asked("fail", {"path": "x"}, "call-0"),)), Reply(text="done")])
        result = run.trajectory.steps[0].result
        assert result is not None
        assert result.is_error
        assert "cannot read x" in str(result.content)

    def test_a_tools_exception_keeps_its_type(self) -> None:
        """Tool exception, its type."""
        self._needs(Feature.TOOL_EXCEPTION)
        played, _ = self._play([Reply((Asked("fail", {"path": "x"}, "call-0"),)), Reply(text="done")])
        assert isinstance(played.error, ToolBrokeError)

    def test_a_call_is_counted_once_when_the_tool_itself_is_guarded_too(self) -> None:
        """Layers."""
        tools = Tools()
        with Guard(quiet=True).run(model=MODEL, harness=HARNESS) as run:
            both = {name: run.tool(function, name=name) for name, function in tools.by_name.items()}
            self.driver.play(asking("a", "b"), both, run=run)
        assert [step.call.arguments for step in run.trajectory.steps] == [{"query": "a"}, {"query": "b"}]

    # --- telemetry -----------------------------------------------------------------------------------------

    def test_every_call_has_one_span_inside_the_runs(self) -> None:
        """Spans."""
        with captured_spans() as spans:
            self._play(asking("a", "a", "a"), tracer_provider=spans.provider)
        calls = spans("execute_tool search")
        root = next(span for span in spans("invoke_agent"))
        assert len(calls) == 3
        assert {span.context.trace_id for span in calls if span.context} == {
            root.context.trace_id if root.context else 0
        }

    # --- other ways to run ---------------------------------------------------------------------------------

    def test_an_asynchronous_run_blocks_and_goes_on(self) -> None:
        """Async."""
        self._needs(Feature.ASYNC)
        tools = Tools()

        async def main() -> tuple[Played, Run]:
            async with Guard(quiet=True).run(model=MODEL, harness=HARNESS) as run:
                return await self.driver.play_async(asking("a", "a", "a"), tools.by_name, run=run), run

        played, _ = asyncio.run(main())
        assert played.error is None
        assert len(tools.ran) == 2
        assert "was not run again" in played.answers["call-2"]

    def test_an_asynchronous_halt_ends_the_run(self) -> None:
        """Async halt."""
        self._needs(Feature.ASYNC)
        tools = Tools()

        async def main() -> tuple[Played, Run]:
            async with Guard(quiet=True).run(model=MODEL, harness=HARNESS) as run:
                return await self.driver.play_async(asking(*"aaaaaaaa"), tools.by_name, run=run), run

        played, run = asyncio.run(main())
        assert run.halted is not None
        assert len(tools.ran) == 2
        assert len(played.requests) == 5

    def test_cancelling_a_run_releases_what_its_call_held(self) -> None:
        """Cancellation."""
        self._needs(Feature.ASYNC)
        tools = Tools()
        replies = [Reply((Asked("wait", {"seconds": 30.0}, "call-0"),)), Reply(text="done")]

        async def main() -> tuple[int, int]:
            async with Guard(quiet=True).run(model=MODEL, harness=HARNESS) as run:
                task = asyncio.create_task(self.driver.play_async(replies, {"wait": tools.wait}, run=run))
                while not tools.ran:
                    await asyncio.sleep(0.01)
                held = run.ledger.steps
                task.cancel()
                await asyncio.wait([task])
                return held, run.ledger.steps

        assert asyncio.run(asyncio.wait_for(main(), 20)) == (1, 0)

    def test_a_streamed_run_blocks_and_goes_on(self) -> None:
        """Streaming."""
        self._needs(Feature.STREAMING)
        played, _ = self._play(asking("a", "a", "a"), streaming=True)
        assert played.error is None
        assert len(played.ran) == 2
        assert "was not run again" in played.answers["call-2"]


__all__ = [
    "Asked",
    "CapturedSpans",
    "Contract",
    "Driver",
    "Feature",
    "Played",
    "Reply",
    "ToolBrokeError",
    "Tools",
    "asking",
]
