"""Whether the tools were the right ones, whatever their arguments."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from agentguard.matching import Call
from agentguard.metrics.score import Score
from agentguard.metrics.subject import Subject

NO_REFERENCE = Score("selection")


def selection(subject: Subject) -> Score:
    """Return F1 of the tools called against those of the reference, as multisets; attempted calls.

    `data` holds precision (share of the calls whose tool was wanted), recall (share of the wanted ones that were
    called), and as `instead` which tools were called where others were wanted, by place. None without a reference.
    """
    judged = subject.judgement
    if judged is None:
        return NO_REFERENCE
    if subject.trajectory.complete is False:
        return Score("selection", unscored="the record has gaps: tools may have been called that are not in it")
    found = judged.comparison.selection
    wanted, made = _left_over(judged.comparison.reference, judged.comparison.actual)
    steps = tuple(judged.positions[index] for index in made)
    instead = [
        [judged.comparison.reference[one].tool, judged.comparison.actual[other].tool]
        for one, other in zip(wanted, made, strict=False)
    ]
    data = {"precision": found.precision, "recall": found.recall, "instead": instead}
    return Score("selection", found.f1, steps=steps, data=data)


def _left_over(reference: Sequence[Call], actual: Sequence[Call]) -> tuple[list[int], list[int]]:
    """Return the calls of each side whose tool the other side has no more of: the last ones of each tool."""
    return _beyond(reference, actual), _beyond(actual, reference)


def _beyond(calls: Sequence[Call], others: Sequence[Call]) -> list[int]:
    rest = Counter(call.tool for call in others)
    left: list[int] = []
    for index, call in enumerate(calls):
        if rest[call.tool] > 0:
            rest[call.tool] -= 1
        else:
            left.append(index)
    return left
