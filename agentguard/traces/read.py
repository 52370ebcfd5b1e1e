"""From paths to trajectories: unpacking, finding the format, gathering spans, building runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

import orjson

from agentguard.errors import TraceError
from agentguard.traces.assemble import Assembler, Naming
from agentguard.traces.container import Container, FaultyRecord, Item
from agentguard.traces.containers import BUILT_IN
from agentguard.traces.files import UNPACKING_FAULTS, expanded, lines, opened
from agentguard.traces.partitions import Partitions
from agentguard.traces.report import ReadReport
from agentguard.traces.span import Span
from agentguard.trajectory import Trajectory

ENTRY_POINTS: Final = "agentguard.traces"
"""The entry-point group in which outsiders offer formats."""
_LONGEST_DOCUMENT: Final = 512 * 2**20


def read(
    paths: str | Iterable[str],
    *,
    format: str | None = None,  # noqa: A002 - the word users know
    naming: Naming | None = None,
    report: ReadReport | None = None,
    progress: Callable[[int], None] | None = None,
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


def container(name: str) -> Container:
    """Return a format by its name: built in, or from an installed package."""
    if name in BUILT_IN:
        return BUILT_IN[name]
    from importlib.metadata import entry_points  # only an unknown name pays for it

    offered = {point.name: point for point in entry_points(group=ENTRY_POINTS)}
    if name not in offered:
        raise TraceError(name, None, f"unknown format; known: {', '.join(sorted([*BUILT_IN, *offered]))}")
    found = offered[name].load()
    if not isinstance(found, Container):
        raise TraceError(name, None, "the installed package gives no Container under this name")
    return found


def _runs(
    paths: list[str],
    forced: Container | None,
    naming: Naming | None,
    report: ReadReport,
    progress: Callable[[int], None] | None,
) -> Iterator[Trajectory]:
    partitions = Partitions()
    for path in (file for given in paths for file in expanded(given)):
        report.files += 1
        for item in _file(path, forced, report, progress):
            if isinstance(item, Trajectory):
                yield _counted(item if item.source else _with_source(item, path), report)
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


def _with_source(trajectory: Trajectory, path: str) -> Trajectory:
    import msgspec

    return msgspec.structs.replace(trajectory, source=path)


def _file(
    path: str, forced: Container | None, report: ReadReport, progress: Callable[[int], None] | None
) -> Iterator[Item]:
    stream = opened(path)
    found = forced
    unread: list[bytes] = []
    last = 0
    try:
        for number, line in lines(stream):
            last = number
            if progress is not None:
                progress(len(line or b""))
            if line is None:
                report.skip(path, number, "line too long", "more than 512 MB without an end; write one run a line")
                continue
            report.lines += 1
            if number == 1 and not _is_whole(line):
                unread.append(line)  # the first of many lines of one document
                continue
            if unread:
                unread.append(line)
                if sum(map(len, unread)) > _LONGEST_DOCUMENT:
                    report.skip(path, None, "document too long", "more than 512 MB in one; write one record a line")
                    return
                continue
            found = found or _format_of(line)
            yield from _line(line, found, path, number, report)
    except UNPACKING_FAULTS as error:
        report.skip(path, last + 1, "torn archive", f"{error or type(error).__name__}; what came before it was read")
    finally:
        stream.close()
    if unread:
        yield from _document(b"\n".join(unread), found, path, report)
    elif not last:
        report.skip(path, None, "empty file", "nothing in it; was the recorder closed or killed before its first span?")


def _is_whole(line: bytes) -> bool:
    try:
        orjson.loads(line)
    except orjson.JSONDecodeError:
        return False
    return True


def _format_of(line: bytes) -> Container | None:
    try:
        return _detected(orjson.loads(line))
    except orjson.JSONDecodeError:
        return None


def _detected(record: Any) -> Container | None:
    if isinstance(record, list):
        record = record[0] if record else None
    return next((one for one in BUILT_IN.values() if one.accepts(record)), None)


def _line(line: bytes, found: Container | None, path: str, number: int, report: ReadReport) -> Iterator[Item]:
    where = f"{path}:{number}"
    if found is not None and found.line is not None:
        try:
            items = found.line(line, where)
        except FaultyRecord:
            items = None  # read it again, loosely
        if items is not None:
            yield from _readable(items, path, number, report)
            return
    try:
        record = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        report.skip(path, number, "torn line", f"no JSON ({error}); the lines before and after it were read")
        return
    yield from _record(record, found, path, number, report)


def _record(record: Any, found: Container | None, path: str, number: int | None, report: ReadReport) -> Iterator[Item]:
    if isinstance(record, list):
        for item in record:
            yield from _record(item, found, path, number, report)
        return
    fitting = found if found is not None and found.accepts(record) else _detected(record)
    if fitting is None:
        report.skip(path, number, "unknown format", f"{_seen(record)}; known: {', '.join(BUILT_IN)}; force one by --format")
        return
    where = path if number is None else f"{path}:{number}"
    try:
        yield from _readable(fitting.items(record, where), path, number, report)
    except RecursionError:
        report.skip(path, number, "nested too deep", "deeper than any trace; the other records were read")


def _readable(items: Iterator[Item | FaultyRecord], path: str, number: int | None, report: ReadReport) -> Iterator[Item]:
    for item in items:
        if isinstance(item, FaultyRecord):
            report.skip(path, number, item.reason, item.fault)
        else:
            yield item


def _document(data: bytes, found: Container | None, path: str, report: ReadReport) -> Iterator[Item]:
    try:
        record = orjson.loads(data)
    except orjson.JSONDecodeError as error:
        yield from _torn_document(data, found, path, report, error)
        return
    yield from _record(record, found, path, None, report)


def _torn_document(
    data: bytes, found: Container | None, path: str, report: ReadReport, error: orjson.JSONDecodeError
) -> Iterator[Item]:
    """The first line was torn, or the file is no JSON at all: the other lines may still be records."""
    rest = data.split(b"\n")
    readable = [(number, line) for number, line in enumerate(rest, 1) if _is_whole(line)]
    if not any(line.lstrip()[:1] in (b"{", b"[") and len(line) > 2 for _, line in readable):
        report.skip(path, None, "not JSON", f"{error}; known formats: {', '.join(BUILT_IN)}")
        return
    for number, line in enumerate(rest, 1):
        yield from _line(line, found or _format_of(line), path, number, report)


def _seen(record: Any) -> str:
    if isinstance(record, Mapping):
        return f"an object with the keys {', '.join(map(repr, list(record)[:8])) or '(none)'}"
    return f"a JSON {type(record).__name__}"
