"""Metrics of all runs, and the dashboard and alerts that are built on them."""

from __future__ import annotations

import json
import re
from decimal import Decimal
from pathlib import Path

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader

from agentguard import Action, Budget, Decision, Ending, Guard, Policy, Usage, Verdict, instruments, semconv
from agentguard.instruments import GAUGES, INSTRUMENTS, Counters, observe, shared
from agentguard.ledger import Charge, Ledger

DOCS = Path(__file__).resolve().parents[1] / "docs"


def told(counters: Counters) -> dict[str, dict[tuple[str, ...], float]]:
    """Return what an exporter sees: by metric, by the values of its attributes."""
    reader = InMemoryMetricReader()
    provider = MeterProvider([reader], shutdown_on_exit=False)
    observe(counters, meter_provider=provider)
    data = reader.get_metrics_data()
    provider.shutdown()
    assert data is not None
    return {
        metric.name: {tuple(point.attributes.values()): point.value for point in metric.data.data_points}
        for resource in data.resource_metrics
        for scope in resource.scope_metrics
        for metric in scope.metrics
    }


def refused(code: str, action: Action = Action.BLOCK, check: str = "repeats") -> Decision:
    return Decision(action, (Verdict(check, code, action, "why"),))


def test_calls_tokens_and_cost_of_open_and_ended_runs_add_up():
    counters = Counters()
    one, other = Ledger(), Ledger()
    for ledger in (one, other):
        counters.open(ledger)
        ledger.take(Charge("search"))
        ledger.take(Charge("read"))
        ledger.charge(Usage(10, 5, None, Decimal("0.25")))
        ledger.charge(Usage(1, 1))
        ledger.add_failure()
    counters.close(one, Ending.FINISHED)
    assert told(counters) == {
        "agentguard.runs": {("finished",): 1},
        "agentguard.runs.open": {(): 1},
        "agentguard.calls": {("search",): 2, ("read",): 2},
        "agentguard.calls.failed": {(): 2},
        "agentguard.calls.wasted": {(): 0},
        "agentguard.tokens": {(): 34},
        "agentguard.cost": {(): 0.5},
        "agentguard.cost.unknown": {(): 2},
    }


def test_a_child_is_counted_on_its_parent_only():
    counters = Counters()
    parent = Ledger()
    child = Ledger(parent=parent)
    counters.open(parent)
    counters.open(child)
    child.take(Charge("search"))
    counters.close(child, Ending.FINISHED)
    assert told(counters)["agentguard.calls"] == {("search",): 1}
    counters.close(parent, Ending.FINISHED)
    assert told(counters)["agentguard.calls"] == {("search",): 1}
    assert told(counters)["agentguard.runs"] == {("finished",): 2}


def test_findings_are_counted_by_code_and_by_what_they_asked_for():
    counters = Counters()
    counters.found(refused("repeat.identical"))
    counters.found(refused("repeat.identical", Action.HALT))
    counters.found(refused("run.halted", Action.HALT, "run"))
    counters.found(Decision(Action.WARN, (Verdict("repeats", "repeat.identical", Action.WARN, "why"),)))
    counters.found(Decision(Action.ALLOW, (Verdict("cycles", "cycle", Action.WARN, "observed"),)))
    counters.found(Decision(Action.ALLOW, (Verdict("failures", "failures.tool", Action.WARN, "why"),)))
    counters.found(Decision(Action.ALLOW, (Verdict("guard", "guard.fault", Action.ALLOW, "why"),)))
    metrics = told(counters)
    assert metrics["agentguard.verdicts"] == {
        ("repeat.identical", "block"): 1,
        ("repeat.identical", "halt"): 1,
        ("repeat.identical", "warn"): 1,
        ("run.halted", "halt"): 1,
        ("cycle", "warn"): 1,
        ("failures.tool", "warn"): 1,
    }
    assert metrics["agentguard.refusals"] == {("repeat.identical",): 2, ("run.halted",): 1}
    assert metrics["agentguard.halts"] == {("repeat.identical",): 1}
    assert metrics["agentguard.calls.wasted"] == {(): 2}


def test_the_run_with_the_least_left_is_told():
    counters = Counters()
    for used, budget in ((1, Budget(steps=10, tokens=100)), (3, Budget(steps=4)), (0, Budget(failures=0))):
        ledger = Ledger(budget)
        counters.open(ledger)
        for _ in range(used):
            ledger.take(Charge("search"))
    assert told(counters)["agentguard.budget.remaining"] == {("steps",): 0.25, ("tokens",): 1.0, ("failures",): 0.0}


