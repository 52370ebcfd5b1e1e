"""What an observing guard says live is what the offline half finds in the spans that the guard recorded."""

from __future__ import annotations

import tempfile
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from opentelemetry.sdk.trace import TracerProvider

from agentguard import Content, Guard, Policy, ToolCall, ToolResult, record
from agentguard.backtest import backtest
from agentguard.decision import Verdict
from agentguard.traces import read
from agentguard.trajectory import Trajectory

single = st.tuples(
    st.sampled_from(["read", "send"]),
    st.integers(0, 1),
    st.builds(ToolResult, st.sampled_from(["a", "b", "took 3 ms", "took 4 ms", {"x": 1}]), st.booleans()),
)
happening = st.one_of(single.map(lambda one: [one]), st.lists(single, min_size=2, max_size=3), st.just("user"))
POLICY = Policy.from_dict({"mode": "observe", "tools": {"send": {"writes": True}}})


def recorded(script: list[tuple[str, Any]], *, capture: bool) -> tuple[list[tuple[Verdict, ...]], Trajectory]:
    live: list[tuple[Verdict, ...]] = []
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
                                live.append(run.judge(call).verdicts)
                                run.record(call, result)
        (trajectory,) = read(folder)
    return live, trajectory


def without_figures(verdicts: tuple[Verdict, ...]) -> list[tuple[str, str, str, str]]:
    return [(v.check, v.code, v.action.word, v.reason) for v in verdicts]


@given(st.lists(st.tuples(st.sampled_from(["main", "sub"]), happening), max_size=12), st.booleans())
@settings(deadline=None, max_examples=60)
def test_the_offline_half_finds_in_the_recorded_spans_what_the_live_guard_found(
    script: list[Any], capture: bool
) -> None:
    live, trajectory = recorded(script, capture=capture)
    (replayed,) = backtest([trajectory], POLICY)
    assert [without_figures(d.verdicts) for d in replayed.decisions] == [without_figures(v) for v in live]
    told = [step.decision.verdicts if step.decision else () for step in trajectory.steps]
    assert [without_figures(verdicts) for verdicts in told] == [without_figures(v) for v in live]


@given(st.lists(st.tuples(st.just("main"), happening), min_size=1, max_size=8))
@settings(deadline=None, max_examples=20)
def test_every_call_is_read_back_in_order(script: list[Any]) -> None:
    _, trajectory = recorded(script, capture=True)
    asked = [(tool, {"x": x}) for _, what in script if what != "user" for tool, x, _ in what]
    assert [(step.call.name, step.call.arguments) for step in trajectory.steps] == asked
    assert trajectory.complete is True
