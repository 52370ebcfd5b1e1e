"""What is compared: calls as plain records, the ways to match them, and which attempts count."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from agentguard.fingerprint import fingerprint
from agentguard.matching.arguments import Arguments


class Match(enum.StrEnum):
    """What the calls of a run must be, measured against those of a reference.

    All count calls, never kinds of calls: what the reference names twice must be made twice. An empty reference is a
    reference: it says that nothing was to be called.
    """

    EXACT = "exact"
    """The same calls in the same order, and no other. Turns do not matter."""
    EXACT_TURNS = "exact_turns"
    """The same turns in the same order, each with the same calls in any order. A call without a turn is a turn."""
    IN_ORDER = "in_order"
    """The reference is a subsequence: all its calls in its order, others anywhere."""
    ANY_ORDER = "any_order"
    """The same calls in any order, and no other."""
    SUPERSET = "superset"
    """Every call of the reference in any order; others are tolerated, so pair it with a step budget."""
    SUBSET = "subset"
    """No call that the reference does not name, in any order; some may be left out."""


class Status(enum.StrEnum):
    """What became of a call."""

    OK = "ok"
    ERROR = "error"
    """It ran and failed."""
    REFUSED = "refused"
    """It never ran: refused by a guard, unknown to the harness, or waiting for an approval that did not come."""


class Attempts(enum.StrEnum):
    """Whether calls that did not succeed are compared."""

    COUNT = "count"
    SKIP = "skip"
    """Left out, as if they had not been asked for: they are no extra calls, and satisfy nothing."""


class Call(msgspec.Struct, frozen=True):
    """One call of a reference or of a run."""

    tool: str
    """The name as it was asked for; compared as it is."""
    arguments: Mapping[str, Any] | None = None
    """By name. None means not recorded, which equals nothing and differs from nothing; no arguments is `{}`."""
    turn: int | None = None
    """Calls of one parallel model turn share a number. None: a turn of its own."""
    status: Status = Status.OK
    key: bytes | None = None
    """`ToolCall.fingerprint`, where it is known already. None: worked out when needed (see `keyed`)."""
    rule: Arguments | None = None
    """In a reference: how the arguments of this very call are compared. None: as the rules for its tool say."""
    id: str | None = None
    """In a reference: a name for this call, to speak of it where the order of calls is constrained."""
    absence: str = "arguments not recorded"
    """Why there are no arguments, where there are none."""

    @property
    def identity(self) -> bytes:
        """Equal for two calls iff tool and arguments are: the key that loops are found by, too."""
        return self.key or self.tool.encode("utf-8", "surrogatepass") + b"\0" + fingerprint(self.arguments)


def keyed(calls: Iterable[Call]) -> list[Call]:
    """Return `calls` with their keys worked out, for calls that are compared more than once."""
    return [
        call if call.key or call.arguments is None else msgspec.structs.replace(call, key=call.identity)
        for call in calls
    ]


def counts(call: Call, *, failed: Attempts, refused: Attempts) -> bool:
    """Whether a call is compared when failed and refused ones are treated so."""
    if call.status is Status.ERROR:
        return failed is Attempts.COUNT
    return call.status is Status.OK or refused is Attempts.COUNT


def counted(calls: Iterable[Call], *, failed: Attempts, refused: Attempts) -> list[Call]:
    """Return the calls that are compared when failed and refused ones are treated so."""
    return [call for call in calls if counts(call, failed=failed, refused=refused)]


def turns(calls: Sequence[Call]) -> list[int]:
    """Return the indices of each turn's calls, as bits, in the order in which the turns began.

    >>> turns([Call("a", turn=1), Call("b", turn=1), Call("c")])
    [3, 4]
    """
    masks: dict[object, int] = {}
    for index, call in enumerate(calls):
        turn = (index,) if call.turn is None else call.turn
        masks[turn] = masks.get(turn, 0) | 1 << index
    return list(masks.values())


def longest_repeat(calls: Sequence[Call]) -> int:
    """Return how many times the same turn stands back to back at the most; 0 without calls.

    Equal calls inside one turn are no repeat, and a call whose arguments were not recorded repeats nothing.

    >>> longest_repeat([Call("f", {"n": 1}), Call("f", {"n": 1.0}), Call("f", {"n": True})])
    2
    """
    longest = streak = 0
    before: object = None
    for now in _turn_keys(calls):
        streak = streak + 1 if now == before and now is not None else 1
        longest, before = max(longest, streak), now
    return longest


def _turn_keys(calls: Sequence[Call]) -> Iterable[object]:
    """Yield what stands for each turn; None for one that repeats nothing."""
    if all(call.turn is None for call in calls):
        return map(_known, calls)
    return (_together([_known(calls[index]) for index in bits(turn)]) for turn in turns(calls))


def _known(call: Call) -> bytes | None:
    return call.key or (None if call.arguments is None else call.identity)


def _together(keys: list[bytes | None]) -> list[bytes] | None:
    known = [key for key in keys if key is not None]
    return sorted(known) if len(known) == len(keys) else None


def bits(mask: int) -> list[int]:
    """Return the positions of the bits that are set, the lowest first.

    >>> bits(0b1010)
    [1, 3]
    """
    found: list[int] = []
    while mask:
        low = mask & -mask
        found.append(low.bit_length() - 1)
        mask ^= low
    return found
