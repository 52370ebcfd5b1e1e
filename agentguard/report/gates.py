"""Conditions under which runs are ready: floors under shares, and faults that no run may have."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Sequence
from typing import Final

import msgspec

from agentguard.errors import AgentGuardError
from agentguard.report import Gate, Report
from agentguard.scoring import Grade, Row, RunScore, not_terminated, over_budget
from agentguard.statistics import Interval, mean_over_tasks, wilson

SEED: Final = 0
"""Of the bootstrap: the same runs give the same interval."""


class Share(enum.StrEnum):
    """What can have a floor."""

    SUCCESS = "success"
    PASSED = "passed"
    SELECTION = "selection"
    ARGUMENTS = "arguments"
    VALIDITY = "validity"


class Fault(enum.StrEnum):
    """What no run may have."""

    LOOPS = "loops"
    BUDGET = "budget"
    ENDING = "ending"
    ACCIDENTAL = "accidental"
    MATCH = "match"


class Floor(msgspec.Struct, frozen=True):
    """A share that every model + harness must have."""

    share: Share
    least: float
    """0 to 1."""


def floor(text: str) -> Floor:
    """Return the floor that "selection=0.9" asks for; anything else is an AgentGuardError.

    >>> floor("selection=0.9")
    Floor(share=<Share.SELECTION: 'selection'>, least=0.9)
    """
    name, _, figure = text.partition("=")
    if name not in list(Share):
        raise AgentGuardError(f"{text}: no share to put a floor under; known: {', '.join(Share)}, e.g. success=0.9")
    try:
        least = float(figure)
    except ValueError:
        least = -1.0
    if not 0 <= least <= 1:
        raise AgentGuardError(f"{text}: a floor is a share from 0 to 1, e.g. {name}=0.9")
    return Floor(Share(name), least)


def fault(text: str) -> Fault:
    """Return the fault of this name; an AgentGuardError when there is none.

    >>> fault("loops")
    <Fault.LOOPS: 'loops'>
    """
    if text not in list(Fault):
        raise AgentGuardError(f"{text}: no fault that can be looked for; known: {', '.join(Fault)}")
    return Fault(text)


def gates(report: Report, *, floors: Sequence[Floor] = (), faults: Sequence[Fault] = ()) -> list[Gate]:
    """Return how the conditions came out, for every model + harness."""
    return [
        *(
            _floor(row, [run for run in report.runs if run.key == row.key], floor)
            for floor in floors
            for row in report.rows
        ),
        *(_without(report.runs, fault) for fault in faults),
    ]


def _floor(row: Row, runs: list[RunScore], wanted: Floor) -> Gate:
    """A floor is missed when the whole 95% interval lies below it, not when the point does."""
    name = f"{wanted.share} of {row.key.model} + {row.key.harness} at least {wanted.least:g}"
    value, interval = _figure(row, runs, wanted.share)
    if value is None:
        return Gate(name, None, "no run has a figure")
    told = (
        f"{value:.1%}" if interval is None else f"{value:.1%}, 95% interval {interval.low:.1%} to {interval.high:.1%}"
    )
    return Gate(name, (interval.high if interval is not None else value) >= wanted.least, told)


def _figure(row: Row, runs: list[RunScore], share: Share) -> tuple[float | None, Interval | None]:
    if share in (Share.SUCCESS, Share.PASSED):
        rate = row.success if share is Share.SUCCESS else row.passed
        return rate.share, wilson(rate.hits, rate.of)
    found = mean_over_tasks(by_task(runs, str(share)), seed=SEED)
    return (None, None) if found is None else (found.value, found.interval)


def by_task(runs: Iterable[RunScore], metric: str) -> dict[str, list[float]]:
    """Return a metric's values by task; a run without a task is a task of its own."""
    values: dict[str, list[float]] = {}
    for run in runs:
        score = run.scores.get(metric)
        if score is not None and score.value is not None:
            values.setdefault(run.task if run.task is not None else f"run {run.run_id}", []).append(score.value)
    return values


_HAS: Final[dict[Fault, Callable[[RunScore], bool]]] = {
    Fault.LOOPS: lambda run: any(reason.code.startswith(("repeat.", "cycle")) for reason in run.reasons),
    Fault.BUDGET: lambda run: bool(over_budget(run)),
    Fault.ENDING: not_terminated,
    Fault.ACCIDENTAL: lambda run: run.scores["recovery"].value == 1,
    Fault.MATCH: lambda run: any(reason.code.startswith("match.") for reason in run.reasons),
}


def _without(runs: Iterable[RunScore], fault: Fault) -> Gate:
    told = list(runs)
    having = [run.run_id for run in told if _HAS[fault](run)]
    if not having and all(run.grade is Grade.UNSCORED for run in told):
        return Gate(f"no {fault}", None, "no run could be scored")
    first = f", the first {having[0]}" if having else ""
    return Gate(f"no {fault}", not having, f"{len(having):,} of {len(told):,} runs{first}")
