"""What the guard writes as spans: names, kinds, nesting, attributes, status; and what it never writes."""

from __future__ import annotations

import asyncio
import contextlib
import re
import threading
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF
from opentelemetry.semconv._incubating.attributes import error_attributes, gen_ai_attributes
from opentelemetry.trace import NoOpTracerProvider, SpanKind, StatusCode
from structlog.testing import capture_logs

from agentguard import (
    Content,
    Feedback,
    Guard,
    Policy,
    Run,
    RunHalted,
    Tool,
    ToolCall,
    ToolResult,
    Usage,
    record,
    semconv,
)
from agentguard.redaction import Redaction
from agentguard.testing import CapturedSpans, captured_spans, script


@pytest.fixture
def captured() -> Iterator[CapturedSpans]:
    with captured_spans() as spans:
        yield spans


def guard(captured: CapturedSpans, policy: dict[str, Any] | None = None, **settings: Any) -> Guard:
    return Guard(Policy.from_dict(policy or {}), tracer_provider=captured.provider, quiet=True, **settings)


def started(guard: Guard, **names: Any) -> Run:
    return guard.run(**{"model": "m", "harness": "h", "run_id": "r1", **names})


def answer(name: str, arguments: dict[str, Any]) -> str:
    return "ok"


def root(captured: CapturedSpans) -> ReadableSpan:
    (span,) = captured("invoke_agent")
    return span


def calls(captured: CapturedSpans) -> list[dict[str, Any]]:
    return [dict(span.attributes or {}) for span in captured("execute_tool")]


def events(span: ReadableSpan, name: str) -> list[dict[str, Any]]:
    return [dict(event.attributes or {}) for event in span.events if event.name == name]


def status(span: ReadableSpan) -> tuple[StatusCode, str | None]:
    return span.status.status_code, span.status.description


# ---------------------------------------------------------------- the run


def test_a_run_is_an_agent_span_around_its_calls(captured: CapturedSpans):
    with started(guard(captured), agent="coder") as run:
        run.wrap(answer)("search", {"q": "cats"})
    (beginning, call, agent) = captured()
    assert [span.name for span in (beginning, call, agent)] == [
        "agentguard.run_started", "execute_tool search", "invoke_agent coder",
    ]  # fmt: skip
    assert {span.kind for span in captured()} == {SpanKind.INTERNAL}
    assert agent.parent is None
    assert [span.parent and span.parent.span_id for span in (beginning, call)] == [agent.context.span_id] * 2
    assert status(agent) == (StatusCode.UNSET, None)


def test_the_root_says_what_ran_under_which_policy(captured: CapturedSpans):
    checked = guard(captured)
    with started(checked, agent="coder", task="t7") as run:
        run.wrap(answer)("search", {"q": "cats"})
        run.charge(Usage(10, 2, 4, Decimal("0.25")))
        run.finish(outcome=True)
    assert root(captured).attributes == {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": "coder",
        "gen_ai.request.model": "m",
        "agentguard.run.id": "r1",
        "agentguard.run.task": "t7",
        "agentguard.run.ending": "finished",
        "agentguard.run.outcome": True,
        "agentguard.run.steps": 1,
        "agentguard.run.refused": 0,
        "agentguard.run.usage.input_tokens": 10,
        "agentguard.run.usage.output_tokens": 2,
        "agentguard.run.usage.cached_tokens": 4,
        "agentguard.run.usage.cost_usd": 0.25,
        "agentguard.harness.name": "h",
        "agentguard.harness.digest": checked.harness_digest(),
        "agentguard.policy.name": checked.policy.name,
        "agentguard.policy.digest": checked.policy_digest,
        "agentguard.policy.mode": "enforce",
    }


def test_a_run_that_never_ends_is_known_by_its_beginning(captured: CapturedSpans):
    run = started(guard(captured))
    run.wrap(answer)("search", {})
    assert [span.name for span in captured()] == ["agentguard.run_started", "execute_tool search"]
    assert captured()[0].attributes is not None
    assert captured()[0].attributes["agentguard.run.id"] == "r1"
    assert "gen_ai.operation.name" not in captured()[0].attributes


def test_a_model_or_harness_that_nobody_named_is_not_written(captured: CapturedSpans):
    with guard(captured).run():
        pass
    assert {semconv.REQUEST_MODEL, semconv.HARNESS_NAME} & set(root(captured).attributes or {}) == set()


def test_a_halted_run_is_an_error_with_its_code(captured: CapturedSpans):
    with pytest.raises(RunHalted), started(guard(captured, {"budget": {"steps": 1}})) as run:
        script([("search", {"q": 1}), ("search", {"q": 2})], run.wrap(answer))
    attributes = root(captured).attributes or {}
    assert status(root(captured)) == (StatusCode.ERROR, "halted: budget.steps")
    assert attributes["agentguard.run.ending"] == "halted"
    assert attributes["agentguard.run.halt.code"] == "budget.steps"
    assert (attributes["agentguard.run.steps"], attributes["agentguard.run.refused"]) == (2, 1)


