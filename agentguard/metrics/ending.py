"""Whether the run came to an end by itself."""

from __future__ import annotations

from typing import Final

from agentguard.metrics.score import Reason, Score
from agentguard.metrics.subject import Subject
from agentguard.trajectory import Ending

_WORDS: Final = {
    Ending.HALTED: "did not finish: stopped by a guard or a limit",
    Ending.FAILED: "did not finish: ended with an error",
    Ending.UNFINISHED: "did not finish: no end of it was recorded",
}


def ending(subject: Subject) -> Score:
    """Return 1 for a run that finished by itself, 0 for one that was stopped, failed or never ended."""
    return _SCORES[subject.trajectory.ending]


_SCORES: Final = {
    Ending.FINISHED: Score("ending", 1.0),
    **{how: Score("ending", 0.0, (Reason(f"ending.{how}", text),)) for how, text in _WORDS.items()},
}
