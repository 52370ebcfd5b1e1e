"""What checks find, and what the guard then does."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import Any

import msgspec


class Action(enum.IntEnum):
    """What happens to a call, from the mildest to the strongest. The strongest of all verdicts wins."""

    ALLOW = 0
    """The call runs."""
    WARN = 1
    """The call runs; the finding is recorded."""
    BLOCK = 2
    """The call does not run; the model gets feedback as the call's result."""
    HALT = 3
    """The call does not run and the run ends."""

    @property
    def word(self) -> str:
        """The lower-case name, as it stands in policies, spans and reports."""
        return _WORDS[self]


_WORDS = {action: action.name.lower() for action in Action}


class Verdict(msgspec.Struct, frozen=True):
    """What one check found about one call."""

    check: str
    """The check's name in the policy, e.g. "repeats"."""
    code: str
    """Stable and machine-readable, e.g. "repeat.identical"."""
    action: Action
    """What this check asks for."""
    reason: str
    """One sentence for people and models; holds no argument values."""
    data: Mapping[str, Any] = {}
    """Figures behind the reason, by check; JSON values only."""


class Decision(msgspec.Struct, frozen=True):
    """What the guard does about one call.

    In observe mode `action` is ALLOW whatever the verdicts ask for: what was found and what was done are kept apart.
    """

    action: Action
    verdicts: tuple[Verdict, ...] = ()
    """Every finding, the strongest first; among equals in the order of the checks. Empty when nothing was found."""
    feedback: str | None = None
    """The text that stands as the call's result when it is refused. None when the call runs."""

    @property
    def allowed(self) -> bool:
        """Whether the call runs."""
        return self.action < Action.BLOCK

    @property
    def code(self) -> str | None:
        """The code of the strongest verdict; None when there is none."""
        return self.verdicts[0].code if self.verdicts else None

    @property
    def reason(self) -> str:
        """The reason of the strongest verdict; empty when there is none."""
        return self.verdicts[0].reason if self.verdicts else ""


ALLOWED = Decision(Action.ALLOW)
"""The decision about a call that no check had anything to say about."""
