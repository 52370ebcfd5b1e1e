"""Comparing the calls of a run with those of a reference: pure functions on plain records."""

from __future__ import annotations

from agentguard.matching.alignment import Alignment, Entry, Kind
from agentguard.matching.arguments import ANYTHING, EXACTLY, PLAIN, Arguments, Rules
from agentguard.matching.calls import Attempts, Call, Match, Status, counted, keyed, longest_repeat
from agentguard.matching.comparison import Comparison, Figures, compare
from agentguard.matching.explain import Fault, diff, doubts, faults
from agentguard.matching.rules import (
    MISSING,
    OPTIONAL,
    Contains,
    Custom,
    Difference,
    Equal,
    Folded,
    Ignored,
    OneOf,
    Regex,
    Tolerance,
    Valid,
    ValueRule,
    schema,
)

__all__ = [
    "ANYTHING",
    "EXACTLY",
    "MISSING",
    "OPTIONAL",
    "PLAIN",
    "Alignment",
    "Arguments",
    "Attempts",
    "Call",
    "Comparison",
    "Contains",
    "Custom",
    "Difference",
    "Entry",
    "Equal",
    "Fault",
    "Figures",
    "Folded",
    "Ignored",
    "Kind",
    "Match",
    "OneOf",
    "Regex",
    "Rules",
    "Status",
    "Tolerance",
    "Valid",
    "ValueRule",
    "compare",
    "counted",
    "diff",
    "doubts",
    "faults",
    "keyed",
    "longest_repeat",
    "schema",
]
