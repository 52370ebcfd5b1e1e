"""What the offline metrics call a repeat, a cycle and an overrun is what an observing guard said about the same run."""

from __future__ import annotations

import tempfile
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from opentelemetry.sdk.trace import TracerProvider

from agentguard import Content, Guard, Policy, ToolCall, ToolResult, record
from agentguard.metrics import BUILT_IN, Subject
from agentguard.scoring import rows, score
from agentguard.traces import read
from agentguard.trajectory import Ending, RunKey, Step, Trajectory

BUDGET = 4
POLICY = Policy.from_dict({"mode": "observe", "budget": {"steps": BUDGET}})
single = st.tuples(
    st.sampled_from(["read", "send"]),
    st.integers(0, 1),
    st.builds(ToolResult, st.sampled_from(["a", "b", "took 3 ms", "took 4 ms"]), st.booleans()),
)
happening = st.one_of(single.map(lambda one: [one]), st.lists(single, min_size=2, max_size=3), st.just("user"))
scripts = st.lists(st.tuples(st.sampled_from(["main", "sub"]), happening), max_size=14)


def recorded(script: list[tuple[str, Any]], *, capture: bool) -> Trajectory:
    """Return a run as its spans tell it, with what the observing guard said at each step."""
    provider = TracerProvider()
    with tempfile.TemporaryDirectory() as folder:
        with record(folder, tracer_provider=provider):
            guard = Guard(POLICY, tracer_provider=provider, content=Content(capture=capture), quiet=True)
            with guard.run(model="m", harness="h") as run:
                for lane, what in script:
                    with run.lane(lane):
                        if what == "user":
                            run.user_turn()
                            continue
                        calls = [ToolCall(tool, {"x": x}) for tool, x, _ in what]
                        with run.turn(calls):
                            for call, (_, _, result) in zip(calls, what, strict=True):
                                run.judge(call)
                                run.record(call, result)
        (trajectory,) = read(folder)
    return trajectory


def said(trajectory: Trajectory, *codes: str) -> set[int]:
    """Return the steps of which the guard said one of these."""
    decisions = [step.decision.verdicts if step.decision else () for step in trajectory.steps]
    return {index for index, verdicts in enumerate(decisions) if any(verdict.code in codes for verdict in verdicts)}


def found(trajectory: Trajectory, *metrics: str) -> set[int]:
    subject = Subject(trajectory, step_budget=BUDGET)
    return {step for metric in metrics for step in BUILT_IN[metric](subject).steps}


@given(scripts, st.booleans())
@settings(deadline=None, max_examples=60)
def test_live_and_offline_agree_on_recorded_spans(script: list[Any], capture: bool) -> None:
    trajectory = recorded(script, capture=capture)
    subject = Subject(trajectory)
    live = said(trajectory, "repeat.identical", "repeat.turn")
    offline = found(trajectory, "repeats", "repeated_turns")
    progress = {index for index in offline if subject.places[index].identical >= 2 and subject.places[index].equal < 2}
    assert live == offline - progress
    assert said(trajectory, "cycle") == found(trajectory, "cycles")
    assert said(trajectory, "budget.steps") == found(trajectory, "steps")


step = st.builds(
    lambda tool, n, result, error, turn: Step(
        call=ToolCall(tool, {"n": n} if n else None), result=ToolResult(result, error), turn=turn
    ),
    st.sampled_from(["a", "b"]),
    st.integers(0, 2),
    st.sampled_from(["x", "y"]),
    st.booleans(),
    st.none() | st.integers(0, 2),
)
runs = st.lists(
    st.builds(
        lambda steps, outcome, model, ending, task, number: Trajectory(
            run_id=str(number),
            steps=tuple(steps),
            outcome=outcome,
            key=RunKey(model, "h"),
            ending=ending,
            task=task,
        ),
        st.lists(step, max_size=8),
        st.sampled_from([True, False, None]),
        st.sampled_from(["m", "n"]),
        st.sampled_from(list(Ending)),
        st.sampled_from(["t", "u", None]),
        st.integers(0, 99),
    ),
    max_size=8,
)


@given(runs, st.randoms(use_true_random=False))
@settings(deadline=None)
def test_figures_do_not_depend_on_the_order_of_the_runs(some: list[Trajectory], chance: Any) -> None:
    shuffled = chance.sample(some, len(some))
    assert rows(score(shuffled, step_budget=3)) == rows(score(some, step_budget=3))


@given(runs)
@settings(deadline=None)
def test_every_score_has_a_value_or_says_why_not_and_points_into_its_run(some: list[Trajectory]) -> None:
    for scored, run in zip(score(some, step_budget=3), some, strict=True):
        for one in scored.scores.values():
            assert one.value is None or one.value == one.value
            assert all(0 <= index < len(run.steps) for index in one.steps)
        assert bool(scored.reasons) == (scored.grade == "fail")
        assert all(0 <= index < len(run.steps) for reason in scored.reasons for index in reason.steps)
