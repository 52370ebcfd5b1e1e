"""Failures, waste and success in spite of them."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from agentguard.call import ToolCall, ToolResult, Usage
from agentguard.decision import Action, Decision, Verdict
from agentguard.metrics import BUILT_IN, Score, Subject
from agentguard.trajectory import Step, Trajectory

SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
BLOCKED = Decision(Action.BLOCK, (Verdict("repeats", "repeat.identical", Action.BLOCK, "again"),), "not run")


def step(tool: str, *, error: str | None = None, **fields: Any) -> Step:
    arguments = fields.pop("arguments", {})
    return Step(call=ToolCall(tool, arguments), result=ToolResult(error or "ok", error is not None), **fields)


def scored(metric: str, *steps: Step, **fields: Any) -> Score:
    return BUILT_IN[metric](Subject(Trajectory(run_id="r", steps=steps, **fields)))


def test_failures_are_the_executed_calls_with_an_error():
    score = scored("failures", step("a", error="no"), step("a"), step("b", error="no"), step("c", executed=False))
    assert (score.value, score.steps) == (2.0, (0, 2))
    assert score.data == {"longest_row": 1, "not_run": 1}


def test_a_row_of_failures_is_counted_as_the_live_check_counts_it():
    row = [step("a", error="one", arguments={"n": n}) for n in range(4)]
    assert scored("failures", *row).data["longest_row"] == 4


def test_success_without_trouble_is_no_recovery():
    assert scored("recovery", step("a"), step("b"), outcome=True) == Score("recovery", 0.0)


def test_recovery_does_not_apply_to_runs_that_did_not_succeed():
    assert scored("recovery", step("a", error="no"), outcome=False) == Score("recovery")
    assert scored("recovery", step("a", error="no"), outcome=None) == Score("recovery")


def test_success_after_a_loop_recovered_by_other_calls():
    score = scored("recovery", step("a"), step("a"), step("b"), outcome=True)
    assert (score.value, score.steps, score.data) == (1.0, (1,), {"by": "other calls", "loop": 1})


def test_a_loop_after_the_work_idled():
    score = scored("recovery", step("edit"), step("look"), step("look"), step("look"), outcome=True)
    assert score.data == {"by": "idled", "loop": 2}
    assert score.reasons[0].text == "succeeded in spite of trouble (2 loop); was done already, then idled"


def test_success_after_a_failed_call_is_a_recovery():
    assert scored("recovery", step("a", error="no"), step("b"), outcome=True).data["failure"] == 1


def test_success_after_invalid_arguments_is_a_recovery():
    steps = [step("f", arguments={"n": "one"}), step("f", arguments={"n": 1})]
    assert scored("recovery", *steps, outcome=True, tools={"f": SCHEMA}).data == {"by": "other calls", "invalid": 1}


def test_a_repeat_that_a_guard_refused_is_no_luck():
    steps = [step("a"), step("a", decision=BLOCKED, executed=False), step("b")]
    assert scored("recovery", *steps, outcome=True).value == 0.0


def test_a_changing_streak_is_no_trouble():
    steps = [Step(call=ToolCall("next"), result=ToolResult(text), call_key="k") for text in ("one", "two")]
    assert scored("recovery", *steps, outcome=True).value == 0.0


def test_recovery_cannot_be_scored_where_loops_cannot():
    steps = [Step(call=ToolCall("f"), result=ToolResult("ok")) for _ in range(2)]
    score = scored("recovery", *steps, outcome=True)
    assert (score.value, score.unscored is None) == (None, False)


def test_waste_counts_each_wasted_call_once():
    steps = [step("a", error="no"), step("a", error="no"), step("b", turn=3), step("b", turn=3), step("c")]
    score = scored("waste", *steps)
    assert (score.value, score.steps, score.data["share"]) == (3.0, (0, 1, 3), 0.6)


def test_a_refused_repeat_is_waste():
    assert scored("waste", step("a"), step("a", decision=BLOCKED, executed=False)).value == 1.0


def test_waste_has_its_seconds_and_its_share_of_the_usage():
    timed = step("a", error="no", started_at=0, ended_at=1_500_000_000)
    usage = Usage(input_tokens=900, output_tokens=100, cost_usd=Decimal("0.50"))
    data = scored("waste", timed, step("b"), usage=usage).data
    assert data == {"share": 0.5, "after_goal": None, "seconds": 1.5, "tokens": 500, "cost_usd": 0.25}


def test_what_was_not_recorded_of_waste_is_none():
    assert scored("waste", step("a", error="no"), usage=Usage(output_tokens=8)).data == {
        "share": 1.0,
        "after_goal": None,
        "seconds": None,
        "tokens": 8,
        "cost_usd": None,
    }
    assert scored("waste", step("a", error="no"), usage=Usage()).data["tokens"] is None
    assert scored("waste") == Score("waste", 0.0)
