"""Spans gathered by trace, in memory while they fit and on disk beyond that."""

from __future__ import annotations

import contextlib
import tempfile
import zlib
from collections.abc import Iterator
from typing import IO, Any, Final

import msgspec

from agentguard.traces.span import LogRecord, Span

_BUCKETS: Final = 64
_IN_MEMORY: Final = 40_000
"""Spans kept before they are spilled; about 100 MB."""


class _Group(msgspec.Struct, array_like=True, tag=False):
    spans: list[Span]
    logs: list[LogRecord]


class Partitions:
    """Takes spans and log records in any order; gives them back trace by trace."""

    def __init__(self) -> None:
        self._spans: dict[str, list[Span]] = {}
        self._logs: dict[str, list[LogRecord]] = {}
        self._count = 0
        self._files: list[IO[bytes]] = []
        self._stack = contextlib.ExitStack()
        self._encoder = msgspec.msgpack.Encoder(enc_hook=str)

    def add(self, item: Span | LogRecord) -> None:
        """Take one."""
        if isinstance(item, Span):
            self._spans.setdefault(item.trace_id, []).append(item)
        else:
            self._logs.setdefault(item.trace_id or "", []).append(item)
        self._count += 1
        if self._count >= _IN_MEMORY:
            self._spill()

    def groups(self) -> Iterator[tuple[list[Span], list[LogRecord]]]:
        """Yield everything that was taken, one trace at a time; records outside any trace come last, together."""
        with self._stack:
            if not self._files:
                yield from self._in_memory()
                return
            self._spill()
            for file in self._files:
                file.seek(0)
                for group in _read(file):
                    for span in group.spans:
                        self._spans.setdefault(span.trace_id, []).append(span)
                    for record in group.logs:
                        self._logs.setdefault(record.trace_id or "", []).append(record)
                yield from self._in_memory()

    def _in_memory(self) -> Iterator[tuple[list[Span], list[LogRecord]]]:
        spans, logs = self._spans, self._logs
        self._spans, self._logs, self._count = {}, {}, 0
        outside = logs.pop("", [])
        for trace_id in list(spans):
            yield spans.pop(trace_id), logs.pop(trace_id, [])
        for rest in logs.values():
            yield [], rest
        if outside:
            yield [], outside

    def _spill(self) -> None:
        if not self._files:
            self._files = [self._stack.enter_context(tempfile.TemporaryFile()) for _ in range(_BUCKETS)]  # noqa: SIM115
        for trace_id in self._spans.keys() | self._logs.keys():
            group = _Group(self._spans.get(trace_id, []), self._logs.get(trace_id, []))
            data = self._encoder.encode(group)
            self._files[zlib.crc32(trace_id.encode()) % _BUCKETS].write(len(data).to_bytes(8, "big") + data)
        self._spans, self._logs, self._count = {}, {}, 0


_decoder: msgspec.msgpack.Decoder[Any] = msgspec.msgpack.Decoder(_Group)


def _read(file: IO[bytes]) -> Iterator[_Group]:
    while size := file.read(8):
        yield _decoder.decode(file.read(int.from_bytes(size, "big")))
