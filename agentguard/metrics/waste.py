"""Calls that brought nothing, and what they cost."""

from __future__ import annotations

from typing import Any

from agentguard.metrics.score import Score
from agentguard.metrics.subject import Subject

NONE = Score("waste", 0.0)


def waste(subject: Subject) -> Score:
    """Count the calls that went round, failed, had arguments that do not fit, or stood twice in a turn; attempted.

    `data` holds their share, their own seconds, and tokens and US dollars as the run's total times that share: model
    use is recorded by run, not by call. Beside them stand the calls made after every call of the reference had been
    made, which may be checks and so are no waste for certain. None in `data` means not recorded, or no reference.
    """
    twice = (index for index, place in enumerate(subject.places) if place.duplicate)
    found = tuple(sorted({*subject.troubles, *subject.loops, *twice}))
    if not found and subject.undecided is None and subject.goal is None:
        return NONE
    return Score("waste", float(len(found)), steps=found, unscored=subject.undecided, data=_data(subject, found))


def _data(subject: Subject, found: tuple[int, ...]) -> dict[str, Any]:
    run = subject.trajectory
    share = len(found) / len(run.steps) if run.steps else 0.0
    usage = run.usage
    tokens = None if usage is None else _sum(usage.input_tokens, usage.output_tokens)
    cost = None if usage is None else usage.cost_usd
    return {
        "share": share,
        "after_goal": None if subject.goal is None else len(run.steps) - 1 - subject.goal,
        "seconds": _seconds(subject, found),
        "tokens": None if tokens is None else round(tokens * share),
        "cost_usd": None if cost is None else float(cost) * share,
    }


def _sum(one: int | None, other: int | None) -> int | None:
    return None if one is None and other is None else (one or 0) + (other or 0)


def _seconds(subject: Subject, found: tuple[int, ...]) -> float | None:
    steps = [subject.trajectory.steps[index] for index in found]
    spent = [s.ended_at - s.started_at for s in steps if s.started_at is not None and s.ended_at is not None]
    return sum(spent) / 1e9 if spent or not steps else None
