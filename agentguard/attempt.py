"""A call on its way through the checks, with everything a check may look at."""

from __future__ import annotations

from collections.abc import Collection
from typing import Protocol

import msgspec

from agentguard.call import ToolCall, ToolResult
from agentguard.decision import ALLOWED, Decision
from agentguard.ledger import Ledger, Reservation
from agentguard.loops import Place
from agentguard.tools import Tool


class Past(Protocol):
    """What a run remembers beyond one lane, for checks that look further back."""

    def succeeded(self, tool: str, values: tuple[bytes, ...], names: tuple[str, ...]) -> bool:
        """Whether an earlier call of `tool` succeeded whose arguments `names` had these canonical values."""
        ...

    def overran(self, tool: str) -> float | None:
        """Seconds that the last call of `tool` took when it passed its deadline uncut; None when it did not."""
        ...

    def waited(self, key: bytes) -> float | None:
        """Seconds since the call with this fingerprint last came back in its lane; None when it never did."""
        ...


class Attempt(msgspec.Struct):
    """One call that was asked for. Checks read it; only the run writes it."""

    call: ToolCall
    tool: Tool
    """What is declared about the tool; a `Tool` with nothing but a name when nothing is."""
    place: Place
    """Where the call stands in its lane."""
    lane: str
    seq: int
    """Order of arrival in the run, from 0."""
    ledger: Ledger
    past: Past
    known: Collection[str]
    """Names of the declared tools. Empty when the set of tools is not closed: then no name is unknown."""
    turn: int | None = None
    user_turn: bool = False
    decision: Decision = ALLOWED
    reservation: Reservation | None = None
    """What the call holds of the budgets while it runs."""
    result: ToolResult | None = None
    started_at: int = 0
    """Nanoseconds since the epoch."""
    ended_at: int | None = None
    executed: bool = False
