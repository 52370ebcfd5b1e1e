"""Repeats, failures in a row and cycles of one lane: the definitions that live checks and offline metrics share.

A *unit* is a parallel turn of two or more calls that was declared as such, or else a single call. Units are back to
back when no other unit of the lane stands between them. Everything here is constant in time and memory per call,
however long the lane.
"""

from __future__ import annotations

import enum
from collections import Counter, deque
from collections.abc import Sequence
from itertools import pairwise
from typing import Final

import msgspec

from agentguard.fingerprint import normalised


class Outcome(enum.Enum):
    """Results that are no text."""

    UNKNOWN = "unknown"
    """Not recorded, or still in flight: equals nothing."""
    REFUSED = "refused"
    """The call did not run: equals whatever it is compared with."""


UNKNOWN: Final = Outcome.UNKNOWN
REFUSED: Final = Outcome.REFUSED

Token = str | bytes | Outcome
"""What stands for a result: text (compared after `normalised`), bytes (a digest, compared as they are), or neither."""

Key = bytes | tuple[bytes, ...]


def same_result(one: Token, other: Token) -> bool:
    """Return whether two results say the same.

    >>> same_result("ok (took 0.03s)", "ok (took 0.12s)"), same_result("id 1", "id 2"), same_result(UNKNOWN, UNKNOWN)
    (True, False, False)
    """
    if one is UNKNOWN or other is UNKNOWN:
        return False
    if one is REFUSED or other is REFUSED or one == other:
        return True
    return isinstance(one, str) and isinstance(other, str) and normalised(one) == normalised(other)


class Place(msgspec.Struct, gc=False):
    """Where one call stands in its lane: what a check may know about the calls before it."""

    key: bytes
    """The call's fingerprint."""
    tool: str
    streak: int = 0
    """Number of the streak that its unit belongs to, in the lane; -1 outside every lane."""
    identical: int = 0
    """Identical units standing just before this one (k)."""
    equal: int = 0
    """How many of their results, counted back from the last, are equal (n)."""
    failures: int = 0
    """Failures of this tool in a row just before (f)."""
    same_error: int = 0
    """How many of those, counted back from the last, gave the same error text."""
    period: int = 0
    """2 or 3 when the call closes a cycle of that length whose results were equal; otherwise 0."""
    in_turn: bool = False
    """The unit is a turn of two or more calls."""
    duplicate: bool = False
    """An equal call came earlier in the same turn."""
    result: Token = UNKNOWN
    """What came back; UNKNOWN until then."""
    stale: bool | None = None
    """Afterwards, for a repeat: whether it gave what the identical unit before it gave. None when that is not known."""

    calm: bool = True
    """Whether nothing stands before the call that a loop check could speak of."""


class _Turn:
    """A declared parallel turn that is being worked off."""

    __slots__ = ("equal", "identical", "places", "seen", "streak", "waiting")

    def __init__(self, keys: Sequence[bytes], *, identical: int, equal: int, streak: int) -> None:
        self.waiting = Counter(keys)
        self.identical = identical
        self.equal = equal
        self.streak = streak
        self.places: list[Place] = []
        self.seen: set[bytes] = set()

    def results(self) -> list[tuple[bytes, Token]]:
        """Return the results in an order that does not depend on which call finished first."""
        known = [(place.key, place.result) for place in self.places]
        known += [(key, UNKNOWN) for key in self.waiting.elements()]
        return sorted(known, key=_by_key)


def _by_key(pair: tuple[bytes, Token]) -> bytes:
    return pair[0]


_NOWHERE = Place(b"", "")
_CYCLES_LOOK_BACK = 5


