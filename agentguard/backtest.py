"""What a policy would have done to runs that are already recorded."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

import msgspec
from opentelemetry.trace import NoOpTracerProvider

from agentguard.call import ToolCall, ToolResult
from agentguard.decision import Action, Decision
from agentguard.guard import Guard
from agentguard.loops import Outcome
from agentguard.policy import Mode, Policy
from agentguard.replay import What, events, result_token
from agentguard.run import Run
from agentguard.trajectory import RunKey, Step, Trajectory


class Backtest(msgspec.Struct, frozen=True, kw_only=True):
    """What a policy would have done to one recorded run."""

    run_id: str
    key: RunKey
    outcome: bool | None
    decisions: tuple[Decision, ...]
    """One a step, as an observing guard gives them: the recorded run goes on whatever they ask for."""

    @property
    def first_halt(self) -> int | None:
        """Index of the step at which the run would have been halted; None when it would not."""
        return next((i for i, d in enumerate(self.decisions) if _asked_for(d) is Action.HALT), None)

    @property
    def blocks(self) -> tuple[int, ...]:
        """Indices of the steps that would have been refused before any halt."""
        end = self.first_halt
        judged = self.decisions if end is None else self.decisions[:end]
        return tuple(i for i, decision in enumerate(judged) if _asked_for(decision) is Action.BLOCK)


class Summary(msgspec.Struct, frozen=True, kw_only=True):
    """What a policy would have done to many runs."""

    runs: int
    halted: int
    """Runs that would have been halted."""
    halted_successes: int
    """Runs among them whose recorded outcome was a success: false alarms, if the halt was not needed."""
    successes: int
    failures: int
    halted_failures: int
    blocked_calls: int
    saved_calls: int
    """Calls that would not have run: the blocked ones, and all from the first halt on."""
    codes: Mapping[str, int]
    """Runs by the code of their first halt."""


def backtest(trajectories: Iterable[Trajectory], policy: Policy, *, tools: object = ()) -> Iterator[Backtest]:
    """Yield what the policy would have done, run by run."""
    observing = msgspec.structs.replace(policy, mode=Mode.OBSERVE)
    for trajectory in trajectories:
        clock = _RecordedClock(trajectory)
        guard = Guard(observing, tools=tools, tracer_provider=NoOpTracerProvider(), clock=clock, quiet=True)
        run = guard.run(model=trajectory.key.model, harness=trajectory.key.harness)
        decisions = tuple(_replayed(run, trajectory, clock))
        yield Backtest(run_id=trajectory.run_id, key=trajectory.key, outcome=trajectory.outcome, decisions=decisions)


def summary(tested: Iterable[Backtest]) -> Summary:
    """Return the totals over many runs."""
    count: Counter[str] = Counter()
    codes: Counter[str] = Counter()
    for one in tested:
        halt = one.first_halt
        count["runs"] += 1
        count["successes"] += one.outcome is True
        count["failures"] += one.outcome is False
        count["blocked_calls"] += len(one.blocks)
        count["saved_calls"] += len(one.blocks) + (len(one.decisions) - halt if halt is not None else 0)
        if halt is not None:
            count["halted"] += 1
            count["halted_successes"] += one.outcome is True
            count["halted_failures"] += one.outcome is False
            codes[one.decisions[halt].code or ""] += 1
    names = [field.name for field in msgspec.structs.fields(Summary) if field.name != "codes"]
    return Summary(**{name: count[name] for name in names}, codes=dict(codes.most_common()))


class _RecordedClock:
    """Shows the seconds of the run that is replayed."""

    def __init__(self, trajectory: Trajectory) -> None:
        times = [step.started_at for step in trajectory.steps if step.started_at is not None]
        self._began = trajectory.started_at if trajectory.started_at is not None else min(times, default=0)
        self._now = self._began

    def __call__(self) -> float:
        return (self._now - self._began) / 1e9

    def at(self, time_ns: int | None) -> None:
        if time_ns is not None:
            self._now = max(self._now, time_ns)


def _asked_for(decision: Decision) -> Action:
    return decision.verdicts[0].action if decision.verdicts else Action.ALLOW


def _replayed(run: Run, trajectory: Trajectory, clock: _RecordedClock) -> list[Decision]:
    steps = trajectory.steps
    calls = [_call(step) for step in steps]
    decisions: dict[int, Decision] = {}
    turns: dict[str, contextlib.ExitStack] = {}
    for event in events(steps):
        index = event.steps[0]
        with run.lane(event.lane):
            if event.what is What.USER_TURN:
                run.user_turn()
            elif event.what is What.TURN_OPENS:
                turns[event.lane] = contextlib.ExitStack()
                turns[event.lane].enter_context(run.turn([calls[i] for i in event.steps]))
            elif event.what is What.TURN_CLOSES:
                turns.pop(event.lane).close()
            elif event.what is What.CALL:
                clock.at(steps[index].started_at)
                decisions[index] = run.judge(calls[index])
            else:
                clock.at(steps[index].ended_at)
                run.record(calls[index], _result(steps[index]))
    return [decisions[index] for index in range(len(steps))]


def _call(step: Step) -> ToolCall:
    """Return a call object of its own for the step; without arguments its fingerprint stands for them."""
    call = step.call
    if call.arguments is None and call.raw_arguments is None and step.call_key is not None:
        return ToolCall(call.name, {"": step.call_key}, call.id)
    return ToolCall(call.name, call.arguments, call.id, call.raw_arguments)


def _result(step: Step) -> ToolResult | None:
    token = result_token(step)
    if isinstance(token, Outcome):
        return None
    content = token.decode() if isinstance(token, bytes) else token.removeprefix("!")
    return ToolResult(content, step.result is not None and step.result.is_error)
