"""Two sets of runs of the same tasks: what got better, what got worse, and what nobody can tell."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import msgspec

from agentguard.report.gates import SEED, by_task
from agentguard.scoring import Grade, RunScore
from agentguard.statistics import Interval, Paired, mcnemar, mean_difference

GOOD_UP: Final = ("outcome", "match", "selection", "arguments", "validity", "ending")
"""Metrics of which more is better."""
GOOD_DOWN: Final = ("repeats", "repeated_turns", "cycles", "steps", "failures", "waste")
"""Metrics of which less is better."""


class Change(enum.StrEnum):
    """Which way a figure went."""

    BETTER = "better"
    WORSE = "worse"
    SAME = "no difference seen"
    """The 95% interval of the difference holds 0, or there are too few tasks for an interval."""


class Compared(msgspec.Struct, frozen=True, kw_only=True):
    """One metric in both sets, over the tasks that both have."""

    metric: str
    base: float
    """Mean over tasks."""
    new: float
    difference: float
    """New less base."""
    interval: Interval | None
    """95%, by resampling tasks. None with fewer than two tasks."""
    tasks: int
    change: Change


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """Everything compared."""

    metrics: tuple[Compared, ...]
    verdicts: Paired
    """Verdicts of the tasks that each set ran once."""

    @property
    def worse(self) -> list[Compared]:
        """What got worse beyond the interval."""
        return [one for one in self.metrics if one.change is Change.WORSE]


def compare(base: Sequence[RunScore], new: Sequence[RunScore]) -> Comparison:
    """Compare two sets of runs by the tasks that both have runs of."""
    compared = (_compared(metric, by_task(base, metric), by_task(new, metric)) for metric in (*GOOD_UP, *GOOD_DOWN))
    return Comparison(metrics=tuple(one for one in compared if one is not None), verdicts=_verdicts(base, new))


def _compared(metric: str, base: Mapping[str, Sequence[float]], new: Mapping[str, Sequence[float]]) -> Compared | None:
    found = mean_difference(base, new, seed=SEED)
    if found is None:
        return None
    shared = [task for task in base if base[task] and new.get(task)]
    return Compared(
        metric=metric,
        base=_mean(base[task] for task in shared),
        new=_mean(new[task] for task in shared),
        difference=found.value,
        interval=found.interval,
        tasks=found.tasks,
        change=_change(found.interval, up=metric in GOOD_UP),
    )


def _mean(values: Iterable[Sequence[float]]) -> float:
    means = [sum(each) / len(each) for each in values]
    return sum(means) / len(means)


def _change(interval: Interval | None, *, up: bool) -> Change:
    if interval is None or interval.low <= 0 <= interval.high:
        return Change.SAME
    return Change.BETTER if (interval.low > 0) is up else Change.WORSE


def _verdicts(base: Iterable[RunScore], new: Iterable[RunScore]) -> Paired:
    one, other = _once(base), _once(new)
    return mcnemar((one[task], other[task]) for task in sorted(one.keys() & other.keys()))


def _once(runs: Iterable[RunScore]) -> dict[str, bool]:
    by_name: dict[str, list[bool]] = {}
    for run in runs:
        if run.task is not None and run.grade is not Grade.UNSCORED:
            by_name.setdefault(run.task, []).append(run.grade is Grade.PASS)
    return {task: verdicts[0] for task, verdicts in by_name.items() if len(verdicts) == 1}
