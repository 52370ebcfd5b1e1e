"""Calls that would pass a ceiling."""

from __future__ import annotations

from typing import ClassVar

import msgspec

from agentguard.attempt import Attempt
from agentguard.decision import Action, Verdict
from agentguard.ledger import Charge, Kind, Refusal


class BudgetCheck(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Asks the ledger; the ceilings themselves stand in the policy's `[budget]`."""

    name: ClassVar[str] = "budget"
    quiet_when_calm: ClassVar[bool] = True
    """A calm call reserves without asking first; what is refused then is reported by `passed` all the same."""

    def before(self, attempt: Attempt) -> Verdict | None:
        """Halt at a ceiling of the run, block at a ceiling of one tool."""
        refusal = attempt.ledger.ask(Charge(attempt.call.name, attempt.tool.cost_usd))
        return None if refusal is None else passed(refusal)


def passed(refusal: Refusal) -> Verdict:
    """Return the verdict about a charge that does not fit."""
    action = Action.BLOCK if refusal.kind is Kind.CALLS_PER_TOOL else Action.HALT
    reason = f"would pass the ceiling of {_figure(refusal)}; {refusal.used:.6g} are used"
    return Verdict(BudgetCheck.name, f"budget.{refusal.kind}", action, reason, _data(refusal))


def near(refusal: Refusal) -> Verdict:
    """Return the warning, given once, about a ceiling that is near."""
    reason = f"comes near the ceiling of {_figure(refusal)}; {refusal.used:.6g} are used"
    return Verdict(BudgetCheck.name, "budget.near", Action.WARN, reason, _data(refusal))


def _figure(refusal: Refusal) -> str:
    where = " of an ancestor" if refusal.depth else ""
    return f"{refusal.limit:g} {refusal.kind.replace('_', ' ')}{where}"


def _data(refusal: Refusal) -> dict[str, object]:
    return {"kind": str(refusal.kind), "limit": float(refusal.limit), "used": float(refusal.used)}
