"""Metrics: each is one function in one file, from the run under judgement to its score."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial

from agentguard.errors import AgentGuardError
from agentguard.metrics.arguments import arguments
from agentguard.metrics.cycles import cycles
from agentguard.metrics.ending import ending
from agentguard.metrics.failures import failures
from agentguard.metrics.match import match
from agentguard.metrics.outcome import outcome
from agentguard.metrics.recovery import recovery
from agentguard.metrics.repeated_turns import repeated_turns
from agentguard.metrics.repeats import repeats
from agentguard.metrics.score import Reason as Reason
from agentguard.metrics.score import Score as Score
from agentguard.metrics.selection import selection
from agentguard.metrics.steps import steps
from agentguard.metrics.subject import Subject as Subject
from agentguard.metrics.validity import validity
from agentguard.metrics.waste import waste

Metric = Callable[[Subject], Score]

BUILT_IN: dict[str, Metric] = {
    "match": match,
    "selection": selection,
    "arguments": arguments,
    "repeats": repeats,
    "repeated_turns": repeated_turns,
    "cycles": cycles,
    "steps": steps,
    "ending": ending,
    "outcome": outcome,
    "validity": validity,
    "failures": failures,
    "recovery": recovery,
    "waste": waste,
}
"""In the order in which reports show them. Those that give reasons to fail a run are named in `agentguard.scoring`."""

ENTRY_POINTS = "agentguard.metrics"
"""The entry-point group in which outsiders offer metrics."""


def with_named(names: Iterable[str]) -> dict[str, Metric]:
    """Return the built-in metrics and those that installed packages offer under these names.

    A name that nobody offers, or whose package fails to load, is an AgentGuardError. A foreign metric that raises on a
    run leaves that run unscored by it, and says so.
    """
    return BUILT_IN | {name: _offered(name) for name in names if name not in BUILT_IN}


def _offered(name: str) -> Metric:
    from importlib.metadata import entry_points  # only who asks for another metric pays for it

    offered = {point.name: point for point in entry_points(group=ENTRY_POINTS)}
    if name not in offered:
        raise AgentGuardError(f"{name}: no metric of this name; known: {', '.join([*BUILT_IN, *sorted(offered)])}")
    try:
        found: Metric = offered[name].load()
    except Exception as fault:
        raise AgentGuardError(f"{name}: the metric cannot be loaded: {type(fault).__name__}: {fault}") from fault
    return partial(_scored, name, found)


def _scored(name: str, metric: Metric, subject: Subject) -> Score:
    try:
        return metric(subject)
    except Exception as fault:
        return Score(name, unscored=f"the metric failed: {type(fault).__name__}: {fault}")
