"""Calls that ran and failed."""

from __future__ import annotations

from agentguard.metrics.score import Score
from agentguard.metrics.subject import Subject

NONE = Score("failures", 0.0)


def failures(subject: Subject) -> Score:
    """Count the executed calls whose result is an error; refused calls are none.

    `data` holds the longest row of failures of one tool in a lane, as the live check counts it, and the calls refused.
    """
    steps = subject.trajectory.steps
    found = tuple(index for index in range(len(steps)) if subject.failed(index))
    if not found and all(step.executed is not False for step in steps):
        return NONE
    data = {
        "longest_row": max((subject.places[index].failures + 1 for index in found), default=0),
        "not_run": sum(step.executed is False for step in steps),
    }
    return Score("failures", float(len(found)), steps=found, data=data)
