"""Verdicts about runs and the figures of every model + harness."""

from __future__ import annotations

import random
from collections.abc import Iterable
from typing import Any

import pytest

from agentguard.call import ToolCall, ToolResult
from agentguard.matching import ANYTHING, Call, Match, Rules
from agentguard.metrics import Subject
from agentguard.reference import Reference, References
from agentguard.scoring import Confusion, Grade, Rate, RunScore, judge, matched_by, rows, score
from agentguard.statistics import Band, Trials
from agentguard.trajectory import Ending, RunKey, Step, Trajectory


def step(tool: str, arguments: dict[str, Any] | None = None, *, error: str | None = None) -> Step:
    return Step(call=ToolCall(tool, arguments or {}), result=ToolResult(error or "ok", error is not None))


def run(*steps: Step, **fields: Any) -> Trajectory:
    settings: dict[str, Any] = {"run_id": "r", "ending": Ending.FINISHED, "key": RunKey("m", "h 1")}
    return Trajectory(steps=steps, **(settings | fields))


def judged(*steps: Step, step_budget: int | None = None, **fields: Any) -> RunScore:
    return judge(Subject(run(*steps, **fields), step_budget=step_budget))


def texts(scored: RunScore) -> list[str]:
    return [reason.text for reason in scored.reasons]


WORKED_EXAMPLE = (
    step("search_docs", {"q": "failing test"}),
    step("search_docs", {"q": "failing test"}),
    step("read_file", {"path": "src/mian.py"}, error="no such file"),
    step("read_file", {"path": "src/mian.py"}, error="no such file"),
    step("run_tests"),
    step("list_dir", {"path": "src"}),
    step("edit_file", {"path": "src/main.py"}),
    step("run_tests"),
)
REQUIRED = Reference(calls=(Call("list_dir"), Call("edit_file")), match=Match.SUPERSET, rules=Rules(default=ANYTHING))


def test_the_run_that_passes_and_should_not_fails_for_exactly_three_reasons():
    (scored,) = score([run(*WORKED_EXAMPLE, outcome=True)], references=REQUIRED, step_budget=5)
    assert (scored.response, scored.grade) == (Grade.PASS, Grade.FAIL)
    assert texts(scored) == [
        "repeated identical call search_docs",
        "repeated identical call read_file",
        "8 steps against a budget of 5",
    ]
    assert scored.scores["match"].value == 1.0
    assert scored.scores["recovery"].value == 1.0
    assert not {4, 7} & set(scored.scores["repeats"].steps)


def test_missing_calls_are_the_first_reason():
    (scored,) = score([run(step("a"), step("a"))], references=REQUIRED)
    assert texts(scored) == [
        "expected list_dir, not called",
        "expected edit_file, not called",
        "repeated identical call a",
    ]


def test_references_are_found_by_run_before_task():
    references = References(
        tasks={"t": Reference(calls=(Call("a"),), match=Match.EXACT, rules=Rules(default=ANYTHING))},
        runs={"own": Reference(calls=(), match=Match.SUPERSET)},
    )
    runs = [run(step("a"), task="t"), run(step("b"), task="t", run_id="own"), run(step("b"), task="other")]
    modes = [scored.scores["match"].data.get("mode") for scored in score(runs, references=references)]
    assert modes == ["exact", "superset", None]


def test_another_mode_is_put_in_place_of_every_references_own():
    reference = Reference(calls=(), match=Match.EXACT, alternatives=(Reference(calls=(), match=Match.IN_ORDER),))
    changed = matched_by(References(tasks={"t": reference}, runs={"r": reference}), Match.SUBSET)
    modes = [each.match for found in (changed.tasks["t"], changed.runs["r"]) for each in found.candidates()]
    assert modes == [Match.SUBSET] * 4


def test_nothing_wrong_passes():
    scored = judged(step("a"), step("b"), outcome=True, step_budget=2)
    assert (scored.grade, scored.response, scored.reasons, scored.unscored) == (Grade.PASS, Grade.PASS, (), ())


def test_every_reason_is_listed_in_the_order_of_the_checks():
    scored = judged(*[step("a")] * 2, step("b"), outcome=False, ending=Ending.HALTED, step_budget=2)
    assert texts(scored) == [
        "repeated identical call a",
        "3 steps against a budget of 2",
        "did not finish: stopped by a guard or a limit",
        "the final state is wrong",
    ]
    assert (scored.grade, scored.response) == (Grade.FAIL, Grade.FAIL)


def test_what_was_not_recorded_leaves_a_run_unscored():
    blind = [Step(call=ToolCall("a")), Step(call=ToolCall("a"))]
    scored = judged(*blind, outcome=True)
    assert (scored.grade, scored.response) == (Grade.UNSCORED, Grade.PASS)
    assert scored.unscored == ("neither arguments nor fingerprints of neighbouring calls were recorded",)


def test_what_is_known_to_be_wrong_fails_a_run_whatever_was_not_recorded():
    blind = [Step(call=ToolCall("a")), Step(call=ToolCall("a"))]
    assert judged(*blind, outcome=False).grade is Grade.FAIL


def test_the_response_level_is_open_where_nobody_told_the_outcome():
    assert judged(step("a")).response is Grade.UNSCORED