def test_a_failed_run_is_an_error_without_a_recorded_exception(captured: CapturedSpans):
    with pytest.raises(KeyError), started(guard(captured)):
        raise KeyError("canary")
    assert status(root(captured)) == (StatusCode.ERROR, "failed")
    assert root(captured).events == ()


def test_the_root_tells_limit_and_use_of_every_ceiling(captured: CapturedSpans):
    policy = {"budget": {"steps": 9, "tokens": 100, "cost_usd": "0.5", "calls_per_tool": 3}}
    with started(guard(captured, policy)) as run:
        run.wrap(answer)("search", {})
        run.charge(Usage(30, 5, None, Decimal("0.125")))
    attributes = root(captured).attributes or {}
    assert {key: value for key, value in attributes.items() if key.startswith("agentguard.budget.")} == {
        "agentguard.budget.steps.limit": 9.0,
        "agentguard.budget.steps.used": 1.0,
        "agentguard.budget.tokens.limit": 100.0,
        "agentguard.budget.tokens.used": 35.0,
        "agentguard.budget.cost_usd.limit": 0.5,
        "agentguard.budget.cost_usd.used": 0.125,
    }


def test_findings_are_evaluations_of_the_run(captured: CapturedSpans):
    with started(guard(captured)) as run:
        dispatch = run.wrap(answer)
        for _ in range(3):
            dispatch("search", {"q": 1})
    assert events(root(captured), "gen_ai.evaluation.result") == [
        {
            "gen_ai.evaluation.name": "agentguard.repeat.identical",
            "gen_ai.evaluation.score.value": 2.0,
            "gen_ai.evaluation.score.label": "block",
            "gen_ai.evaluation.explanation": "found 2 times; at the most it asked to block",
        }
    ]


# ---------------------------------------------------------------- calls


def test_an_ordinary_call_is_told_by_its_fingerprints(captured: CapturedSpans):
    with started(guard(captured)) as run:
        run.judge(call := ToolCall("search", {"q": "cats"}, id="call_1"))
        run.record(call, "ok")
    (told,) = calls(captured)
    prints = told.pop("agentguard.call.fingerprint"), told.pop("agentguard.result.fingerprint")
    assert [len(bytes.fromhex(each)) for each in prints] == [16, 16]
    assert told == {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "search",
        "gen_ai.tool.type": "function",
        "gen_ai.tool.call.id": "call_1",
        "agentguard.run.id": "r1",
        "agentguard.call.seq": 0,
    }
    (span,) = captured("execute_tool")
    assert (status(span), span.events) == ((StatusCode.UNSET, None), ())


def test_equal_calls_have_equal_fingerprints_within_a_run_only(captured: CapturedSpans):
    for run_id in ("r1", "r2"):
        with started(guard(captured), run_id=run_id) as run:
            dispatch = run.wrap(lambda name, arguments: f"took {arguments['t']} ms")
            dispatch("search", {"q": 1, "t": 5})
            dispatch("search", {"t": 5.0, "q": 1})
            dispatch("search", {"q": 2, "t": 6})
    one, same, other, elsewhere, *_ = calls(captured)
    assert one["agentguard.call.fingerprint"] == same["agentguard.call.fingerprint"]
    assert one["agentguard.call.fingerprint"] != other["agentguard.call.fingerprint"]
    assert one["agentguard.call.fingerprint"] != elsewhere["agentguard.call.fingerprint"]
    # Durations do not count when results are compared, by the guard and so by whoever reads its spans.
    assert one["agentguard.result.fingerprint"] == other["agentguard.result.fingerprint"]
    assert one["agentguard.result.fingerprint"] != elsewhere["agentguard.result.fingerprint"]


def test_what_is_unusual_about_a_call_is_told(captured: CapturedSpans):
    with started(guard(captured)) as run, run.lane("child"):
        run.user_turn()
        asked = [ToolCall("search", {"q": 1}), ToolCall("search", {"q": 2})]
        with run.turn(asked):
            for call in asked:
                run.judge(call)
            for call in asked:
                run.record(call, "ok")
    first, second = calls(captured)
    assert (first["agentguard.call.lane"], first["agentguard.call.turn"]) == ("child", 0)
    assert first["agentguard.call.user_turn"] is True
    assert "agentguard.call.user_turn" not in second


