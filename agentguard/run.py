"""One run of an agent under a guard: its block, its wrappers, and judging and recording by hand."""

from __future__ import annotations

import contextlib
import contextvars
import inspect
import time
import uuid
from collections.abc import Callable, Generator, Iterable
from contextlib import AbstractContextManager
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar

import msgspec
import xxhash

from agentguard.attempt import Attempt, CurrentSpan
from agentguard.call import ToolCall, ToolResult, Usage
from agentguard.decision import ALLOWED, Action, Decision, Verdict
from agentguard.errors import RunHalted
from agentguard.fingerprint import fingerprint
from agentguard.judging import Judging
from agentguard.lanes import LaneState, current_lane, in_lane
from agentguard.layers import go_inside, is_inside
from agentguard.ledger import Budget, Ledger
from agentguard.prices import cost
from agentguard.results import Results
from agentguard.spans import RunSpan
from agentguard.trajectory import Ending, RunKey, Trajectory
from agentguard.wrapping import Feedback, guarded_dispatcher, guarded_tool

if TYPE_CHECKING:
    from agentguard.guard import Guard

F = TypeVar("F", bound=Callable[..., Any])

_CURRENT: contextvars.ContextVar[Run | None] = contextvars.ContextVar("agentguard_run", default=None)


def current_run() -> Run | None:
    """Return the innermost run whose `with` block this code is in; None outside."""
    return _CURRENT.get()


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
        self.ledger: Ledger = Ledger(guard.policy.budget, parent=parent.ledger if parent else None, clock=guard.clock)
        self._lock = self.ledger.lock
        self._judging: Judging = Judging(guard, self.ledger, parent=parent._judging if parent else None)
        self._weigh = self._judging.weigh
        self._results = Results(guard, self.ledger, self._judging.past)
        self._keep = self._results.returned
        self._open: dict[int, Attempt] = {}
        self._usage: Usage | None = None
        self._ending: Ending | None = None
        self._outcome: bool | None = None
        self._started_at = time.time_ns()
        self._ended_at: int | None = None
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
            self._judging.halted = None
            self._judging.lanes.end_streaks()

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
        attempt = self._weigh(call)
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
        if result is None:
            self._results.unknown(attempt)
        else:
            self._keep(attempt, result)

    def charge(self, usage: Usage, *, model: str | None = None) -> None:
        """Add what a model call used. Its price is looked up by `model` where `usage` has none; unknown stays None."""
        if usage.cost_usd is None:
            usage = msgspec.structs.replace(usage, cost_usd=cost(usage, model or self.key.model))
        self.ledger.charge(usage)
        with self._lock:
            self._usage = usage if self._usage is None else self._usage + usage
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
                self._judging.lanes.close_turn(state)

    def declare_turn(self, calls: Iterable[ToolCall], *, key: str) -> None:
        """Declare a turn where no block can be put around its calls, as in a framework's hook for one call.

        Called before each of them with the same `key`, e.g. the id of the model's message: the first opens the turn,
        and the next turn of the lane closes it.
        """
        if not self._judging.lanes.is_open(key):
            self._open_turn(calls, key)

    def _open_turn(self, calls: Iterable[ToolCall], key: str | None) -> LaneState:
        keys = [self.guard.plan(call.name).key(call) for call in calls]
        with self._lock:
            return self._judging.lanes.open_turn(keys, key)

    def lane(self, name: str) -> AbstractContextManager[None]:
        """Make the calls inside the block a sub-agent's: back to back is judged per lane."""
        return in_lane(name)

    def user_turn(self) -> None:
        """Say that a message of the real user came: asking again for the same thing is legitimate then."""
        with self._lock:
            self._judging.lanes.user_turn()

    # --- looking -------------------------------------------------------------------------------------------

    @property
    def halted(self) -> Decision | None:
        """The decision that halted the run; None while it may go on."""
        return self._judging.halted

    @property
    def trajectory(self) -> Trajectory:
        """The run so far: its last `Guard.history` calls, results cut to 2,000 characters; `complete` says if all."""
        with self._lock:
            steps = tuple(attempt.step() for attempt in self._judging.history)
            return Trajectory(
                run_id=self.run_id,
                key=self.key,
                steps=steps,
                ending=self._ending or (Ending.HALTED if self.halted else Ending.UNFINISHED),
                outcome=self._outcome,
                usage=self._usage,
                complete=len(steps) == self._judging.seen,
                task=self.task,
                started_at=self._started_at,
                ended_at=self._ended_at,
            )

    # --- what wrappers use ---------------------------------------------------------------------------------

    def begin(self, call: ToolCall) -> Attempt:
        """Judge a call; raise RunHalted when the run ends here. A call that may run has its span made current."""
        inner = self._inner(call) if self._layered else None
        if inner is not None:
            return inner
        attempt = self._weigh(call)
        if attempt.decision is ALLOWED and not self._times:
            if self._recording:
                attempt.span = self._span.call(attempt)
        else:
            self._settle(attempt)
        return self._begun(attempt)

    async def begin_async(self, call: ToolCall) -> Attempt:
        """As `begin`, awaiting an asynchronous approval."""
        inner = self._inner(call) if self._layered else None
        if inner is not None:
            return inner
        attempt = self._weigh(call)
        if attempt.decision.action is Action.BLOCK and self.guard.ask is not None:
            await self._approve_async(attempt)
        self._settle_decision(attempt)
        return self._begun(attempt)

    def _begun(self, attempt: Attempt) -> Attempt:
        if attempt.feedback is not None:
            if attempt.decision.action is Action.HALT:
                raise RunHalted(attempt.decision, self.trajectory)
        elif self._layered:
            go_inside(attempt, self.run_id)
        return attempt

    def _inner(self, call: ToolCall) -> Attempt | None:
        """Return an attempt that is not counted where a layer above has judged the same call; None elsewhere."""
        plan = self.guard.plan(call.name)
        key = plan.key(call)
        if not is_inside(self.run_id, key):
            return None
        attempt = plan.outside(call, key, current_lane(), self.ledger, self._judging.past)
        attempt.inner = True
        return attempt

    def seconds_left(self, attempt: Attempt) -> float | None:
        """Seconds that an asynchronous call may take; None means no deadline."""
        limits = [] if attempt.tool.deadline is None else [attempt.tool.deadline]
        limits += [
            ledger.budget.seconds - ledger.seconds
            for ledger in attempt.ledger.family
            if ledger.budget.seconds is not None
        ]
        return max(min(limits), 0.0) if limits and self._judging.enforces else None

    def returned(self, attempt: Attempt, value: Any) -> Any:
        """Record what the tool gave back; return what the caller gets."""
        self._keep(attempt, value)
        if self.guard.policy.advise and attempt.decision.action is Action.WARN and type(value) is str:
            return f"{value}\n\n[{attempt.decision.reason}]"
        return value

    def streamed(self, attempt: Attempt, digest: bytes, items: int) -> None:
        """Record that a lazy result of so many items was used up."""
        self._results.streamed(attempt, digest, items)

    def absorb(self, attempt: Attempt, item: Any, digest: bytes) -> bytes:
        """Return the digest of a stream with one more item."""
        return xxhash.xxh3_128_digest(digest + fingerprint(item))

    def raised(self, attempt: Attempt, error: BaseException) -> None:
        """Record what the tool raised. A cancelled call is not charged; a stream that was closed early is."""
        self._results.raised(attempt, error)

    def cut(self, attempt: Attempt) -> Feedback:
        """Record that the call was cut at its deadline; return what the caller gets, or raise RunHalted."""
        deadline = attempt.tool.deadline
        of_tool = deadline is not None and self.seconds_left(attempt) != 0.0
        code, what = ("deadline", f"{deadline:g} s") if of_tool else ("budget.seconds", "the run's seconds")
        action = Action.BLOCK if of_tool else Action.HALT
        verdict = Verdict("deadline", code, action, f"the call was cut after {what}")
        decision = Decision(action, (verdict, *attempt.decision.verdicts))
        decision = msgspec.structs.replace(decision, feedback=self._feedback(attempt, decision))
        self._results.cut(attempt, code, decision.feedback)
        if action is Action.HALT:
            self._judging.halt(decision)
            raise RunHalted(decision, self.trajectory)
        return Feedback(decision.feedback or verdict.reason, decision)

    # --- settling ------------------------------------------------------------------------------------------

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

    def _settle_decision(self, attempt: Attempt) -> None:
        """Let the call run, or refuse it, once nothing can change the decision any more."""
        span = self._admit(attempt) if attempt.decision.action < Action.BLOCK else self._refuse(attempt)
        if attempt.decision.verdicts:
            self.guard.counters.found(attempt.decision)
            self.guard.report(self, attempt, span)

    def _admit(self, attempt: Attempt) -> CurrentSpan | None:
        attempt.executed = True
        if self._times:
            attempt.started_at = time.time_ns()
        if self._recording:
            attempt.span = self._span.call(attempt)
        return attempt.span

    def _refuse(self, attempt: Attempt) -> CurrentSpan | None:
        text = self._feedback(attempt, attempt.decision)
        attempt.decision = decision = Decision(attempt.decision.action, attempt.decision.verdicts, text)
        attempt.feedback = Feedback(text, decision)
        attempt.started_at = attempt.ended_at = time.time_ns()
        attempt.result = ToolResult(text, True)
        self._judging.refuse(attempt)
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

    async def _approve_async(self, attempt: Attempt) -> None:
        answer = self._asked(attempt)
        if inspect.isawaitable(answer):
            try:
                answer = await answer
            except Exception as fault:
                self.guard.fault("ask", fault)
                answer = None
        self._approve(attempt, answer)

    def _approve(self, attempt: Attempt, reason: Any) -> None:
        if isinstance(reason, str) and reason:
            self._judging.approve(attempt, reason)

    def _end(self, ending: Ending) -> None:
        if self._ending is not None:
            return
        self._ending = ending
        self._ended_at = time.time_ns()
        halt_code = self.halted.code if self.halted is not None else None
        self._span.finish(
            ending=ending,
            outcome=self._outcome,
            steps=self._judging.seen,
            halt_code=halt_code,
            usage=self._usage,
            ledger=self.ledger,
        )
        self.guard.counters.close(self.ledger, ending)


def _ending_of(error: BaseException | None, halted: Decision | None) -> Ending:
    if isinstance(error, RunHalted) or halted is not None:
        return Ending.HALTED
    return Ending.FINISHED if error is None else Ending.FAILED


def _close(answer: Any) -> None:
    if inspect.iscoroutine(answer):
        answer.close()
