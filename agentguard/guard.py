"""The guard: one policy over the tools of an agent, from which every run is started."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any

from agentguard.attempt import Attempt, CurrentSpan
from agentguard.call import ToolCall, ToolResult
from agentguard.checks import Check
from agentguard.checks.order import Order
from agentguard.decision import Action, Decision, Verdict
from agentguard.feedback import feedback
from agentguard.fingerprint import canonical
from agentguard.instruments import Counters, shared
from agentguard.log import logger
from agentguard.plan import Plan, add_verdicts
from agentguard.policy import OnFault, Policy
from agentguard.run import Run, current_run
from agentguard.spans import Content, SpanWriter
from agentguard.tools import Tool, declare
from agentguard.trajectory import UNKNOWN, RunKey

Ask = Callable[[ToolCall, Decision], "str | Awaitable[str | None] | None"]
"""Asked about a call that would be blocked: a text lets it run and is recorded as the reason, None leaves it so."""

_MOST_PLANS = 1_024
_FAULTS_TO_OPEN = 5
"""Faults in a row after which a check is left out: what fails on every call protects nothing and costs time."""


class Guard:
    """Checks every tool call of the runs that are started from it. Shared by threads and tasks.

    >>> guard = Guard(Policy.from_dict({"budget": {"steps": 20}}))
    >>> with guard.run(model="m", harness="h") as run:
    ...     search = run.tool(lambda q: f"results for {q}", name="search")
    ...     search(q="agents")
    'results for agents'
    """

    def __init__(
        self,
        policy: Policy | None = None,
        *,
        tools: Any = (),
        tracer_provider: Any = None,
        content: Content | None = None,
        openinference: bool = False,
        counters: Counters | None = None,
        ask: Ask | None = None,
        as_result: Callable[[Any], ToolResult] | None = None,
        history: int = 1_000,
        clock: Callable[[], float] = time.monotonic,
        quiet: bool = False,
    ) -> None:
        """Make a guard.

        Args:
            policy: What to check. None means the defaults.
            tools: What `agentguard.tools.declare` takes. Where any tool has a schema, a name that is not declared
                is refused as unknown.
            tracer_provider: Where spans go. None means OpenTelemetry's global provider.
            content: Whether arguments and results are written to spans, and what is redacted. None reads
                OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT, off when unset.
            openinference: Also write the attributes that fill the panes of Phoenix and MLflow.
            counters: What metrics are read from. None means those of the process, seen by OpenTelemetry's global meter
                provider; for another provider use `agentguard.instruments.observe`.
            ask: Asked before a call is blocked; it may let it run.
            as_result: Reads a dispatcher's own result type. None means every value returned is a success.
            history: Calls kept for `Run.trajectory`.
            clock: Seconds, monotonic.
            quiet: Log nothing about verdicts; faults of the guard's own are logged all the same.
        """
        self.policy = policy or Policy()
        self.policy_digest = self.policy.digest
        self.content = content or Content.from_environment()
        self.spans = SpanWriter(tracer_provider=tracer_provider, content=self.content, openinference=openinference)
        self.counters = counters or shared()
        self.ask = ask
        self.as_result = as_result
        self.history = history
        self.clock = clock
        self._quiet = quiet
        self.tools: Mapping[str, Tool] = _with_rules({tool.name: tool for tool in declare(tools)}, self.policy)
        closed = any(tool.schema is not None for tool in self.tools.values())
        self.known: frozenset[str] = frozenset(self.tools) if closed else frozenset()
        self.ordered = _ordered(self.policy.checks)
        """For every tool that some order rule needs, the sets of arguments that must be the same."""
        self.watches = any(tool.poll is not None or tool.deadline is not None for tool in self.tools.values())
        """Whether the time of any call is needed without a span."""
        self.plans: dict[str, Plan] = {}
        """What is to be done for calls of a name, worked out so far."""
        self._rank = {check.name: rank for rank, check in enumerate(self.policy.checks)}
        self._faults: dict[str, int] = {}
        self._logged: set[str] = set()

    def run(
        self,
        *,
        model: str = UNKNOWN,
        harness: str = UNKNOWN,
        agent: str | None = None,
        task: str | None = None,
        run_id: str | None = None,
        system_prompt: str | None = None,
        parent: Run | None = None,
    ) -> Run:
        """Start a run, to be used as a context manager.

        Args:
            model: The model's name as the provider gives it.
            harness: The scaffold around the model, with its version. Scores are filed under model and harness.
            agent: The agent's name, shown on spans.
            task: Identifies what is to be done; runs of the same task share it.
            run_id: None makes one.
            system_prompt: Only its hash is kept, in the harness digest.
            parent: The run that this one is part of and whose budgets it draws on. None means the run whose block
                this is called in, if any.
        """
        key = RunKey(model, harness, self.harness_digest(system_prompt))
        return Run(self, key=key, run_id=run_id, agent=agent, task=task, parent=parent or current_run())

    def harness_digest(self, system_prompt: str | None = None) -> str:
        """Return 16 hex digits over tool definitions, system prompt and policy: two scaffolds never share them."""
        tools = [(tool.name, tool.description, tool.schema) for _, tool in sorted(self.tools.items())]
        whole = canonical([tools, system_prompt, self.policy_digest])
        return hashlib.blake2b(whole, digest_size=8).hexdigest()

    def plan(self, name: str) -> Plan:
        """Return what is to be done for calls of this name."""
        plan = self.plans.get(name)
        if plan is None:
            watched = self.as_result is not None or self.watches or name in self.ordered
            plan = Plan(self.tools.get(name) or Tool(name=name), self._checks(), self.known, watched=watched)
            if len(self.plans) < _MOST_PLANS or name in self.tools:
                self.plans[name] = plan
        return plan

    def ordered_verdicts(self, found: list[Verdict]) -> list[Verdict]:
        """Return the verdicts with the strongest first, among equals in the order of the checks."""
        return sorted(found, key=self._strongest_first)

    def _strongest_first(self, verdict: Verdict) -> tuple[int, int]:
        return -verdict.action, self._rank.get(verdict.check, len(self._rank))

    def feedback(self, attempt: Attempt, decision: Decision, earlier: str | None) -> str:
        """Return the text for the model about a refused call."""
        try:
            return feedback(
                decision.verdicts, call=attempt.call, tools=self.known, earlier=earlier, redact=self.content.redact_text
            )
        except Exception as fault:
            self.fault("feedback", fault)
            return decision.reason

    def fault(self, where: str, fault: Exception) -> None:
        """Log a fault of the guard's own, once for each place and kind."""
        self.log_once("agentguard.fault", where=where, error=f"{type(fault).__name__}: {fault}"[:500])

    def log_once(self, event: str, **fields: Any) -> None:
        """Log a warning the first time it comes up."""
        identity = f"{event} {sorted(fields.items())}"
        if identity not in self._logged and len(self._logged) < _MOST_PLANS:
            self._logged.add(identity)
            logger().warning(event, **fields)

    def report(self, run: Run, attempt: Attempt, span: CurrentSpan | None) -> None:
        """Log one event for each verdict above ALLOW, with the ids of the call's span where there is one."""
        if self._quiet:
            return
        ids = {} if span is None else span.ids
        for verdict in attempt.decision.verdicts:
            if verdict.action > Action.ALLOW:
                logger().warning(
                    f"agentguard.call_{'refused' if attempt.feedback is not None else 'flagged'}",
                    tool=attempt.call.name,
                    check=verdict.check,
                    code=verdict.code,
                    action=verdict.action.word,
                    reason=self.content.redact_text(verdict.reason),
                    run_id=run.run_id,
                    seq=attempt.seq,
                    **ids,
                )

    def _checks(self) -> list[Check]:
        return [check for check in self.policy.checks if self._faults.get(check.name, 0) < _FAULTS_TO_OPEN]

    def verdicts_one_by_one(self, attempt: Attempt, plan: Plan) -> list[Verdict]:
        """Return what the checks find about a call on which one of them failed, and a verdict about that fault."""
        found: list[Verdict] = []
        for check in plan.checks:
            try:
                add_verdicts(found, check.before(attempt))
                self._faults.pop(check.name, None)
            except Exception as fault:
                found.append(self._check_failed(check, fault))
        return found

    def _check_failed(self, check: Check, fault: Exception) -> Verdict:
        faults = self._faults[check.name] = self._faults.get(check.name, 0) + 1
        self.fault(check.name, fault)
        if faults == _FAULTS_TO_OPEN:
            self.plans.clear()
            logger().error("agentguard.check_left_out", check=check.name, faults=faults)
        action = Action.HALT if self.policy.on_fault is OnFault.HALT else Action.ALLOW
        return Verdict(check.name, "guard.fault", action, f"the check failed: {type(fault).__name__}")


def _with_rules(declared: dict[str, Tool], policy: Policy) -> dict[str, Tool]:
    for name, rules in policy.tools.items():
        declared[name] = rules.applied(declared.get(name) or Tool(name=name))
    return declared


def _ordered(checks: Iterable[Check]) -> dict[str, frozenset[tuple[str, ...]]]:
    """Return, for every tool that some order rule needs, the sets of arguments that must be the same."""
    rules = [rule for check in checks if isinstance(check, Order) for rule in check.rules]
    return {rule.needs: frozenset(r.same for r in rules if r.needs == rule.needs) for rule in rules}
