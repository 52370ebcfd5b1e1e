"""Metrics of all runs, read from totals that are kept anyway: an ordinary call pays nothing for them."""

from __future__ import annotations

import functools
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from decimal import Decimal
from typing import Any, Final

from opentelemetry import metrics
from opentelemetry.metrics import CallbackOptions, MeterProvider, Observation

from agentguard import semconv
from agentguard.decision import Action, Decision
from agentguard.ledger import Ledger
from agentguard.trajectory import Ending

_MOST_OPEN: Final = 10_000
_MOST_NAMES: Final = 200
_OTHER: Final = "other"
"""Stands for tools and codes beyond the first `_MOST_NAMES`: models make names up."""
_ROUND: Final = ("repeats", "cycles")
"""Checks whose findings mean that a call which ran brought nothing new."""

Reading = Iterable[tuple[Mapping[str, str], float]]


class Counters:
    """Totals over runs, open and ended. Safe under threads; none goes down."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._open: dict[int, Ledger] = {}
        self._ended: Counter[str] = Counter()
        self._calls: Counter[str] = Counter()
        self._shown: Counter[str] = Counter()
        self._verdicts: Counter[tuple[str, str]] = Counter()
        self._refusals: Counter[str] = Counter()
        self._halts: Counter[str] = Counter()
        self._wasted = self._failed = self._tokens = self._unknown_costs = 0
        self._cost = Decimal(0)

    def open(self, ledger: Ledger) -> None:
        """Count a run that began. What a child uses is on its parent's ledger too, and counted there only."""
        with self._lock:
            if any(id(above) in self._open for above in ledger.family):
                return
            self._open[id(ledger)] = ledger
            if len(self._open) > _MOST_OPEN:  # runs that nobody ends
                self._fold(self._open.pop(next(iter(self._open))))

    def close(self, ledger: Ledger, ending: Ending) -> None:
        """Count a run that ended."""
        with self._lock:
            self._ended[str(ending)] += 1
            if self._open.pop(id(ledger), None) is not None:
                self._fold(ledger)

    def found(self, decision: Decision) -> None:
        """Count what was found about one call, and what was done."""
        with self._lock:
            for verdict in decision.verdicts:
                if verdict.action > Action.ALLOW:
                    self._verdicts[self._known(verdict.code), verdict.action.word] += 1
            code = self._known(decision.code or "")
            if not decision.allowed:
                self._refusals[code] += 1
            elif any(verdict.check in _ROUND for verdict in decision.verdicts):
                self._wasted += 1
            if decision.action is Action.HALT and decision.code != "run.halted":
                self._halts[code] += 1

    def _known(self, code: str) -> str:
        return code if code in self._refusals or len(self._verdicts) < _MOST_NAMES else _OTHER

    def _fold(self, ledger: Ledger) -> None:
        self._calls.update(ledger.calls)
        self._failed += ledger.failures
        self._tokens += ledger.tokens
        self._cost += ledger.cost_usd
        self._unknown_costs += ledger.unknown_costs

    # --- what the instruments read -----------------------------------------------------------------------------------

    def runs(self) -> Reading:
        """Return runs that ended, by ending."""
        return [({semconv.RUN_ENDING: ending}, count) for ending, count in self._copied(self._ended)]

    def runs_open(self) -> Reading:
        """Return runs that began and did not end; a child is part of its parent."""
        return [({}, len(self._open))]

    def calls(self) -> Reading:
        """Return calls that reached a tool, by tool. One that was cancelled stays counted once it was seen here."""
        with self._lock:
            total = self._calls.copy()
            for ledger in self._open.values():
                total.update(ledger.calls)
            named = Counter[str]()
            for tool, count in total.items():
                named[tool if tool in self._shown or len(self._shown) + len(named) < _MOST_NAMES else _OTHER] += count
            self._shown |= named
            return [({semconv.TOOL_NAME: tool}, count) for tool, count in self._shown.items()]

    def failed(self) -> Reading:
        """Return calls that raised or gave back an error."""
        return self._total(self._failed, lambda ledger: ledger.failures)

    def wasted(self) -> Reading:
        """Return calls that ran although they only repeated what was known."""
        return [({}, self._wasted)]

    def verdicts(self) -> Reading:
        """Return findings by code and by the action they asked for."""
        return [
            ({semconv.VERDICT_CODE: code, semconv.VERDICT_ACTION: action}, count)
            for (code, action), count in self._copied(self._verdicts)
        ]

    def refusals(self) -> Reading:
        """Return calls that did not run, by the code of the strongest finding."""
        return [({semconv.VERDICT_CODE: code}, count) for code, count in self._copied(self._refusals)]

    def halts(self) -> Reading:
        """Return runs that were halted, by code."""
        return [({semconv.RUN_HALT_CODE: code}, count) for code, count in self._copied(self._halts)]

    def tokens(self) -> Reading:
        """Return tokens charged, input and output."""
        return self._total(self._tokens, lambda ledger: ledger.tokens)

    def cost(self) -> Reading:
        """Return US dollars charged, where the price is known."""
        return self._total(float(self._cost), lambda ledger: float(ledger.cost_usd))

    def unknown_costs(self) -> Reading:
        """Return model calls whose price is not known."""
        return self._total(self._unknown_costs, lambda ledger: ledger.unknown_costs)

    def budget_remaining(self) -> Reading:
        """Return, by kind, the share left to the open run that has the least; kinds without a ceiling are absent."""
        least: dict[str, float] = {}
        for ledger in self._ledgers():
            for kind, left in _left(ledger):
                least[kind] = min(least.get(kind, 1.0), left)
        return [({semconv.METRIC_BUDGET_KIND: kind}, left) for kind, left in least.items()]

    def _ledgers(self) -> list[Ledger]:
        with self._lock:
            return list(self._open.values())

    def _total(self, ended: float, of: Callable[[Ledger], float]) -> Reading:
        return [({}, ended + sum(of(ledger) for ledger in self._ledgers()))]

    def _copied(self, counter: Counter[Any]) -> list[tuple[Any, int]]:
        with self._lock:
            return list(counter.items())


