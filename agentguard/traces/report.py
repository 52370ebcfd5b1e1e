"""What was read, and what was skipped and why: nothing is lost silently."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

_MOST_EXAMPLES = 100


@dataclass(frozen=True)
class Skipped:
    """One thing that could not be read."""

    path: str
    line: int | None
    """Counted from 1. None when the fault is the file's as a whole."""
    reason: str
    """A short name under which such faults are counted, e.g. "torn line"."""
    fault: str
    """What was found, and the way out."""

    def __str__(self) -> str:
        where = self.path if self.line is None else f"{self.path}:{self.line}"
        return f"{where}: {self.reason}: {self.fault}"


@dataclass
class ReadReport:
    """Filled while trajectories are being read; complete when the reader is used up."""

    files: int = 0
    lines: int = 0
    spans: int = 0
    runs: int = 0
    steps: int = 0
    reasons: Counter[str] = field(default_factory=Counter[str])
    """Things skipped, by reason."""
    examples: list[Skipped] = field(default_factory=list[Skipped])
    """The first hundred of them."""

    def skip(self, path: str, line: int | None, reason: str, fault: str) -> None:
        """Count one thing that could not be read."""
        self.reasons[reason] += 1
        if len(self.examples) < _MOST_EXAMPLES:
            self.examples.append(Skipped(path, line, reason, fault))

    def add(self, other: ReadReport) -> None:
        """Count what another reader read and skipped."""
        self.files += other.files
        self.lines += other.lines
        self.spans += other.spans
        self.runs += other.runs
        self.steps += other.steps
        self.reasons.update(other.reasons)
        self.examples += other.examples[: _MOST_EXAMPLES - len(self.examples)]

    @property
    def skipped(self) -> int:
        """Things skipped altogether."""
        return self.reasons.total()
