"""From paths to trajectories: unpacking, finding the format, gathering spans, building runs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

import msgspec

from agentguard.errors import TraceError
from agentguard.traces.assemble import Assembler, Naming
from agentguard.traces.container import Binary, Container, Format, Session
from agentguard.traces.containers import BUILT_IN
from agentguard.traces.files import expanded
from agentguard.traces.partitions import Partitions
from agentguard.traces.reader import FileReader, Progress
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
    forced = None if format is None else container(format)
    return _runs([paths] if isinstance(paths, str) else list(paths), forced, naming, told, progress)


def container(name: str) -> Format:
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
    paths: list[str],
    forced: Format | None,
    naming: Naming | None,
    report: ReadReport,
    progress: Progress | None,
) -> Iterator[Trajectory]:
    partitions = Partitions()
    for path in (file for given in paths for file in expanded(given)):
        for batch in FileReader(path, forced=forced, report=report, progress=progress).batches():
            for item in batch:
                if isinstance(item, Trajectory):
                    yield _counted(item if item.source else msgspec.structs.replace(item, source=path), report)
                else:
                    report.spans += isinstance(item, Span)
                    partitions.add(item)
    assembler = Assembler(naming)
    for spans, logs in partitions.groups():
        for trajectory in assembler.add(spans, logs):
            yield _counted(trajectory, report)
    for trajectory in assembler.finish():
        yield _counted(trajectory, report)


def _counted(trajectory: Trajectory, report: ReadReport) -> Trajectory:
    report.runs += 1
    report.steps += len(trajectory.steps)
    return trajectory
