"""The best alignment of a run with a reference: what was matched, and what became of the rest."""

from __future__ import annotations

import enum
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import zip_longest

import msgspec

from agentguard.matching.arguments import Rules
from agentguard.matching.assignment import Pairs, longest_in_order, maximum
from agentguard.matching.calls import Call
from agentguard.matching.relation import Relation
from agentguard.matching.rules import Difference


class Kind(enum.StrEnum):
    """What became of a call."""

    MATCHED = "matched"
    OUT_OF_ORDER = "out_of_order"
    """Made as wanted, but not where the others are in the reference's order."""
    WRONG_ARGUMENTS = "wrong_arguments"
    """The right tool; `differences` says where the arguments are not those wanted."""
    UNKNOWN = "unknown"
    """The right tool; `reason` says why its arguments could not be compared."""
    MISSING = "missing"
    """Wanted, not made."""
    EXTRA = "extra"
    """Made, not wanted."""


class Entry(msgspec.Struct, frozen=True):
    """One line of an alignment."""

    kind: Kind
    reference: int | None
    """Index of the reference's call. None for an extra one."""
    actual: int | None
    """Index of the run's call. None for a missing one."""
    differences: tuple[Difference, ...] = ()
    reason: str = ""


class Alignment(msgspec.Struct, frozen=True):
    """A largest assignment of calls, begun with a longest common subsequence, and what is left over.

    Where rules are equivalences all of that subsequence is matched; elsewhere part of it may yield to a larger
    assignment.

    It is a function of its two sequences: the same ones give the same lines. How many lines there are of each kind,
    out of order apart, does not depend on the order in which the reference is written.
    """

    entries: tuple[Entry, ...]
    """In the order of the run; a missing call stands behind the one that it should have followed."""

    def of(self, kind: Kind) -> list[Entry]:
        """Return the lines of one kind."""
        return [entry for entry in self.entries if entry.kind is kind]

    @property
    def cost(self) -> int:
        """Return how many lines are not matched.

        Where rules are equivalences this is the sum over tools of the larger number of calls, less the length of the
        longest common subsequence: a metric on sequences of calls.
        """
        return sum(entry.kind is not Kind.MATCHED for entry in self.entries)

    @property
    def cost_in_any_order(self) -> int:
        """Return the cost that is left when order is free: likewise a metric, on multisets of calls."""
        return sum(entry.kind not in (Kind.MATCHED, Kind.OUT_OF_ORDER) for entry in self.entries)


Swap = tuple[str | None, str | None]
"""The tool that was needed and the one that was used in its place; None for none."""


def align(reference: Sequence[Call], actual: Sequence[Call], rules: Rules, relation: Relation) -> Alignment:
    """Return the best alignment under a relation that was worked out with the same rules."""
    chain = longest_in_order(relation.sure, len(actual))
    pairs = dict(sorted(maximum(relation.sure, chain).items()))
    ordered = _chain(pairs)
    entries = [Entry(Kind.MATCHED if i in ordered else Kind.OUT_OF_ORDER, i, j) for i, j in pairs.items()]
    entries += _half_right(reference, actual, rules, relation, pairs)
    entries += _left_over(reference, actual, entries)
    return Alignment(tuple(_in_reading_order(entries)))


def _chain(pairs: Pairs) -> Pairs:
    """Return a longest part of `pairs` (sorted by reference) that is in the run's order, too."""
    tails: list[int] = []
    last: list[int] = []
    before: dict[int, int | None] = {}
    for i, j in pairs.items():
        place = bisect_left(tails, j)
        before[i] = last[place - 1] if place else None
        tails[place : place + 1] = [j]
        last[place : place + 1] = [i]
    chain: Pairs = {}
    at = last[-1] if last else None
    while at is not None:
        chain[at] = pairs[at]
        at = before[at]
    return dict(reversed(chain.items()))


# ---------------------------------------------------------------- the right tool, but


def _half_right(
    reference: Sequence[Call], actual: Sequence[Call], rules: Rules, relation: Relation, pairs: Pairs
) -> Iterator[Entry]:
    """Pair what is left of each tool: first what may be right, then what differs least."""
    taken = set(pairs.values())
    made: dict[str, list[int]] = {}
    for j, call in enumerate(actual):
        if j not in taken:
            made.setdefault(call.tool, []).append(j)
    wanted: dict[str, list[int]] = {}
    for i, call in enumerate(reference):
        if i not in pairs and call.tool in made:
            wanted.setdefault(call.tool, []).append(i)
    for tool, rows in wanted.items():
        columns = made[tool]
        perhaps = _perhaps(rows, columns, relation)
        for i, j in perhaps.items():
            yield Entry(Kind.UNKNOWN, i, j, reason=relation.doubts[i, j])
        rows = [i for i in rows if i not in perhaps]
        columns = [j for j in columns if j not in perhaps.values()]
        yield from _nearest(reference, actual, rules, rows, columns)


