"""Which calls of a run stand for which of a reference: one maximum matching behind every mode.

A relation is a list of integers, one for each call of the reference; bit j of the i-th says that call j of the run
fits call i of the reference.
"""

from __future__ import annotations

from collections.abc import Sequence

from agentguard.matching.calls import bits

Rows = Sequence[int]
Pairs = dict[int, int]
"""From calls of the reference to calls of the run."""


def maximum(rows: Rows, seed: Pairs | None = None) -> Pairs:
    """Return a largest one-to-one assignment. Whatever `seed` assigned stays assigned, perhaps to another call.

    >>> maximum([0b11, 0b01])
    {0: 1, 1: 0}
    """
    pairs = dict(seed or {})
    free = ~sum(1 << j for j in pairs.values())
    late: list[int] = []
    for i, row in enumerate(rows):
        if i in pairs or not row:
            continue
        low = row & free & -(row & free)
        if low:
            pairs[i] = low.bit_length() - 1
            free ^= low
        else:
            late.append(i)
    return _improved(pairs, late, rows) if late else pairs


def _improved(pairs: Pairs, late: list[int], rows: Rows) -> Pairs:
    """Assign, by moving others aside, what found no free partner."""
    owners = {j: i for i, j in pairs.items()}
    dead = 0
    for i in late:
        dead |= _augment(i, rows, pairs, owners, dead)
    return pairs


def _augment(start: int, rows: Rows, pairs: Pairs, owners: Pairs, dead: int) -> int:
    """Assign `start`, moving others aside where that helps; else return what no later search need look at again."""
    came_from: Pairs = {}
    queue = [start]
    seen = dead
    for i in queue:
        reach = rows[i] & ~seen
        seen |= reach
        for j in bits(reach):
            came_from[j] = i
            if j not in owners:
                _flip(j, came_from, pairs, owners)
                return 0
            queue.append(owners[j])
    return seen


def _flip(j: int, came_from: Pairs, pairs: Pairs, owners: Pairs) -> None:
    while True:
        i = came_from[j]
        before = pairs.get(i)
        pairs[i], owners[j] = j, i
        if before is None:
            return
        j = before


def in_order(rows: Rows) -> bool:
    """Whether all of the reference can be found in its order: the earliest fit is as good as any later one."""
    position = 0
    for row in rows:
        rest = row >> position
        if not rest:
            return False
        position += (rest & -rest).bit_length()
    return True


def longest_in_order(rows: Rows, columns: int) -> Pairs:
    """Return a longest common subsequence of a reference and a run of `columns` calls.

    Hyyro's bit-parallel recurrence: a zero at bit j of a row's vector means that call j lengthens the subsequence.

    >>> longest_in_order([0b100, 0b001, 0b010], 3)
    {1: 0, 2: 1}
    """
    vectors = _vectors(rows, columns)
    pairs: Pairs = {}
    i, j = len(rows), columns
    while i and j:
        if vectors[i] >> (j - 1) & 1:
            j -= 1
            continue
        i -= 1
        if vectors[i] >> (j - 1) & 1:
            j -= 1
            pairs[i] = j
    return dict(reversed(pairs.items()))


def length_in_order(rows: Rows, columns: int) -> int:
    """Return the length of a longest common subsequence."""
    return columns - _vectors(rows, columns)[-1].bit_count()


def _vectors(rows: Rows, columns: int) -> list[int]:
    everything = (1 << columns) - 1
    vector = everything
    vectors = [vector]
    for row in rows:
        hit = vector & row
        vector = ((vector + hit) | (vector - hit)) & everything
        vectors.append(vector)
    return vectors
