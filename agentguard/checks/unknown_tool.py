"""A name that no declared tool has."""

from __future__ import annotations

import difflib
from collections.abc import Collection
from typing import ClassVar

import msgspec

from agentguard.attempt import Attempt
from agentguard.decision import Action, Verdict
from agentguard.tools import Tool

_LONGEST_NAME = 200


class UnknownTool(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Speaks only where tools are declared. Near names are offered, never called instead."""

    name: ClassVar[str] = "unknown_tool"

    nearest: int = 3
    """How many near names are offered at most."""

    def applies(self, tool: Tool, known: Collection[str]) -> bool:
        """Whether tools are declared and this is none of them."""
        return bool(known) and tool.name not in known

    def before(self, attempt: Attempt) -> Verdict:
        """Block a call whose name is not declared."""
        near = self._near(attempt)
        reason = "no tool has this name"
        return Verdict(self.name, "tool.unknown", Action.BLOCK, reason, {"nearest": near})

    def _near(self, attempt: Attempt) -> list[str]:
        if not self.nearest:
            return []
        return difflib.get_close_matches(attempt.call.name[:_LONGEST_NAME], list(attempt.past.known), n=self.nearest)
