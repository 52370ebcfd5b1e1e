"""Steps, ending, outcome and validity of recorded runs."""

from __future__ import annotations

from typing import Any

import pytest

from agentguard.call import ToolCall, ToolResult
from agentguard.metrics import BUILT_IN, Score, Subject
from agentguard.tools import Tool
from agentguard.trajectory import Ending, Step, Trajectory

SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}


def step(arguments: dict[str, Any] | None = None, **fields: Any) -> Step:
    return Step(call=ToolCall("f", {} if arguments is None else arguments), result=ToolResult("ok"), **fields)


def steps_score(*steps: Step, budget: int | None = None, complete: bool | None = None) -> Score:
    return BUILT_IN["steps"](Subject(Trajectory(run_id="r", steps=steps, complete=complete), step_budget=budget))


def run_score(metric: str, **fields: Any) -> Score:
    return BUILT_IN[metric](Subject(Trajectory(run_id="r", **fields)))


def validity(*steps: Step, told: dict[str, Any] | None = None, declared: dict[str, Tool] | None = None) -> Score:
    return BUILT_IN["validity"](Subject(Trajectory(run_id="r", steps=steps, tools=told), tools=declared))


def test_more_steps_than_the_budget_are_a_reason():
    score = steps_score(*[step()] * 8, budget=5)
    assert (score.value, score.steps) == (8.0, (5, 6, 7))
    assert [(reason.code, reason.text) for reason in score.reasons] == [
        ("budget.steps", "8 steps against a budget of 5")
    ]


def test_as_many_steps_as_the_budget_are_none():
    assert steps_score(*[step()] * 5, budget=5).reasons == ()


def test_a_call_that_did_not_run_is_no_step_and_one_that_may_have_is():
    score = steps_score(step(), step(executed=False), step(executed=None), budget=2)
    assert (score.value, score.reasons, score.data) == (2.0, (), {"attempted": 3, "budget": 2})


def test_without_a_budget_steps_are_only_counted():
    assert steps_score(*[step()] * 40).reasons == ()


def test_missing_steps_leave_it_open_unless_the_budget_is_passed_already():
    assert steps_score(step(), budget=5, complete=False).unscored == "the record has gaps: steps are missing"
    assert steps_score(*[step()] * 6, budget=5, complete=False).unscored is None


def test_a_run_that_finished_ended_well():
    assert run_score("ending", ending=Ending.FINISHED) == Score("ending", 1.0)


@pytest.mark.parametrize("ending", [Ending.HALTED, Ending.FAILED, Ending.UNFINISHED])
def test_every_other_ending_is_a_reason(ending: Ending):
    score = run_score("ending", ending=ending)
    assert (score.value, [reason.code for reason in score.reasons]) == (0.0, [f"ending.{ending}"])


def test_the_outcome_is_what_was_told():
    assert run_score("outcome", outcome=True) == Score("outcome", 1.0)
    assert run_score("outcome", outcome=None) == Score("outcome")
    assert [reason.text for reason in run_score("outcome", outcome=False).reasons] == ["the final state is wrong"]


def test_validity_is_the_share_of_calls_that_fit_their_schema():
    score = validity(step({"n": 1}), step({"n": "one"}), told={"f": SCHEMA})
    assert (score.value, score.steps, score.data) == (0.5, (1,), {"judged": 2})


def test_a_declared_schema_goes_before_the_one_in_the_trace():
    declared = {"f": Tool(name="f", schema={"type": "object"})}
    assert validity(step({"n": "one"}), told={"f": SCHEMA}, declared=declared).value == 1.0


def test_the_trace_fills_in_where_nothing_is_declared():
    assert validity(step({"n": "one"}), told={"f": SCHEMA}, declared={"f": Tool(name="f")}).value == 0.0


def test_malformed_arguments_never_fit():
    malformed = Step(call=ToolCall("f", None, None, "{n: 1"))
    assert validity(malformed).value == 0.0


def test_validity_does_not_apply_without_schemas():
    assert validity(step({"n": 1})) == Score("validity")
    assert validity(Step(call=ToolCall("f")), told={"f": SCHEMA}) == Score("validity")


@pytest.mark.parametrize("schema", [{"type": "no such type"}, {"type": float("nan")}])
def test_an_unusable_schema_in_a_trace_is_no_schema(schema: dict[str, Any]):
    assert validity(step({"n": 1}), told={"f": schema}) == Score("validity")
