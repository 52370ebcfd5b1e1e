"""MLflow traces: `Trace.to_dict()` and `to_json()` of MLflow 2 and 3.

Ids are base64 (or hex behind `0x`), and each attribute is JSON once more: `"\\"execute_tool\\""`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import orjson

from agentguard.traces.container import Container, FaultyRecord, Items
from agentguard.traces.containers.otlp_json import status_code
from agentguard.traces.shapes import is_object
from agentguard.traces.span import Event, Span
from agentguard.traces.values import SPAN_DIGITS, TRACE_DIGITS, hex_id, listed, mapped, moment, string

_SESSION: Final = "mlflow.trace.session"


def accepts(record: Any) -> bool:
    """Whether a record is a trace with its spans."""
    return is_object(record) and is_object(record.get("info")) and "spans" in mapped(record.get("data"))


def read_record(record: Mapping[str, Any], where: str) -> Items:
    """Yield the spans of a trace."""
    info = mapped(record.get("info"))
    told = {**mapped(info.get("tags")), **mapped(info.get("request_metadata")), **mapped(info.get("trace_metadata"))}
    resource = {key: value for key, value in told.items() if not key.startswith("mlflow.")}
    session = {key: told[key] for key in (_SESSION,) if key in told}
    for span in listed(mapped(record.get("data")).get("spans")):
        yield _span(span, session, resource, where)


def _span(span: Any, session: Mapping[str, Any], resource: Mapping[str, Any], where: str) -> Span | FaultyRecord:
    if not is_object(span):
        return FaultyRecord("not a span", f"a span is an object, not {type(span).__name__}; the others were read")
    context, status = mapped(span.get("context")), span.get("status")
    trace_id = hex_id(context.get("trace_id") or span.get("trace_id"), TRACE_DIGITS)
    span_id = hex_id(context.get("span_id") or span.get("span_id"), SPAN_DIGITS)
    if not trace_id or not span_id:
        return FaultyRecord("span without id", "trace_id and span_id are needed to place it; the others were read")
    return Span(
        trace_id=trace_id,
        span_id=span_id,
        parent_id=hex_id(span.get("parent_span_id") or span.get("parent_id") or "", SPAN_DIGITS) or None,
        name=string(span.get("name")),
        start_ns=moment(span.get("start_time_unix_nano") or span.get("start_time")),
        end_ns=moment(span.get("end_time_unix_nano") or span.get("end_time")),
        status_code=status_code(mapped(status).get("code") or span.get("status_code") or status),
        status_message=string(mapped(status).get("message") or span.get("status_message")),
        attributes={**session, **_attributes(span.get("attributes"))},
        events=tuple(_events(span.get("events"))),
        resource=resource,
        where=where,
    )


def _attributes(found: Any) -> dict[str, Any]:
    return {key: value if key in _STAY_JSON else _once(value) for key, value in mapped(found).items()}


_STAY_JSON: Final = frozenset(
    {"mlflow.spanInputs", "mlflow.spanOutputs", "mlflow.chat.tools", "mlflow.chat.tokenUsage"}
)
"""Of these the one layer of JSON is the attribute's own."""


def _once(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    try:
        return orjson.loads(value)
    except orjson.JSONDecodeError:
        return value


def _events(events: Any) -> Iterator[Event]:
    for event in listed(events):
        if is_object(event):
            at = event.get("time_unix_nano") or event.get("timestamp")
            yield Event(string(event.get("name")), moment(at), mapped(event.get("attributes")))


MLFLOW: Final = Container(name="mlflow", accepts=accepts, items=read_record)
