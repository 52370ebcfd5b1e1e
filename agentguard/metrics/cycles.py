"""Two or three calls going round with nothing new, by the definition of the live check (`agentguard.loops`)."""

from __future__ import annotations

from agentguard.metrics.score import Reason, Score
from agentguard.metrics.subject import Subject

NONE = Score("cycles", 0.0)
_ROUNDS = 6
"""Calls in three rounds of two, or in two rounds of three."""


def cycles(subject: Subject) -> Score:
    """Count the calls that close a cycle: of two the third time round, of three the second time; attempted calls.

    The results were equal each time, so a cycle is stale by definition.
    """
    if subject.undecided is not None:
        return Score("cycles", None, unscored=subject.undecided)
    found = tuple(index for index, place in enumerate(subject.places) if place.period)
    if not found:
        return NONE
    reasons = tuple(_reason(subject, closing) for closing in _rounds(subject, found))
    return Score("cycles", float(len(found)), reasons, found)


def _rounds(subject: Subject, found: tuple[int, ...]) -> list[list[int]]:
    """Group the closing calls that continue one another."""
    rounds: list[list[int]] = []
    open_in: dict[str, list[int]] = {}
    for index in found:
        lane = subject.trajectory.steps[index].lane
        current = open_in.get(lane)
        if current is None or current[-1] not in subject.before(index, subject.places[index].period):
            current = open_in[lane] = []
            rounds.append(current)
        current.append(index)
    return rounds


def _reason(subject: Subject, closing: list[int]) -> Reason:
    period = subject.places[closing[0]].period
    whole = (*subject.before(closing[0], _ROUNDS - 1), *closing)
    names = ", ".join(dict.fromkeys(subject.places[index].tool for index in whole))
    return Reason("cycle", f"cycle of {period} calls with nothing new ({names})", whole)