def test_a_warning_is_an_event_and_no_error(captured: CapturedSpans):
    with started(guard(captured)) as run:
        dispatch = run.wrap(answer)
        dispatch("search", {"q": 1})
        dispatch("search", {"q": 1})
    span = captured("execute_tool")[1]
    assert (span.attributes or {})["agentguard.call.action"] == "warn"
    assert status(span) == (StatusCode.UNSET, None)
    assert events(span, "agentguard.verdict") == [
        {
            "agentguard.verdict.check": "repeats",
            "agentguard.verdict.code": "repeat.identical",
            "agentguard.verdict.action": "warn",
            "agentguard.verdict.reason": "the identical call stands just before, once",
        }
    ]


def test_a_refused_call_has_a_span_of_its_own(captured: CapturedSpans):
    with started(guard(captured)) as run:
        dispatch = run.wrap(answer)
        assert [type(dispatch("search", {"q": 1})) for _ in range(3)] == [str, str, Feedback]
    span = captured("execute_tool")[2]
    told = span.attributes or {}
    assert span.name == "execute_tool search"
    assert status(span) == (StatusCode.ERROR, "refused: repeat.identical")
    assert told["error.type"] == "agentguard.repeat"
    assert (told["agentguard.call.action"], told["agentguard.call.executed"]) == ("block", False)
    assert "agentguard.result.fingerprint" not in told
    assert [event.name for event in span.events] == ["agentguard.verdict"]


def test_a_budget_that_refuses_tells_limit_and_use(captured: CapturedSpans):
    with pytest.raises(RunHalted), started(guard(captured, {"budget": {"steps": 0}})) as run:
        run.wrap(answer)("search", {})
    (verdict,) = events(captured("execute_tool")[0], "agentguard.verdict")
    assert (verdict["agentguard.verdict.limit"], verdict["agentguard.verdict.used"]) == (0.0, 0.0)


def test_an_approved_call_says_so_beside_what_was_found(captured: CapturedSpans):
    with started(guard(captured, ask=lambda call, decision: "by ann")) as run:
        dispatch = run.wrap(answer)
        for _ in range(3):
            dispatch("search", {"q": 1})
    span = captured("execute_tool")[2]
    assert (span.attributes or {})["agentguard.call.action"] == "allow"
    assert [
        (verdict["agentguard.verdict.code"], verdict["agentguard.verdict.action"])
        for verdict in events(span, "agentguard.verdict")
    ] == [("approved", "allow"), ("repeat.identical", "block")]


def test_in_observe_mode_what_was_found_and_what_was_done_are_apart(captured: CapturedSpans):
    with started(guard(captured, {"mode": "observe"})) as run:
        dispatch = run.wrap(answer)
        for _ in range(3):
            assert dispatch("search", {"q": 1}) == "ok"
    span = captured("execute_tool")[2]
    assert (span.attributes or {})["agentguard.call.action"] == "allow"
    assert events(span, "agentguard.verdict")[0]["agentguard.verdict.action"] == "block"
    assert status(span) == (StatusCode.UNSET, None)


def test_a_tool_that_raises_is_an_error_by_its_class(captured: CapturedSpans):
    def fail(name: str, arguments: dict[str, Any]) -> str:
        raise FileNotFoundError("canary")

    with started(guard(captured)) as run, pytest.raises(FileNotFoundError):
        run.wrap(fail)("read", {})
    (span,) = captured("execute_tool")
    assert (span.attributes or {})["error.type"] == "FileNotFoundError"
    assert status(span) == (StatusCode.ERROR, "FileNotFoundError")
    assert span.events == ()


def test_a_class_of_an_exception_is_named_with_its_module(captured: CapturedSpans):
    class Broken(Exception):
        pass

    def fail() -> None:
        raise Broken

    with started(guard(captured)) as run, pytest.raises(Broken):
        run.tool(fail)()
    assert calls(captured)[0]["error.type"].endswith("test_spans.test_a_class_of_an_exception_is_named_with_its_module."
                                                     "<locals>.Broken")  # fmt: skip


def test_an_error_result_is_an_error(captured: CapturedSpans):
    with started(guard(captured)) as run:
        run.judge(call := ToolCall("read", {}))
        run.record(call, ToolResult("no such file", is_error=True))
    (span,) = captured("execute_tool")
    assert (span.attributes or {})["error.type"] == "tool_error"
    assert status(span) == (StatusCode.ERROR, "tool_error")


def test_an_unknown_result_has_no_fingerprint(captured: CapturedSpans):
    with started(guard(captured)) as run:
        run.judge(call := ToolCall("read", {}))
        run.record(call, None)
    assert "agentguard.result.fingerprint" not in calls(captured)[0]


def test_a_stream_that_is_left_early_is_no_error(captured: CapturedSpans):
    def numbers() -> Iterator[int]:
        yield from range(10)

    with started(guard(captured)) as run:
        stream = run.tool(numbers)()
        next(stream)
        stream.close()  # type: ignore[attr-defined]
    (span,) = captured("execute_tool")
    assert status(span) == (StatusCode.UNSET, None)
    assert "error.type" not in (span.attributes or {})