class Lane:
    """The calls of one agent in order, as far as anything may still depend on them."""

    def __init__(self) -> None:
        self._streak = 0
        self._key: Key = b""
        self._count = 0
        self._equal = 0
        self._in_flight = 0
        self._last: Token = UNKNOWN
        self._last_turn: list[tuple[bytes, Token]] = []
        self._turn: _Turn | None = None
        self._tool = ""
        self._failures = 0
        self._same_error = 0
        self._error: Token = UNKNOWN
        self._recent: deque[Place] = deque([_NOWHERE] * _CYCLES_LOOK_BACK, maxlen=_CYCLES_LOOK_BACK)

    def enter(self, key: bytes, tool: str) -> Place:
        """Return the place of a call that was asked for and not judged yet."""
        if self._turn is not None and self._turn.waiting[key] > 0:
            place = self._enter_turn(self._turn, key, tool)
        elif key == self._key:
            place = Place(key, tool, self._streak, self._count, self._equal + self._in_flight, calm=False)
            self._count += 1
            self._in_flight += 1
        else:
            self._streak += 1
            self._key = key
            self._count = self._in_flight = 1
            self._equal = 0
            self._last = UNKNOWN
            place = Place(key, tool, self._streak)
        if tool != self._tool:
            self._tool = tool
            self._failures = self._same_error = 0
        elif self._failures:
            place.failures, place.same_error, place.calm = self._failures, self._same_error, False
        recent = self._recent
        if not place.in_turn:
            if recent[-2].key == key or recent[-3].key == key:
                place.period = self._period(key)
                place.calm = place.calm and not place.period
            recent.append(place)
        return place

    def leave(self, place: Place, result: Token, error: Token | None = None) -> None:
        """Take in what a call gave back. `error` stands for its text when it failed, None when it succeeded."""
        place.result = result
        if place.streak == self._streak and not place.in_turn:
            self._in_flight -= 1
            if place.identical:
                place.stale = self._stale(place, self._last)
            if self._equal:
                self._settle(result)
            else:
                self._equal, self._last = 1, result
        if place.tool == self._tool and (error is not None or self._failures):
            self._count_failure(result, error)

    def refuse(self, place: Place, *, error: Token | None = None) -> None:
        """Take in that a call did not run. `error` is its text when that counts as a failure of the tool."""
        self.leave(place, REFUSED, error)

    def open_turn(self, keys: Sequence[bytes]) -> None:
        """Declare the calls of one parallel model turn, before the first of them enters."""
        self.close_turn()
        if len(keys) < 2:
            return
        identical, equal = self._advance(tuple(sorted(keys)))
        self._turn = _Turn(keys, identical=identical, equal=equal, streak=self._streak)
        self._recent.append(_NOWHERE)

    @property
    def last_result(self) -> Token:
        """What the last identical call gave back; UNKNOWN when the lane's last unit is a turn or is still out."""
        return self._last

    def close_turn(self) -> None:
        """Settle the open turn, if any; calls of it that are still out count as unknown."""
        turn, self._turn = self._turn, None
        if turn is None or turn.streak != self._streak:
            return
        results = turn.results()
        if turn.identical:
            before = dict(self._last_turn)
            for place in turn.places:
                place.stale = self._stale(place, before.get(place.key, UNKNOWN))
        same = bool(self._equal) and all(
            same_result(now[1], then[1]) for now, then in zip(results, self._last_turn, strict=True)
        )
        self._equal = self._equal + 1 if same else 1
        self._last_turn = results

    def user_turn(self) -> None:
        """A message of the real user ends every streak: asking again is legitimate then."""
        self.close_turn()
        self._advance(b"")
        self._tool = ""
        self._failures = self._same_error = 0
        self._recent.extend([_NOWHERE] * _CYCLES_LOOK_BACK)

    def _enter_turn(self, turn: _Turn, key: bytes, tool: str) -> Place:
        turn.waiting[key] -= 1
        place = Place(key, tool, turn.streak, turn.identical, turn.equal, in_turn=True)
        place.duplicate = key in turn.seen
        place.calm = not (place.identical or place.duplicate)
        turn.seen.add(key)
        turn.places.append(place)
        return place

    def _advance(self, key: Key) -> tuple[int, int]:
        """Make `key` the current unit; return the identical units before it and their equal results."""
        if key == self._key:
            self._count += 1
            return self._count - 1, self._equal
        self._streak += 1
        self._key = key
        self._count = 1
        self._equal = self._in_flight = 0
        self._last = UNKNOWN
        return 0, 0

    def _settle(self, result: Token) -> None:
        self._equal = self._equal + 1 if same_result(self._last, result) else 1
        if result is not REFUSED:
            self._last = result

    @staticmethod
    def _stale(place: Place, before: Token) -> bool | None:
        if not place.identical or place.result is UNKNOWN or before is UNKNOWN:
            return None
        return same_result(before, place.result)

    def _count_failure(self, result: Token, error: Token | None) -> None:
        if error is None:
            if not isinstance(result, Outcome):  # a call that did not run, or was cancelled, says nothing
                self._failures = self._same_error = 0
            return
        same = self._failures > 0 and same_result(self._error, error)
        self._same_error = self._same_error + 1 if same else 1
        self._failures += 1
        self._error = error

    def _period(self, key: bytes) -> int:
        e, d, c, b, a = self._recent
        if key == b.key == d.key and a.key == c.key == e.key != key:
            return 2 if _all_same(b, d) and _all_same(a, c, e) else 0
        if key == c.key and a.key == d.key and b.key == e.key and not key == a.key == b.key:
            return 3 if _all_same(a, d) and _all_same(b, e) else 0
        return 0


def _all_same(*places: Place) -> bool:
    return all(same_result(one.result, other.result) for one, other in pairwise(places))
