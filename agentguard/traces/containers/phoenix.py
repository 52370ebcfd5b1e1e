"""Arize Phoenix: spans as its REST interface lists them, and rows of its dataframe (JSON records or Parquet).

Its `otlpv1` listing is read as loose OTLP. Attributes come with dots in their names or nested; the kind stands outside.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any, Final

import orjson

from agentguard.traces.container import Container, FaultyRecord, Items
from agentguard.traces.containers.otlp_json import status_code
from agentguard.traces.shapes import is_object
from agentguard.traces.span import Event, Span
from agentguard.traces.values import flattened, integer, listed, mapped, moment, string

KIND: Final = "openinference.span.kind"
_COLUMN: Final = "attributes."


def accepts(record: Any) -> bool:
    """Whether a record is a span of Phoenix's, or a row of its dataframe."""
    if not is_object(record):
        return False
    if "context.trace_id" in record or "context.span_id" in record:
        return True
    return "span_kind" in record and "trace_id" in mapped(record.get("context"))


def read_record(record: Mapping[str, Any], where: str) -> Items:
    """Yield the span that a record is."""
    context = mapped(record.get("context"))
    trace_id = string(record.get("context.trace_id") or context.get("trace_id"))
    span_id = string(record.get("context.span_id") or context.get("span_id"))
    if not trace_id or not span_id:
        yield FaultyRecord("span without id", "context.trace_id and context.span_id are needed to place it")
        return
    yield Span(
        trace_id=trace_id,
        span_id=span_id,
        parent_id=string(record.get("parent_id")) or None,
        name=string(record.get("name")),
        start_ns=_time(record.get("start_time")),
        end_ns=_time(record.get("end_time")),
        status_code=status_code(record.get("status_code")),
        status_message=string(record.get("status_message")),
        attributes=_attributes(record),
        events=tuple(_events(record.get("events"))),
        where=where,
    )


def _attributes(record: Mapping[str, Any]) -> dict[str, Any]:
    attributes = flattened(mapped(record.get("attributes")))
    for column, value in record.items():
        if column.startswith(_COLUMN) and value is not None:
            attributes.update(flattened({column.removeprefix(_COLUMN): value}))
    kind = record.get("span_kind")
    if isinstance(kind, str) and kind != "UNKNOWN":
        attributes.setdefault(KIND, kind)
    return attributes


def _events(events: Any) -> Iterator[Event]:
    if isinstance(events, str):
        with contextlib.suppress(orjson.JSONDecodeError):
            events = orjson.loads(events)
    for event in listed(events):
        if is_object(event):
            yield Event(
                string(event.get("name")), _time(event.get("timestamp")), flattened(mapped(event.get("attributes")))
            )


def _time(value: Any) -> int | None:
    # a dataframe's to_json writes milliseconds unless told otherwise
    number = integer(value) if not isinstance(value, str) else None
    return number * 1_000_000 if number is not None and number < 10**14 else moment(value)


PHOENIX: Final = Container(name="phoenix", accepts=accepts, items=read_record)
