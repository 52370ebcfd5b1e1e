"""Running totals in this process, with every ancestor's."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal

from agentguard.call import Usage
from agentguard.ledger.budget import NO_CEILING, Budget, Charge, Kind, Refusal, Reservation

_ZERO = Decimal(0)


class Ledger:
    """What one run, or one lane of it, has used; a child draws on every ancestor too.

    Reserving is atomic: all ledgers of a family share one lock. Totals never go down but by `release`, and never
    pass a ceiling by reserving.
    """

    def __init__(
        self, budget: Budget = NO_CEILING, *, parent: Ledger | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.parent = parent
        self._set_budget(budget)
        self.lock: threading.RLock = parent.lock if parent else threading.RLock()
        self.steps = 0
        """Calls that ran, run now, or may have run."""
        self.tokens = 0
        self.cost_usd = _ZERO
        self.failures = 0
        self.unresolved_calls = 0
        """Calls of which nobody knows whether they ran; they stay charged."""
        self.unknown_costs = 0
        """Model calls whose price is not known; they are in no total."""
        self._calls: dict[str, int] = {}
        self._clock = clock
        self._began = clock()
        self._warned: set[str] = set()
        self.family: tuple[Ledger, ...] = tuple(self._ancestors())
        """This ledger and every ancestor, nearest first."""

    @property
    def seconds(self) -> float:
        """Seconds since the run began."""
        return self._clock() - self._began

    @property
    def calls(self) -> dict[str, int]:
        """Calls by tool that ran, run now, or may have run."""
        return dict(self._calls)

    @property
    def limited(self) -> bool:
        """Whether this ledger or an ancestor has any ceiling."""
        return any(ledger._has_ceiling for ledger in self.family)

    def rebudget(self, budget: Budget) -> None:
        """Replace the ceilings; what was used stays used."""
        with self.lock:
            self._set_budget(budget)
            self._warned.clear()

    def ask(self, charge: Charge) -> Refusal | None:
        """Return why the charge does not fit, the farthest-reaching reason first; None when it does."""
        for depth, ledger in enumerate(self.family):
            refusal = ledger._over(charge, depth) if ledger._has_ceiling else None
            if refusal is not None:
                return refusal
        return None

    def reserve(self, charge: Charge) -> Reservation | Refusal:
        """Hold a charge here and at every ancestor, or at none and say why."""
        with self.lock:
            return self.take(charge) or Reservation(charge)

    def commit(self, reservation: Reservation, *, failed: bool = False) -> None:
        """The call ran; what it held is used."""
        with self.lock:
            if self._first(reservation) and failed:
                self.add_failure()

    def release(self, reservation: Reservation) -> None:
        """The call did not run to an end that counts; what it held is free again."""
        with self.lock:
            if self._first(reservation):
                self.give_back(reservation.charge)

    def unresolved(self, reservation: Reservation) -> None:
        """Nobody knows whether the call took effect; what it held stays used, and is counted apart."""
        with self.lock:
            if self._first(reservation):
                self.add_unresolved()

    def take(self, charge: Charge, *, force: bool = False) -> Refusal | None:
        """As `reserve`, for a caller that holds `lock` and settles by itself; `force` takes it past any ceiling."""
        if self._plain and charge.cost_usd is None and not force:  # most runs: a few comparisons decide
            used = self._calls.get(charge.tool, 0)
            if self.steps < self._most_steps and used < self._most_calls.get(charge.tool, self._most_of_each):
                self.steps += 1
                self._calls[charge.tool] = used + 1
                return None
        refusal = None if force else self.ask(charge)
        if refusal is None:
            for ledger in self.family:
                ledger._add(charge, 1)
        return refusal

    def give_back(self, charge: Charge) -> None:
        """Undo one `take`; the caller holds `lock`."""
        for ledger in self.family:
            ledger._add(charge, -1)

    def add_failure(self) -> None:
        """Count a call that failed; the caller holds `lock`."""
        for ledger in self.family:
            ledger.failures += 1

    def add_unresolved(self) -> None:
        """Count a call of which nobody knows whether it took effect; the caller holds `lock`."""
        for ledger in self.family:
            ledger.unresolved_calls += 1

    def charge(self, usage: Usage) -> None:
        """Add what a model call used. Unknown figures add nothing; an unknown price is counted as unknown."""
        with self.lock:
            for ledger in self.family:
                ledger.tokens += (usage.input_tokens or 0) + (usage.output_tokens or 0)
                ledger.cost_usd += usage.cost_usd or _ZERO
                ledger.unknown_costs += usage.cost_usd is None

    def remaining(self, tool: str | None = None) -> dict[Kind, float | Decimal]:
        """Return what is left by kind, here and at every ancestor, never below 0; kinds without a ceiling are absent.

        Calls per tool are there only for the `tool` that is named.
        """
        left: dict[Kind, float | Decimal] = {}
        with self.lock:
            for ledger in self.family:
                for kind, limit, used in ledger._ceilings(tool):
                    rest = _rest(limit, used)
                    left[kind] = min(left[kind], rest) if kind in left else rest
        return left

    def newly_near(self, charge: Charge) -> Iterator[Refusal]:
        """Yield, once each, the ceilings that a charge which was taken brought past the share of their `warn_at`."""
        for depth, ledger in enumerate(self.family):
            share = ledger.budget.warn_at
            if share is None:
                continue
            for kind, limit, used in ledger._ceilings(charge.tool):
                name = kind + charge.tool if kind is Kind.CALLS_PER_TOOL else kind
                if name not in ledger._warned and float(used) >= share * float(limit):
                    ledger._warned.add(name)
                    yield Refusal(kind, limit, used, charge.tool, depth)

    def _ancestors(self) -> Iterator[Ledger]:
        ledger: Ledger | None = self
        while ledger is not None:
            yield ledger
            ledger = ledger.parent

    def _over(self, charge: Charge, depth: int) -> Refusal | None:
        for kind, limit, used in self._ceilings(charge.tool):
            if self._passes(kind, limit, used, charge):
                return Refusal(kind, limit, used, charge.tool, depth)
        return None

    def _ceilings(self, tool: str | None) -> Iterator[tuple[Kind, float | Decimal, float | Decimal]]:
        budget = self.budget
        if budget.seconds is not None:
            yield Kind.SECONDS, budget.seconds, self.seconds
        if budget.steps is not None:
            yield Kind.STEPS, budget.steps, self.steps
        if budget.tokens is not None:
            yield Kind.TOKENS, budget.tokens, self.tokens
        if budget.cost_usd is not None:
            yield Kind.COST_USD, budget.cost_usd, self.cost_usd
        if budget.failures is not None:
            yield Kind.FAILURES, budget.failures, self.failures
        calls = None if tool is None else budget.calls_of(tool)
        if calls is not None and tool is not None:
            yield Kind.CALLS_PER_TOOL, calls, self._calls.get(tool, 0)

    @staticmethod
    def _passes(kind: Kind, limit: float | Decimal, used: float | Decimal, charge: Charge) -> bool:
        """Whether the charge would pass a ceiling; what is known only afterwards has passed it when it is reached."""
        if kind is Kind.COST_USD:
            return Decimal(used) + (charge.cost_usd or _ZERO) > limit
        return used >= limit

    def _add(self, charge: Charge, sign: int) -> None:
        self.steps += sign
        if charge.cost_usd is not None:
            self.cost_usd += sign * charge.cost_usd
        self._calls[charge.tool] = self._calls.get(charge.tool, 0) + sign

    def _set_budget(self, budget: Budget) -> None:
        self.budget = budget
        self._has_ceiling = budget.limited
        self._plain = self.parent is None and self._needs_no_looking_up(budget)
        self._most_steps = math.inf if budget.steps is None else budget.steps
        each = budget.calls_per_tool
        self._most_of_each = each if isinstance(each, int) else math.inf
        self._most_calls: Mapping[str, float] = each if isinstance(each, Mapping) else {}
        self.warns: bool = budget.warn_at is not None or (self.parent is not None and self.parent.warns)
        """Whether this ledger or an ancestor warns before a ceiling."""

    @staticmethod
    def _needs_no_looking_up(budget: Budget) -> bool:
        return all(ceiling is None for ceiling in (budget.seconds, budget.tokens, budget.cost_usd, budget.failures))

    @staticmethod
    def _first(reservation: Reservation) -> bool:
        first = not reservation.settled
        reservation.settled = True
        return first


def _rest(limit: float | Decimal, used: float | Decimal) -> float | Decimal:
    if isinstance(limit, Decimal):
        return max(limit - Decimal(used), _ZERO)
    return max(limit - float(used) if isinstance(used, Decimal) else limit - used, 0)
