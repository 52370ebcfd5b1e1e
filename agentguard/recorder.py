"""The local recorder: every ended span as OTLP/JSON lines on disk, the way the OpenTelemetry Collector's file exporter
writes them. The only module that uses the OpenTelemetry SDK.

One file per process, in the order in which spans ended. Nothing is dropped while the disk takes it: the queue is
bounded, and an agent that ends spans faster than they can be written waits. A kill costs what ended in the last tenth
of a second and at most a torn last line.
"""

from __future__ import annotations

import atexit
import os
import threading
import time
import weakref
from collections import deque
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import IO, TYPE_CHECKING, Any, Final, Self

import orjson
import structlog
import zstandard
from opentelemetry import trace
from opentelemetry.trace import SpanKind, StatusCode

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import ReadableSpan, Span, TracerProvider

_MOST_WAITING: Final = 8_192
"""Spans in the queue beyond which ending one more waits."""
_MOST_IN_A_LINE: Final = 256
_KINDS: Final = {kind: kind.value + 1 for kind in SpanKind}
_STATUS: Final = {StatusCode.UNSET: 0, StatusCode.OK: 1, StatusCode.ERROR: 2}


def record(
    folder: str | Path,
    *,
    tracer_provider: TracerProvider | None = None,
    max_bytes: int = 128 * 2**20,
    compress: bool = True,
    flush_seconds: float = 0.05,
) -> Recorder:
    """Record the spans of this process into a folder from now on.

    Args:
        folder: Made when it is not there.
        tracer_provider: An SDK provider. None means the global one; where none is set, one is made and set.
        max_bytes: A file that reaches this size is closed and another begun.
        compress: Closed files are packed by zstd.
        flush_seconds: The longest time a span waits before it is written.

    Returns:
        A handle to flush or close by; closing also happens when the interpreter exits.
    """
    from opentelemetry.sdk.trace import TracerProvider as SdkProvider

    provider: Any = tracer_provider or trace.get_tracer_provider()
    if not hasattr(provider, "add_span_processor"):
        provider = SdkProvider()
        trace.set_tracer_provider(provider)
    recorder = Recorder(folder, max_bytes=max_bytes, compress=compress, flush_seconds=flush_seconds)
    provider.add_span_processor(recorder)
    return recorder


class Recorder:
    """A span processor that writes files. Never raises into the agent; what goes wrong is one loud line in the log."""

    def __init__(self, folder: str | Path, *, max_bytes: int, compress: bool, flush_seconds: float) -> None:
        self.folder = Path(folder)
        self.lost = 0
        """Spans that could not be written, because the disk or the folder refused."""
        self._max_bytes = max_bytes
        self._compress = compress
        self._flush_seconds = flush_seconds
        self._complained = False
        self._begin()
        atexit.register(self.close)
        me = weakref.ref(self)
        os.register_at_fork(after_in_child=lambda: _after_fork(me))

    # --- what the SDK calls ------------------------------------------------------------------------------------------

    def on_start(self, span: Span, parent_context: Context | None = None) -> None:
        """Do nothing: only ended spans are written."""

    def _on_ending(self, span: Span) -> None:
        """Do nothing; the SDK asks every processor."""

    def on_end(self, span: ReadableSpan) -> None:
        """Queue a span; wait when too many are waiting already."""
        if self._closed:
            return
        self._waiting.append(span)
        if len(self._waiting) >= _MOST_WAITING:
            with self._room:
                self._wake.set()
                self._room.wait_for(lambda: len(self._waiting) < _MOST_WAITING or self._closed, timeout=30)

    def shutdown(self) -> None:
        """Write what is waiting and close the file."""
        self.close()

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        """Write what is waiting; return whether that was done in time."""
        return self.flush(timeout_millis / 1e3)

    # --- what users call ---------------------------------------------------------------------------------------------

    @property
    def path(self) -> Path | None:
        """The file that is being written; None before the first span, and after the last."""
        return self._path

    def flush(self, seconds: float = 30.0) -> bool:
        """Write every span that has ended; return whether that was done within so many seconds."""
        if self._closed or not self._thread.is_alive():
            return not self._waiting
        done = threading.Event()
        self._asked.append(done)
        self._wake.set()
        return done.wait(seconds)

    def close(self) -> None:
        """Write what is waiting and close the file. Spans that end later are not recorded."""
        if self._closed:
            return
        self.flush()
        self._closed = True
        self._wake.set()
        self._thread.join(timeout=30)
        atexit.unregister(self.close)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # --- the writing thread ------------------------------------------------------------------------------------------

    def _begin(self) -> None:
        """Start afresh, in a new process too: spans that were waiting belong to the parent, which writes them."""
        self._waiting: deque[ReadableSpan] = deque()
        self._asked: deque[threading.Event] = deque()
        self._wake = threading.Event()
        self._room = threading.Condition()
        self._closed = False
        self._file: IO[bytes] | None = None
        self._path: Path | None = None
        self._files = 0
        self._began = time.strftime("%Y%m%dT%H%M%S", time.gmtime())
        self._thread = threading.Thread(target=self._work, name="agentguard-recorder", daemon=True)
        self._thread.start()

    def _work(self) -> None:
        while True:
            self._wake.wait(self._flush_seconds)
            self._wake.clear()
            closing, asked = self._closed, list(self._asked)
            self._drain()
            for done in asked:
                self._asked.remove(done)
                done.set()
            if closing:
                self._close_file()
                return

    def _drain(self) -> None:
        while self._waiting:
            spans = [self._waiting.popleft() for _ in range(min(len(self._waiting), _MOST_IN_A_LINE))]
            self._write(spans)
            with self._room:
                self._room.notify_all()

    def _write(self, spans: list[ReadableSpan]) -> None:
        try:
            file = self._file or self._open()
            file.write(encoded(spans))
            if file.tell() >= self._max_bytes:
                self._close_file()
        except Exception as fault:
            self._complain(len(spans), fault)

    def _open(self) -> IO[bytes]:
        self.folder.mkdir(parents=True, exist_ok=True)
        self._path = self.folder / f"agentguard-{self._began}-{os.getpid()}-{self._files:04d}.jsonl"
        self._files += 1
        # Unbuffered: a line is one write, so a kill tears at most the last one.
        self._file = open(self._path, "ab", buffering=0)  # noqa: SIM115 - lives as long as the recorder
        return self._file

    def _close_file(self) -> None:
        file, path = self._file, self._path
        self._file = self._path = None
        if file is None or path is None:
            return
        file.close()
        if self._compress:
            try:
                _pack(path)
            except Exception as fault:
                self._complain(0, fault)

    def _complain(self, spans: int, fault: Exception) -> None:
        self.lost += spans
        if not self._complained:
            self._complained = True
            structlog.get_logger("agentguard").error(
                "agentguard.recorder_failed", folder=str(self.folder), error=f"{type(fault).__name__}: {fault}"
            )


