"""Whether the final state passed, as the user or the trace told."""

from __future__ import annotations

from agentguard.metrics.score import Reason, Score
from agentguard.metrics.subject import Subject


def outcome(subject: Subject) -> Score:
    """Return 1 when the final state passed, 0 when it did not; None when nobody said. Never guessed."""
    return _SCORES[subject.trajectory.outcome]


_SCORES = {
    None: Score("outcome"),
    True: Score("outcome", 1.0),
    False: Score("outcome", 0.0, (Reason("outcome.failed", "the final state is wrong"),)),
}