def test_a_name_of_any_length_and_kind_makes_a_span(captured: CapturedSpans):
    with started(guard(captured)) as run:
        for name in ("x" * 10_000, "\ud800tool", "wörk"):
            run.wrap(answer)(name, {})
    assert [span.name for span in captured("execute_tool")] == [
        "execute_tool " + "x" * 200, "execute_tool ?tool", "execute_tool wörk",
    ]  # fmt: skip
    assert [told["gen_ai.tool.name"] for told in calls(captured)] == ["x" * 10_000, "?tool", "wörk"]


# ---------------------------------------------------------------- where spans hang


def test_the_span_of_a_call_is_current_while_its_tool_runs(captured: CapturedSpans):
    tracer = captured.provider.get_tracer("tool")

    def read() -> str:
        tracer.start_span("inside").end()
        return "ok"

    with started(guard(captured)) as run:
        before = trace.get_current_span()
        run.tool(read)()
        assert trace.get_current_span() is before
    inside, call = captured("inside")[0], captured("execute_tool")[0]
    assert inside.parent is not None
    assert inside.parent.span_id == call.context.span_id


def test_async_calls_at_once_keep_their_own_spans(captured: CapturedSpans):
    tracer = captured.provider.get_tracer("tool")

    async def read(n: int) -> int:
        await asyncio.sleep(0.01 * (3 - n))
        tracer.start_span(f"inside {n}").end()
        return n

    async def main() -> list[int]:
        async with started(guard(captured)) as run:
            tool = run.tool(read)
            return list(await asyncio.gather(*(tool(n) for n in range(3))))

    assert asyncio.run(main()) == [0, 1, 2]
    by_id = {span.context.span_id: (span.attributes or {})["agentguard.call.seq"] for span in captured("execute_tool")}
    assert {span.name: by_id[span.parent.span_id] for span in captured("inside") if span.parent} == {
        "inside 0": 0, "inside 1": 1, "inside 2": 2,
    }  # fmt: skip
    assert {span.parent.span_id for span in captured("execute_tool") if span.parent} == {root(captured).context.span_id}


def test_a_cancelled_call_is_an_error_and_passes_through(captured: CapturedSpans):
    async def wait() -> None:
        await asyncio.sleep(60)

    async def main() -> None:
        async with started(guard(captured)) as run:
            task = asyncio.create_task(run.tool(wait)())
            await asyncio.sleep(0)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

    asyncio.run(main())
    assert calls(captured)[0]["error.type"] == "asyncio.exceptions.CancelledError"


def test_calls_in_threads_without_context_hang_under_their_run(captured: CapturedSpans):
    with started(guard(captured)) as run:
        dispatch = run.wrap(answer)
        refused = [dispatch("search", {}) for _ in range(2)]
        thread = threading.Thread(target=lambda: [dispatch("search", {}), dispatch("read", {})])
        thread.start()
        thread.join()
    assert len(refused) == 2
    assert {span.parent.span_id for span in captured("execute_tool") if span.parent} == {root(captured).context.span_id}
    assert len(captured("execute_tool")) == 4


def test_a_child_run_names_its_parent_and_hangs_under_it(captured: CapturedSpans):
    checked = guard(captured)
    with started(checked) as run:

        def delegate() -> None:
            with started(checked, run_id="r2", parent=run) as child:
                child.wrap(answer)("search", {})

        thread = threading.Thread(target=delegate)
        thread.start()
        thread.join()
    child, parent = captured("invoke_agent")
    assert child.parent is not None
    assert child.parent.span_id == parent.context.span_id
    assert (child.attributes or {})["agentguard.run.parent_id"] == "r1"
    assert "agentguard.run.parent_id" not in (parent.attributes or {})


# ---------------------------------------------------------------- standing down


def test_a_frameworks_agent_span_is_annotated(captured: CapturedSpans):
    tracer = captured.provider.get_tracer("framework")
    marks = {"gen_ai.operation.name": "invoke_agent"}
    with tracer.start_as_current_span("agent", attributes=marks), started(guard(captured)) as run:
        run.wrap(answer)("search", {})
    assert captured("invoke_agent") == []
    (agent,) = [span for span in captured() if span.name == "agent"]
    told = agent.attributes or {}
    assert (told["agentguard.run.id"], told["agentguard.run.ending"]) == ("r1", "finished")
    assert [span.parent.span_id for span in captured("execute_tool") if span.parent] == [agent.context.span_id]


def test_a_second_run_under_a_frameworks_span_has_its_own(captured: CapturedSpans):
    tracer = captured.provider.get_tracer("framework")
    with tracer.start_as_current_span("agent", attributes={"gen_ai.operation.name": "invoke_workflow"}):
        with started(guard(captured), run_id="r1"):
            pass
        with started(guard(captured), run_id="r2"):
            pass
    (second,) = captured("invoke_agent")
    assert (second.attributes or {})["agentguard.run.id"] == "r2"


