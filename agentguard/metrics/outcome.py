"""Whether the final state passed, as the user or the trace told."""

from __future__ import annotations

from agentguard.metrics.score import Reason, Score
from agentguard.metrics.subject import Subject


def outcome(subject: Subject) -> Score:
    """Return 1 when the final state passed, 0 when it did not; None when nobody said. Never guessed."""
    told = subject.trajectory.outcome
    if told is None:
        return Score("outcome")
    return Score("outcome", float(told), () if told else (Reason("outcome.failed", "the final state is wrong"),))
