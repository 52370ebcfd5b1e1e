"""One run of an agent under a guard: judging calls, recording results, holding the totals."""

from __future__ import annotations

import contextlib
import contextvars
import inspect
import time
import uuid
from collections import deque
from collections.abc import Callable, Generator, Iterable
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar

import msgspec
import xxhash

from agentguard.attempt import Attempt, CurrentSpan
from agentguard.call import ToolCall, ToolResult, Usage
from agentguard.checks.budget import near, passed
from agentguard.decision import ALLOWED, Action, Decision, Verdict
from agentguard.errors import RunHalted
from agentguard.fingerprint import canonical, fingerprint, normalised
from agentguard.ledger import Budget, Ledger
from agentguard.loops import UNKNOWN, Lane, Token
from agentguard.past import RunPast
from agentguard.plan import Plan
from agentguard.policy import Mode, OnFault
from agentguard.prices import cost
from agentguard.spans import RunSpan
from agentguard.trajectory import MAIN_LANE, Ending, RunKey, Step, Trajectory
from agentguard.wrapping import Feedback, guarded_dispatcher, guarded_tool

if TYPE_CHECKING:
    from agentguard.guard import Guard

F = TypeVar("F", bound=Callable[..., Any])

_LANE: contextvars.ContextVar[str] = contextvars.ContextVar("agentguard_lane", default=MAIN_LANE)
_INSIDE: contextvars.ContextVar[tuple[str, bytes] | None] = contextvars.ContextVar("agentguard_inside", default=None)
"""Run and fingerprint of the guarded call whose code this is, where tools are guarded one by one too."""
_CURRENT: contextvars.ContextVar[Run | None] = contextvars.ContextVar("agentguard_run", default=None)

_SHOWN_CHARS = 2_000
"""Text of a result that is kept for the run's trajectory; loops are judged on the whole."""
_LONGEST_TOKEN = 65_536
"""Longer results are remembered by their digest."""
_MOST_LANES = 1_024
_EMPTY: tuple[Any, ...] = (None, "", b"", [], {}, ())
_NO_USAGE = Usage()


def current_run() -> Run | None:
    """Return the innermost run whose `with` block this code is in; None outside."""
    return _CURRENT.get()


class _LaneState:
    """What a run keeps per lane."""

    __slots__ = ("eventful", "lane", "ledger", "turn", "turn_key", "user_turn")

    def __init__(self, ledger: Ledger) -> None:
        self.lane = Lane()
        self.ledger = ledger
        self.turn: int | None = None
        self.turn_key: str | None = None
        self.user_turn = False
        self.eventful = False
        """Whether the next call belongs to a declared turn or follows a message of the user."""


