"""The same call, or the same parallel turn, back to back."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

import msgspec

from agentguard.attempt import Attempt
from agentguard.decision import Action, Verdict
from agentguard.loops import Place
from agentguard.tools import Poll


class Repeats(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Judges the call, never a window: after a refusal a different call runs, and the same call is refused again.

    The defaults come from 20,336 recorded runs with an outcome (docs/decisions/002-thresholds.md).
    """

    name: ClassVar[str] = "repeats"
    quiet_when_calm: ClassVar[bool] = True

    block: int = 2
    """Equal results of the identical calls just before from which the next one is blocked."""
    halt: int = 4
    """The same, from which the run is halted."""
    writes_block: int = 1
    """As `block`, for a tool that is declared to write."""
    writes_halt: int = 2
    """As `halt`, for a tool that is declared to write."""
    ceiling: int = 20
    """Identical calls just before, whatever their results, from which the next one is blocked."""

    def before(self, attempt: Attempt) -> Iterator[Verdict]:
        """Yield what the calls just before say about this one."""
        place, tool = attempt.place, attempt.tool
        if place.duplicate:
            yield self._verdict("repeat.duplicate", Action.WARN, "an equal call stands in the same turn", place)
        if not place.identical or tool.repeatable:
            return
        if tool.poll is not None:
            yield from self._poll(attempt, tool.poll)
            return
        streak = self._streak(place, writes=tool.writes)
        if streak is not None:
            yield streak
        if place.identical >= self.ceiling:
            reason = f"the identical {_unit(place)} stands just before, {_times(place.identical)}"
            yield self._verdict("repeat.ceiling", Action.BLOCK, reason, place)

    def _streak(self, place: Place, *, writes: bool) -> Verdict | None:
        block, halt = (self.writes_block, self.writes_halt) if writes else (self.block, self.halt)
        if place.equal >= block:
            action = Action.HALT if place.equal >= halt else Action.BLOCK
        elif place.identical == 1:
            action = Action.WARN
        else:
            return None
        code = "repeat.write" if writes else "repeat.turn" if place.in_turn else "repeat.identical"
        reason = f"the identical {_unit(place)} stands just before, {_times(place.identical)}"
        if place.identical > 1:
            reason += f", the last {place.equal} with equal results"
        return self._verdict(code, action, reason, place)

    def _poll(self, attempt: Attempt, poll: Poll) -> Iterator[Verdict]:
        place = attempt.place
        if place.identical >= poll.max:
            reason = f"polled {place.identical} times in a row where {poll.max} are allowed"
            yield self._verdict("repeat.poll", Action.BLOCK, reason, place)
        waited = attempt.past.waited(attempt.lane)
        if waited is not None and waited < poll.min_interval:
            reason = f"polled after {waited:.1f} s where {poll.min_interval:g} s are to pass"
            yield self._verdict("repeat.poll_interval", Action.BLOCK, reason, place)

    def _verdict(self, code: str, action: Action, reason: str, place: Place) -> Verdict:
        return Verdict(self.name, code, action, reason, {"identical": place.identical, "equal": place.equal})


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


def _unit(place: Place) -> str:
    return "turn" if place.in_turn else "call"
