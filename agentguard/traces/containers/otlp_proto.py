"""OTLP in protobuf: an export request a file, or several with their lengths before them (Collector, `format: proto`).

Needs `opentelemetry-proto`, which every OTLP exporter brings.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import IO, Any, Final

from agentguard.errors import IntegrationMissing
from agentguard.traces.container import Binary, FaultyRecord, Items
from agentguard.traces.containers.otlp_json import read_record

_LARGEST: Final = 256 * 2**20
_LENGTH: Final = 4
_FIELD: Final = 0x0A
"""The first byte of a request: field 1, with a length."""


def magic(head: bytes) -> bool:
    """Whether a file begins as a request, or as a length and a request."""
    if len(head) < _LENGTH + 2:
        return False
    if head[0] == _FIELD:
        # to a text file that begins with an empty line this is a line end
        return head.lstrip()[:1] not in (b"{", b"[")
    return head[0] == 0 and head[_LENGTH] == _FIELD


def items(stream: IO[bytes], path: str) -> Items:
    """Yield the spans and log records of a file."""
    data = stream.read(_LARGEST + 1)
    if len(data) > _LARGEST:
        yield FaultyRecord("file too long", "more than 256 MB of protobuf; write several files, or OTLP/JSON lines")
        return
    for number, message in enumerate(_messages(data), 1):
        try:
            record = _request(message)
        except FaultyRecord as fault:
            yield FaultyRecord(fault.reason, f"message {number} {fault.fault}")
            continue
        yield from read_record(record, f"{path}#{number}")


def _messages(data: bytes) -> Iterator[bytes]:
    if data[:1] != b"\0":
        yield data
        return
    at = 0
    while at < len(data):
        size = int.from_bytes(data[at : at + _LENGTH], "big")
        yield data[at + _LENGTH : at + _LENGTH + size]
        at += _LENGTH + size


def _request(message: bytes) -> Any:
    """Return a request as OTLP/JSON has it: one of traces, or else one of logs."""
    try:
        from google.protobuf.json_format import MessageToDict  # type: ignore[import-untyped,unused-ignore]
        from google.protobuf.message import DecodeError  # type: ignore[import-untyped,unused-ignore]
        from opentelemetry.proto.logs.v1.logs_pb2 import LogsData
        from opentelemetry.proto.trace.v1.trace_pb2 import TracesData
    except ImportError:
        raise IntegrationMissing("opentelemetry-proto", "score") from None
    for kind, is_one in ((TracesData, _has_spans), (LogsData, _has_logs)):
        try:
            found = kind.FromString(message)
        except DecodeError:
            continue
        if is_one(found):
            return MessageToDict(found)
    raise FaultyRecord("torn message", "is no whole OTLP request of spans or logs; the others were read")


def _has_spans(traces: Any) -> bool:
    # a log record read as a span has its time where the trace id stands
    spans = [span for group in traces.resource_spans for scope in group.scope_spans for span in scope.spans]
    return any(len(span.trace_id) == 16 and len(span.span_id) == 8 for span in spans)


def _has_logs(logs: Any) -> bool:
    return any(scope.log_records for group in logs.resource_logs for scope in group.scope_logs)


OTLP_PROTO: Final = Binary(name="otlp-proto", magic=magic, items=items)
