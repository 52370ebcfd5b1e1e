"""Rules of reading, each on spans built for it."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pytest

from agentguard import Content, Guard, semconv
from agentguard.call import ToolCall, ToolResult, Usage
from agentguard.decision import Action, Decision, Verdict
from agentguard.testing import captured_spans
from agentguard.traces.assemble import Assembler, Naming, assemble, assemble_group, group_of
from agentguard.traces.span import Event, Kind, LogRecord, Span, Status
from agentguard.trajectory import Ending, RunKey, Trajectory

AGENT = {"gen_ai.operation.name": "invoke_agent"}


def span(name: str = "", *, id: str, parent: str | None = None, at: tuple[int, int] = (0, 1), **fields: Any) -> Span:
    defaults: dict[str, Any] = {"trace_id": "t", "scope_name": "test"}
    return Span(
        **{**defaults, "name": name, "span_id": id, "parent_id": parent, "start_ns": at[0], "end_ns": at[1], **fields}
    )


def agent(id: str = "root", *, parent: str | None = None, at: tuple[int, int] = (0, 100), **fields: Any) -> Span:
    attributes = {**AGENT, **fields.pop("attributes", {})}
    return span("invoke_agent", id=id, parent=parent, at=at, attributes=attributes, **fields)


def tool(
    name: str, arguments: Any = None, *, id: str, at: tuple[int, int], call_id: str | None = None, **fields: Any
) -> Span:
    attributes: dict[str, Any] = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": name}
    if arguments is not None:
        attributes["gen_ai.tool.call.arguments"] = arguments if isinstance(arguments, str) else json.dumps(arguments)
    if call_id is not None:
        attributes["gen_ai.tool.call.id"] = call_id
    attributes |= fields.pop("attributes", {})
    return span(f"execute_tool {name}", id=id, at=at, attributes=attributes, **{"parent": "root", **fields})


def chat(
    *calls: tuple[str | None, str, Any], id: str, at: tuple[int, int], text: str | None = None, **fields: Any
) -> Span:
    parts: list[dict[str, Any]] = [
        {"type": "tool_call", "id": call_id, "name": name, "arguments": arguments} for call_id, name, arguments in calls
    ]
    if text is not None:
        parts.append({"type": "text", "content": text})
    attributes = {
        "gen_ai.operation.name": "chat",
        "gen_ai.output.messages": json.dumps([{"role": "assistant", "parts": parts}]),
        **fields.pop("attributes", {}),
    }
    return span("chat m", id=id, at=at, attributes=attributes, **{"parent": "root", **fields})


def one(*spans: Span, logs: tuple[LogRecord, ...] = (), **names: Any) -> Trajectory:
    (trajectory,) = assemble(spans, logs, **names)
    return trajectory


def calls(trajectory: Trajectory) -> list[tuple[str, Any]]:
    return [(step.call.name, step.call.arguments) for step in trajectory.steps]


# --- joining --------------------------------------------------------------------------------------------------


def test_model_and_tool_spans_of_one_call_are_one_step():
    run = one(
        agent(),
        chat(("c1", "page", {"n": 1}), id="m1", at=(0, 10)),
        tool("page", {"n": 1}, id="a", at=(11, 12), call_id="c1"),
        chat(id="m2", at=(13, 20), text="done"),
    )
    assert [step.call for step in run.steps] == [ToolCall("page", {"n": 1}, "c1")]
    assert run.ending is Ending.FINISHED


def test_calls_without_ids_are_joined_by_name_and_arguments():
    run = one(
        agent(),
        chat((None, "page", {"n": 1}), (None, "page", {"n": 2}), id="m1", at=(0, 10)),
        tool("page", {"n": 2}, id="a", at=(11, 12), attributes={"gen_ai.tool.call.result": '"second"'}),
        tool("page", {"n": 1}, id="b", at=(12, 13), attributes={"gen_ai.tool.call.result": '"first"'}),
    )
    assert calls(run) == [("page", {"n": 1}), ("page", {"n": 2})]
    assert [step.result for step in run.steps] == [ToolResult("first"), ToolResult("second")]
    assert {step.turn for step in run.steps} == {1}


def test_an_id_used_again_in_every_turn_is_joined_with_its_own_turn():
    run = one(
        agent(),
        chat(("call_0", "page", {"n": 1}), id="m1", at=(0, 10)),
        tool("page", id="a", at=(11, 12), call_id="call_0", attributes={"gen_ai.tool.call.result": '"1"'}),
        chat(("call_0", "page", {"n": 2}), id="m2", at=(13, 20)),
        tool("page", id="b", at=(21, 22), call_id="call_0", attributes={"gen_ai.tool.call.result": '"2"'}),
    )
    assert [(step.turn, step.call.arguments, step.result) for step in run.steps] == [
        (1, {"n": 1}, ToolResult("1")),
        (2, {"n": 2}, ToolResult("2")),
    ]


def test_a_call_that_was_asked_for_and_never_ran_is_a_step():
    run = one(
        agent(),
        chat(("c1", "nope", {}), ("c2", "page", {"n": 1}), id="m1", at=(0, 10)),
        tool("page", {"n": 1}, id="a", at=(11, 12), call_id="c2"),
    )
    assert [(step.call.name, step.executed) for step in run.steps] == [("nope", False), ("page", True)]


def test_whether_a_call_ran_is_unknown_where_no_tool_has_spans():
    declared = json.dumps([{"type": "function", "name": "page", "parameters": {"type": "object"}}])
    attributes = {"gen_ai.tool.definitions": declared}
    run = one(chat(("c1", "page", {}), ("c2", "nope", {}), id="m1", at=(0, 10), attributes=attributes))
    assert [step.executed for step in run.steps] == [None, False]


def test_the_next_request_tells_what_a_rejected_call_got_back():
    history = [{"role": "tool", "parts": [{"type": "tool_call_response", "id": "c1", "response": "no such tool"}]}]
    run = one(
        agent(),
        chat(("c1", "nope", {}), id="m1", at=(0, 10)),
        chat(("c2", "page", {}), id="m2", at=(11, 20), attributes={"gen_ai.input.messages": json.dumps(history)}),
        tool("page", {}, id="a", at=(21, 22), call_id="c2"),
    )
    assert run.steps[0].result == ToolResult("no such tool")


def test_history_in_a_request_makes_no_calls():
    again = [{"role": "assistant", "parts": [{"type": "tool_call", "id": "c1", "name": "page", "arguments": {}}]}]
    run = one(
        agent(),
        chat(("c1", "page", {}), id="m1", at=(0, 10)),
        chat(id="m2", at=(11, 20), text="done", attributes={"gen_ai.input.messages": json.dumps(again)}),
    )
    assert len(run.steps) == 1


def test_a_retry_of_one_asked_for_call_is_another_attempt():
    failed = {"status_code": Status.ERROR, "status_message": "timeout"}
    run = one(
        agent(),
        chat(("c1", "page", {"n": 1}), id="m1", at=(0, 10)),
        tool("page", {"n": 1}, id="a", at=(11, 12), call_id="c1", **failed),
        tool("page", {"n": 1}, id="b", at=(13, 14), call_id="c1"),
    )
    assert [(step.attempt, step.executed) for step in run.steps] == [(1, None), (2, True)]


def test_a_retry_is_known_without_model_spans_by_its_id():
    failed = {"status_code": Status.ERROR}
    run = one(
        agent(), tool("page", id="a", at=(1, 2), call_id="c", **failed), tool("page", id="b", at=(3, 4), call_id="c")
    )
    assert [(step.turn, step.attempt) for step in run.steps] == [(1, 1), (1, 2)]


# --- duplicates -----------------------------------------------------------------------------------------------


def test_nested_spans_of_one_call_are_one_step():
    run = one(
        agent(),
        tool("page", {"n": 1}, id="a", at=(1, 9)),
        tool("page", id="b", at=(2, 8), parent="a", status_code=Status.ERROR, status_message="boom"),
    )
    assert [(step.call.arguments, step.result) for step in run.steps] == [({"n": 1}, ToolResult("boom", is_error=True))]


def test_a_frameworks_span_inside_the_guards_is_one_step():
    guard = {semconv.CALL_SEQ: 0, semconv.CALL_ACTION: "warn", semconv.RUN_ID: "r"}
    verdict = Event(
        semconv.VERDICT,
        5,
        {
            semconv.VERDICT_CHECK: "repeats",
            semconv.VERDICT_CODE: "repeat.identical",
            semconv.VERDICT_ACTION: "warn",
            semconv.VERDICT_REASON: "the same call again",
        },
    )
    run = one(
        agent(attributes={semconv.RUN_ID: "r", semconv.RUN_STEPS: 1, semconv.RUN_ENDING: "finished"}),
        tool("page", id="guard", at=(1, 9), attributes=guard, events=(verdict,)),
        tool("page", {"n": 1}, id="framework", at=(2, 8), parent="guard", scope_name="framework"),
    )
    (step,) = run.steps
    assert (step.call.arguments, step.seq) == ({"n": 1}, 0)
    assert step.decision == Decision(
        Action.WARN, (Verdict("repeats", "repeat.identical", Action.WARN, "the same call again"),)
    )
    assert (run.run_id, run.ending, run.complete) == ("r", Ending.FINISHED, True)


def test_two_instrumentations_side_by_side_count_once():
    run = one(
        agent(),
        tool("page", {"n": 1}, id="a", at=(1, 9), scope_name="one"),
        tool("page", {"n": 1}, id="b", at=(2, 8), scope_name="two"),
        tool("page", {"n": 1}, id="c", at=(11, 19), scope_name="one"),
        tool("page", {"n": 1}, id="d", at=(12, 18), scope_name="two"),
    )
    assert len(run.steps) == 2


def test_a_tool_that_calls_another_tool_is_two_calls():
    run = one(agent(), tool("plan", {"n": 1}, id="a", at=(1, 9)), tool("page", {"n": 1}, id="b", at=(2, 8), parent="a"))
    assert [(step.call.name, step.lane) for step in run.steps] == [("plan", "main"), ("page", "plan")]


def test_a_tool_that_calls_itself_with_other_arguments_is_two_calls():
    run = one(agent(), tool("page", {"n": 2}, id="a", at=(1, 9)), tool("page", {"n": 1}, id="b", at=(2, 8), parent="a"))
    assert len(run.steps) == 2


def test_a_prefix_that_one_instrumentation_adds_is_kept_in_a_note():
    run = one(agent(), tool("travel.page", {}, id="a", at=(1, 9)), tool("page", id="b", at=(2, 8), parent="a"))
    assert [step.call.name for step in run.steps] == ["page"]
    assert "tool travel.page is page: spans of one call name it both ways" in run.notes


def test_an_alias_renames_a_tool_and_says_so():
    run = one(agent(), tool("travel-page", {}, id="a", at=(1, 9)), aliases={"travel-page": "page"})
    assert [step.call.name for step in run.steps] == ["page"]
    assert "tool travel-page is filed as page" in run.notes


def test_the_phantom_that_sums_up_parallel_calls_is_dropped():
    run = one(agent(), tool("page", id="a", at=(1, 2)), tool("(merged tools)", id="b", at=(3, 4)))
    assert [step.call.name for step in run.steps] == ["page"]


def test_the_same_span_twice_is_read_once():
    call = tool("page", {"n": 1}, id="a", at=(1, 2))
    assert len(one(agent(), call, call).steps) == 1


# --- turns, lanes, order ------------------------------------------------------------------------------------------


def test_overlapping_calls_without_model_spans_share_a_turn():
    run = one(agent(), tool("a", id="a", at=(1, 5)), tool("b", id="b", at=(2, 6)), tool("c", id="c", at=(6, 7)))
    assert [(step.call.name, step.turn) for step in run.steps] == [("a", 1), ("b", 1), ("c", 2)]


def test_calls_between_two_model_spans_without_content_share_a_turn():
    silent = {"gen_ai.operation.name": "chat"}
    run = one(
        agent(),
        span("chat", id="m1", parent="root", at=(0, 10), attributes=silent),
        tool("a", id="a", at=(11, 12)),
        tool("b", id="b", at=(13, 14)),
        span("chat", id="m2", parent="root", at=(15, 20), attributes=silent),
        tool("c", id="c", at=(21, 22)),
        span("chat", id="m3", parent="root", at=(23, 30), attributes=silent),
    )
    assert [(step.call.name, step.turn) for step in run.steps] == [("a", 1), ("b", 1), ("c", 2)]
    assert run.ending is Ending.FINISHED


def test_sub_agents_run_in_lanes_of_their_own_numbered_by_invocation():
    run = one(
        agent(attributes={"gen_ai.agent.name": "boss"}),
        tool("ask", {"q": 1}, id="ask1", at=(1, 9)),
        agent("sub1", parent="ask1", at=(2, 8), attributes={"gen_ai.agent.name": "helper"}),
        tool("page", {"n": 1}, id="p1", at=(3, 4), parent="sub1"),
        tool("ask", {"q": 2}, id="ask2", at=(11, 19)),
        agent("sub2", parent="ask2", at=(12, 18), attributes={"gen_ai.agent.name": "helper"}),
        tool("page", {"n": 1}, id="p2", at=(13, 14), parent="sub2"),
    )
    assert [(step.call.name, step.lane) for step in run.steps] == [
        ("ask", "main"),
        ("page", "helper"),
        ("ask", "main"),
        ("page", "helper#2"),
    ]


def test_agents_beside_one_another_in_a_workflow_are_lanes_by_name():
    workflow = span("w", id="root", at=(0, 100), attributes={"gen_ai.operation.name": "invoke_workflow"})
    run = one(
        workflow,
        agent("one", parent="root", at=(1, 9), attributes={"gen_ai.agent.name": "first"}),
        tool("a", id="a", at=(2, 3), parent="one"),
        agent("two", parent="root", at=(10, 19), attributes={"gen_ai.agent.name": "second"}),
        tool("b", id="b", at=(12, 13), parent="two"),
        agent("three", parent="root", at=(20, 29), attributes={"gen_ai.agent.name": "first"}),
        tool("c", id="c", at=(22, 23), parent="three"),
    )
    assert [(step.call.name, step.lane) for step in run.steps] == [("a", "main"), ("b", "second"), ("c", "main")]


def test_the_guards_numbers_order_the_steps():
    run = one(
        agent(attributes={semconv.RUN_ID: "r", semconv.RUN_STEPS: 2}),
        tool("late", id="a", at=(1, 2), attributes={semconv.CALL_SEQ: 1, semconv.CALL_LANE: "x", semconv.CALL_TURN: 7}),
        tool("early", id="b", at=(3, 4), attributes={semconv.CALL_SEQ: 0, semconv.CALL_FINGERPRINT: "f"}),
    )
    assert [step.call.name for step in run.steps] == ["early", "late"]
    assert (run.steps[0].call_key, run.steps[1].lane, run.steps[1].turn) == ("f", "x", 7)


def test_outermost_agents_of_one_trace_are_runs():
    found = list(
        assemble(
            [
                span("request", id="http"),
                agent("one", parent="http"),
                tool("a", id="a", at=(1, 2), parent="one"),
                agent("two", parent="http"),
                tool("b", id="b", at=(3, 4), parent="two"),
            ]
        )
    )
    assert [(run.run_id, calls(run)) for run in found] == [("t/one", [("a", None)]), ("t/two", [("b", None)])]


def test_making_an_agent_is_no_run():
    made = span("create_agent a", id="x", trace_id="other", attributes={"gen_ai.operation.name": "create_agent"})
    assert [run.run_id for run in assemble([made, agent()])] == ["t"]


# --- runs over several traces -------------------------------------------------------------------------------------


def mcp(trace: str, at: int) -> list[Span]:
    fields = {"trace_id": trace, "resource": {"service.instance.id": "process"}}
    attributes = {"mcp.method.name": "tools/call", "gen_ai.tool.name": "page"}
    return [
        span("tools/call page", id="1", at=(at, at + 9), kind=Kind.CLIENT, attributes=attributes, **fields),
        span(
            "MCP send tools/call page", id="2", parent="1", at=(at + 1, at + 8),
            attributes={"mcp.method.name": "tools/call"}, **fields,
        ),
        span("tools/call page", id="3", parent="2", at=(at + 2, at + 7), attributes=attributes, **fields),
    ]  # fmt: skip


def test_calls_in_traces_of_their_own_are_one_run_of_their_process():
    run = one(*mcp("t1", 0), *mcp("t2", 10))
    assert (run.run_id, len(run.steps)) == ("process", 2)
    assert run.notes[0] == "2 traces of one run or process joined: its calls are traces of their own"


def test_a_run_of_ours_whose_calls_are_in_other_traces_is_put_together():
    ours = {semconv.RUN_ID: "r"}
    root = agent(attributes={**ours, semconv.RUN_STEPS: 1, semconv.RUN_ENDING: "finished"})
    call = tool("page", {}, id="a", at=(1, 2), trace_id="elsewhere", attributes={**ours, semconv.CALL_SEQ: 0})
    run = one(root, call)
    assert (run.run_id, len(run.steps), run.complete) == ("r", 1, True)


def test_a_trace_at_a_time_gives_the_same_as_all_at_once():
    assembler = Assembler(Naming())
    found = [
        *assembler.add(mcp("t1", 0)),
        *assembler.add([agent()]),
        *assembler.add(mcp("t2", 10)),
        *assembler.finish(),
    ]
    assert [len(run.steps) for run in found] == [0, 2]
    assert list(assemble_group([agent()])) == list(assemble([agent()]))
    assert group_of(agent()) == "t"


# --- completeness and endings -----------------------------------------------------------------------------------


def test_a_guard_runs_every_call_that_it_does_not_say_it_refused():
    failed = {"status_code": Status.ERROR, "status_message": "argument is wrong"}
    run = one(
        agent(attributes={semconv.RUN_ID: "r"}),
        tool("page", {}, id="a", at=(1, 2), attributes={semconv.CALL_SEQ: 0}, **failed),
        tool("page", {}, id="b", at=(3, 4), attributes={semconv.CALL_SEQ: 1, semconv.CALL_EXECUTED: False}, **failed),
    )
    assert [step.executed for step in run.steps] == [True, False]


def test_a_gap_in_the_guards_numbers_makes_a_run_incomplete():
    root = agent(attributes={semconv.RUN_ID: "r", semconv.RUN_STEPS: 3})
    numbered = [tool("page", id=str(seq), at=(seq, seq), attributes={semconv.CALL_SEQ: seq}) for seq in (0, 2)]
    assert one(root, *numbered).complete is False


def test_a_run_that_began_and_has_no_root_is_unfinished():
    ours = {semconv.RUN_ID: "r"}
    run = one(
        span(semconv.RUN_STARTED, id="s", parent="root", attributes=ours),
        tool("page", {}, id="a", at=(1, 2), attributes={**ours, semconv.CALL_SEQ: 0}),
    )
    assert (run.ending, run.complete, len(run.steps)) == (Ending.UNFINISHED, None, 1)


def test_a_run_that_only_began_is_a_run():
    run = one(span(semconv.RUN_STARTED, id="s", attributes={semconv.RUN_ID: "r"}))
    assert (run.run_id, run.ending, run.steps) == ("r", Ending.UNFINISHED, ())


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("pydantic_ai.exceptions.UsageLimitExceeded", "too much"),
        ("langgraph.errors.GraphRecursionError", "Recursion limit of 10 reached"),
        ("RuntimeError", "Max iterations of 5 reached!"),
        ("RuntimeError", "step limit reached"),
    ],
)
def test_a_limits_exception_anywhere_halts_the_run(kind, message):
    event = Event("exception", 5, {"exception.type": kind, "exception.message": message})
    run = one(agent(), agent("inner", parent="root", status_code=Status.ERROR, events=(event,)))
    assert run.ending is Ending.HALTED


def test_a_sub_agents_limit_is_not_the_runs():
    event = Event("exception", 5, {"exception.type": "MaxTurnsExceeded", "exception.message": ""})
    run = one(
        agent(),
        chat(("c", "ask", {}), id="m1", at=(0, 1)),
        tool("ask", {}, id="ask", at=(2, 8), call_id="c"),
        agent("inner", parent="ask", at=(3, 7), status_code=Status.ERROR, events=(event,)),
        chat(id="m2", at=(9, 10), text="it gave up"),
    )
    assert run.ending is Ending.FINISHED


def test_a_last_turn_that_still_asks_is_no_end_whatever_the_root_says():
    run = one(
        agent(status_code=Status.OK),
        chat(("c", "page", {}), id="m1", at=(0, 10)),
        tool("page", {}, id="a", at=(11, 12), call_id="c"),
    )
    assert run.ending is Ending.HALTED


def test_asking_for_the_answer_tool_is_an_end():
    run = one(agent(), chat(("c", "final_answer", {"answer": 1}), id="m1", at=(0, 10)))
    assert run.ending is Ending.FINISHED


def test_a_failed_root_fails_the_run():
    run = one(agent(status_code=Status.ERROR, status_message="boom\nmore"))
    assert (run.ending, run.notes[0]) == (Ending.FAILED, "ended with an error: boom")


def test_nothing_but_a_closed_root_says_nothing():
    assert one(agent(), tool("page", id="a", at=(1, 2))).ending is Ending.UNFINISHED


def test_the_last_result_as_the_answer_is_no_end():
    answered = {
        "gen_ai.output.messages": json.dumps([{"role": "assistant", "parts": [{"type": "text", "content": "42"}]}])
    }
    told = {"gen_ai.tool.call.result": "42"}
    assert one(agent(attributes=answered)).ending is Ending.FINISHED
    assert one(agent(attributes=answered), tool("a", id="a", at=(1, 2), attributes=told)).ending is Ending.UNFINISHED


# --- outcome, key, usage ----------------------------------------------------------------------------------------


def evaluation(name: str, **told: Any) -> Event:
    attributes = {semconv.EVALUATION_NAME: name} | {
        f"gen_ai.evaluation.score.{key}": each for key, each in told.items()
    }
    return Event(semconv.EVALUATION_RESULT, 5, attributes)


@pytest.mark.parametrize(
    ("events", "outcome"),
    [
        ((evaluation("goal", label="pass"),), True),
        ((evaluation("goal", value=0.0),), False),
        ((evaluation("goal", label="pass"), evaluation("safe", label="fail")), None),
        ((evaluation("quality", value=0.7),), None),
        ((evaluation("agentguard.loops", label="fail"),), None),
        ((), None),
    ],
)
def test_outcomes_are_told_and_never_invented(events, outcome):
    assert one(agent(events=events)).outcome is outcome


def test_an_evaluation_in_the_log_counts_for_its_span():
    record = LogRecord(
        event_name=semconv.EVALUATION_RESULT,
        trace_id="t",
        span_id="root",
        attributes={semconv.EVALUATION_NAME: "goal", semconv.EVALUATION_LABEL: "pass"},
    )
    assert one(agent(), logs=(record,)).outcome is True


def test_an_outcome_attribute_of_the_users_comes_first():
    root = agent(attributes={"reward": 1.0, semconv.RUN_OUTCOME: False})
    assert one(root, outcome_attribute="reward").outcome is True
    assert one(root).outcome is False
    assert one(agent(attributes={"reward": 0.4}), outcome_attribute="reward").outcome is None


def test_several_models_are_named_together():
    models = [chat(id=str(at), at=(at, at), attributes={"gen_ai.request.model": name}) for at, name in enumerate("bab")]
    assert one(agent(), *models).key.model == "a + b"


def test_a_run_without_a_harness_is_filed_under_unknown_with_a_note():
    run = one(agent(resource={"service.name": "svc"}))
    assert run.key == RunKey()
    assert run.notes[-1] == "no harness is named; the spans are of test in service svc"


def test_the_harness_comes_from_the_user_an_attribute_or_our_spans():
    root = agent(attributes={semconv.HARNESS_NAME: "ours", semconv.HARNESS_DIGEST: "d"}, resource={"team": "b"})
    assert one(root).key == RunKey("unknown", "ours", "d")
    assert one(root, harness_attribute="team").key.harness == "b"
    assert one(root, harness="cli", model="m").key == RunKey("m", "cli", "d")


def test_tokens_are_summed_over_model_spans_only():
    used = {"gen_ai.usage.input_tokens": 10, "gen_ai.usage.output_tokens": 2, "gen_ai.usage.prompt_tokens": 10}
    run = one(
        agent(attributes={"gen_ai.usage.input_tokens": 20}),
        chat(id="m1", at=(0, 1), attributes={**used, "gen_ai.usage.cache_read.input_tokens": 4}),
        chat(id="m2", at=(2, 3), attributes=used),
    )
    assert run.usage == Usage(20, 4, 4, None)


def test_a_request_inside_a_request_is_one():
    used = {"gen_ai.usage.input_tokens": 10, "gen_ai.usage.output_tokens": 2}
    run = one(
        agent(),
        chat(("c", "page", {}), id="m1", at=(0, 9), attributes=used),
        chat(("c", "page", {}), id="m2", at=(1, 8), parent="m1", attributes=used),
    )
    assert (run.usage, len(run.steps)) == (Usage(10, 2), 1)


def test_the_root_counts_where_no_model_span_does():
    root = agent(attributes={"gen_ai.aggregated_usage.input_tokens": 7, "gen_ai.aggregated_usage.output_tokens": 1})
    assert one(root).usage == Usage(7, 1)


def test_cost_is_summed_where_every_request_has_one():
    used = {"gen_ai.usage.input_tokens": 1, "logfire.msg": "x"}
    priced = [chat(id=str(at), at=(at, at), attributes={**used, "operation.cost": 0.1}) for at in (1, 2)]
    free = chat(id="3", at=(3, 3), attributes=used)
    both, one_without = one(agent(), *priced).usage, one(agent(), *priced, free).usage
    assert both is not None
    assert both.cost_usd == Decimal("0.2")
    assert one_without is not None
    assert one_without.cost_usd is None


# --- what is not recorded ---------------------------------------------------------------------------------------


def test_arguments_that_are_not_recorded_are_unknown_and_not_empty():
    (step,) = one(agent(), tool("page", id="a", at=(1, 2))).steps
    assert (step.call.arguments, step.result, step.missing) == (None, None, ("arguments", "result"))


def test_a_bare_value_is_named_by_the_model_span():
    bare = {"openinference.span.kind": "TOOL", "tool.name": "weather", "input.value": "Zürich"}
    run = one(
        agent(),
        chat((None, "weather", {"city": "Zürich"}), id="m", at=(0, 1)),
        span("weather", id="a", parent="root", at=(2, 3), attributes=bare),
    )
    assert calls(run) == [("weather", {"city": "Zürich"})]


def test_a_bare_value_without_a_name_stays_raw_and_is_marked():
    bare = {"openinference.span.kind": "TOOL", "tool.name": "weather", "input.value": "Zürich"}
    (step,) = one(agent(), span("weather", id="a", parent="root", at=(2, 3), attributes=bare)).steps
    assert (step.call.arguments, step.call.raw_arguments) == (None, "Zürich")
    assert "arguments" in step.missing


def test_a_models_malformed_arguments_are_kept_as_it_wrote_them():
    (step,) = one(agent(), chat(("c", "page", '{"n": '), id="m", at=(0, 1))).steps
    assert (step.call.raw_arguments, "arguments" in step.missing) == ('{"n": ', False)


def test_why_says_where_each_field_was_read():
    run = one(
        agent(),
        chat(("c", "page", {"n": 1}), id="m", at=(0, 1)),
        tool("page", id="a", at=(2, 3), call_id="c", attributes={"gen_ai.tool.call.result": "1"}),
        why=True,
    )
    assert run.steps[0].origin == {
        "name": "span m gen_ai.output.messages",
        "arguments": "span m gen_ai.output.messages",
        "result": "span a gen_ai.tool.call.result",
    }


def test_why_is_not_worked_out_unasked():
    assert one(agent(), tool("page", {}, id="a", at=(1, 2))).steps[0].origin is None


# --- hostile input ----------------------------------------------------------------------------------------------


def test_parents_in_a_circle_are_cut():
    run = one(
        span("x", id="a", parent="b", attributes=AGENT),
        span("y", id="b", parent="a", attributes=AGENT),
        tool("page", {}, id="c", at=(1, 2), parent="b"),
    )
    assert len(run.steps) == 1


def test_a_span_that_is_its_own_parent_is_read():
    assert len(one(tool("page", {}, id="a", at=(1, 2), parent="a")).steps) == 1


def test_times_that_run_backwards_or_are_missing_are_read():
    broken = [tool("page", {"n": 1}, id="a", at=(9, 2)), tool("page", {"n": 2}, id="b", at=(0, 0))]
    assert len(one(agent(), *broken).steps) == 2


@pytest.mark.parametrize("value", [7, 1.5, True, [1], {"a": {}}, "[" * 5000, "\ud800", "{" + "'a':" * 300, b"x"])
def test_attributes_of_any_type_raise_nothing(value):
    keys = ["gen_ai.tool.call.arguments", "gen_ai.tool.call.result", "gen_ai.tool.name", "gen_ai.tool.call.id"]
    keys += [semconv.CALL_SEQ, semconv.CALL_TURN, semconv.CALL_FINGERPRINT, semconv.RUN_ID, "error.type"]
    model = ["gen_ai.output.messages", "gen_ai.input.messages", "gen_ai.usage.input_tokens", "gen_ai.response.model"]
    model += ["gen_ai.response.finish_reasons", "gen_ai.tool.definitions"]
    root = [semconv.RUN_STEPS, semconv.RUN_ENDING, semconv.RUN_OUTCOME, semconv.HARNESS_NAME, semconv.RUN_TASK]
    run = one(
        agent(attributes=dict.fromkeys(root, value)),
        chat(id="m", at=(0, 1), attributes=dict.fromkeys(model, value)),
        tool("page", id="a", at=(1, 2), attributes=dict.fromkeys(keys, value)),
    )
    assert len(run.steps) >= 1


# --- our own spans, as the guard writes them -------------------------------------------------------------------------


def test_what_the_guard_writes_is_read_back():
    with captured_spans() as captured:
        guard = Guard(tracer_provider=captured.provider)
        with guard.run(model="m", harness="h") as outer:
            page = outer.tool(lambda n: n * 2, name="page")
            page(1)
            with guard.run(model="m", harness="inner", parent=outer) as inner:
                inner.tool(lambda: "x", name="inside")()
            page(2)
    found = {run.key.harness: run for run in assemble([from_sdk(each) for each in captured()])}
    assert [step.call.name for step in found["h"].steps] == ["page", "page"]
    assert [step.call.name for step in found["inner"].steps] == ["inside"]
    assert {run.run_id for run in found.values()} == {outer.run_id, inner.run_id}
    assert [(run.ending, run.complete) for run in found.values()] == [(Ending.FINISHED, True)] * 2
    assert [step.decision for step in found["h"].steps] == [Decision(Action.ALLOW)] * 2


def test_arguments_that_were_shortened_or_redacted_are_missing_and_still_tell_repeats():
    with captured_spans() as captured:
        guard = Guard(tracer_provider=captured.provider, content=Content(capture=True))
        with guard.run(model="m", harness="h") as run:
            login = run.wrap(lambda name, arguments: "ok")
            login("login", {"password": "hunter2"})
            login("login", {"password": "other"})
            login("login", {"text": "y" * 10_000})
            login("login", {"text": "whole"})
    (read,) = assemble([from_sdk(each) for each in captured()])
    assert [step.call.arguments for step in read.steps] == [None, None, None, {"text": "whole"}]
    assert [step.missing for step in read.steps] == [("arguments",)] * 3 + [()]
    assert len({step.call_key for step in read.steps}) == 4


def from_sdk(ended: Any) -> Span:
    return Span(
        trace_id=f"{ended.context.trace_id:032x}",
        span_id=f"{ended.context.span_id:016x}",
        parent_id=f"{ended.parent.span_id:016x}" if ended.parent else None,
        name=ended.name,
        start_ns=ended.start_time,
        end_ns=ended.end_time,
        status_code=Status(ended.status.status_code.value),
        status_message=ended.status.description or "",
        attributes=dict(ended.attributes),
        events=tuple(Event(each.name, each.timestamp, dict(each.attributes)) for each in ended.events),
        scope_name="agentguard",
    )


def test_a_result_that_reads_like_an_error_is_a_note_and_no_error():
    told = [{"gen_ai.tool.call.result": each} for each in ('"fine"', '"Error: no"', '{"error": "no"}')]
    run = one(agent(), *(tool("page", {}, id=str(at), at=(at, at), attributes=each) for at, each in enumerate(told)))
    assert [step.result is not None and step.result.is_error for step in run.steps] == [False] * 3
    assert "results that read like errors and are not marked as such, of steps 2, 3" in run.notes


# --- long input ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "attributes", [{}, {"gen_ai.tool.call.id": "c"}, {"error.type": "x", "gen_ai.tool.call.id": "c"}]
)
def test_a_long_chain_of_spans_of_one_call_is_read_in_one_go(attributes):
    chain = [tool("page", id=str(at), at=(at, 9_999), parent=str(at - 1), attributes=attributes) for at in range(5_000)]
    assert len(one(*chain).steps) == 1


def test_many_calls_of_one_turn_are_joined_in_one_go():
    asked = [(None, "page", {"n": n}) for n in range(5_000)]
    ran = [tool("page", {"n": n}, id=str(n), at=(n + 2, n + 3)) for n in range(5_000)]
    run = one(agent(), chat(*asked, id="m", at=(0, 1)), *ran)
    assert [step.call.arguments for step in run.steps] == [{"n": n} for n in range(5_000)]


def test_many_runs_started_inside_one_another_are_taken_apart():
    inner = [agent(str(at), parent=str(at - 1), attributes={semconv.RUN_ID: str(at)}) for at in range(2_000)]
    assert len(list(assemble(inner))) == 2_000


def test_two_instrumentations_of_one_request_count_once():
    used = {"gen_ai.usage.input_tokens": 10, "gen_ai.usage.output_tokens": 2}
    run = one(
        agent(),
        chat(("c", "page", {}), id="m1", at=(0, 9), attributes=used, scope_name="one"),
        chat(("c", "page", {}), id="m2", at=(1, 8), attributes=used, scope_name="two"),
    )
    assert (run.usage, len(run.steps)) == (Usage(10, 2), 1)


def test_the_last_calls_that_an_output_asks_for_never_ran():
    pending = [{"role": "assistant", "tool_calls": [{"id": "c2", "function": {"name": "page", "arguments": "{}"}}]}]
    run = one(
        agent(attributes={"gen_ai.output.messages": json.dumps(pending)}),
        span("chat", id="m", parent="root", at=(0, 1), attributes={"gen_ai.operation.name": "chat"}),
        tool("page", {"n": 1}, id="a", at=(2, 3), call_id="c1"),
    )
    assert [(step.call.id, step.executed) for step in run.steps] == [("c1", True), ("c2", False)]
    assert run.ending is Ending.HALTED


def test_arguments_that_a_backend_flattened_are_put_together():
    flat = {"openinference.span.kind": "TOOL", "tool.name": "page", "tool.parameters.n": 1, "tool.parameters.s": "x"}
    deeper = {"openinference.span.kind": "TOOL", "tool.name": "page", "tool.parameters.properties.n": "int"}
    run = one(
        agent(),
        span(id="a", parent="root", at=(1, 2), attributes=flat),
        span(id="b", parent="root", at=(3, 4), attributes=deeper),
    )
    assert [step.call.arguments for step in run.steps] == [{"n": 1, "s": "x"}, None]


def test_a_rejection_that_only_the_step_around_tells_is_the_calls_error():
    step = {"openinference.span.kind": "CHAIN"}
    run = one(
        agent(),
        span(
            "Step 1", id="s1", parent="root", at=(0, 9), attributes=step, status_code=Status.ERROR, status_message="no"
        ),
        chat(("c", "page", {}), id="m1", at=(1, 8), parent="s1"),
        chat(id="m2", at=(10, 11), text="done"),
    )
    assert run.steps[0].result == ToolResult("no", is_error=True)
