"""Model spans and tool spans of one lane, joined to the calls that were asked for and what became of them."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, deque
from typing import TYPE_CHECKING

from agentguard.traces.arguments import Arguments, decode
from agentguard.traces.calls import PHANTOM, Ran, same_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from agentguard.traces.convention import Asked
    from agentguard.traces.requests import Request


LOOK_BACK = 8
"""Turns back in which an exactly equal call is looked for: a tool may start after later requests did."""


_NEAR = 64
"""How many calls of one turn are looked through for a match."""


class Turn:
    """One model request and the calls that follow from it."""

    __slots__ = ("entries", "open", "request", "start")

    def __init__(self, start: int, request: Request | None) -> None:
        self.start = start
        self.request = request
        """None when no model span was seen."""
        asked = request.asked if request is not None else None
        self.entries = [Entry(each) for each in asked or ()]
        self.open = self.entries.copy()
        """Asked for, and not yet found to have run."""


class Entry:
    """One call: asked for, run, or both. `ran` holds one record an attempt."""

    __slots__ = ("_arguments", "asked", "ran")

    def __init__(self, asked: Asked | None, ran: Ran | None = None) -> None:
        self.asked = asked
        self.ran: list[Ran] = [] if ran is None else [ran]
        self._arguments: Arguments | None = None

    @property
    def name(self) -> str:
        """The name the model used, else the span's."""
        return self.asked.name if self.asked is not None else self.ran[0].name

    @property
    def arguments(self) -> Arguments:
        """What the model asked for; nothing when no model span tells."""
        if self._arguments is None:
            self._arguments = decode(self.asked.arguments if self.asked is not None else None)
        return self._arguments


def joined(requests: list[Request], ran: list[Ran]) -> list[Turn]:
    """Join the model requests of a lane with its tool calls: by call id, else by order, name and arguments."""
    turns = [Turn(each.start, each) for each in _in_order(requests)]
    calls = sorted((each for each in ran if each.name != PHANTOM), key=lambda each: (each.start or 0, each.end or 0))
    if not turns:
        return [*overlapping(calls)]
    unmatched = _by_id(turns, calls)
    for turn in turns:
        turn.open = [entry for entry in turn.open if not entry.ran]
    before: list[Ran] = []
    starts = [turn.start for turn in turns]
    # two passes: an exact match must not lose its place to a call whose arguments are not known
    for exactly in (True, False):
        unmatched = [call for call in unmatched if not _fits_in(turns, starts, call, exactly=exactly)]
    for call in unmatched:
        at = bisect_right(starts, call.start or 0) - 1
        if at < 0:
            before.append(call)
        elif not _is_retry(turns[at], call):
            turns[at].entries.append(Entry(None, call))
    return [*overlapping(before), *turns]


def _in_order(requests: list[Request]) -> list[Request]:
    """Sort by time. Where a coarse clock gives several the same start, the one that was told more came later."""
    starts = [each.start for each in requests]
    if len(set(starts)) == len(starts):
        return sorted(requests, key=lambda each: each.start)
    tied = {start for start, count in Counter(starts).items() if count > 1}
    return sorted(requests, key=lambda each: (each.start, len(each.history()) if each.start in tied else 0, each.end))


def overlapping(calls: Iterable[Ran]) -> Iterator[Turn]:
    """Group calls, sorted by start, that overlap in time: without model spans that is all that tells parallel calls."""
    turn: Turn | None = None
    end = 0
    by_id: dict[str, Entry] = {}
    for call in calls:
        start = call.start or 0
        if call.call_id is not None and _retried(by_id.get(call.call_id), call):
            continue
        if turn is None or start >= end:
            if turn is not None:
                yield turn
            turn, end = Turn(start, None), 0
        entry = Entry(None, call)
        turn.entries.append(entry)
        end = max(end, call.end or start)
        if call.call_id is not None:
            by_id[call.call_id] = entry
    if turn is not None:
        yield turn


def _by_id(turns: list[Turn], calls: list[Ran]) -> list[Ran]:
    slots: dict[str, deque[tuple[int, Entry]]] = {}
    for turn in turns:
        for entry in turn.entries:
            if entry.asked is not None and entry.asked.id is not None:
                slots.setdefault(entry.asked.id, deque()).append((turn.start, entry))
    unmatched: list[Ran] = []
    for call in calls:
        slot = _slot(slots.get(call.call_id), call) if call.call_id is not None else None
        if slot is None:
            unmatched.append(call)
        else:
            slot.ran.append(call)
    return unmatched


def _slot(slots: deque[tuple[int, Entry]] | None, call: Ran) -> Entry | None:
    if not slots:
        return None
    # some providers use an id again in every turn: the latest asked before the call began
    asked_before = [entry for start, entry in slots if start <= (call.start or 0)]
    entry = asked_before[-1] if asked_before else slots[0][1]
    return entry if same_name(entry.name, call.name) or len(slots) == 1 else None


def _fits_in(turns: list[Turn], starts: list[int], call: Ran, *, exactly: bool) -> bool:
    at = bisect_right(starts, call.start or 0) - 1
    for turn in reversed(turns[max(at - LOOK_BACK, 0) if exactly else max(at, 0) : at + 1]):
        for entry in turn.open[:_NEAR]:
            if not entry.ran and _matches(entry, call, exactly=exactly):
                entry.ran.append(call)
                turn.open.remove(entry)
                return True
    return False


def _matches(entry: Entry, call: Ran, *, exactly: bool) -> bool:
    if entry.asked is None or not same_name(entry.name, call.name):
        return False
    mine, theirs = entry.arguments, call.arguments
    known = mine.named is not None and theirs.named is not None
    if exactly:
        return known and mine.named == theirs.named
    if known or (entry.asked.id is not None and call.call_id is not None and not call.synthetic):
        return False
    return theirs.bare is None or mine.named is None or theirs.bare in mine.named.values()


def _is_retry(turn: Turn, call: Ran) -> bool:
    for entry in turn.entries[-_NEAR:]:
        if not entry.ran or not same_name(entry.name, call.name) or entry.ran[-1].conflicts(call):
            continue
        last = entry.ran[-1]
        same_id = call.call_id is not None and call.call_id == last.call_id
        alike = entry.asked is not None and call.call_id is None and call.arguments.named is not None
        if (same_id or alike) and _retried(entry, call):
            return True
    return False


def _retried(entry: Entry | None, call: Ran) -> bool:
    """Add a call to an entry as another attempt, if that is what it is: the last one failed and was over."""
    if entry is None:
        return False
    last = entry.ran[-1]
    over = (last.end or 0) <= (call.start or 0)
    if not over or not same_name(entry.name, call.name) or last.conflicts(call) or not last.outcome().is_error:
        return False
    entry.ran.append(call)
    return True
