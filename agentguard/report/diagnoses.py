"""What the figures of a model + harness say, and what to do about it."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from agentguard.scoring import Rate, Row
from agentguard.trajectory import RunKey


class Thresholds(msgspec.Struct, frozen=True, kw_only=True):
    """From where a figure counts as high, low or present."""

    runs: int = 20
    """Runs below which nothing is said about a row."""
    success: float = 0.7
    """Share of right final states from which completion is high."""
    selection: float = 0.9
    """Mean F1 of tool selection from which it is high."""
    arguments: float = 0.8
    """Mean share of right arguments below which it is low."""
    loops: float = 0.02
    """Share of runs with a call or turn back to back from which loops are present."""
    over_budget: float = 0.1
    """Share of runs over their budget from which steps are high."""
    waste: float = 0.2
    """Share of calls wasted from which steps are high, whatever the budget."""


class Diagnosis(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that the figures of a row say."""

    key: RunKey
    code: str
    """Stable and machine-readable, e.g. "schema"."""
    evidence: str
    """The figures it rests on."""
    fix: str
    """What to do."""


DEFAULTS = Thresholds()


def diagnoses(row: Row, thresholds: Thresholds = DEFAULTS) -> list[Diagnosis]:
    """Return what the figures of a row say, the costliest first. Empty also when the row has too few runs."""
    if row.runs < thresholds.runs:
        return []
    said = [*_schema(row, thresholds), *_expensive(row, thresholds), *_lucky(row, thresholds)]
    return said or list(_all_high(row, thresholds))


def _schema(row: Row, limits: Thresholds) -> Iterator[Diagnosis]:
    if row.selection is None or row.arguments is None:
        return
    if row.selection >= limits.selection and row.arguments < limits.arguments:
        yield Diagnosis(
            key=row.key,
            code="schema",
            evidence=f"selection {row.selection:.0%}, arguments {row.arguments:.0%}",
            fix="a schema problem: constrain or validate before dispatch; a bigger model will not reliably fix it",
        )


def _expensive(row: Row, limits: Thresholds) -> Iterator[Diagnosis]:
    if not _reaches(row.success, limits.success):
        return
    evidence: list[str] = []
    if _reaches(row.over_budget, limits.over_budget):
        evidence.append(f"over budget {row.over_budget.share:.0%}")
    if wasted_share(row) >= limits.waste:
        evidence.append(f"wasted calls {wasted_share(row):.0%}")
    if evidence:
        yield Diagnosis(
            key=row.key,
            code="expensive",
            evidence=f"success {row.success.share:.0%}, {', '.join(evidence)}",
            fix="it works and wastes money: look at the tool descriptions before the model",
        )


def _lucky(row: Row, limits: Thresholds) -> Iterator[Diagnosis]:
    if _reaches(row.success, limits.success) and _reaches(row.back_to_back, limits.loops):
        yield Diagnosis(
            key=row.key,
            code="lucky",
            evidence=f"success {row.success.share:.0%}, back to back {row.back_to_back.share:.1%}",
            fix="one unlucky run from not terminating: put loop detection into the agent",
        )


def _all_high(row: Row, limits: Thresholds) -> Iterator[Diagnosis]:
    told = row.selection is not None and row.selection >= limits.selection
    if told and _reaches(row.success, limits.success):
        yield Diagnosis(
            key=row.key,
            code="golden_set",
            evidence=f"success {row.success.share:.0%}, selection {row.selection:.0%}, no loops to speak of",
            fix="if there are complaints all the same, the golden set lacks what production sends: add real runs to it",
        )


def wasted_share(row: Row) -> float:
    """Return the share of a row's calls that were wasted."""
    waste = row.figures.get("waste")
    return 0.0 if waste is None or waste.mean is None or not row.calls else waste.mean * waste.runs / row.calls


def _reaches(rate: Rate, limit: float) -> bool:
    return rate.share is not None and rate.share >= limit
