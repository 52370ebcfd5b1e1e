"""Identical calls back to back, by the definition of the live check (`agentguard.loops`)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from agentguard.metrics.score import Reason, Score
from agentguard.metrics.subject import Subject

NONE = Score("repeats", 0.0)


def repeats(subject: Subject) -> Score:
    """Count every call whose identical call stands just before it in the lane; attempted calls.

    A streak whose results kept changing makes progress (polling, paging by a hidden cursor): it is counted, and is no
    reason to fail the run. Repeats of whole parallel turns are counted by `repeated_turns`, calls of tools that are
    declared repeatable by nobody. A repeat that a guard refused is counted and is no reason either: it never reached
    the tool. Where some neighbours cannot be compared, the value is what is certain.
    """
    if subject.trajectory.complete is False:
        return Score("repeats", unscored=subject.undecided)
    found = tuple(index for index in subject.repeats if not subject.places[index].in_turn)
    if not found:
        return NONE if subject.undecided is None else Score("repeats", unscored=subject.undecided)
    reasons = _reasons(subject, found)
    return Score("repeats", float(len(found)), reasons, found, subject.undecided, kinds(subject, found))


def counts_against(subject: Subject, index: int) -> bool:
    """Whether a repeat speaks against the run: it ran, and is not known to have given another result."""
    return subject.places[index].stale is not False and not subject.refused(index)


def kinds(subject: Subject, found: Iterable[int]) -> dict[str, int]:
    """Return how many of these repeats gave the same result again, another one, or none that is known."""
    count = Counter(subject.places[index].stale for index in found)
    refused = sum(subject.refused(index) for index in found)
    return {"stale": count[True], "changing": count[False], "unknown": count[None], "refused": refused}


def _reasons(subject: Subject, found: tuple[int, ...]) -> tuple[Reason, ...]:
    streaks: dict[tuple[str, int], list[int]] = {}
    for index in found:
        streaks.setdefault((subject.trajectory.steps[index].lane, subject.places[index].streak), []).append(index)
    wrong = [again for again in streaks.values() if any(counts_against(subject, index) for index in again)]
    return tuple(_reason(subject, again) for again in wrong)


def _reason(subject: Subject, again: list[int]) -> Reason:
    before = subject.before(again[0], subject.places[again[0]].identical)
    whole = (*before, *again)
    often = f", {len(whole)} times in a row" if len(whole) > 2 else ""
    return Reason("repeat.identical", f"repeated identical call {subject.places[again[0]].tool}{often}", whole)
