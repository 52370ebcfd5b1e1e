"""Trajectories for a command, as its options ask."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

import msgspec

from agentguard.errors import TraceError

if TYPE_CHECKING:
    from agentguard.traces.report import ReadReport
    from agentguard.trajectory import Trajectory


def read_runs(
    traces: Iterable[str],
    *,
    told: ReadReport,
    format: str | None = None,
    model: str | None = None,
    harness: str | None = None,
    outcomes: Mapping[str, bool] | None = None,
    why: bool = False,
    progress: Callable[[int], None] | None = None,
) -> Iterator[Trajectory]:
    """Yield the runs under the names that the user gave. No run at all is a TraceError that says what was skipped."""
    from agentguard.traces import read
    from agentguard.traces.assemble import Naming

    paths = list(traces)
    naming = Naming(model=model, harness=harness, why=why)
    for run in read(paths, format=format, naming=naming, report=told, progress=progress):
        yield _named(run, model=model, harness=harness, outcome=(outcomes or {}).get(run.run_id))
    if not told.runs:
        skipped = "; ".join(str(example) for example in told.examples[:3])
        raise TraceError(" ".join(paths), None, f"no run in it{f': {skipped}' if skipped else ''}")


def refuse_skipped(told: ReadReport) -> None:
    """Raise a TraceError about the first thing that could not be read, if there is any."""
    if told.examples:
        first = told.examples[0]
        raise TraceError(first.path, first.line, f"{first.reason}: {first.fault} ({told.skipped} skipped in all)")


def _named(run: Trajectory, *, model: str | None, harness: str | None, outcome: bool | None) -> Trajectory:
    if model is None and harness is None and outcome is None:
        return run
    key = msgspec.structs.replace(run.key, model=model or run.key.model, harness=harness or run.key.harness)
    return msgspec.structs.replace(run, key=key, outcome=run.outcome if outcome is None else outcome)