def _perhaps(rows: list[int], columns: list[int], relation: Relation) -> Pairs:
    if not relation.doubts:
        return {}
    masks = [sum(1 << place for place, j in enumerate(columns) if (i, j) in relation.doubts) for i in rows]
    return {rows[row]: columns[column] for row, column in maximum(masks).items()}


MANY = 400
"""Pairs of one tool beyond which calls with wrong arguments are paired as they come, not by how much they differ."""


def _nearest(
    reference: Sequence[Call], actual: Sequence[Call], rules: Rules, rows: list[int], columns: list[int]
) -> Iterator[Entry]:
    if len(rows) * len(columns) > MANY:
        for i, j in zip(rows, columns, strict=False):
            yield _wrong(i, j, differences(reference[i], actual[j], rules))
        return
    told = {(i, j): differences(reference[i], actual[j], rules) for i in rows for j in columns}
    for i, j in sorted(told, key=lambda pair: (len(told[pair]), pair)):
        if i in rows and j in columns:
            rows.remove(i)
            columns.remove(j)
            yield _wrong(i, j, told[i, j])


def _wrong(i: int, j: int, found: tuple[Difference, ...]) -> Entry:
    return Entry(Kind.WRONG_ARGUMENTS, i, j, found)


def differences(wanted: Call, given: Call, rules: Rules) -> tuple[Difference, ...]:
    """Return where the arguments of two calls of one tool differ. Empty when either's were not recorded."""
    if wanted.arguments is None or given.arguments is None:
        return ()
    rule = wanted.rule or rules.of(wanted.tool)
    found: list[Difference] = []
    # The calls differ already; a rule of the user's that fails further on has only less to add.
    with suppress(Exception):
        found.extend(rule.differences(wanted.arguments, given.arguments))
    return tuple(found)


# ---------------------------------------------------------------- the rest, and the order of lines


def _left_over(reference: Sequence[Call], actual: Sequence[Call], entries: list[Entry]) -> list[Entry]:
    wanted = {entry.reference for entry in entries}
    made = {entry.actual for entry in entries}
    missing = [Entry(Kind.MISSING, i, None) for i in range(len(reference)) if i not in wanted]
    return missing + [Entry(Kind.EXTRA, None, j) for j in range(len(actual)) if j not in made]


def _in_reading_order(entries: list[Entry]) -> list[Entry]:
    wanted, made = anchors(entries)

    def place(entry: Entry) -> tuple[int, int, int]:
        if entry.actual is not None:
            return entry.actual, 0, 0
        before = bisect_left(wanted, entry.reference or 0)
        return (made[before - 1] if before else -1), 1, entry.reference or 0

    return sorted(entries, key=place)


def anchors(entries: Iterable[Entry]) -> tuple[list[int], list[int]]:
    """Return a longest part of the pairs with the right tool that is in order on both sides, side by side."""
    pairs = {e.reference: e.actual for e in entries if e.reference is not None and e.actual is not None}
    chain = _chain(dict(sorted(pairs.items())))
    return list(chain), list(chain.values())


def confusion(reference: Sequence[Call], actual: Sequence[Call], alignment: Alignment) -> dict[Swap, int]:
    """Return how often each tool was used where each was needed.

    A missing and an extra call stand for one another when they are between the same two calls that both sides have in
    order; several are paired as they come. What finds no partner was needed and not replaced, or used for nothing.
    """
    swaps: dict[Swap, int] = {}
    for needed, used in _swaps(reference, actual, alignment):
        swaps[needed, used] = swaps.get((needed, used), 0) + 1
    return swaps


def _swaps(reference: Sequence[Call], actual: Sequence[Call], alignment: Alignment) -> Iterator[Swap]:
    wanted, made = anchors(alignment.entries)
    missing: list[list[str]] = [[] for _ in range(len(wanted) + 1)]
    extra: list[list[str]] = [[] for _ in range(len(wanted) + 1)]
    for entry in alignment.entries:
        if entry.actual is None:
            missing[bisect_left(wanted, entry.reference or 0)].append(reference[entry.reference or 0].tool)
        elif entry.reference is None:
            extra[bisect_left(made, entry.actual)].append(actual[entry.actual].tool)
        else:
            yield reference[entry.reference].tool, actual[entry.actual].tool
    for needed, used in zip(missing, extra, strict=True):
        yield from zip_longest(needed, used)
