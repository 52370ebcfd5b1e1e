"""Whether the arguments were right, where the tool was."""

from __future__ import annotations

from agentguard.matching import Kind, doubts
from agentguard.metrics.score import Score
from agentguard.metrics.subject import Subject

NO_REFERENCE = Score("arguments")


def arguments(subject: Subject) -> Score:
    """Return the share of calls with the right arguments among those with the right tool; attempted calls.

    The two come from the one best alignment with the reference. None without a reference, or when no call had the
    right tool. Arguments that were not recorded are no wrong arguments: then it could not be scored.
    """
    judged = subject.judgement
    if judged is None or not judged.comparison.right_tools:
        return NO_REFERENCE
    both = judged.comparison
    data = {"right": both.hits, "of": both.right_tools}
    if both.hits is None:
        return Score("arguments", unscored="; ".join(doubts(both)), data=data)
    if subject.trajectory.complete is False:
        return Score("arguments", unscored="the record has gaps: the calls that were wanted may be missing", data=data)
    if both.hits == both.right_tools:
        return Score("arguments", 1.0, data=data)
    wrong = (entry.actual for entry in both.alignment.of(Kind.WRONG_ARGUMENTS))
    steps = tuple(judged.positions[index] for index in wrong if index is not None)
    return Score("arguments", both.arguments, steps=steps, data=data)
