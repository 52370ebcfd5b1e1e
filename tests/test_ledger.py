"""Ledgers: what is reserved, settled and left."""

from __future__ import annotations

from decimal import Decimal

import pytest

from agentguard import Budget, Usage
from agentguard.ledger import Charge, Kind, Ledger, Refusal, Reservation
from agentguard.testing import FakeClock

CALL = Charge("search")


def held(ledger: Ledger, charge: Charge = CALL) -> Reservation:
    got = ledger.reserve(charge)
    assert isinstance(got, Reservation)
    return got


def test_what_does_not_fit_is_refused_with_its_figures() -> None:
    ledger = Ledger(Budget(steps=1))
    held(ledger)
    assert ledger.reserve(CALL) == Refusal(Kind.STEPS, 1, 1, "search", 0)
    assert ledger.ask(CALL) == Refusal(Kind.STEPS, 1, 1, "search", 0)


def test_asking_takes_nothing() -> None:
    ledger = Ledger(Budget(steps=1))
    assert ledger.ask(CALL) is None
    assert ledger.steps == 0


def test_a_release_frees_once_however_often_it_is_said() -> None:
    ledger = Ledger(Budget(steps=2))
    first = held(ledger)
    held(ledger)
    ledger.release(first)
    ledger.release(first)
    assert ledger.steps == 1


def test_a_commit_cannot_be_released_any_more() -> None:
    ledger = Ledger()
    reservation = held(ledger)
    ledger.commit(reservation, failed=True)
    ledger.release(reservation)
    assert (ledger.steps, ledger.failures) == (1, 1)


def test_an_unresolved_call_stays_charged_and_is_counted_apart() -> None:
    ledger = Ledger(Budget(steps=1))
    ledger.unresolved(held(ledger))
    assert (ledger.steps, ledger.unresolved_calls, ledger.remaining()) == (1, 1, {Kind.STEPS: 0})


def test_a_child_draws_on_every_ancestor_or_on_none() -> None:
    root = Ledger(Budget(cost_usd=Decimal("1")))
    child = Ledger(Budget(steps=5), parent=root)
    priced = Charge("search", Decimal("0.30"))
    reservations = [held(child, priced) for _ in range(3)]
    assert child.reserve(priced) == Refusal(Kind.COST_USD, Decimal(1), Decimal("0.90"), "search", 1)
    assert (root.steps, child.steps, root.cost_usd) == (3, 3, Decimal("0.90"))
    child.release(reservations[0])
    assert (root.steps, child.steps, root.cost_usd) == (2, 2, Decimal("0.60"))


def test_what_is_left_is_the_least_of_the_family() -> None:
    root = Ledger(Budget(steps=3, calls_per_tool=2))
    child = Ledger(Budget(steps=9), parent=root)
    held(child)
    assert child.remaining() == {Kind.STEPS: 2}
    assert child.remaining("search") == {Kind.STEPS: 2, Kind.CALLS_PER_TOOL: 1}


def test_one_number_is_the_ceiling_of_each_tool() -> None:
    ledger = Ledger(Budget(calls_per_tool=1))
    held(ledger)
    assert isinstance(ledger.reserve(CALL), Refusal)
    held(ledger, Charge("read"))


def test_model_usage_is_added_here_and_above() -> None:
    root = Ledger()
    child = Ledger(parent=root)
    child.charge(Usage(10, 5, 3, Decimal("0.5")))
    child.charge(Usage(None, 1))
    assert (root.tokens, root.cost_usd, root.unknown_costs) == (16, Decimal("0.5"), 1)


def test_seconds_run_by_themselves() -> None:
    clock = FakeClock()
    ledger = Ledger(Budget(seconds=10), clock=clock)
    clock.advance(4)
    assert ledger.remaining() == {Kind.SECONDS: 6}
    clock.advance(7)
    assert ledger.remaining() == {Kind.SECONDS: 0}
    assert isinstance(ledger.reserve(CALL), Refusal)


def test_new_ceilings_hold_for_what_was_used_before() -> None:
    ledger = Ledger(Budget(steps=1))
    held(ledger)
    ledger.rebudget(Budget(steps=2, calls_per_tool={"search": 1}))
    assert ledger.reserve(CALL) == Refusal(Kind.CALLS_PER_TOOL, 1, 1, "search", 0)


def test_a_share_is_told_once_for_each_ceiling() -> None:
    ledger = Ledger(Budget(steps=4, calls_per_tool={"search": 2}, warn_at=0.5))
    told = []
    for _ in range(2):
        assert ledger.take(CALL) is None
        told.append([near.kind for near in ledger.newly_near(CALL)])
    assert told == [[Kind.CALLS_PER_TOOL], [Kind.STEPS]]


@pytest.mark.parametrize(("budget", "limited"), [(Budget(), False), (Budget(steps=0), True)])
def test_a_ledger_says_whether_it_has_a_ceiling(budget: Budget, limited: bool) -> None:
    assert Ledger(budget).limited is limited
    assert Ledger(parent=Ledger(budget)).limited is limited
