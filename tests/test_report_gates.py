"""Gates: what decides whether runs are ready."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from agentguard.call import ToolCall, ToolResult
from agentguard.errors import AgentGuardError
from agentguard.matching import Call, Match
from agentguard.reference import Reference
from agentguard.report import Gate, Report, report
from agentguard.report.gates import Fault, Floor, Share, fault, floor, gates
from agentguard.report.markdown import markdown
from agentguard.report.page import page
from agentguard.report.terminal import gate_lines
from agentguard.scoring import score
from agentguard.traces import ReadReport
from agentguard.trajectory import Ending, RunKey, Step, Trajectory

REFERENCE = Reference(calls=(Call("a", {}),), match=Match.SUPERSET)


def run(*tools: str, run_id: str = "r", **fields: Any) -> Trajectory:
    steps = tuple(Step(call=ToolCall(tool, {}), result=ToolResult("ok")) for tool in tools)
    settings: dict[str, Any] = {"key": RunKey("m", "h"), "ending": Ending.FINISHED}
    return Trajectory(run_id=run_id, steps=steps, **settings | fields)


def reported(*runs: Trajectory, reference: Reference | None = None, step_budget: int | None = None) -> Report:
    return report(score(runs, references=reference, step_budget=step_budget), ReadReport())


def holds(told: Report, *floors: Floor) -> list[bool | None]:
    return [gate.holds for gate in gates(told, floors=floors)]


def test_a_floor_is_missed_when_the_whole_interval_lies_below_it():
    half = reported(*[run("a", outcome=number % 2 == 0) for number in range(40)])
    assert holds(half, Floor(Share.SUCCESS, 0.6)) == [True]
    assert holds(half, Floor(Share.SUCCESS, 0.7)) == [False]


def test_every_model_and_harness_must_have_the_share():
    good = [run("a", outcome=True, key=RunKey("good", "h")) for _ in range(20)]
    bad = [run("a", outcome=False, key=RunKey("bad", "h")) for _ in range(20)]
    found = gates(reported(*good, *bad), floors=[Floor(Share.SUCCESS, 0.9)])
    assert [(gate.name, gate.holds) for gate in found] == [
        ("success of bad + h at least 0.9", False),
        ("success of good + h at least 0.9", True),
    ]


def test_nothing_to_judge_by_is_neither():
    assert holds(reported(run("a")), Floor(Share.SUCCESS, 0.9), Floor(Share.SELECTION, 0.9)) == [None, None]


def test_the_verdict_has_a_share_too():
    told = reported(*[run("a", "a") for _ in range(20)])
    assert holds(told, Floor(Share.PASSED, 0.5)) == [False]


def test_selection_and_arguments_have_intervals_over_tasks():
    pytest.importorskip("scipy")
    runs = [run("a", *["b"] * (number % 3), task=f"t{number}") for number in range(30)]
    told = reported(*runs, reference=REFERENCE)
    (gate,) = gates(told, floors=[Floor(Share.SELECTION, 0.95)])
    assert gate.holds is False
    assert gate.why.startswith("72.2%, 95% interval ")
    assert holds(told, Floor(Share.ARGUMENTS, 1.0)) == [True]


def test_a_single_task_is_judged_by_its_mean():
    told = reported(run("a", "b"), reference=REFERENCE)
    (gate,) = gates(told, floors=[Floor(Share.SELECTION, 0.9)])
    assert (gate.holds, gate.why) == (False, "66.7%")


@pytest.mark.parametrize(
    ("named", "bad"),
    [
        (Fault.LOOPS, run("a", "a")),
        (Fault.BUDGET, run("a", "b", "c")),
        (Fault.ENDING, run("a", ending=Ending.HALTED)),
        (Fault.ACCIDENTAL, run("a", "a", "b", outcome=True)),
        (Fault.MATCH, run("b")),
    ],
)
def test_no_run_may_have_a_fault(named: Fault, bad: Trajectory):
    good = run("a", "b", outcome=True)
    told = reported(good, msgspec.structs.replace(bad, run_id="bad"), reference=REFERENCE, step_budget=2)
    assert gates(told, faults=[named]) == [Gate(f"no {named}", False, "1 of 2 runs, the first bad")]
    assert gates(reported(good, reference=REFERENCE), faults=[named])[0].holds is True


def test_faults_that_nobody_could_look_for_are_neither():
    blind = Trajectory(run_id="r", steps=(Step(call=ToolCall("a")), Step(call=ToolCall("a"))), ending=Ending.FINISHED)
    assert gates(reported(blind), faults=[Fault.LOOPS]) == [Gate("no loops", None, "no run could be scored")]


def test_gates_decide_instead_of_verdicts():
    told = reported(run("a", "a", outcome=True))
    assert (told.verdict, told.exit_code) == ("NOT READY", 1)
    held, missed, open_ = Gate("one", True, ""), Gate("two", False, "why"), Gate("three", None, "none")
    for given, verdict, code in (
        ((held,), "READY", 0),
        ((held, missed, open_), "NOT READY", 1),
        ((held, open_), "NOT ENOUGH DATA", 3),
    ):
        decided = msgspec.structs.replace(told, gates=given)
        assert (decided.verdict, decided.exit_code) == (verdict, code)


def test_every_form_says_how_the_gates_came_out():
    pytest.importorskip("jinja2")
    pytest.importorskip("vl_convert")
    told = msgspec.structs.replace(reported(run("a")), gates=(Gate("no loops", False, "1 of 2 runs"),))
    assert list(gate_lines(told)) == ["gate FAILS: no loops (1 of 2 runs)"]
    assert "gate FAILS: no loops \\(1 of 2 runs\\)" in markdown(told)
    assert "<li>gate FAILS: no loops (1 of 2 runs)</li>" in page(told).decode()


def test_a_floor_is_read_from_text():
    assert floor("arguments=0.85") == Floor(Share.ARGUMENTS, 0.85)


@pytest.mark.parametrize("text", ["speed=0.9", "success", "success=high", "success=1.5", "success=-0.1"])
def test_another_floor_is_told_with_the_way_out(text: str):
    with pytest.raises(AgentGuardError, match=r"e\.g\. success=0\.9"):
        floor(text)


def test_another_fault_is_told_with_those_known():
    with pytest.raises(AgentGuardError, match="crash: no fault that can be looked for; known: loops, budget"):
        fault("crash")