def test_a_call_that_was_given_back_does_not_make_a_counter_go_down():
    counters = Counters()
    ledger = Ledger()
    counters.open(ledger)
    ledger.take(Charge("search"))
    assert told(counters)["agentguard.calls"] == {("search",): 1}
    ledger.give_back(Charge("search"))
    assert told(counters)["agentguard.calls"] == {("search",): 1}


def test_names_that_a_model_makes_up_do_not_grow_without_end():
    counters = Counters()
    ledger = Ledger()
    counters.open(ledger)
    for i in range(300):
        ledger.take(Charge(f"tool {i}"))
        counters.found(refused(f"code {i}"))
    metrics = told(counters)
    assert len(metrics["agentguard.calls"]) <= 201
    assert sum(metrics["agentguard.calls"].values()) == 300
    assert len(metrics["agentguard.verdicts"]) <= 201
    assert sum(metrics["agentguard.refusals"].values()) == 300


def test_runs_that_nobody_ends_are_folded_in(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(instruments, "_MOST_OPEN", 2)
    counters = Counters()
    for _ in range(5):
        ledger = Ledger()
        counters.open(ledger)
        ledger.take(Charge("search"))
    assert told(counters)["agentguard.calls"] == {("search",): 5}
    assert told(counters)["agentguard.runs.open"] == {(): 2}


def test_a_guard_keeps_them():
    counters = Counters()
    guard = Guard(Policy.from_dict({"budget": {"steps": 8}}), counters=counters, quiet=True)
    with guard.run(model="m", harness="h") as run:
        dispatch = run.wrap(lambda name, arguments: "ok")
        for _ in range(4):
            dispatch("search", {"q": 1})
        run.charge(Usage(10, 5, None, Decimal("0.25")))
        assert told(counters)["agentguard.budget.remaining"] == {("steps",): 0.75}
        assert told(counters)["agentguard.runs.open"] == {(): 1}
    assert told(counters) == {
        "agentguard.runs": {("finished",): 1},
        "agentguard.runs.open": {(): 0},
        "agentguard.calls": {("search",): 2},
        "agentguard.calls.failed": {(): 0},
        "agentguard.calls.wasted": {(): 1},
        "agentguard.verdicts": {("repeat.identical", "warn"): 1, ("repeat.identical", "block"): 2},
        "agentguard.refusals": {("repeat.identical",): 2},
        "agentguard.tokens": {(): 15},
        "agentguard.cost": {(): 0.25},
        "agentguard.cost.unknown": {(): 0},
    }


def test_the_counters_of_a_process_are_one():
    assert shared() is shared()


# ---------------------------------------------------------------- what is built on the names


def prometheus(name: str, unit: str, *, counter: bool) -> str:
    """Name a metric as the Collector's Prometheus exporter does with its defaults.

    https://opentelemetry.io/docs/specs/otel/compatibility/prometheus_and_openmetrics/: units in braces are left out,
    "1" is "ratio" on gauges, counters end in "total".
    """
    suffix = "" if unit.startswith("{") else "ratio" if unit == "1" else unit
    return "_".join(part for part in (name.replace(".", "_"), suffix, "total" if counter else "") if part)


NAMES = {prometheus(name, unit, counter=True) for name, (_, unit, _) in INSTRUMENTS.items()} | {
    prometheus(name, unit, counter=False) for name, (_, unit, _) in GAUGES.items()
}
LABELS = {
    name.replace(".", "_")
    for name in (semconv.TOOL_NAME, semconv.VERDICT_CODE, semconv.VERDICT_ACTION, semconv.RUN_ENDING,
                 semconv.RUN_HALT_CODE, semconv.METRIC_BUDGET_KIND)
}  # fmt: skip
WORD = re.compile(r"\b(?:agentguard|gen_ai)_[a-zA-Z_]+")


def test_the_dashboard_asks_for_metrics_that_are_written():
    dashboard = json.loads((DOCS / "grafana-dashboard.json").read_text())
    asked = [target["expr"] for panel in dashboard["panels"] for target in panel.get("targets", [])]
    used = {word for expression in asked for word in WORD.findall(expression)}
    assert used <= NAMES | LABELS
    assert used & NAMES == NAMES


def test_the_alerts_ask_for_metrics_that_are_written():
    used = set(WORD.findall((DOCS / "prometheus-alerts.yml").read_text()))
    assert used <= NAMES | LABELS
    assert len(used & NAMES) >= 5


def test_the_page_on_telemetry_names_every_metric():
    page = (DOCS / "telemetry.md").read_text()
    rows = dict(re.findall(r"^\| `(agentguard\.[a-z.]+)` \| (counter|gauge), ", page, re.MULTILINE))
    assert rows == dict.fromkeys(INSTRUMENTS, "counter") | dict.fromkeys(GAUGES, "gauge")
