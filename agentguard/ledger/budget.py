"""What a run may use, and the records that reserving it gives."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from decimal import Decimal

import msgspec


class Kind(enum.StrEnum):
    """What is budgeted. When each is charged, and for which calls, stands in docs/budgets.md."""

    STEPS = "steps"
    CALLS_PER_TOOL = "calls_per_tool"
    TOKENS = "tokens"
    COST_USD = "cost_usd"
    SECONDS = "seconds"
    FAILURES = "failures"


class Budget(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Ceilings of a run. None means no ceiling; a call that would pass one is refused before it runs."""

    steps: int | None = None
    """Calls that reach a tool. Passing it halts the run."""
    calls_per_tool: Mapping[str, int] | int | None = None
    """Calls that reach one tool: by name, or one number for every tool. Passing it blocks that tool only."""
    tokens: int | None = None
    """Input plus output tokens of model calls. Known only afterwards: the next tool call is refused."""
    cost_usd: Decimal | None = None
    """US dollars: prices of tools, reserved before a call, and of model calls, known afterwards."""
    seconds: float | None = None
    """Seconds since the run began, on a monotonic clock."""
    failures: int | None = None
    """Calls that failed."""
    warn_at: float | None = None
    """Share of any ceiling, above 0 and below 1, from which one warning is given. None means no warning."""
    per_lane: Budget | None = None
    """Ceilings of every lane by itself. A lane also draws on the run."""

    @property
    def limited(self) -> bool:
        """Whether there is any ceiling."""
        return self != NO_CEILING

    def calls_of(self, tool: str) -> int | None:
        """Return the ceiling of calls of one tool; None when it has none."""
        ceiling = self.calls_per_tool
        return ceiling if ceiling is None or isinstance(ceiling, int) else ceiling.get(tool)


NO_CEILING = Budget()
"""A budget that limits nothing."""


class Charge(msgspec.Struct, frozen=True):
    """What one call would take."""

    tool: str
    cost_usd: Decimal | None = None
    """The tool's fixed price. None means that calling it costs nothing that is known before."""


class Refusal(msgspec.Struct, frozen=True):
    """Why a charge does not fit."""

    kind: Kind
    limit: float | Decimal
    used: float | Decimal
    """What is used up or reserved already."""
    tool: str
    depth: int
    """0: the ledger that was asked; 1: its parent, and so on."""


class Reservation(msgspec.Struct):
    """A charge that is held while its call runs. Settled once by commit, release or unresolved."""

    charge: Charge
    settled: bool = False
