"""Where each trace is first and last seen, so that a run can be built and let go as soon as its last span was read.

A quick pass over the bytes looks for nothing but trace ids. It keeps a table of fixed size, and a small one beside it
for traces that would stand on one another; beyond that two traces share an entry, and both wait for the later one.
"""

from __future__ import annotations

import re
import zlib
from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from agentguard.traces.files import UNPACKING_FAULTS, is_packed, lines, opened
from agentguard.traces.values import TRACE_DIGITS, hex_id

_BITS: Final = 20
_SLOTS: Final = 1 << _BITS
_BESIDE: Final = 100_000
_TRACE_ID: Final = re.compile(rb'"trace_?[iI][dD]"\s*:\s*"([^"]*)"')
_FROM: Final = 32 * 2**20
_UNPACKED: Final = 8
"""How much longer packed spans are guessed to be."""


class Horizon:
    """The first and the last place of each trace in some files, counted in lines over all files, from 1."""

    def __init__(self, *, blind: bool = False) -> None:
        self.lengths: list[int] = []
        """Lines of each file when it was looked through; it may have grown since, and what came then is left out."""
        self._blind = blind
        self._first, self._last, self._whose = (array("Q", bytes(8 * _SLOTS)) for _ in range(3))
        self._beside: dict[int, tuple[int, int]] = {}

    def of(self, trace_id: str) -> int:
        """Return the place at which a trace is seen last; 0 when it was not seen."""
        if self._blind:
            return sum(self.lengths)
        number = _number(trace_id)
        at, who = number % _SLOTS, number >> _BITS
        if self._whose[at] == who:
            return self._last[at]
        found = self._beside.get(number)
        if found is not None:
            return found[1]
        return self._last[at] if len(self._beside) >= _BESIDE else 0

    def see(self, trace_id: bytes, place: int) -> None:
        """Take note that a trace is named at a place, no earlier than all places before."""
        number = _number(trace_id if len(trace_id) == TRACE_DIGITS else _as_read(trace_id))
        at, who = number % _SLOTS, number >> _BITS
        if not self._last[at]:
            self._first[at], self._whose[at] = place, who
        elif self._whose[at] != who and (number in self._beside or len(self._beside) < _BESIDE):
            self._beside[number] = (self._beside.get(number, (place, place))[0], place)
            return
        self._last[at] = place

    def begins(self, ends: list[int]) -> list[int]:
        """Return the place from which each part has to be read for the traces that end in it, given the parts' ends."""
        begins = [1, *[end + 1 for end in ends[:-1]]]
        for first, last in self._spans():
            part = bisect_left(ends, last)
            begins[part] = min(begins[part], first)
        return begins

    def _spans(self) -> Iterator[tuple[int, int]]:
        yield from ((first, last) for first, last in zip(self._first, self._last, strict=True) if last)
        yield from self._beside.values()


def _number(trace_id: str | bytes) -> int:
    """Return a number of 84 bits for an id: of the usual kind the last digits, of another a checksum."""
    try:
        return abs(int(trace_id[-21:], 16))
    except ValueError:
        data = trace_id if isinstance(trace_id, bytes) else trace_id.encode("utf-8", "surrogatepass")
        low = data.lower()
        return zlib.crc32(low) << 32 | zlib.adler32(low)


def _as_read(trace_id: bytes) -> str:
    return hex_id(trace_id.decode("utf-8", "replace"), TRACE_DIGITS)


def is_worth_it(paths: Iterable[str]) -> bool:
    """Whether the files are too long to keep all their spans, and can be read twice."""
    size = 0
    for path in paths:
        if not Path(path).is_file():
            return False
        size += Path(path).stat().st_size * (_UNPACKED if is_packed(path) else 1)
    return size > _FROM


def horizon_of(paths: Iterable[str], *, blind: bool = False) -> Horizon:
    """Return where the traces in these files are seen last. What cannot be read is left to the reader to tell.

    `blind` says that some ids are in no text: then every trace goes on to the end.
    """
    horizon = Horizon(blind=blind)
    for path in paths:
        horizon.lengths.append(_scan(path, horizon, sum(horizon.lengths)))
    return horizon


def _scan(path: str, horizon: Horizon, before: int) -> int:
    """Note the places of one file's traces, which follow those `before`; return how many lines it has."""
    number = 0
    stream = opened(path)
    try:
        for number, line in lines(stream):
            for trace_id in set(_TRACE_ID.findall(line or b"")):
                horizon.see(trace_id, before + number)
    except UNPACKING_FAULTS:
        return number
    finally:
        stream.close()
    return number
