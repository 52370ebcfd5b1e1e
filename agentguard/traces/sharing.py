"""One input read by several processes, each a part of it: the same runs as one reader gives, in another order.

A quick pass over the input says where each trace begins and ends. A trace belongs to the part in which it ends, and
that part's reader goes back to where the first of its traces began. What may belong to a run of several traces is
handed back, to be read together when all parts are done:

    parts = shares(paths, 2)
    with ProcessPoolExecutor() as pool:
        for runs, left, report in pool.map(work, parts):  # work calls read_share, and scores
            ...
    for run in read_left(everything left): ...
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import accumulate
from typing import Final

from agentguard.traces.assemble import Assembler, Naming
from agentguard.traces.container import Item
from agentguard.traces.files import expanded
from agentguard.traces.horizon import Horizon, horizon_of
from agentguard.traces.partitions import Group, Partitions
from agentguard.traces.read import Builder, format_named
from agentguard.traces.reader import FileReader, is_binary, reads_by_line
from agentguard.traces.report import ReadReport
from agentguard.traces.span import LogRecord, Span
from agentguard.trajectory import Trajectory

_UNSEEN: Final = 0


@dataclass(frozen=True, kw_only=True)
class Share:
    """A part of some input, from one place to another. Places are lines counted over all files; may be pickled."""

    paths: tuple[str, ...]
    begin: int
    """The place before the first one of this part."""
    end: int
    """The last place of this part."""
    back: int
    """The first place that must be read for the traces that end in this part."""
    horizon: Horizon
    format: str | None
    naming: Naming | None


def shares(
    paths: str | Iterable[str],
    count: int,
    *,
    format: str | None = None,
    naming: Naming | None = None,
) -> list[Share]:
    """Cut some input into at most `count` parts of about equally many lines. It must stay as it is until it is read.

    Files whose lines tell nothing alone (documents, sessions) are not cut; with a binary file among them there is one
    part only. Standard input cannot be shared.
    """
    files = [file for path in ([paths] if isinstance(paths, str) else paths) for file in expanded(path)]
    blind = any(map(is_binary, files))
    horizon = horizon_of(files, blind=blind)
    ends = _ends(files, horizon.lengths, 1 if blind else count)
    begins = [0, *ends[:-1]]
    return [
        Share(paths=tuple(files), begin=begin, end=end, back=back, horizon=horizon, format=format, naming=naming)
        for begin, end, back in zip(begins, ends, horizon.begins(ends), strict=True)
    ]


def _ends(files: list[str], lengths: list[int], count: int) -> list[int]:
    after = list(accumulate(lengths))
    total = after[-1] if after else 0
    ends = {total}
    for part in range(1, count):
        wanted = total * part // count
        at = bisect_right(after, wanted)
        if at < len(files):
            ends.add(wanted if reads_by_line(files[at]) else after[at])
    return sorted(end for end in ends if end > 0) or [total]


def read_share(share: Share, *, left: list[Group], report: ReadReport | None = None) -> Iterator[Trajectory]:
    """Yield the runs of one part. What waits for other parts is put into `left`, to be read by `read_left`."""
    told = report if report is not None else ReadReport()
    partitions = Partitions(share.horizon)
    before = 0
    for path, length in zip(share.paths, share.horizon.lengths, strict=True):
        if _is_touched(share, before, length):
            yield from _file(share, path, before, length, partitions, left, told)
        before += length
    for group in partitions.rest():
        yield from _built(group, share.naming, left, told)


def read_left(
    left: Iterable[Group], *, naming: Naming | None = None, report: ReadReport | None = None
) -> Iterator[Trajectory]:
    """Yield the runs of what all parts left over."""
    builder = Builder(naming, report if report is not None else ReadReport())
    partitions = Partitions()
    for spans, logs in left:
        partitions.add([*spans, *logs])
    for group in partitions.rest():
        yield from builder.built(group)
    yield from builder.finished()


def _is_touched(share: Share, before: int, length: int) -> bool:
    if not length:
        return share.begin <= before < max(share.end, 1)
    return before + length >= share.back and before < share.end


def _file(
    share: Share, path: str, before: int, length: int, partitions: Partitions, left: list[Group], told: ReadReport
) -> Iterator[Trajectory]:
    reader = FileReader(
        path,
        forced=None if share.format is None else format_named(share.format),
        report=told,
        skip=share.back - before - 1 if reads_by_line(path) else 0,
        quiet=share.begin - before,
        length=min(length, share.end - before),
    )
    builder = Builder(share.naming, told)
    for batch in reader.batches():
        for group in partitions.whole(before + reader.done):
            yield from _built(group, share.naming, left, told)
        here = before + reader.line > share.begin
        if here:
            yield from builder.told(batch, path)
        partitions.add(_own(batch, share, left if here else []))


def _own(batch: list[Item], share: Share, left: list[Group]) -> Iterator[Span | LogRecord]:
    """Yield the spans of traces that end in a part; those of which nobody knows where they end are `left`."""
    begin, end, of = share.begin, share.end, share.horizon.of
    for item in batch:
        if isinstance(item, Trajectory):
            continue
        place = of(item.trace_id) if item.trace_id else _UNSEEN
        if begin < place <= end:
            yield item
        elif place == _UNSEEN:
            left.append(_alone(item))


def _alone(item: Span | LogRecord) -> Group:
    return ([item], []) if isinstance(item, Span) else ([], [item])


def _built(group: Group, naming: Naming | None, left: list[Group], told: ReadReport) -> Iterator[Trajectory]:
    trial = Assembler(naming)
    builder = Builder(naming, ReadReport(), trial)
    runs = list(builder.built(group))
    if trial.holds_back:
        left.append(group)  # with what it already gave, so that nothing is given twice
        return
    told.add(builder.report)
    yield from runs
