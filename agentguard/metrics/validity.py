"""Arguments against the schemas of their tools."""

from __future__ import annotations

from agentguard.metrics.score import Score
from agentguard.metrics.subject import Subject

NO_SCHEMA = Score("validity")


def validity(subject: Subject) -> Score:
    """Return the share of calls whose arguments fit, among those where that can be told; attempted calls.

    Malformed arguments never fit. None when no call has a schema to be held against.
    """
    told = {index: subject.invalid(index) for index in range(len(subject.trajectory.steps))}
    judged = [index for index, invalid in told.items() if invalid is not None]
    wrong = tuple(index for index in judged if told[index])
    if not judged:
        return NO_SCHEMA
    return Score("validity", 1 - len(wrong) / len(judged), steps=wrong, data={"judged": len(judged)})
