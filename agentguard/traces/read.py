"""From paths to trajectories: unpacking, finding the format, gathering spans, building runs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import repeat
from typing import Final

import msgspec

from agentguard.errors import TraceError
from agentguard.traces.assemble import Assembler, Naming
from agentguard.traces.container import Binary, Container, Format, Item, Session
from agentguard.traces.containers import BUILT_IN
from agentguard.traces.files import expanded
from agentguard.traces.horizon import horizon_of, is_worth_it
from agentguard.traces.partitions import Group, Partitions
from agentguard.traces.reader import FileReader, Progress, is_binary
from agentguard.traces.report import ReadReport
from agentguard.traces.span import Span
from agentguard.trajectory import Trajectory

ENTRY_POINTS: Final = "agentguard.traces"
"""The entry-point group in which outsiders offer formats."""


def read(
    paths: str | Iterable[str],
    *,
    format: str | None = None,
    naming: Naming | None = None,
    report: ReadReport | None = None,
    progress: Progress | None = None,
) -> Iterator[Trajectory]:
    """Yield the runs in files, folders, globs, addresses or standard input ("-").

    The format of each file is known by its contents. What cannot be read is counted in `report`, and the rest is
    read; a path that means no file, and an unknown `format`, are a TraceError.

    Args:
        paths: One or several.
        format: Forces a format; None finds it.
        naming: What the spans do not say themselves.
        report: Filled on the way; complete when the iterator is used up.
        progress: Called with the number of bytes read from a file since the last call.
    """
    told = report if report is not None else ReadReport()
    forced = None if format is None else format_named(format)
    return _runs([paths] if isinstance(paths, str) else list(paths), forced, naming, told, progress)


def format_named(name: str) -> Format:
    """Return a format by its name: built in, or from an installed package."""
    if name in BUILT_IN:
        return BUILT_IN[name]
    from importlib.metadata import entry_points  # only an unknown name pays for it

    offered = {point.name: point for point in entry_points(group=ENTRY_POINTS)}
    if name not in offered:
        raise TraceError(name, None, f"unknown format; known: {', '.join(sorted([*BUILT_IN, *offered]))}")
    found = offered[name].load()
    if not isinstance(found, (Container, Session, Binary)):
        raise TraceError(name, None, "the installed package gives no format under this name")
    return found


def _runs(
    given: list[str],
    forced: Format | None,
    naming: Naming | None,
    report: ReadReport,
    progress: Progress | None,
) -> Iterator[Trajectory]:
    paths = [file for path in given for file in expanded(path)]
    horizon = horizon_of(paths) if is_worth_it(paths) and not any(map(is_binary, paths)) else None
    partitions = Partitions(horizon)
    builder = Builder(naming, report)
    before = 0
    for path, length in zip(paths, horizon.lengths if horizon is not None else repeat(None), strict=False):
        reader = FileReader(path, forced=forced, report=report, progress=progress, length=length)
        for batch in reader.batches():
            for group in partitions.whole(before + reader.done):
                yield from builder.built(group)
            yield from builder.told(batch, path)
            partitions.add(item for item in batch if not isinstance(item, Trajectory))
        before += reader.line
    for group in partitions.rest():
        yield from builder.built(group)
    yield from builder.finished()


class Builder:
    """Turns what was read into counted trajectories."""

    def __init__(self, naming: Naming | None, report: ReadReport, assembler: Assembler | None = None) -> None:
        self._naming = naming or Naming()
        self._assembler = assembler or Assembler(naming)
        self.report = report

    def told(self, batch: list[Item], path: str) -> Iterator[Trajectory]:
        """Yield the runs that a batch holds as such, and count its spans."""
        for item in batch:
            if isinstance(item, Trajectory):
                yield self._counted(self._named(item, path))
            elif isinstance(item, Span):
                self.report.spans += 1

    def built(self, group: Group) -> Iterator[Trajectory]:
        """Yield the runs of one trace."""
        try:
            yield from [self._counted(trajectory) for trajectory in self._assembler.add(*group)]
        except Exception as error:  # one trace that is stumbled over must not lose the others
            where = next(iter([each.where for each in group[0]] + [each.where for each in group[1]]), "")
            self._failed(where, error)

    def finished(self) -> Iterator[Trajectory]:
        """Yield the runs that are spread over several traces."""
        while self._assembler.holds_back:
            try:
                for trajectory in self._assembler.finish():
                    yield self._counted(trajectory)
            except Exception as error:
                self._failed("runs of several traces", error)

    def _failed(self, where: str, error: Exception) -> None:
        self.report.skip(
            where, None, "reader failed", f"{type(error).__name__}: {error}; please report it with the trace"
        )

    def _counted(self, trajectory: Trajectory) -> Trajectory:
        self.report.runs += 1
        self.report.steps += len(trajectory.steps)
        return trajectory

    def _named(self, run: Trajectory, path: str) -> Trajectory:
        model, harness = self._naming.model, self._naming.harness
        if model is not None or harness is not None:
            key = msgspec.structs.replace(run.key, model=model or run.key.model, harness=harness or run.key.harness)
            run = msgspec.structs.replace(run, key=key)
        return run if run.source else msgspec.structs.replace(run, source=path)
