"""Judging the calls of one run: what the checks find, what the ledger holds, and what follows from both."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from agentguard.attempt import Attempt
from agentguard.call import ToolCall
from agentguard.checks.budget import near, passed
from agentguard.decision import Action, Decision, Verdict
from agentguard.fingerprint import fingerprint
from agentguard.lanes import Lanes, LaneState, current_lane
from agentguard.ledger import Ledger, Refusal
from agentguard.past import RunPast
from agentguard.plan import Plan
from agentguard.policy import Mode, OnFault

if TYPE_CHECKING:
    from agentguard.guard import Guard


class Judging:
    """Weighs the calls of one run. Safe under threads; a fault of its own is answered as the policy says."""

    def __init__(self, guard: Guard, ledger: Ledger, *, parent: Judging | None) -> None:
        self.halted: Decision | None = None
        """The decision that halted the run; None while it may go on."""
        self.seen = 0
        """Calls that were asked for so far."""
        self.history: deque[Attempt] = deque(maxlen=guard.history)
        self.lanes = Lanes(ledger, per_lane=guard.policy.budget.per_lane, clock=guard.clock)
        self.past = RunPast(guard.clock, known=guard.known, needed=guard.ordered)
        self.ledger = ledger
        self.parent = parent
        self.enforces = guard.policy.mode is Mode.ENFORCE
        self._guard = guard
        self._plans = guard.plans
        self._states = self.lanes.states
        self._lock = ledger.lock
        self._takes_freely = self.enforces and not ledger.warns

    def weigh(self, call: ToolCall) -> Attempt:
        """Return the call with its decision. Never raises.

        Every call goes through here: it is written out flat because each function more costs a twentieth of it.
        """
        try:
            plan = self._plans.get(call.name) or self._guard.plan(call.name)
            whole = plan.whole and call.raw_arguments is None
            key = plan.prefix + fingerprint(call.arguments) if whole else plan.key(call)
            lane = current_lane()
            with self._lock:
                state = self._states.get(lane) or self.lanes.state(lane)
                if self.halted is not None or self.parent is not None:
                    halt = self._halted_here_or_above()
                    if halt is not None:
                        return self._after_halt(plan.outside(call, key, lane, self.ledger, self.past), halt)
                place = state.lane.enter(key, call.name)
                attempt = Attempt(call, plan.tool, place, lane, state.lane, self.seen, state.ledger, self.past)
                self.seen += 1
                self.history.append(attempt)
                if state.eventful:
                    _note_events(attempt, state)
                if plan.watched:
                    attempt.watched = True
                try:
                    passes = whole and place.calm and plan.passes(call.arguments)
                except Exception:  # arguments that are no JSON; asking the checks tells more
                    passes = False
                if passes:
                    refusal = state.ledger.take(plan.charge) if self._takes_freely else self._take(attempt, plan)
                    if refusal is None:
                        attempt.holds = attempt.executed = True
                    else:
                        self._refused(attempt, plan, refusal)
                    return attempt
                return self._examined(attempt, plan)
        except Exception as fault:
            self._guard.fault("guard", fault)
            return self._faulty(call, fault)

    def approve(self, attempt: Attempt, reason: str) -> None:
        """Let a blocked call run because a person, or a hook in their place, said so."""
        approved = Verdict("approval", "approved", Action.ALLOW, f"approved: {reason}")
        plan = self._guard.plan(attempt.call.name)
        with self._lock:
            attempt.decision = Decision(Action.ALLOW, (approved, *attempt.decision.verdicts))
            self._hold(attempt, plan)

    def halt(self, decision: Decision) -> None:
        """End the run, unless something else ended it before."""
        with self._lock:
            self.halted = self.halted or decision

    def refuse(self, attempt: Attempt) -> None:
        """Take in that the call does not run, and that the run ends where the decision is to halt."""
        decision = attempt.decision
        with self._lock:
            if decision.action is Action.HALT and self.halted is None:
                self.halted = decision
            if attempt.home is not None:
                attempt.home.refuse(attempt.place, error=_failure(decision))
            if decision.code == "deadline":
                self.past.set_overrun(attempt.call.name, None)

    def _examined(self, attempt: Attempt, plan: Plan) -> Attempt:
        """Ask every check, and the ledger where none of them refuses."""
        try:
            found = plan.verdicts(attempt)
        except Exception:
            found = self._guard.verdicts_one_by_one(attempt, plan)
        if found:
            attempt.decision = self._decided(found)
        if attempt.decision.action < Action.BLOCK:
            self._hold(attempt, plan)
        return attempt

    def _hold(self, attempt: Attempt, plan: Plan) -> None:
        refusal = self._take(attempt, plan)
        if refusal is None:
            attempt.holds = attempt.executed = True
        else:
            self._refused(attempt, plan, refusal)

    def _take(self, attempt: Attempt, plan: Plan) -> Refusal | None:
        """Hold what the call takes of the budgets and say which ceilings are near; return what refuses it."""
        ledger, charge = attempt.ledger, plan.charge
        checked = plan.budget is not None
        refusal = None
        if checked:
            refusal = ledger.take(charge) if self.enforces else ledger.ask(charge)
        if not (checked and self.enforces):
            ledger.take(charge, force=True)
        if ledger.warns:
            self._add(attempt, [near(ceiling) for ceiling in ledger.newly_near(charge)])
        return refusal

    def _refused(self, attempt: Attempt, plan: Plan, refusal: Refusal) -> None:
        """Say that a ceiling refuses the call."""
        if plan.budget is None:  # budgets are not checked; they are charged all the same
            attempt.ledger.take(plan.charge, force=True)
            attempt.holds = attempt.executed = True
            return
        attempt.holds = attempt.executed = not self.enforces
        self._add(attempt, [passed(refusal)])

    def _add(self, attempt: Attempt, said: list[Verdict]) -> None:
        if said:
            codes = {verdict.code for verdict in said}
            others = [verdict for verdict in attempt.decision.verdicts if verdict.code not in codes]
            attempt.decision = self._decided([*others, *said])

    def _decided(self, found: list[Verdict]) -> Decision:
        ranked = self._guard.ordered_verdicts(found) if len(found) > 1 else found
        return Decision(ranked[0].action if self.enforces else Action.ALLOW, tuple(ranked))

    def _after_halt(self, attempt: Attempt, halt: Decision) -> Attempt:
        attempt.seq = self.seen
        self.seen += 1
        self.history.append(attempt)
        reason = f"the run was halted: {halt.reason}"
        verdict = Verdict("run", "run.halted", Action.HALT, reason, {"code": halt.code})
        attempt.decision = Decision(Action.HALT, (verdict,))
        return attempt

    def _faulty(self, call: ToolCall, fault: Exception) -> Attempt:
        halt = self._guard.policy.on_fault is OnFault.HALT and self.enforces
        reason = f"the guard failed on this call: {type(fault).__name__}"
        verdict = Verdict("guard", "guard.fault", Action.HALT if halt else Action.ALLOW, reason)
        attempt = self._guard.plan("").outside(call, b"?", current_lane(), self.ledger, self.past)
        attempt.decision = Decision(verdict.action, (verdict,))
        return attempt

    def _halted_here_or_above(self) -> Decision | None:
        judging: Judging | None = self
        while judging is not None:
            if judging.halted is not None:
                return judging.halted
            judging = judging.parent
        return None


def _note_events(attempt: Attempt, state: LaneState) -> None:
    attempt.turn = state.turn
    attempt.user_turn, state.user_turn = state.user_turn, False
    state.eventful = state.turn is not None


def _failure(decision: Decision) -> str | None:
    """Return the error text of a refusal that counts as a failure of the name that was called."""
    for verdict in decision.verdicts:
        if verdict.code.startswith(("tool.", "arguments.")):
            return verdict.reason
    return None
