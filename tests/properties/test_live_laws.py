"""Laws of the live half: what is judged live is what a replay finds, and budgets hold under any interleaving."""

from __future__ import annotations

import asyncio
import contextlib
from decimal import Decimal
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from agentguard import Guard, Policy, RunHalted, ToolCall, ToolResult
from agentguard.backtest import backtest
from agentguard.decision import Decision
from agentguard.ledger import Budget, Charge, Kind, Ledger, Refusal, Reservation
from agentguard.replay import places

TOOLS = ("read", "write", "poll")
results = st.builds(ToolResult, st.sampled_from(["a", "b", "took 3 ms", "took 4 ms"]), st.booleans())
single = st.tuples(st.sampled_from(TOOLS), st.integers(0, 1), results)
turn = st.lists(single, min_size=2, max_size=3)
happening = st.one_of(single.map(lambda one: [one]), turn, st.just("user"))
lane = st.sampled_from(["main", "sub"])
POLICY = Policy.from_dict({"mode": "observe", "tools": {"write": {"writes": True}, "poll": {"poll": {"max": 2}}}})


def observed(script: list[tuple[str, Any]]) -> tuple[Any, list[Decision]]:
    decisions: list[Decision] = []
    with Guard(POLICY, quiet=True).run(model="m", harness="h") as run:
        for name, what in script:
            with run.lane(name):
                if what == "user":
                    run.user_turn()
                    continue
                calls = [ToolCall(tool, {"x": x}) for tool, x, _ in what]
                with run.turn(calls):
                    for call, (_, _, result) in zip(calls, what, strict=True):
                        decisions.append(run.judge(call))
                        run.record(call, result)
    return run.trajectory, decisions


@given(st.lists(st.tuples(lane, happening), max_size=25))
@settings(deadline=None)
def test_replaying_a_run_through_its_policy_gives_the_decisions_of_the_live_guard(script: list[Any]) -> None:
    trajectory, decisions = observed(script)
    (replayed,) = backtest([trajectory], POLICY)
    assert [d.verdicts for d in replayed.decisions] == [d.verdicts for d in decisions]


@given(st.lists(st.tuples(lane, happening), max_size=25))
@settings(deadline=None)
def test_every_verdict_about_repeats_stands_on_the_place_that_the_offline_half_finds(script: list[Any]) -> None:
    trajectory, decisions = observed(script)
    for place, decision in zip(places(trajectory), decisions, strict=True):
        for verdict in decision.verdicts:
            if verdict.check == "repeats":
                assert verdict.data == {"identical": place.identical, "equal": place.equal}


@given(st.lists(st.tuples(single, st.booleans()), max_size=30))
@settings(deadline=None)
def test_a_halted_run_never_runs_a_tool_again(script: list[Any]) -> None:
    ran_after_halt = []
    halted = False
    with Guard(quiet=True).run(model="m", harness="h") as run:

        def tool(name: str, arguments: Any) -> str:
            if halted:
                ran_after_halt.append(name)
            return "same"

        dispatch = run.wrap(tool)
        for (name, x, _), swallow in script:
            with contextlib.suppress(BaseException) if swallow else contextlib.suppress(RunHalted):
                dispatch(name, {"x": x})
            halted = run.halted is not None
    assert ran_after_halt == []


class LedgerMachine(RuleBasedStateMachine):
    """A family of ledgers under any interleaving of reserving and settling."""

    def __init__(self) -> None:
        super().__init__()
        self.root = Ledger(Budget(steps=6, cost_usd=Decimal("1.00")))
        self.child = Ledger(Budget(calls_per_tool={"a": 2}), parent=self.root)
        self.held: list[tuple[Ledger, Reservation]] = []

    @rule(tool=st.sampled_from("ab"), priced=st.booleans(), of_child=st.booleans())
    def reserve(self, tool: str, priced: bool, of_child: bool) -> None:
        ledger = self.child if of_child else self.root
        left = ledger.remaining(tool)
        got = ledger.reserve(Charge(tool, Decimal("0.30") if priced else None))
        if isinstance(got, Refusal):
            assert left[got.kind] < (Decimal("0.30") if got.kind is Kind.COST_USD else 1)
        else:
            self.held.append((ledger, got))

    @rule(data=st.data(), how=st.sampled_from(["commit", "release", "unresolved"]), twice=st.booleans())
    def settle(self, data: st.DataObject, how: str, twice: bool) -> None:
        if not self.held:
            return
        ledger, reservation = self.held.pop(data.draw(st.integers(0, len(self.held) - 1)))
        for _ in range(1 + twice):
            getattr(ledger, how)(reservation)

    @invariant()
    def no_ceiling_is_passed(self) -> None:
        assert 0 <= self.root.steps <= 6
        assert 0 <= self.root.cost_usd <= Decimal("1.00")

    @invariant()
    def nothing_left_is_negative(self) -> None:
        assert all(left >= 0 for ledger in (self.root, self.child) for left in ledger.remaining("a").values())

    @invariant()
    def what_is_held_is_counted(self) -> None:
        assert self.root.steps >= len(self.held)


TestLedger = LedgerMachine.TestCase


@given(st.lists(st.sampled_from(["run", "fail", "cancel"]), min_size=1, max_size=12), st.integers(1, 5))
@settings(deadline=None)
def test_parallel_tasks_never_pass_a_ceiling_however_they_end(ends: list[str], cap: int) -> None:
    running, most = 0, 0

    async def tool(name: str, arguments: Any) -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        try:
            await asyncio.sleep(0)
            if arguments["end"] == "fail":
                raise ValueError
            if arguments["end"] == "cancel":
                raise asyncio.CancelledError
        finally:
            running -= 1

    async def main() -> int:
        async with Guard(Policy(budget=Budget(steps=cap)), quiet=True).run(model="m", harness="h") as run:
            dispatch = run.wrap(tool)

            async def one(index: int, end: str) -> None:
                with contextlib.suppress(RunHalted, ValueError, asyncio.CancelledError):
                    await dispatch(f"t{index}", {"end": end})

            await asyncio.gather(*(one(i, end) for i, end in enumerate(ends)))
            return run.ledger.steps

    used = asyncio.run(main())
    assert used <= cap
    assert most <= cap
