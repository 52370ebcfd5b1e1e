"""A call on its way through the checks, with everything a check may look at."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Protocol

import msgspec

from agentguard.call import ToolCall, ToolResult
from agentguard.decision import ALLOWED, Decision
from agentguard.ledger import Ledger
from agentguard.loops import Lane, Place, Token
from agentguard.tools import Tool
from agentguard.trajectory import Step


class Past(Protocol):
    """What a run knows beyond one lane, for checks that look further."""

    known: Collection[str]
    """Names of the declared tools. Empty when the set of tools is not closed: then no name is unknown."""

    def succeeded(self, tool: str, values: tuple[bytes, ...], names: tuple[str, ...]) -> bool:
        """Whether an earlier call of `tool` succeeded whose arguments `names` had these canonical values."""
        ...

    def overran(self, tool: str) -> float | None:
        """Seconds that the last call of `tool` took when it passed its deadline uncut; None when it did not."""
        ...

    def waited(self, lane: str) -> float | None:
        """Seconds since a call of a polled tool last came back in this lane; None when none did."""
        ...


class CurrentSpan(Protocol):
    """The span of a call, as far as a run deals with it."""

    @property
    def ids(self) -> dict[str, str]:
        """Trace and span id in hex, for logs."""
        ...

    def attach(self) -> None:
        """Make it current."""
        ...

    def detach(self) -> None:
        """Make current what was before."""
        ...

    def end(self, result: ToolResult | str | None, token: Token, error: BaseException | None) -> None:
        """Say what came back and end it. `error` is what the tool raised, None when it did not."""
        ...


class Attempt(msgspec.Struct):
    """One call that was asked for. Checks read it; only the run writes it."""

    call: ToolCall
    tool: Tool
    """What is declared about the tool; a `Tool` with nothing but a name when nothing is."""
    place: Place
    """Where the call stands in its lane."""
    lane: str
    home: Lane | None
    """The lane itself; None outside every lane."""
    seq: int
    """Order of arrival in the run, from 0."""
    ledger: Ledger
    past: Past
    watched: bool = False
    """Whether the result needs a closer look than remembering it."""
    turn: int | None = None
    user_turn: bool = False
    decision: Decision = ALLOWED
    holds: bool = False
    """Whether the call holds a charge on the ledger while it runs."""
    result: ToolResult | str | None = None
    """What came back; a plain text stands for a successful result with that content."""
    started_at: int | None = None
    """Nanoseconds since the epoch. None where nothing needs the time."""
    ended_at: int | None = None
    executed: bool = False
    inner: bool = False
    """The same call is being judged by a layer above already: it runs, and is counted there."""
    layered: bool = False
    """Whether a layer below may guard the same call, so that it has to be told while the call runs."""
    outer: Any = None
    """What the call stands inside of, where it is layered."""
    feedback: str | None = None
    """What the caller gets instead of a result. None when the call runs."""
    span: CurrentSpan | None = None
    """None when nothing is recorded."""

    def step(self) -> Step:
        """Return the call as a trajectory keeps it."""
        result = self.result
        return Step(
            call=self.call,
            result=ToolResult(result) if isinstance(result, str) else result,
            decision=self.decision,
            executed=self.executed,
            started_at=self.started_at,
            ended_at=self.ended_at,
            turn=self.turn,
            lane=self.lane,
            seq=self.seq,
            user_turn=self.user_turn,
        )

    def enter_context(self) -> None:
        """Make the call's span current, for the time that the tool's own code runs."""
        if self.span is not None:
            self.span.attach()

    def leave_context(self) -> None:
        """Give control back to the caller while the call goes on."""
        if self.span is not None:
            self.span.detach()