def _left(ledger: Ledger) -> Iterator[tuple[str, float]]:
    for kind, rest in ledger.remaining().items():
        limit = float(getattr(ledger.budget, kind) or 0)
        yield str(kind), float(rest) / limit if limit else 0.0


INSTRUMENTS: Final[Mapping[str, tuple[Callable[[Counters], Reading], str, str]]] = {
    semconv.METRIC_RUNS: (Counters.runs, "{run}", "Runs that ended, by ending"),
    semconv.METRIC_CALLS: (Counters.calls, "{call}", "Calls that reached a tool"),
    semconv.METRIC_FAILED: (Counters.failed, "{call}", "Calls that raised or gave back an error"),
    semconv.METRIC_WASTED: (Counters.wasted, "{call}", "Calls that ran although they only repeated what was known"),
    semconv.METRIC_VERDICTS: (Counters.verdicts, "{verdict}", "Findings, by code and the action they asked for"),
    semconv.METRIC_REFUSALS: (Counters.refusals, "{call}", "Calls that did not run, by code"),
    semconv.METRIC_HALTS: (Counters.halts, "{run}", "Runs that were halted, by code"),
    semconv.METRIC_TOKENS: (Counters.tokens, "{token}", "Tokens charged to runs"),
    semconv.METRIC_COST: (Counters.cost, "USD", "US dollars charged to runs, where the price is known"),
    semconv.METRIC_COST_UNKNOWN: (Counters.unknown_costs, "{call}", "Model calls whose price is not known"),
}
"""Counters by name: what reads them, unit, description."""

GAUGES: Final[Mapping[str, tuple[Callable[[Counters], Reading], str, str]]] = {
    semconv.METRIC_RUNS_OPEN: (Counters.runs_open, "{run}", "Runs that began and did not end"),
    semconv.METRIC_BUDGET_REMAINING: (
        Counters.budget_remaining, "1", "Share of a budget left to the open run that has the least",
    ),
}  # fmt: skip
"""Gauges by name, likewise."""


def observe(counters: Counters, *, meter_provider: MeterProvider | None = None) -> None:
    """Make the instruments that read `counters` at each export. None means the global provider, also one set later."""
    meter = metrics.get_meter("agentguard", meter_provider=meter_provider)
    for name, (read, unit, description) in INSTRUMENTS.items():
        meter.create_observable_counter(name, [_callback(counters, read)], unit, description)
    for name, (read, unit, description) in GAUGES.items():
        meter.create_observable_gauge(name, [_callback(counters, read)], unit, description)


@functools.cache
def shared() -> Counters:
    """Return the counters of this process, seen by the global meter provider: an instrument exists once per name."""
    counters = Counters()
    observe(counters)
    return counters


def _callback(
    counters: Counters, read: Callable[[Counters], Reading]
) -> Callable[[CallbackOptions], Iterable[Observation]]:
    return lambda options: [Observation(value, attributes) for attributes, value in read(counters)]
