"""What was found about many runs, and the forms in which it is told."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

import msgspec

from agentguard.scoring import Grade, Row, RunScore, rows
from agentguard.traces.report import ReadReport, Skipped
from agentguard.trajectory import UNKNOWN


class Gate(msgspec.Struct, frozen=True):
    """How one condition came out."""

    name: str
    """As it was asked for, with the model + harness it is about."""
    holds: bool | None
    """None when there was nothing to judge it by."""
    why: str
    """The figures."""


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that any form of a report shows."""

    runs: tuple[RunScore, ...]
    """In the order read."""
    rows: tuple[Row, ...]
    """One a model + harness, sorted by both."""
    skipped: Mapping[str, int]
    """Things that could not be read, by reason."""
    skipped_examples: tuple[Skipped, ...]
    """The first of them; `skipped` counts all."""
    without_reference: int | None
    """Runs that were held against no reference. None when there was none for any."""
    gates: tuple[Gate, ...] = ()
    """The conditions that were asked for. Empty: that no run fails."""

    @property
    def calls(self) -> int:
        """Attempted calls of all runs."""
        return sum(run.calls for run in self.runs)

    @property
    def grades(self) -> Counter[Grade]:
        """Runs by verdict."""
        return Counter(run.grade for run in self.runs)

    @property
    def without_harness(self) -> int:
        """Runs filed under an unknown harness: their figures compare with nothing."""
        return sum(run.key.harness == UNKNOWN for run in self.runs)

    @property
    def verdict(self) -> str:
        """READY, NOT READY or NOT ENOUGH DATA."""
        return _WORDS[self.exit_code]

    @property
    def exit_code(self) -> int:
        """0 when every gate holds, 1 when one does not, 3 when that cannot be said. Without gates, no run may fail."""
        if self.gates:
            held = [gate.holds for gate in self.gates]
            return 1 if False in held else 3 if None in held else 0
        grades = self.grades
        return 1 if grades[Grade.FAIL] else 0 if grades[Grade.PASS] else 3

    def missed(self) -> list[Gate]:
        """Return the gates that do not hold, and those that nobody can judge."""
        return [gate for gate in self.gates if gate.holds is not True]

    def failing(self) -> list[RunScore]:
        """Return the runs that fail, the worst first: most reasons, then most calls, then by name."""
        failed = [run for run in self.runs if run.grade is Grade.FAIL]
        return sorted(failed, key=lambda run: (-len(run.reasons), -run.calls, run.run_id))


_WORDS = {0: "READY", 1: "NOT READY", 3: "NOT ENOUGH DATA"}


def report(runs: Iterable[RunScore], read: ReadReport) -> Report:
    """Return the report about these runs. `read` is used up with them, and so is asked for what was skipped after."""
    scored = tuple(runs)
    unmatched = sum("mode" not in run.scores["match"].data for run in scored if "match" in run.scores)
    return Report(
        runs=scored,
        rows=tuple(rows(scored)),
        skipped=dict(read.reasons.most_common()),
        skipped_examples=tuple(read.examples),
        without_reference=unmatched if unmatched < len(scored) else None,
    )