def test_a_run_that_ends_after_its_frameworks_span_writes_no_more(captured: CapturedSpans):
    span = captured.provider.get_tracer("framework").start_span(
        "a", attributes={"gen_ai.operation.name": "invoke_agent"}
    )
    with capture_logs() as logs, trace.use_span(span, end_on_exit=True):
        run = started(guard(captured))
    run.finish()
    assert logs == []


@pytest.mark.parametrize(
    "marks", [{"gen_ai.operation.name": "execute_tool"}, {"mcp.method.name": "tools/call"}], ids=["genai", "mcp"]
)
def test_a_frameworks_tool_span_is_annotated(captured: CapturedSpans, marks: dict[str, str]):
    tracer = captured.provider.get_tracer("framework")
    with started(guard(captured)) as run:
        dispatch = run.wrap(answer)
        with tracer.start_as_current_span("theirs", attributes={**marks, "gen_ai.tool.name": "search"}):
            dispatch("search", {})
    assert captured("execute_tool") == []
    (theirs,) = captured("theirs")
    assert (theirs.attributes or {})["agentguard.call.seq"] == 0
    assert "agentguard.result.fingerprint" in (theirs.attributes or {})


def test_a_tool_span_of_another_tool_or_another_call_is_not_taken(captured: CapturedSpans):
    tracer = captured.provider.get_tracer("framework")
    theirs = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "search"}
    with started(guard(captured)) as run:
        dispatch = run.wrap(answer)
        with tracer.start_as_current_span("theirs", attributes=theirs):
            dispatch("read", {})
            dispatch("search", {})
            dispatch("search", {"again": 1})
    assert [told["gen_ai.tool.name"] for told in calls(captured)] == ["read", "search"]


def test_a_refused_call_has_its_own_span_inside_a_frameworks(captured: CapturedSpans):
    tracer = captured.provider.get_tracer("framework")
    theirs = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "nope"}
    checked = guard(captured, tools=[Tool(name="search", schema={"type": "object"})])
    with started(checked) as run, tracer.start_as_current_span("theirs", attributes=theirs):
        run.wrap(answer)("nope", {})
    (refused,) = captured("execute_tool")
    (framework,) = captured("theirs")
    assert refused.parent is not None
    assert refused.parent.span_id == framework.context.span_id
    assert "agentguard.call.seq" not in (framework.attributes or {})


# ---------------------------------------------------------------- providers that record nothing, and faults


def test_nothing_is_built_without_a_provider():
    run = Guard(tracer_provider=NoOpTracerProvider(), quiet=True).run(model="m", harness="h")
    assert run._span.recording is False
    with run:
        assert run.wrap(answer)("search", {}) == "ok"


def test_what_is_under_a_run_that_is_not_sampled_is_not_sampled_either():
    provider = TracerProvider(sampler=ALWAYS_OFF)
    with Guard(tracer_provider=provider, quiet=True).run(model="m", harness="h") as run:
        assert run._span.recording is False
        assert trace.get_current_span().get_span_context().is_valid
        assert run.wrap(answer)("search", {}) == "ok"
    assert not trace.get_current_span().get_span_context().is_valid


class Broken(trace.NonRecordingSpan):
    """A span of a telemetry library that fails."""

    def is_recording(self) -> bool:
        return True

    def set_attribute(self, key: str, value: Any) -> None:
        raise RuntimeError("broken")

    set_attributes = add_event = set_status = end = set_attribute  # type: ignore[assignment]


class BrokenProvider(NoOpTracerProvider):
    def __init__(self, fails_from: int) -> None:
        self.left = fails_from

    def get_tracer(self, *names: Any, **more: Any) -> Any:
        return self

    def start_span(self, *names: Any, **more: Any) -> Any:
        self.left -= 1
        if self.left < 0:
            raise RuntimeError("broken")
        return Broken(trace.SpanContext(1, 2, is_remote=False))


@pytest.mark.parametrize("fails_from", [0, 1, 2, 3, 100])
def test_telemetry_that_fails_is_logged_and_changes_nothing(fails_from: int):
    with capture_logs() as logs:
        guard = Guard(tracer_provider=BrokenProvider(fails_from), quiet=True)
        with guard.run(model="m", harness="h") as run:
            dispatch = run.wrap(answer)
            results = [dispatch("search", {}) for _ in range(4)]
    assert [type(result) for result in results] == [str, str, Feedback, Feedback]
    told = [(entry["event"], entry["what"]) for entry in logs]
    assert {event for event, _ in told} == {"agentguard.telemetry_failed"}
    assert len(told) == len(set(told))


