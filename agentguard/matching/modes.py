"""Whether a run is what each mode asks for, given what fits what; `Match` says what the modes mean."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from agentguard.matching.assignment import Rows, in_order, maximum
from agentguard.matching.calls import Call, Match, bits, turns

Calls = Sequence[Call]


def _exact(reference: Calls, actual: Calls, rows: Rows, hits: int) -> bool:
    return len(actual) == len(rows) == hits and all(row >> index & 1 for index, row in enumerate(rows))


def _exact_turns(reference: Calls, actual: Calls, rows: Rows, hits: int) -> bool:
    if not len(actual) == len(rows) == hits:
        return False
    wanted, made = turns(reference), turns(actual)
    if [turn.bit_count() for turn in wanted] != [turn.bit_count() for turn in made]:
        return False
    within = list(rows)
    for want, have in zip(wanted, made, strict=True):
        for index in bits(want):
            within[index] &= have
    return len(maximum(within)) == len(rows)


def _in_order(reference: Calls, actual: Calls, rows: Rows, hits: int) -> bool:
    return hits == len(rows) and in_order(rows)


def _any_order(reference: Calls, actual: Calls, rows: Rows, hits: int) -> bool:
    return len(actual) == len(rows) == hits


def _superset(reference: Calls, actual: Calls, rows: Rows, hits: int) -> bool:
    return hits == len(rows)


def _subset(reference: Calls, actual: Calls, rows: Rows, hits: int) -> bool:
    return hits == len(actual)


HOLDS: Final[Mapping[Match, Callable[[Calls, Calls, Rows, int], bool]]] = {
    Match.EXACT: _exact,
    Match.EXACT_TURNS: _exact_turns,
    Match.IN_ORDER: _in_order,
    Match.ANY_ORDER: _any_order,
    Match.SUPERSET: _superset,
    Match.SUBSET: _subset,
}
"""Each by reference, run, rows of what fits what, and the size of a maximum matching of those."""
