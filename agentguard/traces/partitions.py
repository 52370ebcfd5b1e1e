"""Spans gathered by trace: let go when a trace has been read whole, spilled to disk when too many are open at once."""

from __future__ import annotations

import contextlib
import tempfile
import zlib
from collections.abc import Iterable, Iterator
from typing import IO, Final

import msgspec

from agentguard.traces.horizon import Horizon
from agentguard.traces.span import LogRecord, Span

_BUCKETS: Final = 64
_IN_MEMORY: Final = 40_000
"""Spans kept before they are spilled; about 100 MB."""

Group = tuple[list[Span], list[LogRecord]]
"""Spans and log records of one trace."""


class _Stored(msgspec.Struct, array_like=True):
    spans: list[Span]
    logs: list[LogRecord]


class Partitions:
    """Takes spans and log records in any order; gives them back trace by trace."""

    def __init__(self, horizon: Horizon | None = None) -> None:
        self._horizon = horizon
        """Where traces end. None: all of them with the input."""
        self._groups: dict[str, Group] = {}
        self._due: dict[int, list[str]] = {}
        self._done = 0
        self._spilled: set[str] = set()
        self._count = 0
        self._files: list[IO[bytes]] = []
        self._stack = contextlib.ExitStack()
        self._encoder = msgspec.msgpack.Encoder(enc_hook=str)

    def add(self, items: Iterable[Span | LogRecord]) -> None:
        """Take some."""
        groups = self._groups
        for item in items:
            trace_id = item.trace_id or ""
            group = groups.get(trace_id)
            if group is None:
                group = groups[trace_id] = self._opened(trace_id)
            if isinstance(item, Span):
                group[0].append(item)
            else:
                group[1].append(item)
            self._count += 1
        if self._count >= _IN_MEMORY:
            self._spill()

    def _opened(self, trace_id: str) -> Group:
        if self._horizon is not None and trace_id and trace_id not in self._spilled:
            self._due.setdefault(self._horizon.of(trace_id), []).append(trace_id)
        return [], []

    def whole(self, until: int) -> Iterator[Group]:
        """Yield the traces that end at or before this place of the input; all up to there must have been added."""
        for place in range(self._done + 1, until + 1):
            for trace_id in self._due.pop(place, ()):
                group = self._groups.pop(trace_id, None)
                if group is not None:
                    self._count -= len(group[0]) + len(group[1])
                    yield group
        self._done = max(self._done, until)

    def rest(self) -> Iterator[Group]:
        """Yield everything that is left, one trace at a time; records outside any trace come last, together."""
        with self._stack:
            if not self._files:
                yield from self._in_memory()
                return
            self._spill()
            outside: Group = ([], [])
            for file in self._files:
                file.seek(0)
                self._load(file)
                found = self._groups.pop("", ([], []))
                outside[1].extend(found[1])
                yield from self._in_memory()
            if outside[1]:
                yield outside

    def _in_memory(self) -> Iterator[Group]:
        groups, self._groups, self._count = self._groups, {}, 0
        outside = groups.pop("", None)
        for trace_id in list(groups):
            yield groups.pop(trace_id)
        if outside is not None:
            yield outside

    def _spill(self) -> None:
        if not self._files:
            self._files = [self._stack.enter_context(tempfile.TemporaryFile()) for _ in range(_BUCKETS)]  # noqa: SIM115
        for trace_id, (spans, logs) in self._groups.items():
            data = self._encoder.encode(_Stored(spans, logs))
            file = self._files[zlib.crc32(trace_id.encode("utf-8", "surrogatepass")) % _BUCKETS]
            file.write(len(data).to_bytes(8, "big") + data)
        if self._horizon is not None:
            self._spilled.update(self._groups)
            self._due.clear()
        self._groups, self._count = {}, 0

    def _load(self, file: IO[bytes]) -> None:
        while size := file.read(8):
            stored = _decoder.decode(file.read(int.from_bytes(size, "big")))
            for span in stored.spans:
                self._groups.setdefault(span.trace_id, ([], []))[0].append(span)
            for record in stored.logs:
                self._groups.setdefault(record.trace_id or "", ([], []))[1].append(record)


_decoder = msgspec.msgpack.Decoder(_Stored)