def _after_fork(recorder: weakref.ref[Recorder]) -> None:
    here = recorder()
    if here is not None and not here._closed:
        here._begin()


def _pack(path: Path) -> None:
    """Replace a file by its zstd form; a kill in between leaves the plain one, and no half-written packed one."""
    packed, unfinished = path.with_suffix(".jsonl.zst"), path.with_suffix(".zst.part")
    with open(path, "rb") as source, open(unfinished, "wb") as target:
        zstandard.ZstdCompressor(level=3).copy_stream(source, target)
    unfinished.replace(packed)
    path.unlink()


def encoded(spans: Iterable[ReadableSpan]) -> bytes:
    """Return one line of OTLP/JSON with all the spans, grouped by resource and scope.

    The form is that of https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding.
    """
    groups: dict[int, tuple[Resource, dict[int, tuple[Any, list[dict[str, Any]]]]]] = {}
    for span in spans:
        _, scopes = groups.setdefault(id(span.resource), (span.resource, {}))
        scope = span.instrumentation_scope
        scopes.setdefault(id(scope), (scope, []))[1].append(_span(span))
    resource_spans = [
        {
            "resource": {"attributes": _attributes(resource.attributes)},
            "scopeSpans": [{"scope": _scope(scope), "spans": found} for scope, found in scopes.values()],
        }
        for resource, scopes in groups.values()
    ]
    return orjson.dumps({"resourceSpans": resource_spans}) + b"\n"


def _span(span: ReadableSpan) -> dict[str, Any]:
    context = span.context
    record: dict[str, Any] = {
        "traceId": f"{context.trace_id:032x}" if context else "",
        "spanId": f"{context.span_id:016x}" if context else "",
        "name": _text(span.name),
        "kind": _KINDS[span.kind],
        "startTimeUnixNano": str(span.start_time or 0),
        "endTimeUnixNano": str(span.end_time or 0),
        "attributes": _attributes(span.attributes or {}),
        "status": _status(span),
    }
    if span.parent is not None:
        record["parentSpanId"] = f"{span.parent.span_id:016x}"
    if span.events:
        record["events"] = [
            {"timeUnixNano": str(e.timestamp), "name": _text(e.name), "attributes": _attributes(e.attributes or {})}
            for e in span.events
        ]
    if span.links:
        record["links"] = [_link(link) for link in span.links]
    return record


def _link(link: Any) -> dict[str, Any]:
    return {
        "traceId": f"{link.context.trace_id:032x}",
        "spanId": f"{link.context.span_id:016x}",
        "attributes": _attributes(link.attributes or {}),
    }


def _status(span: ReadableSpan) -> dict[str, Any]:
    code = _STATUS[span.status.status_code]
    said = {"code": code} if code else {}
    return said if span.status.description is None else {**said, "message": _text(span.status.description)}


def _scope(scope: Any) -> dict[str, Any]:
    if scope is None:
        return {}
    return {"name": scope.name, **({"version": scope.version} if scope.version else {})}


def _attributes(attributes: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [{"key": _text(key), "value": _value(value)} for key, value in attributes.items()]


def _value(value: Any) -> dict[str, Any]:
    kind = type(value)
    if kind is str:
        return {"stringValue": _text(value)}
    if kind is bool:
        return {"boolValue": value}
    if kind is int:
        return {"intValue": str(value)}
    if kind is float:
        return {"doubleValue": value}
    if isinstance(value, (bytes, bytearray)):
        from base64 import b64encode

        return {"bytesValue": b64encode(value).decode()}
    if isinstance(value, (list, tuple)):
        return {"arrayValue": {"values": [_value(item) for item in value]}}
    if isinstance(value, Mapping):
        return {"kvlistValue": {"values": _attributes(value)}}
    return {} if value is None else {"stringValue": _text(str(value))}


def _text(text: str) -> str:
    """Return a text that JSON can carry: half a surrogate pair becomes a question mark."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()
