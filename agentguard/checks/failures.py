"""One tool failing again and again, whatever the arguments."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

import msgspec

from agentguard.attempt import Attempt
from agentguard.decision import Action, Verdict


class Failures(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Counts consecutive failed calls of one tool in a lane; a success or another tool's call ends the row."""

    name: ClassVar[str] = "failures"
    quiet_when_calm: ClassVar[bool] = True

    warn: int = 3
    """Failures in a row from which the next call of the tool is warned about."""
    halt: int = 5
    """Failures in a row from which the run is halted."""
    same_error_warn: int = 3
    """As `warn`, for failures with the same error text."""
    same_error_halt: int = 4
    """As `halt`, for failures with the same error text."""

    def before(self, attempt: Attempt) -> Iterator[Verdict]:
        """Yield what the failures just before say about this call."""
        place = attempt.place
        if place.same_error >= self.same_error_warn:
            action = Action.HALT if place.same_error >= self.same_error_halt else Action.WARN
            reason = f"the tool failed {place.same_error} times in a row with the same error"
            yield Verdict(self.name, "failures.error", action, reason, {"failures": place.same_error})
        if place.failures >= self.warn:
            action = Action.HALT if place.failures >= self.halt else Action.WARN
            reason = f"the tool failed {place.failures} times in a row"
            yield Verdict(self.name, "failures.tool", action, reason, {"failures": place.failures})
