"""Budgets and the totals that are held against them."""

from __future__ import annotations

from agentguard.ledger.budget import Budget, Charge, Kind, Refusal, Reservation
from agentguard.ledger.memory import Ledger

__all__ = ["Budget", "Charge", "Kind", "Ledger", "Refusal", "Reservation"]
