"""Accidental recovery: success in spite of loops, failures or invalid arguments."""

from __future__ import annotations

from collections import Counter

from agentguard.metrics.score import Reason, Score
from agentguard.metrics.subject import Subject

NO_SUCCESS = Score("recovery")
NONE = Score("recovery", 0.0)


def recovery(subject: Subject) -> Score:
    """Return 1 when the final state passed in spite of trouble, 0 when it passed without; None when it did not pass.

    `data["by"]` says how: "other calls", when something new succeeded after the first trouble, or "idled", when the
    work was done before it: by a reference when every call of it had been made, else when nothing new came after.
    """
    if not subject.trajectory.outcome:
        return NO_SUCCESS
    troubles = subject.troubles
    if not troubles:
        return NONE if subject.undecided is None else Score("recovery", unscored=subject.undecided)
    count = Counter(troubles.values())
    by = "other calls" if _went_on(subject) else "idled"
    said = ", ".join(f"{number} {kind}" for kind, number in sorted(count.items()))
    text = f"succeeded in spite of trouble ({said}); {_WORDS[by]}"
    where = tuple(sorted(troubles))
    return Score("recovery", 1.0, (Reason("recovery.accidental", text, where),), where, data={"by": by, **count})


_WORDS = {"other calls": "recovered by other calls", "idled": "was done already, then idled"}


def _went_on(subject: Subject) -> bool:
    """Whether the work was still to be done at the first trouble."""
    if subject.goal is not None:
        return min(subject.troubles) <= subject.goal
    steps, troubles = subject.trajectory.steps, subject.troubles
    after = range(min(troubles), len(steps))
    return any(index not in troubles and steps[index].executed is not False for index in after)