class Run:
    """A run in progress. Made by `Guard.run`, used as a context manager, safe under threads and tasks.

    Entered inside another run's block it is that run's child: what it uses is charged to every ancestor too.
    """

    def __init__(
        self, guard: Guard, *, key: RunKey, run_id: str | None, agent: str | None, task: str | None, parent: Run | None
    ) -> None:
        self.guard = guard
        self.key = key
        self.run_id = run_id or uuid.uuid4().hex
        self.task = task
        self.parent = parent
        self.halted: Decision | None = None
        """The decision that halted the run; None while it may go on."""
        self.ledger: Ledger = Ledger(guard.policy.budget, parent=parent.ledger if parent else None, clock=guard.clock)
        self._lock = self.ledger.lock
        self._enforces = guard.policy.mode is Mode.ENFORCE
        self._lanes: dict[str, _LaneState] = {}
        self._history: deque[Attempt] = deque(maxlen=guard.history)
        self._open: dict[int, Attempt] = {}
        self._past = RunPast(guard.clock, known=guard.known, needed=guard.ordered)
        self._seq = 0
        self._turns = 0
        self._usage: Usage | None = None
        self._ending: Ending | None = None
        self._outcome: bool | None = None
        self._started_at = time.time_ns()
        self._ended_at: int | None = None
        self._plans = guard.plans
        self._reads_plainly = guard.as_result is None
        self._ordered = guard.ordered
        self._takes_freely = self._enforces and not self.ledger.warns
        self._tokens: list[contextvars.Token[Run | None]] = []
        self._span: RunSpan = guard.spans.run(
            run_id=self.run_id,
            key=key,
            agent=agent,
            task=task,
            policy_name=guard.policy.name,
            policy_digest=guard.policy_digest,
            mode=str(guard.policy.mode),
            parent=parent._span if parent else None,
        )
        self._recording = self._span.recording
        self._times = guard.watches
        self._layered = False
        guard.counters.open(self.ledger)

    # --- the block -----------------------------------------------------------------------------------------

    def __enter__(self) -> Self:
        self._tokens.append(_CURRENT.set(self))
        self._span.attach()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._span.detach()
        _CURRENT.reset(self._tokens.pop())
        if self._ending is None:
            self._end(_ending_of(error, self.halted))

    async def __aenter__(self) -> Self:
        return self.__enter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.__exit__(kind, error, trace)

    def finish(self, *, outcome: bool | None = None, ending: Ending | None = None) -> None:
        """Say how the run ended. `outcome` is whether its final state passed; None when nobody can say.

        Leaving the block does this where it was not done. Calls after it are judged and recorded no more on the run.
        """
        self._outcome = outcome
        self._end(ending or _ending_of(None, self.halted))

    def resume(self, *, budget: Budget | None = None) -> None:
        """Let a halted run go on, after a person looked at it; `budget` replaces the ceilings it had."""
        with self._lock:
            if budget is not None:
                self.ledger.rebudget(budget)
            self.halted = None
            for state in self._lanes.values():
                state.lane.user_turn()

    # --- wrapping ------------------------------------------------------------------------------------------

    def wrap(
        self, dispatcher: F, *, is_async: bool | None = None, name: str | None = None, arguments: str | None = None
    ) -> F:
        """Return the dispatcher with every call judged; its signature, exceptions and results stay its own.

        The dispatcher takes a tool's name and its arguments (a mapping or JSON text), whatever the two parameters are
        called; say which they are by `name` and `arguments` where the signature leaves it open (TypeError). A refused
        call returns `Feedback`, a str for the model; a halt raises `RunHalted`. `is_async=True` is for a plain
        function that returns an awaitable.
        """
        return guarded_dispatcher(self, dispatcher, is_async=is_async, name=name, arguments=arguments)

    def tool(self, function: F, *, name: str | None = None, is_async: bool | None = None) -> F:
        """Return one tool's function with every call judged. `name` is the tool's; None means the function's name."""
        self._layered = True
        return guarded_tool(self, function, name=name or function.__name__, is_async=is_async)

    # --- judging by hand -----------------------------------------------------------------------------------

    def judge(self, call: ToolCall) -> Decision:
        """Judge a call that is about to run. Never raises: a HALT is in the decision.

        When the call is allowed, follow with `record`; until then it counts as in flight.
        """
        attempt = self._weighed(call)
        if attempt.decision is not ALLOWED or self._recording or self._times:
            self._settle(attempt)
            if attempt.feedback is not None:
                return attempt.decision
            attempt.leave_context()
        self._open[id(call)] = attempt
        return attempt.decision

    def record(self, call: ToolCall, result: Any) -> None:
        """Record what an allowed call gave back. A value that is no `ToolResult` is a successful one's content.

        `call` is the object that was judged. None means that the result is not known; a tool that gave back None is
        recorded as `ToolResult(None)`.
        """
        attempt = self._open.pop(id(call), None)
        if attempt is None:
            raise ValueError(f"no call of {call.name!r} is waiting for a result; judge it first, with the same object")
        if type(result) is str and self._reads_plainly and not attempt.watched and len(result) <= _SHOWN_CHARS:
            self._leave(attempt, result, result)
        elif result is None:
            self._leave(attempt, None, UNKNOWN)
        else:
            self._record(attempt, result)

    def charge(self, usage: Usage, *, model: str | None = None) -> None:
        """Add what a model call used. Its price is looked up by `model` where `usage` has none; unknown stays None."""
        if usage.cost_usd is None:
            usage = msgspec.structs.replace(usage, cost_usd=cost(usage, model or self.key.model))
        self.ledger.charge(usage)
        with self._lock:
            self._usage = usage if self._usage is None else _sum(self._usage, usage)
        if usage.cost_usd is None and self.guard.policy.budget.cost_usd is not None:
            self.guard.log_once("agentguard.cost_unknown", model=model or self.key.model, run_id=self.run_id)

    # --- turns, lanes, users -------------------------------------------------------------------------------

    @contextlib.contextmanager
    def turn(self, calls: Iterable[ToolCall]) -> Generator[None]:
        """Declare the calls of one parallel model turn, then make them inside the block.

        They are one unit: equal calls among them are duplicates, and the turn repeated whole is a repeat whatever
        the order in which its calls finish.
        """
        state = self._open_turn(calls, None)
        try:
            yield
        finally:
            with self._lock:
                state.lane.close_turn()
                state.turn = None
                state.eventful = state.user_turn

    def declare_turn(self, calls: Iterable[ToolCall], *, key: str) -> None:
        """Declare a turn where no block can be put around its calls, as in a framework's hook for one call.

        Called before each of them with the same `key`, e.g. the id of the model's message: the first opens the turn,
        and the next turn of the lane closes it.
        """
        state = self._lanes.get(_LANE.get())
        if state is None or state.turn_key != key:
            self._open_turn(calls, key)

    def _open_turn(self, calls: Iterable[ToolCall], key: str | None) -> _LaneState:
        keys = [self.guard.plan(call.name).key(call) for call in calls]
        with self._lock:
            state = self._lane(_LANE.get())
            if key is None or state.turn_key != key:
                state.lane.open_turn(keys)
                state.turn, state.turn_key, state.eventful = self._turns, key, True
                self._turns += 1
        return state

    @contextlib.contextmanager
    def lane(self, name: str) -> Generator[None]:
        """Make the calls inside the block a sub-agent's: back to back is judged per lane."""
        token = _LANE.set(name)
        try:
            yield
        finally:
            _LANE.reset(token)

    def user_turn(self) -> None:
        """Say that a message of the real user came: asking again for the same thing is legitimate then."""
        with self._lock:
            state = self._lane(_LANE.get())
            state.lane.user_turn()
            state.user_turn = state.eventful = True

    # --- looking -------------------------------------------------------------------------------------------

    @property
    def trajectory(self) -> Trajectory:
        """The run so far: its last `Guard.history` calls, results cut to 2,000 characters; `complete` says if all."""
        with self._lock:
            steps = tuple(_step(attempt) for attempt in self._history)
            return Trajectory(
                run_id=self.run_id,
                key=self.key,
                steps=steps,
                ending=self._ending or (Ending.HALTED if self.halted else Ending.UNFINISHED),
                outcome=self._outcome,
                usage=self._usage,
                complete=len(steps) == self._seq,
                task=self.task,
                started_at=self._started_at,
                ended_at=self._ended_at,
            )

    # --- what wrappers use ---------------------------------------------------------------------------------

    def begin(self, call: ToolCall) -> Attempt:
        """Judge a call; raise RunHalted when the run ends here. A call that may run has its span made current."""
        if self._layered:
            return self._begin_layered(call)
        attempt = self._weighed(call)
        if attempt.decision is ALLOWED and not self._times:
            if self._recording:
                attempt.span = self._span.call(attempt)
            return attempt
        self._settle(attempt)
        if attempt.feedback is not None and attempt.decision.action is Action.HALT:
            raise RunHalted(attempt.decision, self.trajectory)
        return attempt

    def _begin_layered(self, call: ToolCall) -> Attempt:
        """As `begin`, where tools are guarded one by one too: the same call further in is not counted again."""
        attempt = self._inner(call)
        if attempt is None:
            attempt = self._weighed(call)
            self._settle(attempt)
            if attempt.feedback is not None and attempt.decision.action is Action.HALT:
                raise RunHalted(attempt.decision, self.trajectory)
            self._go_inside(attempt)
        return attempt

    def _inner(self, call: ToolCall) -> Attempt | None:
        plan = self.guard.plan(call.name)
        key = plan.key(call)
        if _INSIDE.get() != (self.run_id, key):
            return None
        return Attempt(call, plan.tool, plan.nowhere(key), _LANE.get(), None, -1, self.ledger, self._past, inner=True)

    def _go_inside(self, attempt: Attempt) -> None:
        if attempt.feedback is None:
            attempt.outer = _INSIDE.get()
            _INSIDE.set((self.run_id, attempt.place.key))

    async def begin_async(self, call: ToolCall) -> Attempt:
        """As `begin`, awaiting an asynchronous approval."""
        if self._layered:
            inner = self._inner(call)
            if inner is not None:
                return inner
        attempt = self._weighed(call)
        if attempt.decision.action is Action.BLOCK and self.guard.ask is not None:
            answer = self._asked(attempt)
            if inspect.isawaitable(answer):
                try:
                    answer = await answer
                except Exception as fault:
                    self.guard.fault("ask", fault)
                    answer = None
            self._approve(attempt, answer)
        self._settle_decision(attempt)
        if attempt.decision.action is Action.HALT:
            raise RunHalted(attempt.decision, self.trajectory)
        if self._layered:
            self._go_inside(attempt)
        return attempt

    def seconds_left(self, attempt: Attempt) -> float | None:
        """Seconds that an asynchronous call may take; None means no deadline."""
        limits = [] if attempt.tool.deadline is None else [attempt.tool.deadline]
        limits += [
            ledger.budget.seconds - ledger.seconds
            for ledger in attempt.ledger.family
            if ledger.budget.seconds is not None
        ]
        return max(min(limits), 0.0) if limits and self._enforces else None

    def returned(self, attempt: Attempt, value: Any) -> Any:
        """Record what the tool gave back; return what the caller gets."""
        self._record(attempt, value)
        if self.guard.policy.advise and attempt.decision.action is Action.WARN and type(value) is str:
            return f"{value}\n\n[{attempt.decision.reason}]"
        return value

    def streamed(self, attempt: Attempt, digest: bytes, items: int) -> None:
        """Record that a lazy result of so many items was used up."""
        self._leave(attempt, ToolResult(f"stream of {items} items"), digest, error=None)

    def absorb(self, attempt: Attempt, item: Any, digest: bytes) -> bytes:
        """Return the digest of a stream with one more item."""
        return xxhash.xxh3_128_digest(digest + fingerprint(item))

    def raised(self, attempt: Attempt, error: BaseException) -> None:
        """Record what the tool raised. A cancelled call is not charged; a stream that was closed early is."""
        if isinstance(error, Exception):
            text = f"{type(error).__name__}: {_text_of_error(error)}"
            shown, token = ToolResult(text[:_SHOWN_CHARS], True), "!" + text
            self._leave(attempt, shown, token, error=token, raised=error, whole=ToolResult(text, True))
        else:
            self._leave(attempt, None, UNKNOWN, error=None, raised=error)

    def cut(self, attempt: Attempt) -> Feedback:
        """Record that the call was cut at its deadline; return what the caller gets, or raise RunHalted."""
        deadline = attempt.tool.deadline
        of_tool = deadline is not None and self.seconds_left(attempt) != 0.0
        code, what = ("deadline", f"{deadline:g} s") if of_tool else ("budget.seconds", "the run's seconds")
        action = Action.BLOCK if of_tool else Action.HALT
        verdict = Verdict("deadline", code, action, f"the call was cut after {what}")
        decision = Decision(action, (verdict, *attempt.decision.verdicts))
        decision = msgspec.structs.replace(decision, feedback=self._feedback(attempt, decision))
        self._leave(attempt, ToolResult(decision.feedback, True), "!" + code, error="!" + code, cut=True)
        if action is Action.HALT:
            with self._lock:
                self.halted = self.halted or decision
            raise RunHalted(decision, self.trajectory)
        return Feedback(decision.feedback or verdict.reason, decision)

    # --- judging -------------------------------------------------------------------------------------------

    def _settle(self, attempt: Attempt) -> None:
        """Let a call run or refuse it, after asking for approval where that is set."""
        if attempt.decision.action is Action.BLOCK and self.guard.ask is not None:
            answer = self._asked(attempt)
            if inspect.isawaitable(answer):
                _close(answer)
                self.guard.fault("ask", TypeError("an asynchronous approval needs an asynchronous tool"))
                answer = None
            self._approve(attempt, answer)
        self._settle_decision(attempt)

    def _weighed(self, call: ToolCall) -> Attempt:
        """Return the call with its decision; a fault of the guard's own is answered as the policy says.

        Every call goes through here: it is written out flat because each function more costs a twentieth of it.
        """
        try:
            plan = self._plans.get(call.name) or self.guard.plan(call.name)
            whole = plan.whole and call.raw_arguments is None
            key = plan.prefix + fingerprint(call.arguments) if whole else plan.key(call)
            lane = _LANE.get()
            with self._lock:
                state = self._lanes.get(lane) or self._lane(lane)
                if self.halted is not None or self.parent is not None:
                    halt = self._halted_here_or_above()
                    if halt is not None:
                        return self._weighed_after_halt(call, plan, key, halt)
                place = state.lane.enter(key, call.name)
                attempt = Attempt(call, plan.tool, place, lane, state.lane, self._seq, state.ledger, self._past)
                self._seq += 1
                self._history.append(attempt)
                if state.eventful:
                    self._note_events(attempt, state)
                if plan.watched:
                    attempt.watched = True
                try:
                    passes = whole and place.calm and plan.passes(call.arguments)
                except Exception:  # arguments that are no JSON; asking the checks tells more
                    passes = False
                if passes:
                    if self._takes_freely and state.ledger.take(plan.charge) is None:
                        attempt.holds = attempt.executed = True
                    else:
                        self._take(attempt, plan)
                    return attempt
                try:
                    found = plan.verdicts(attempt)
                except Exception:
                    found = self.guard.verdicts_one_by_one(attempt, plan)
                if found:
                    attempt.decision = self._decided(self.guard.ordered_verdicts(found))
                    if attempt.decision.action >= Action.BLOCK:
                        return attempt
                self._take(attempt, plan)
                return attempt
        except Exception as fault:
            self.guard.fault("guard", fault)
            return self._faulty(call, fault)

    def _weighed_after_halt(self, call: ToolCall, plan: Plan, key: bytes, halt: Decision) -> Attempt:
        attempt = Attempt(call, plan.tool, plan.nowhere(key), _LANE.get(), None, self._seq, self.ledger, self._past)
        self._seq += 1
        self._history.append(attempt)
        attempt.decision = _after_halt(halt)
        return attempt

    def _decided(self, found: list[Verdict]) -> Decision:
        return Decision(found[0].action if self._enforces else Action.ALLOW, tuple(found))

    def _take(self, attempt: Attempt, plan: Plan) -> None:
        """Hold what the call takes of the budgets; a ceiling that says no, or is near, changes the decision."""
        ledger, charge = attempt.ledger, plan.charge
        refusal = None
        if self._enforces and plan.budget is not None:
            refusal = ledger.take(charge)
        else:
            refusal = ledger.ask(charge) if plan.budget is not None else None
            ledger.take(charge, force=True)
        attempt.holds = refusal is None or not self._enforces
        said = [passed(refusal)] if refusal is not None else []
        if ledger.warns:
            said += [near(ceiling) for ceiling in ledger.newly_near(charge)]
        if said:
            self._add_budget_verdicts(attempt, said)

    def _add_budget_verdicts(self, attempt: Attempt, said: list[Verdict]) -> None:
        others = [verdict for verdict in attempt.decision.verdicts if verdict.check != said[0].check]
        attempt.decision = self._decided(self.guard.ordered_verdicts([*others, *said]))

    @staticmethod
    def _note_events(attempt: Attempt, state: _LaneState) -> None:
        attempt.turn = state.turn
        attempt.user_turn, state.user_turn = state.user_turn, False
        state.eventful = state.turn is not None

    def _settle_decision(self, attempt: Attempt) -> None:
        """Let the call run, or refuse it, once nothing can change the decision any more."""
        span = self._admit(attempt) if attempt.decision.action < Action.BLOCK else self._refuse(attempt)
        if attempt.decision.verdicts:
            self.guard.counters.found(attempt.decision)
            self.guard.report(self, attempt, {} if span is None else span.ids)

    def _admit(self, attempt: Attempt) -> CurrentSpan | None:
        attempt.executed = True
        if self._times:
            attempt.started_at = time.time_ns()
        if self._recording:
            attempt.span = self._span.call(attempt)
        return attempt.span

    def _refuse(self, attempt: Attempt) -> CurrentSpan | None:
        decision = attempt.decision
        text = self._feedback(attempt, decision)
        attempt.decision = decision = msgspec.structs.replace(decision, feedback=text)
        attempt.feedback = Feedback(text, decision)
        attempt.started_at = attempt.ended_at = time.time_ns()
        attempt.result = ToolResult(text, True)
        with self._lock:
            if decision.action is Action.HALT and self.halted is None:
                self.halted = decision
            if attempt.home is not None:
                attempt.home.refuse(attempt.place, error=_counts_as_failure(decision))
            if decision.code == "deadline":
                self._past.set_overrun(attempt.call.name, None)
        return self._span.refused(attempt) if self._recording else None

    def _feedback(self, attempt: Attempt, decision: Decision) -> str:
        earlier = attempt.home.last_result if attempt.home is not None and attempt.place.equal else None
        return self.guard.feedback(attempt, decision, earlier if isinstance(earlier, str) else None)

    def _asked(self, attempt: Attempt) -> Any:
        ask = self.guard.ask
        try:
            return ask(attempt.call, attempt.decision) if ask is not None else None
        except Exception as fault:
            self.guard.fault("ask", fault)
            return None

    def _approve(self, attempt: Attempt, reason: Any) -> None:
        if not isinstance(reason, str) or not reason:
            return
        approved = Verdict("approval", "approved", Action.ALLOW, f"approved: {reason}")
        with self._lock:
            attempt.decision = Decision(Action.ALLOW, (approved, *attempt.decision.verdicts))
            self._take(attempt, self.guard.plan(attempt.call.name))

    def _faulty(self, call: ToolCall, fault: Exception) -> Attempt:
        halt = self.guard.policy.on_fault is OnFault.HALT and self._enforces
        reason = f"the guard failed on this call: {type(fault).__name__}"
        verdict = Verdict("guard", "guard.fault", Action.HALT if halt else Action.ALLOW, reason)
        attempt = self.guard.plan("").attempt(call, self.ledger, self._past)
        attempt.decision = Decision(verdict.action, (verdict,))
        return attempt

    def _halted_here_or_above(self) -> Decision | None:
        run: Run | None = self
        while run is not None:
            if run.halted is not None:
                return run.halted
            run = run.parent
        return None

    def _lane(self, name: str) -> _LaneState:
        state = self._lanes.get(name)
        if state is None:
            per_lane = self.guard.policy.budget.per_lane
            ledger = self.ledger
            if per_lane is not None:
                ledger = Ledger(per_lane, parent=self.ledger, clock=self.guard.clock)
            state = self._lanes[name] = _LaneState(ledger)
            if len(self._lanes) > _MOST_LANES:
                del self._lanes[next(old for old in self._lanes if old != MAIN_LANE)]
        return state

    # --- recording -----------------------------------------------------------------------------------------

    def _record(self, attempt: Attempt, value: Any) -> None:
        if type(value) is str and self._reads_plainly and not attempt.watched and len(value) <= _SHOWN_CHARS:
            self._leave(attempt, value, value)
            return
        try:
            whole, result, token = self._observed(attempt, value)
        except Exception as fault:
            self.guard.fault("result", fault)
            whole, result, token = ToolResult(None), ToolResult(None), UNKNOWN
        self._leave(attempt, result, token, token if result.is_error else None, whole=whole)

    def _observed(self, attempt: Attempt, value: Any) -> tuple[ToolResult, ToolResult, Token]:
        """Return what a value is read as, what is kept of it, and what stands for it when results are compared."""
        read = self.guard.as_result
        result = value if isinstance(value, ToolResult) else read(value) if read is not None else ToolResult(value)
        content = result.content
        text = content if type(content) is str else canonical(content).decode("utf-8", "replace")
        if attempt.tool.empty_is_error and not result.is_error and content in _EMPTY:
            result, text = ToolResult("empty result", True), "empty result"
        if attempt.tool.normalize is not None:
            text = attempt.tool.normalize(text)
        whole = result
        if len(text) > _SHOWN_CHARS:
            result = ToolResult(text[:_SHOWN_CHARS], result.is_error)
        if result.is_error:
            text = "!" + text
        return whole, result, text if len(text) <= _LONGEST_TOKEN else _digest(text)

    def _leave(
        self,
        attempt: Attempt,
        result: ToolResult | str | None,
        token: Token,
        error: Token | None = None,
        *,
        raised: BaseException | None = None,
        cut: bool = False,
        whole: ToolResult | None = None,
    ) -> None:
        attempt.result = result
        if self._layered:
            _INSIDE.set(attempt.outer)
        with self._lock:
            if attempt.home is not None:
                attempt.home.leave(attempt.place, token, error)
            if attempt.started_at is not None:
                attempt.ended_at = time.time_ns()
                self._note_time(attempt)
            if error is not None or raised is not None or cut:
                self._settle_trouble(attempt, raised=raised, cut=cut)
            elif self._ordered and attempt.call.name in self._ordered:
                self._past.add_success(attempt.call.name, attempt.call.arguments or {})
        span = attempt.span
        if span is not None:
            attempt.span = None  # the history would keep every span alive otherwise
            # The whole: what is cut before secrets are looked for may end in half of one.
            span.end(whole or result, token, raised)

    def _settle_trouble(self, attempt: Attempt, *, raised: BaseException | None, cut: bool) -> None:
        """Settle what a call held that did not just succeed."""
        if not attempt.holds:
            return
        if cut:
            attempt.ledger.add_unresolved()
        if raised is None or isinstance(raised, Exception):
            attempt.ledger.add_failure()
        elif not isinstance(raised, GeneratorExit):
            attempt.ledger.give_back(self.guard.plan(attempt.call.name).charge)

    def _note_time(self, attempt: Attempt) -> None:
        tool = attempt.tool
        if tool.poll is not None:
            self._past.add_answer(attempt.lane)
        if tool.deadline is not None and attempt.started_at is not None and attempt.ended_at is not None:
            seconds = (attempt.ended_at - attempt.started_at) / 1e9
            self._past.set_overrun(tool.name, seconds if seconds > tool.deadline else None)

    def _end(self, ending: Ending) -> None:
        if self._ending is not None:
            return
        self._ending = ending
        self._ended_at = time.time_ns()
        halt_code = self.halted.code if self.halted is not None else None
        self._span.finish(
            ending=ending,
            outcome=self._outcome,
            steps=self._seq,
            halt_code=halt_code,
            usage=self._usage,
            ledger=self.ledger,
        )
        self.guard.counters.close(self.ledger, ending)


