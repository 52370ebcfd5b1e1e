"""Asserting about trajectories in tests of agents: `assert_trajectory`, and a `trajectory` fixture that is it.

    def test_the_agent_fixes_the_test(trajectory):
        with guard.run(model="gpt-5", harness="my agent 1.4") as run:
            my_agent(run)
        trajectory(run).superset(["list_dir", ("edit_file", {"path": "src/main.py"})]).within(steps=5).no_loops()

It is installed with agentguard; nothing needs to be imported or registered.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import pytest

if TYPE_CHECKING:  # the plugin loads in every run of pytest: what it needs is imported when it is used
    from agentguard.matching import Match, Rules
    from agentguard.reference import Reference
    from agentguard.run import Run
    from agentguard.trajectory import Trajectory


@pytest.fixture
def trajectory() -> Callable[[Run | Trajectory | str | Path], Expectation]:
    """Return `assert_trajectory`."""
    return assert_trajectory


def assert_trajectory(run: Run | Trajectory | str | Path) -> Expectation:
    """Return what can be asserted about a run: one that just ended, one that was read, or the only one of a file."""
    __tracebackhide__ = True
    return Expectation(_trajectory(run))


class Expectation:
    """Assertions about one trajectory, to be chained. Each fails with what it expected and what it got.

    A call is given as a tool's name (any arguments), as a name with arguments, or as a `ToolCall`.
    """

    def __init__(self, trajectory: Trajectory) -> None:
        self.trajectory = trajectory

    def exact(self, calls: Sequence[Any], *, rules: Rules | None = None) -> Self:
        """The same calls in the same order."""
        __tracebackhide__ = True
        return self._match(calls, "exact", rules)

    def in_order(self, calls: Sequence[Any], *, rules: Rules | None = None) -> Self:
        """These calls in this order, others in between allowed."""
        __tracebackhide__ = True
        return self._match(calls, "in_order", rules)

    def any_order(self, calls: Sequence[Any], *, rules: Rules | None = None) -> Self:
        """The same calls, in any order, and no others."""
        __tracebackhide__ = True
        return self._match(calls, "any_order", rules)

    def superset(self, calls: Sequence[Any], *, rules: Rules | None = None) -> Self:
        """All of these calls, others tolerated; pair it with `within`."""
        __tracebackhide__ = True
        return self._match(calls, "superset", rules)

    def subset(self, calls: Sequence[Any], *, rules: Rules | None = None) -> Self:
        """None but these calls, each at most as often."""
        __tracebackhide__ = True
        return self._match(calls, "subset", rules)

    def matches(self, reference: Reference) -> Self:
        """The reference, in its own mode and by its own rules."""
        __tracebackhide__ = True
        from agentguard.matching import diff
        from agentguard.reference import calls_of, judge

        judged = judge(reference, calls_of(self.trajectory.steps))
        if judged.unscored:
            self._fail("could not be judged", "; ".join(judged.unscored))
        if judged.passes is not True:
            faults = "\n".join(f"  - {fault.text}" for fault in judged.faults)
            self._fail(f"is not {reference.match.replace('_', ' ')}", f"{faults}\n\n{diff(judged.comparison)}")
        return self

    def within(self, *, steps: int) -> Self:
        """No more steps than these; a step is a call that was asked for and ran."""
        __tracebackhide__ = True
        ran = sum(step.executed is not False for step in self.trajectory.steps)
        if ran > steps:
            self._fail("is too long", f"  {ran} steps against a budget of {steps}\n\n{self._listed()}")
        return self

    def no_loops(self) -> Self:
        """No identical call, and no identical parallel turn, back to back."""
        __tracebackhide__ = True
        from agentguard.replay import places

        repeats = [index for index, place in enumerate(places(self.trajectory)) if place.identical]
        if repeats:
            names = ", ".join(f"{self.trajectory.steps[index].call.name} (call {index + 1})" for index in repeats)
            self._fail("repeats itself", f"  identical back to back: {names}\n\n{self._listed()}")
        return self

    def no_failures(self) -> Self:
        """No call that failed or was refused."""
        __tracebackhide__ = True
        failed = [
            index
            for index, step in enumerate(self.trajectory.steps)
            if step.executed is False or (step.result is not None and step.result.is_error)
        ]
        if failed:
            names = ", ".join(f"{self.trajectory.steps[index].call.name} (call {index + 1})" for index in failed)
            self._fail("has failures", f"  failed or refused: {names}\n\n{self._listed()}")
        return self

    def finished(self) -> Self:
        """The run came to an end by itself."""
        __tracebackhide__ = True
        if self.trajectory.ending != "finished":
            self._fail("did not finish", f"  it is {self.trajectory.ending}\n\n{self._listed()}")
        return self

    def _match(self, calls: Sequence[Any], mode: str, rules: Rules | None) -> Self:
        __tracebackhide__ = True
        from agentguard.matching import PLAIN, Match
        from agentguard.reference import Reference

        wanted = tuple(_call(call) for call in calls)
        match: Match = Match(mode)
        return self.matches(Reference(calls=wanted, match=match, rules=rules or PLAIN))

    def _fail(self, what: str, details: str) -> None:
        __tracebackhide__ = True
        pytest.fail(f"trajectory {self.trajectory.run_id} {what}:\n{details}", pytrace=False)

    def _listed(self) -> str:
        rows = [f"  {index + 1:>3}  {step.call.name}" for index, step in enumerate(self.trajectory.steps)]
        return "\n".join(rows)


def _call(wanted: Any) -> Any:
    from agentguard.matching import ANYTHING, Call

    if isinstance(wanted, str):
        return Call(wanted, rule=ANYTHING)
    if _is_pair(wanted):
        return _named(*wanted)
    return Call(wanted.name, wanted.arguments)


def _is_pair(wanted: Any) -> bool:
    return isinstance(wanted, tuple)


def _named(name: str, arguments: Mapping[str, Any]) -> Any:
    from agentguard.matching import Call

    return Call(name, dict(arguments))


def _trajectory(run: Any) -> Trajectory:
    from agentguard.run import Run
    from agentguard.trajectory import Trajectory

    if isinstance(run, Trajectory):
        return run
    if isinstance(run, Run):
        return run.trajectory
    from agentguard.traces import read

    found = list(read(str(run)))
    if len(found) != 1:
        pytest.fail(f"{run} holds {len(found)} runs, not one; read it with agentguard.traces.read", pytrace=False)
    return found[0]
