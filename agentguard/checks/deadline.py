"""A tool whose last call overran its deadline and could not be cut."""

from __future__ import annotations

from collections.abc import Collection
from typing import ClassVar

import msgspec

from agentguard.attempt import Attempt
from agentguard.decision import Action, Verdict
from agentguard.tools import Tool


class Deadline(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Asynchronous calls are cut at the tool's deadline. Synchronous ones cannot be: the next one is refused."""

    name: ClassVar[str] = "deadline"

    def applies(self, tool: Tool, known: Collection[str]) -> bool:
        """Whether the tool has a deadline."""
        return tool.deadline is not None

    def before(self, attempt: Attempt) -> Verdict | None:
        """Block one call of a tool after an overrun."""
        if attempt.tool.deadline is None:
            return None
        seconds = attempt.past.overran(attempt.call.name)
        if seconds is None:
            return None
        reason = f"the last call took {seconds:.1f} s where {attempt.tool.deadline:g} s are allowed"
        data = {"seconds": seconds, "deadline": attempt.tool.deadline}
        return Verdict(self.name, "deadline", Action.BLOCK, reason, data)