# ---------------------------------------------------------------- content

CANARY, SECRET = "c4nary-value", "s3cr3t-value"


@pytest.mark.parametrize(
    ("said", "captures"),
    [
        ("", False), ("NO_CONTENT", False), ("EVENT_ONLY", False), ("false", False), ("nonsense", False),
        ("SPAN_ONLY", True), ("span_and_event", True), ("true", True), (" 1 ", True),
    ],
)  # fmt: skip
def test_content_is_switched_by_the_conventions_variable(monkeypatch: pytest.MonkeyPatch, said: str, captures: bool):
    monkeypatch.setenv("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", said)
    assert Content.from_environment().capture is captures


def busy_run(guard: Guard) -> None:
    """Make a run in which everything carries the canary that can: results, errors, refusals, faults, bad arguments."""

    def dispatch(name: str, arguments: Any) -> Any:
        if name == "fail":
            raise ValueError(f"{CANARY} password={SECRET}")
        return {"text": f"found {CANARY}", "password": SECRET, "note": f"token: {SECRET}"}

    with guard.run(model="m", harness="h", run_id="r1") as run:
        wrapped = run.wrap(dispatch)
        for _ in range(4):
            wrapped("search", {"q": CANARY, "api_key": SECRET})
        for _ in range(3):
            with pytest.raises(ValueError, match=CANARY):
                wrapped("fail", {"q": CANARY, "n": _})
        wrapped("search", {"q": 5, "api_key": SECRET, CANARY: CANARY})
        wrapped("search", f'{{"q": "{CANARY}", "password": "{SECRET}"')
        wrapped("unknown", {"q": CANARY})
        run.judge(call := ToolCall("fail", {"q": CANARY, "n": 9}))
        run.record(call, ToolResult(f"{CANARY} token={SECRET}", is_error=True))


TEXT = {"type": "string"}
SCHEMA = {"type": "object", "properties": {"q": TEXT, "api_key": TEXT}, "additionalProperties": False}
TOOLS = [Tool(name="search", schema=SCHEMA), Tool(name="fail")]


def told_everywhere(tmp_path: Path, content: Content, *, openinference: bool = True) -> str:
    """Return all that leaves the process: spans as the recorder writes them, and the log."""
    provider = TracerProvider()
    with capture_logs() as logs, record(tmp_path, tracer_provider=provider, compress=False, redaction=None):
        busy_run(Guard(tools=TOOLS, tracer_provider=provider, content=content, openinference=openinference))
        provider.force_flush()
    (path,) = tmp_path.iterdir()
    return path.read_text() + repr(logs)


def test_without_content_no_argument_or_result_leaves_the_process(tmp_path: Path):
    told = told_everywhere(tmp_path, Content())
    assert CANARY not in told
    assert SECRET not in told
    assert "input.value" not in told


def test_with_content_arguments_and_results_are_told_and_secrets_never(tmp_path: Path):
    told = told_everywhere(tmp_path, Content(capture=True))
    assert CANARY in told
    assert SECRET not in told


def test_with_redaction_of_ones_own_what_it_names_never_leaves(tmp_path: Path):
    told = told_everywhere(tmp_path, Content(capture=True, redaction=Redaction(patterns=(CANARY, SECRET))))
    assert CANARY not in told
    assert SECRET not in told


def test_feedback_is_redacted(captured: CapturedSpans):
    with started(guard(captured)) as run:
        dispatch = run.wrap(lambda name, arguments: f"found token={SECRET}")
        texts = [str(dispatch("search", {"q": 1})) for _ in range(3)]
    assert "token=" in texts[2]
    assert SECRET not in texts[2]


def test_content_is_json_and_says_what_was_done_to_it(captured: CapturedSpans):
    content = Content(capture=True, redaction=Redaction(max_chars=5))
    with started(guard(captured, content=content)) as run:
        run.wrap(lambda name, arguments: {"b": [1], "a": "x" * 9})("search", {"q": "ok", "token": "t"})
        run.wrap(answer)("read", {"path": "a.py"})
    first, second = calls(captured)
    assert first["gen_ai.tool.call.arguments"] == '{"q":"ok","token":"[redacted]"}'
    assert first["gen_ai.tool.call.result"] == '{"a":"xxxxx[... 4 characters more]","b":[1]}'
    assert (first["agentguard.content.redacted"], first["agentguard.content.truncated"]) == (True, True)
    assert (second["gen_ai.tool.call.arguments"], second["gen_ai.tool.call.result"]) == ('{"path":"a.py"}', '"ok"')
    assert {"agentguard.content.redacted", "agentguard.content.truncated"} & set(second) == set()


