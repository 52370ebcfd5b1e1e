"""Where each trace is last seen, so that a run can be built and let go as soon as its last span was read.

A quick pass over the bytes looks for nothing but trace ids. Traces share slots of a table of fixed size, so memory does
not grow with the input: two traces in one slot both wait for the later one.
"""

from __future__ import annotations

import re
import zlib
from array import array
from bisect import bisect_left
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from agentguard.traces.files import UNPACKING_FAULTS, is_packed, lines, opened
from agentguard.traces.values import TRACE_DIGITS, hex_id

_SLOT_BITS: Final = 20
_SLOT_DIGITS: Final = _SLOT_BITS // 4
_TRACE_ID: Final = re.compile(rb'"trace_?[iI][dD]"\s*:\s*"([^"]*)"')
_FROM: Final = 32 * 2**20
_UNPACKED: Final = 8
"""How much longer packed spans are guessed to be."""


class Horizon:
    """The place of the last mention of each trace in some files, read one after another."""

    def __init__(self, first: array[int], last: array[int], lengths: list[int], *, blind: bool = False) -> None:
        self._first = first
        self._blind = blind
        self._last = last
        self.lengths = lengths
        """Lines of each file when it was looked through; it may have grown since, and what came then is left out."""

    def of(self, trace_id: str) -> int:
        """Return the place at which a trace is seen last, counted in lines over all files; 0 when it was not seen."""
        return sum(self.lengths) if self._blind else self._last[slot(trace_id)]

    def begins(self, ends: list[int]) -> list[int]:
        """Return the place from which each part has to be read for the traces that end in it, given the parts' ends."""
        begins = [1, *[end + 1 for end in ends[:-1]]]
        for first, last in zip(self._first, self._last, strict=True):
            if last:
                part = bisect_left(ends, last)
                begins[part] = min(begins[part], first)
        return begins


def slot(trace_id: str | bytes) -> int:
    """Return the slot of a trace: the last digits of its id, or a checksum of an id of another kind."""
    try:
        return int(trace_id[-_SLOT_DIGITS:], 16)
    except ValueError:
        data = trace_id if isinstance(trace_id, bytes) else trace_id.encode("utf-8", "surrogatepass")
        return zlib.crc32(data.lower()) & (1 << _SLOT_BITS) - 1


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
    first, last = (array("Q", bytes(8 << _SLOT_BITS)) for _ in range(2))
    lengths: list[int] = []
    for path in paths:
        lengths.append(_scan(path, first, last, sum(lengths)))
    return Horizon(first, last, lengths, blind=blind)


def _scan(path: str, first: array[int], last: array[int], before: int) -> int:
    """Note the places of one file's traces, which follow those `before`; return how many lines it has."""
    number = 0
    stream = opened(path)
    try:
        for number, line in lines(stream):
            for trace_id in _TRACE_ID.findall(line or b""):
                at = slot(trace_id if len(trace_id) == TRACE_DIGITS else _as_read(trace_id))
                last[at] = before + number
                if not first[at]:
                    first[at] = before + number
    except UNPACKING_FAULTS:
        return number
    finally:
        stream.close()
    return number
