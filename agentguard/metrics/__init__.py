"""Metrics: each is one function in one file, from the run under judgement to its score."""

from __future__ import annotations

from collections.abc import Callable

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