def _after_halt(halt: Decision) -> Decision:
    reason = f"the run was halted: {halt.reason}"
    return Decision(Action.HALT, (Verdict("run", "run.halted", Action.HALT, reason, {"code": halt.code}),))


def _counts_as_failure(decision: Decision) -> str | None:
    """Return the error text of a refusal that counts as a failure of the name that was called."""
    for verdict in decision.verdicts:
        if verdict.code.startswith(("tool.", "arguments.")):
            return verdict.reason
    return None


def _as_result(result: ToolResult | str | None) -> ToolResult | None:
    return ToolResult(result) if isinstance(result, str) else result


def _step(attempt: Attempt) -> Step:
    return Step(
        call=attempt.call,
        result=_as_result(attempt.result),
        decision=attempt.decision,
        executed=attempt.executed,
        started_at=attempt.started_at,
        ended_at=attempt.ended_at,
        turn=attempt.turn,
        lane=attempt.lane,
        seq=attempt.seq,
        user_turn=attempt.user_turn,
    )


def _ending_of(error: BaseException | None, halted: Decision | None) -> Ending:
    if isinstance(error, RunHalted) or halted is not None:
        return Ending.HALTED
    return Ending.FINISHED if error is None else Ending.FAILED


def _digest(text: str) -> bytes:
    return xxhash.xxh3_128_digest(normalised(text).encode("utf-8", "surrogatepass"))


def _text_of_error(error: Exception) -> str:
    try:
        return str(error)
    except Exception:  # a tool's exception may not even print
        return "<no text>"


def _close(answer: Any) -> None:
    if inspect.iscoroutine(answer):
        answer.close()


def _sum(one: Usage, other: Usage) -> Usage:
    pairs = zip(msgspec.structs.astuple(one), msgspec.structs.astuple(other), strict=True)
    return Usage(*(b if a is None else a if b is None else a + b for a, b in pairs))
