"""Whole parallel turns back to back, and equal calls inside one turn."""

from __future__ import annotations

from agentguard.loops import Place
from agentguard.metrics.repeats import counts_against, kinds
from agentguard.metrics.score import Reason, Score
from agentguard.metrics.subject import Subject

NONE = Score("repeated_turns", 0.0)


def repeated_turns(subject: Subject) -> Score:
    """Count the parallel turns of two or more calls that repeat the turn just before them; attempted calls.

    The order within a turn does not matter. Equal calls inside one turn are duplicates, in `data`: no repeat of a turn.
    """
    duplicates = sum(place.duplicate for place in subject.places)
    if subject.undecided is not None:
        return Score("repeated_turns", unscored=subject.undecided)
    if not duplicates and not any(place.in_turn and place.identical for place in subject.places):
        return NONE
    again = _turns(subject, [index for index in subject.repeats if subject.places[index].in_turn])
    steps = tuple(index for turn in again for index in turn)
    reasons = tuple(_reason(subject, turn) for turn in again if _counts_against(subject, turn))
    data = {**kinds(subject, steps), "duplicates": duplicates}
    return Score("repeated_turns", float(len(again)), reasons, steps, data=data)


def _turns(subject: Subject, indices: list[int]) -> list[tuple[int, ...]]:
    turns: dict[tuple[str, int, int], list[int]] = {}
    for index in indices:
        place = subject.places[index]
        turns.setdefault((subject.trajectory.steps[index].lane, place.streak, place.identical), []).append(index)
    return [tuple(turn) for turn in turns.values()]


def _counts_against(subject: Subject, turn: tuple[int, ...]) -> bool:
    changed = any(subject.places[index].stale is False for index in turn)
    return not changed and any(counts_against(subject, index) for index in turn)


def _reason(subject: Subject, turn: tuple[int, ...]) -> Reason:
    places: list[Place] = [subject.places[index] for index in turn]
    names = ", ".join(dict.fromkeys(place.tool for place in places))
    return Reason("repeat.turn", f"repeated identical turn of {len(turn)} calls ({names})", turn)
