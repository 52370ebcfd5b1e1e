"""Two or three calls going round with nothing new."""

from __future__ import annotations

from typing import ClassVar

import msgspec

from agentguard.attempt import Attempt
from agentguard.decision import Action, Verdict


class Cycles(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Warns of a cycle of two calls the third time round, of three the second time, with equal results each time."""

    name: ClassVar[str] = "cycles"
    quiet_when_calm: ClassVar[bool] = True

    def before(self, attempt: Attempt) -> Verdict | None:
        """Warn about the call that closes a cycle."""
        period = attempt.place.period
        if not period:
            return None
        reason = f"the last calls go round in a cycle of {period} with equal results"
        return Verdict(self.name, "cycle", Action.WARN, reason, {"period": period})
