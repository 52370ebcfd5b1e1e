"""Match, selection and arguments against a reference."""

from __future__ import annotations

from typing import Any

import pytest

from agentguard.call import ToolCall, ToolResult
from agentguard.matching import Attempts, Call, Match
from agentguard.metrics import BUILT_IN, Score, Subject
from agentguard.reference import Reference
from agentguard.trajectory import Step, Trajectory

WANTED = (Call("list", {"path": "src"}), Call("edit", {"path": "a.py"}))


def step(tool: str, arguments: dict[str, Any] | None = None, **fields: Any) -> Step:
    return Step(call=ToolCall(tool, arguments), result=ToolResult("ok"), **fields)


LIST, EDIT, OTHER = step("list", {"path": "src"}), step("edit", {"path": "a.py"}), step("look", {})


def subject(*steps: Step, match: Match = Match.SUPERSET, complete: bool | None = None, **fields: Any) -> Subject:
    reference = Reference(calls=fields.pop("calls", WANTED), match=match, **fields)
    return Subject(Trajectory(run_id="r", steps=steps, complete=complete, outcome=True), reference=reference)


def scored(metric: str, *steps: Step, **settings: Any) -> Score:
    return BUILT_IN[metric](subject(*steps, **settings))


@pytest.mark.parametrize("metric", ["match", "selection", "arguments"])
def test_without_a_reference_it_does_not_apply(metric: str):
    assert BUILT_IN[metric](Subject(Trajectory(run_id="r", steps=(LIST,)))) == Score(metric)


@pytest.mark.parametrize(
    ("mode", "steps", "value"),
    [
        (Match.EXACT, (LIST, EDIT), 1.0),
        (Match.EXACT, (EDIT, LIST), 0.0),
        (Match.IN_ORDER, (LIST, OTHER, EDIT), 1.0),
        (Match.ANY_ORDER, (EDIT, LIST), 1.0),
        (Match.ANY_ORDER, (EDIT, LIST, OTHER), 0.0),
        (Match.SUPERSET, (EDIT, OTHER, LIST), 1.0),
        (Match.SUBSET, (EDIT,), 1.0),
    ],
)
def test_a_run_is_matched_by_the_mode_of_its_reference(mode: Match, steps: tuple[Step, ...], value: float):
    assert scored("match", *steps, match=mode).value == value


def test_what_is_missing_is_named_and_wrong_arguments_point_at_their_call():
    score = scored("match", OTHER, step("list", {"path": "."}))
    assert [(reason.code, reason.text, reason.steps) for reason in score.reasons] == [
        ("match.missing", "expected edit, not called", ()),
        ("match.arguments", "list: arguments differ from those expected: path", (1,)),
    ]
    assert (score.value, score.steps) == (0.0, (1,))


def test_steps_are_counted_in_the_run_also_where_failed_calls_are_left_out():
    failed = Step(call=ToolCall("look", {}), result=ToolResult("no", True))
    score = scored("match", failed, LIST, OTHER, EDIT, match=Match.EXACT, failed_calls=Attempts.SKIP)
    assert score.steps == (2,)


def test_arguments_that_were_not_recorded_cannot_be_scored():
    blind = [step("list"), step("edit")]
    match, arguments = scored("match", *blind), scored("arguments", *blind)
    assert (match.value, match.unscored) == (None, "arguments not recorded (call 1, 2)")
    assert (arguments.value, arguments.unscored) == (None, "arguments not recorded (call 1, 2)")
    assert scored("selection", *blind).value == 1.0


def test_a_call_that_is_missing_fails_whatever_was_not_recorded():
    assert scored("match", step("list")).value == 0.0


def test_a_record_with_gaps_passes_only_where_more_calls_change_nothing():
    assert scored("match", LIST, EDIT, complete=False).value == 1.0
    for steps, mode in (((LIST,), Match.SUPERSET), ((LIST, EDIT), Match.EXACT)):
        score = scored("match", *steps, match=mode, complete=False)
        assert score.unscored == "the record has gaps: calls of the reference may be missing from it"
    assert scored("match", LIST, EDIT, complete=False, forbidden=("drop",)).value is None


def test_a_record_with_gaps_has_no_figures():
    assert scored("selection", LIST, EDIT, complete=False).value is None
    assert scored("arguments", LIST, EDIT, complete=False).value is None


def test_selection_says_precision_recall_and_what_was_called_instead():
    score = scored("selection", LIST, OTHER, OTHER)
    assert score.value == pytest.approx(2 * 1 / 5)
    assert score.data == {"precision": pytest.approx(1 / 3), "recall": 0.5, "instead": [["edit", "look"]]}
    assert score.steps == (1, 2)


def test_selection_of_nothing_wanted_and_nothing_made_is_one():
    assert scored("selection", calls=()).value == 1.0


def test_selection_does_not_look_at_arguments():
    assert scored("selection", step("list", {"path": "."}), EDIT).value == 1.0


def test_arguments_are_scored_where_the_tool_was_right():
    score = scored("arguments", step("list", {"path": "."}), EDIT, OTHER)
    assert (score.value, score.steps, score.data) == (0.5, (0,), {"right": 1, "of": 2})


def test_arguments_do_not_apply_where_no_tool_was_right():
    assert scored("arguments", OTHER) == Score("arguments")


def test_all_arguments_right_is_one():
    assert scored("arguments", LIST, EDIT).value == 1.0


def test_the_budget_of_the_reference_goes_before_the_one_for_all_runs():
    with_budget = subject(LIST, EDIT, step_budget=1)
    assert with_budget.step_budget == 1
    reference = Reference(calls=WANTED, match=Match.SUPERSET)
    assert Subject(Trajectory(run_id="r"), reference=reference, step_budget=7).step_budget == 7


@pytest.mark.parametrize(
    ("steps", "goal"),
    [((LIST, OTHER, EDIT, OTHER), 2), ((LIST, EDIT, EDIT), 1), ((LIST,), None), ((), None)],
)
def test_the_goal_is_reached_when_every_call_was_made(steps: tuple[Step, ...], goal: int | None):
    assert subject(*steps).goal == goal


def test_trouble_after_the_goal_is_idling():
    recovery = scored("recovery", LIST, EDIT, OTHER, OTHER, step("list", {"path": "x"}))
    assert recovery.data == {"by": "idled", "loop": 1}
    assert scored("recovery", OTHER, OTHER, LIST, EDIT).data["by"] == "other calls"


def test_calls_after_the_goal_are_counted_beside_waste():
    assert scored("waste", LIST, EDIT, OTHER, step("look", {"at": 1})).data["after_goal"] == 2
