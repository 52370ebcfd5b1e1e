"""Whether the calls are those that the reference asks for."""

from __future__ import annotations

from agentguard.matching import Match
from agentguard.metrics.score import Reason, Score
from agentguard.metrics.subject import Subject
from agentguard.reference import Judgement

NO_REFERENCE = Score("match")


def match(subject: Subject) -> Score:
    """Return 1 when the run is what the reference's mode asks for, 0 when it is not; attempted calls.

    Whether failed and refused calls are compared, the reference says. None without a reference. A record with gaps
    passes only where more calls could not change that, and fails never.
    """
    judged = subject.judgement
    if judged is None:
        return NO_REFERENCE
    data = {"mode": str(judged.reference.match)}
    if subject.trajectory.complete is False and not _holds_whatever_is_missing(judged):
        return Score("match", unscored="the record has gaps: calls of the reference may be missing from it", data=data)
    if judged.passes is None:
        return Score("match", unscored="; ".join(judged.unscored), data=data)
    reasons = tuple(
        Reason(fault.code, fault.text, () if fault.actual is None else (fault.actual,)) for fault in judged.faults
    )
    steps = tuple(sorted({step for reason in reasons for step in reason.steps}))
    return Score("match", float(judged.passes), reasons, steps, data=data)


def _holds_whatever_is_missing(judged: Judgement) -> bool:
    reference = judged.reference
    return bool(judged.passes) and reference.match is Match.SUPERSET and not (reference.order or reference.forbidden)
