"""Spans as the OpenTelemetry SDK prints them: `ReadableSpan.to_json()`, one after another."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from agentguard.traces.container import Container, FaultyRecord, Items
from agentguard.traces.containers.otlp_json import span_kind, status_code
from agentguard.traces.shapes import is_object
from agentguard.traces.span import Event, Span
from agentguard.traces.values import SPAN_DIGITS, TRACE_DIGITS, hex_id, listed, mapped, moment, string


def accepts(record: Any) -> bool:
    """Whether a record is a span as the SDK prints it."""
    return is_object(record) and "trace_id" in mapped(record.get("context")) and "kind" in record


def read_record(record: Mapping[str, Any], where: str) -> Items:
    """Yield the span that a record is."""
    context, status = mapped(record.get("context")), mapped(record.get("status"))
    scope = mapped(record.get("instrumentation_scope") or record.get("scope"))
    trace_id, span_id = hex_id(context.get("trace_id"), TRACE_DIGITS), hex_id(context.get("span_id"), SPAN_DIGITS)
    if not trace_id or not span_id:
        yield FaultyRecord("span without id", "context.trace_id and context.span_id are needed to place it")
        return
    yield Span(
        trace_id=trace_id,
        span_id=span_id,
        parent_id=hex_id(record.get("parent_id") or "", SPAN_DIGITS) or None,
        name=string(record.get("name")),
        kind=span_kind(string(record.get("kind")).removeprefix("SpanKind.")),
        start_ns=moment(record.get("start_time")),
        end_ns=moment(record.get("end_time")),
        status_code=status_code(status.get("status_code")),
        status_message=string(status.get("description")),
        attributes=mapped(record.get("attributes")),
        events=tuple(_events(record.get("events"))),
        scope_name=string(scope.get("name")),
        scope_version=string(scope.get("version")),
        resource=mapped(mapped(record.get("resource")).get("attributes")),
        where=where,
    )


def _events(events: Any) -> Iterator[Event]:
    for event in listed(events):
        if is_object(event):
            yield Event(string(event.get("name")), moment(event.get("timestamp")), mapped(event.get("attributes")))


OTEL_CONSOLE: Final = Container(name="otel-console", accepts=accepts, items=read_record)