@pytest.mark.parametrize("at", [1_985, 1_995, 4_090])
@pytest.mark.parametrize("how", ["returned", "raised", "in data"])
def test_a_result_is_cut_after_secrets_are_taken_out(captured: CapturedSpans, at: int, how: str):
    text = "." * at + " sk-" + "s3cr3t" * 9 + " " + "." * 9_000

    def answered(name: str, arguments: dict[str, Any]) -> Any:
        if how == "raised":
            raise ValueError(text)
        return text if how == "returned" else {"text": text}

    with started(guard(captured, content=Content(capture=True))) as run, contextlib.suppress(ValueError):
        run.wrap(answered)("search", {})
    (told,) = calls(captured)
    assert "s3" not in told["gen_ai.tool.call.result"]
    assert told["agentguard.content.truncated"] is True


def test_arguments_that_are_no_json_are_told_as_text(captured: CapturedSpans):
    with started(guard(captured, content=Content(capture=True), openinference=True)) as run:
        run.wrap(answer)("search", '{"q": ')
    (told,) = calls(captured)
    assert told["gen_ai.tool.call.arguments"] == told["input.value"] == '{"q": '
    assert told["input.mime_type"] == "text/plain"


def test_the_panes_of_phoenix_and_mlflow_are_filled_on_demand(captured: CapturedSpans):
    with started(guard(captured, content=Content(capture=True), openinference=True)) as run:
        dispatch = run.wrap(answer)
        for _ in range(3):
            dispatch("search", {"q": 1})
    ran, _, refused = calls(captured)
    assert {key: ran[key] for key in ran if not key.startswith(("gen_ai.", "agentguard."))} == {
        "openinference.span.kind": "TOOL",
        "input.value": '{"q":1}',
        "input.mime_type": "application/json",
        "output.value": '"ok"',
        "output.mime_type": "application/json",
    }
    assert refused["output.value"] == refused["gen_ai.tool.call.result"]
    assert (root(captured).attributes or {})["openinference.span.kind"] == "AGENT"


def test_the_kinds_of_openinference_need_no_content(captured: CapturedSpans):
    with started(guard(captured, content=Content(), openinference=True)) as run:
        run.wrap(answer)("search", {"q": 1})
    (told,) = calls(captured)
    assert told["openinference.span.kind"] == "TOOL"
    assert "input.value" not in told


def test_the_root_tells_task_and_ending_where_backends_look_for_input_and_output(captured: CapturedSpans):
    checked = guard(captured, content=Content(capture=True), openinference=True)
    with started(checked, task="mail boss, api_key=hunter2") as run:
        run.wrap(answer)("search", {"q": 1})
        run.finish(outcome=True)
    told = root(captured).attributes or {}
    assert (told["input.value"], told["input.mime_type"]) == ("mail boss, api_key=[redacted]", "text/plain")
    assert told["output.value"] == '{"ending":"finished","outcome":true,"steps":1}'
    assert told["output.mime_type"] == "application/json"


def test_a_root_without_content_or_of_a_framework_keeps_its_panes(captured: CapturedSpans):
    with started(guard(captured, content=Content(), openinference=True), task="t"):
        pass
    assert not {"input.value", "output.value"} & set(root(captured).attributes or {})
    checked = guard(captured, content=Content(capture=True), openinference=True)
    marks = {"gen_ai.operation.name": "invoke_agent", "input.value": "what they say"}
    tracer = captured.provider.get_tracer("framework")
    with tracer.start_as_current_span("theirs", attributes=marks), started(checked, task="t"):
        pass
    (theirs,) = captured("theirs")
    assert (theirs.attributes or {})["input.value"] == "what they say"
    assert "output.value" not in (theirs.attributes or {})


def test_the_record_of_a_start_is_no_model_call(captured: CapturedSpans):
    with started(guard(captured, content=Content(), openinference=True), model="m"):
        pass
    (mark,) = [span.attributes or {} for span in captured() if span.name == "agentguard.run_started"]
    assert mark["openinference.span.kind"] == "CHAIN"


# ---------------------------------------------------------------- names and types

