"""Holding a run against a reference: pass, fail, or could not be scored, with every reason."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from agentguard.matching import Call, Comparison, Fault, Match, compare, doubts, faults
from agentguard.matching.assignment import Rows
from agentguard.matching.calls import bits, counts, turns
from agentguard.reference.record import Reference, named

IN_ORDER = (Match.EXACT, Match.IN_ORDER)


class Judgement(msgspec.Struct, frozen=True, kw_only=True):
    """What came of holding a run against a reference."""

    passes: bool | None
    """None when it could not be scored: then `unscored` says why."""
    faults: tuple[Fault, ...]
    """What is wrong; `actual` counts the calls as they were handed in. Empty unless the run fails."""
    unscored: tuple[str, ...]
    """Why the verdict could not be given; counts the calls as handed in, from 1. Empty unless `passes` is None."""
    comparison: Comparison
    """With the reference that suits the run best; its run holds the calls that count."""
    positions: tuple[int, ...]
    """For every call of the comparison's run, its index among the calls as they were handed in."""
    reference: Reference
    """The reference, or the alternative, that suits the run best."""


def judge(reference: Reference, calls: Sequence[Call]) -> Judgement:
    """Hold the calls of a run against a reference and its alternatives; return what suits the run best.

    A pass is best, then what could not be scored, then the lowest cost of the alignment, then what is written first.
    """
    judged: list[Judgement] = []
    for candidate in reference.candidates():
        judged.append(_judge_one(candidate, calls))
        if judged[-1].passes:
            return judged[-1]
    return judged[0] if len(judged) == 1 else min(judged, key=_badness)


def _badness(judged: Judgement) -> tuple[bool, int]:
    alignment = judged.comparison.alignment
    ordered = judged.reference.match in IN_ORDER
    return judged.passes is not None, alignment.cost if ordered else alignment.cost_in_any_order


def _judge_one(reference: Reference, calls: Sequence[Call]) -> Judgement:
    positions = _counted(reference, calls)
    actual = [calls[position] for position in positions]
    both = compare(reference.calls, actual, reference.rules)
    orders = [_holds(both, *(named(reference.calls, name) for name in pair)) for pair in reference.order]
    found = [*faults(both, reference.match), *_order_faults(reference, orders), *_forbidden(reference, actual)]
    verdicts = [both.passes(reference.match), *orders]
    passes = False if found else None if None in verdicts else True
    return Judgement(
        passes=passes,
        faults=tuple(_moved(fault, positions) for fault in found),
        unscored=tuple(doubts(both, positions)) if passes is None else (),
        comparison=both,
        positions=positions,
        reference=reference,
    )


def _counted(reference: Reference, calls: Sequence[Call]) -> tuple[int, ...]:
    failed, refused = reference.failed_calls, reference.refused_calls
    return tuple(index for index, call in enumerate(calls) if counts(call, failed=failed, refused=refused))


def _moved(fault: Fault, positions: Sequence[int]) -> Fault:
    return fault if fault.actual is None else msgspec.structs.replace(fault, actual=positions[fault.actual])


# ---------------------------------------------------------------- what the modes do not say


def _forbidden(reference: Reference, actual: Sequence[Call]) -> list[Fault]:
    return [
        Fault("match.forbidden", f"{call.tool}: must not be called", None, index)
        for index, call in enumerate(actual)
        if call.tool in reference.forbidden
    ]


def _order_faults(reference: Reference, orders: Sequence[bool | None]) -> list[Fault]:
    return [
        Fault("match.order", f"{first} must come before {then}")
        for (first, then), holds in zip(reference.order, orders, strict=True)
        if holds is False
    ]


def _holds(both: Comparison, first: Sequence[int], then: Sequence[int]) -> bool | None:
    """Whether what fits `first` came before anything that fits `then`; None when nobody can say."""
    moments = _moments(both.actual)
    sure, possible = both.relation.sure, both.relation.possible
    if _before(_earliest(sure, first, moments), _earliest(possible, then, moments)):
        return True
    if _before(_earliest(possible, first, moments), _earliest(sure, then, moments)):
        return None
    return False


def _before(one: int | None, other: int | None) -> bool:
    return other is None or (one is not None and one < other)


def _earliest(rows: Rows, wanted: Sequence[int], moments: Sequence[int]) -> int | None:
    return min((moments[j] for i in wanted for j in bits(rows[i])), default=None)


def _moments(calls: Sequence[Call]) -> list[int]:
    """Return the number of each call's turn: calls of one turn do not wait for one another."""
    moments = [0] * len(calls)
    for number, turn in enumerate(turns(calls)):
        for index in bits(turn):
            moments[index] = number
    return moments