def test_metrics_outside_the_verdict_give_no_reason_to_fail():
    scored = judged(step("a", error="no"), step("b"), outcome=True)
    assert (scored.grade, scored.scores["recovery"].value) == (Grade.PASS, 1.0)


def test_runs_are_filed_under_model_and_harness():
    keys = [RunKey("m", "h 1"), RunKey("m", "h 2"), RunKey("m", "h 1", "d1"), RunKey("m", "h 1")]
    found = rows(score(run(step("a"), key=key, run_id=str(n)) for n, key in enumerate(keys)))
    assert [(row.key, row.runs) for row in found] == [
        (RunKey("m", "h 1"), 2),
        (RunKey("m", "h 1", "d1"), 1),
        (RunKey("m", "h 2"), 1),
    ]


def test_a_row_counts_what_its_runs_did():
    runs = [
        run(step("a"), step("a"), step("b"), outcome=True),
        run(*[step("a", {"n": n}) for n in range(5)], outcome=False),
        run(step("a"), ending=Ending.UNFINISHED),
        run(Step(call=ToolCall("a")), Step(call=ToolCall("a"))),
    ]
    (row,) = rows(score(runs, step_budget=4))
    assert (row.runs, row.calls, row.unscored) == (4, 11, 1)
    assert (row.success, row.back_to_back, row.over_budget) == (Rate(1, 2), Rate(1, 3), Rate(1, 4))
    assert (row.not_terminated, row.accidental, row.passed) == (Rate(1, 4), Rate(1, 1), Rate(0, 3))
    assert row.median_steps == 2.5


def test_a_repeated_turn_counts_as_back_to_back():
    turns = [Step(call=ToolCall(tool, {}), turn=turn) for turn in (1, 2) for tool in ("a", "b")]
    assert rows(score([run(*turns)]))[0].back_to_back == Rate(1, 1)


def test_missing_steps_leave_the_budget_open():
    (row,) = rows(score([run(step("a"), complete=False)], step_budget=4))
    assert (row.over_budget, row.over_budget.share) == (Rate(0, 0), None)


def test_only_the_metrics_asked_for_are_worked_out():
    from agentguard.metrics import BUILT_IN

    (row,) = rows(score([run(step("a"))], step_budget=4, metrics={"ending": BUILT_IN["ending"]}))
    assert (list(row.figures), row.median_steps, row.over_budget) == (["ending"], None, Rate(0, 0))


@pytest.mark.parametrize("seed", range(5))
def test_rows_do_not_depend_on_the_order_of_the_runs(seed: int):
    runs = [some_run(random.Random(number), number) for number in range(40)]
    shuffled = random.Random(seed).sample(runs, len(runs))
    assert rows(score(shuffled, step_budget=6)) == rows(score(runs, step_budget=6))


def some_run(chance: random.Random, number: int) -> Trajectory:
    steps: Iterable[Step] = (step(chance.choice("ab"), {"n": chance.randrange(2)}) for _ in range(chance.randrange(9)))
    key = RunKey(chance.choice("mn"), chance.choice("hg"))
    return run(*steps, run_id=str(number), key=key, outcome=chance.choice([True, False, None]))


def test_tasks_tried_several_times_have_pass_at_k_and_pass_every_k():
    outcomes = {"t": [True, True], "u": [True, False], "v": [True], "w": [None, True]}
    runs = [run(step("a"), task=task, outcome=outcome) for task, told in outcomes.items() for outcome in told]
    (row,) = rows(score(runs))
    assert row.trials == Trials(k=2, at_least_one=1.0, every=0.5, tasks=2, left_out=2)


def test_tasks_tried_once_have_none():
    assert rows(score([run(step("a"), task="t", outcome=True)]))[0].trials is None


def test_loops_are_told_by_the_length_of_the_runs():
    short, long = run(step("a"), step("a")), run(*[step("a", {"n": n}) for n in range(8)], step("a", {"n": 7}))
    (row,) = rows(score([short, run(step("a")), long]))
    assert row.loops_by_length == (Band(1, 5, 1, 2), Band(6, 10, 1, 1))


def test_marginal_steps_are_those_beyond_the_fewest_that_did_the_task():
    short = run(step("a"), task="t", outcome=True, key=RunKey("good", "h"))
    long = run(*[step("a", {"n": n}) for n in range(4)], task="t", outcome=False, key=RunKey("bad", "h"))
    never = run(step("a"), task="u", outcome=False, key=RunKey("bad", "h"))
    bad, good = rows(score([long, short, never]))
    assert (bad.marginal_steps, good.marginal_steps) == (3.0, 0.0)
    assert rows(score([never]))[0].marginal_steps is None


def test_steps_that_are_missing_are_no_record():
    torn = run(step("a"), task="t", outcome=True, complete=False)
    whole = run(step("a"), step("b"), task="t", outcome=True)
    assert rows(score([torn, whole]))[0].marginal_steps == 0.0


def test_tools_called_instead_are_counted():
    runs = [run(step("look")), run(step("look")), run(step("read"), step("list_dir"))]
    (row,) = rows(score(runs, references=REQUIRED))
    assert row.instead == (Confusion("list_dir", "look", 2), Confusion("edit_file", "read", 1))