TYPES: dict[str, type] = {
    semconv.OPERATION_NAME: str, semconv.AGENT_NAME: str, semconv.REQUEST_MODEL: str, semconv.TOOL_NAME: str,
    semconv.TOOL_TYPE: str, semconv.TOOL_CALL_ID: str, semconv.TOOL_CALL_ARGUMENTS: str, semconv.TOOL_CALL_RESULT: str,
    semconv.ERROR_TYPE: str, semconv.EVALUATION_NAME: str, semconv.EVALUATION_SCORE: float,
    semconv.EVALUATION_LABEL: str, semconv.EVALUATION_EXPLANATION: str, semconv.OI_SPAN_KIND: str,
    semconv.OI_INPUT_VALUE: str, semconv.OI_INPUT_MIME: str, semconv.OI_OUTPUT_VALUE: str, semconv.OI_OUTPUT_MIME: str,
    semconv.RUN_ID: str, semconv.RUN_PARENT_ID: str, semconv.RUN_ENDING: str, semconv.RUN_OUTCOME: bool,
    semconv.RUN_STEPS: int, semconv.RUN_REFUSED: int, semconv.RUN_HALT_CODE: str, semconv.RUN_INPUT_TOKENS: int,
    semconv.RUN_OUTPUT_TOKENS: int, semconv.RUN_CACHED_TOKENS: int, semconv.RUN_COST_USD: float, semconv.RUN_TASK: str,
    semconv.HARNESS_NAME: str, semconv.HARNESS_DIGEST: str, semconv.POLICY_NAME: str, semconv.POLICY_DIGEST: str,
    semconv.POLICY_MODE: str, semconv.CALL_SEQ: int, semconv.CALL_LANE: str, semconv.CALL_TURN: int,
    semconv.CALL_USER_TURN: bool, semconv.CALL_FINGERPRINT: str, semconv.CALL_EXECUTED: bool, semconv.CALL_ACTION: str,
    semconv.RESULT_FINGERPRINT: str, semconv.CONTENT_TRUNCATED: bool, semconv.CONTENT_REDACTED: bool,
    semconv.VERDICT_CHECK: str, semconv.VERDICT_CODE: str, semconv.VERDICT_ACTION: str, semconv.VERDICT_REASON: str,
    semconv.VERDICT_LIMIT: float, semconv.VERDICT_USED: float,
    semconv.BUDGET_LIMIT.format(kind="steps"): float, semconv.BUDGET_USED.format(kind="steps"): float,
}  # fmt: skip


def test_every_attribute_has_its_type_and_every_name_is_written(captured: CapturedSpans):
    content = Content(capture=True, redaction=Redaction(max_chars=9))
    checked = guard(captured, {"budget": {"steps": 4}}, content=content, openinference=True)
    with contextlib.suppress(RunHalted), started(checked, agent="a", task="t") as run:
        run.charge(Usage(1, 2, 1, Decimal(1)))
        with started(checked, run_id="r2") as child:
            child.finish(outcome=False)
        with run.lane("l"):
            run.user_turn()
            with run.turn([call := ToolCall("search", {"q": "x" * 20, "token": 1}, id="c")]):
                run.judge(call)
                run.record(call, ToolResult("no", is_error=True))
        for i in range(9):
            run.wrap(answer)("search", {"q": i})
    seen: dict[str, type] = {}
    for span in captured():
        for attributes in (span.attributes, *(event.attributes for event in span.events)):
            seen |= {key: type(value) for key, value in (attributes or {}).items()}
    assert seen == TYPES


def test_the_scope_names_us_and_no_schema(captured: CapturedSpans):
    with started(guard(captured)):
        pass
    scope = root(captured).instrumentation_scope
    assert scope is not None
    from agentguard import __version__

    assert (scope.name, scope.version, scope.schema_url) == ("agentguard", __version__, "")


# ---------------------------------------------------------------- the page

PAGE = Path(__file__).resolve().parents[1] / "docs" / "telemetry.md"


def test_the_page_on_telemetry_names_every_attribute_and_its_type():
    words: dict[type, str] = {str: "string", int: "int", float: "double", bool: "boolean"}
    rows = dict(re.findall(r"^\| `([a-z_.{}]+)` \| (string|int|double|boolean) \|", PAGE.read_text(), re.MULTILINE))
    assert rows == {name.replace(".steps.", ".{kind}."): words[kind] for name, kind in TYPES.items()}


def test_every_name_of_our_own_that_is_written_is_on_the_page():
    ours = [str(value) for name, value in vars(semconv).items() if name.isupper() and "agentguard." in str(value)]
    unwritten = {semconv.CALL_ID_SYNTHETIC}  # read only
    assert [name for name in ours if f"`{name}`" not in PAGE.read_text() and name not in unwritten] == []


def test_what_is_not_our_own_is_in_the_registry_of_the_conventions():
    registered = {
        value
        for module in (error_attributes, gen_ai_attributes)
        for name, value in vars(module).items()
        if name.isupper() and isinstance(value, str)
    }
    foreign = {name for name in TYPES if not name.startswith("agentguard.") and name not in OPENINFERENCE}
    assert foreign - registered == set()
    operations = {operation.value for operation in gen_ai_attributes.GenAiOperationNameValues}
    assert {semconv.INVOKE_AGENT, semconv.EXECUTE_TOOL} <= operations


OPENINFERENCE = {
    semconv.OI_SPAN_KIND, semconv.OI_INPUT_VALUE, semconv.OI_INPUT_MIME, semconv.OI_OUTPUT_VALUE, semconv.OI_OUTPUT_MIME
}  # fmt: skip
