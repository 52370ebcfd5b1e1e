"""What a run is held against: references, how they are judged, and the files that hold them."""

from __future__ import annotations

from agentguard.reference.judging import Judgement, judge
from agentguard.reference.reading import Format, References, load_references, parse_references
from agentguard.reference.record import Reference
from agentguard.reference.steps import calls_of, from_steps
from agentguard.reference.writing import to_lines

__all__ = [
    "Format",
    "Judgement",
    "Reference",
    "References",
    "calls_of",
    "from_steps",
    "judge",
    "load_references",
    "parse_references",
    "to_lines",
]
