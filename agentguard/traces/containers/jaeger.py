"""Jaeger traces: what its query service returns and its UI downloads, `{"data": [{"traceID", "spans", "processes"}]}`.

Times are microseconds, attributes tags with a type; attributes that were lists have become JSON texts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from agentguard.traces.container import Container, FaultyRecord, Items
from agentguard.traces.containers.otlp_json import span_kind, status_code
from agentguard.traces.shapes import is_object
from agentguard.traces.span import Event, Span, Status
from agentguard.traces.values import integer, listed, mapped, scaled, string

_MICROSECOND: Final = 1_000


def accepts(record: Any) -> bool:
    """Whether a record is a trace of Jaeger's, or one span."""
    if not is_object(record):
        return False
    return "operationName" in record if "spanID" in record else "traceID" in record and "spans" in record


def read_record(record: Mapping[str, Any], where: str) -> Items:
    """Yield the spans of a trace."""
    processes = mapped(record.get("processes"))
    for span in listed(record.get("spans")) if "spans" in record else [record]:
        yield _span(span, string(record.get("traceID")), processes, where)


def _span(span: Any, trace: str, processes: Mapping[str, Any], where: str) -> Span | FaultyRecord:
    if not is_object(span):
        return FaultyRecord("not a span", f"a span is an object, not {type(span).__name__}; the others were read")
    trace_id, span_id = string(span.get("traceID")) or trace, string(span.get("spanID"))
    if not trace_id or not span_id:
        return FaultyRecord("span without id", "traceID and spanID are needed to place it; the others were read")
    tags = _tags(span.get("tags"))
    start = scaled(span.get("startTime"), _MICROSECOND)
    return Span(
        trace_id=trace_id,
        span_id=span_id,
        parent_id=_parent(span),
        name=string(span.get("operationName")),
        kind=span_kind(tags.pop("span.kind", None)),
        start_ns=start,
        end_ns=None if start is None else start + (scaled(span.get("duration"), _MICROSECOND) or 0),
        status_code=_status(tags),
        status_message=string(tags.pop("otel.status_description", None)),
        attributes=tags,
        events=tuple(_events(span.get("logs"))),
        scope_name=string(tags.pop("otel.scope.name", None) or tags.pop("otel.library.name", None)),
        scope_version=string(tags.pop("otel.scope.version", None) or tags.pop("otel.library.version", None)),
        resource=_resource(span, processes),
        where=where,
    )


def _parent(span: Mapping[str, Any]) -> str | None:
    references = [mapped(each) for each in listed(span.get("references"))]
    parents = [string(each.get("spanID")) for each in references if each.get("refType", "CHILD_OF") == "CHILD_OF"]
    return next(iter(parents), "") or string(span.get("parentSpanID")) or None


def _status(tags: dict[str, Any]) -> Status:
    told = status_code(tags.pop("otel.status_code", None))
    failed = tags.pop("error", None) in (True, "true")
    return Status.ERROR if failed else told


def _tags(found: Any) -> dict[str, Any]:
    if is_object(found):
        return dict(found)
    tags = [mapped(each) for each in listed(found)]
    return {tag["key"]: _value(tag) for tag in tags if isinstance(tag.get("key"), str) and tag.get("value") is not None}


def _value(tag: Mapping[str, Any]) -> Any:
    value = tag["value"]
    if tag.get("type") == "int64":
        return integer(value)
    return value == "true" if tag.get("type") == "bool" and isinstance(value, str) else value


def _events(logs: Any) -> Iterator[Event]:
    for log in listed(logs):
        fields = _tags(mapped(log).get("fields"))
        name = fields.pop("event", None) or fields.pop("message", None)
        yield Event(string(name), scaled(mapped(log).get("timestamp"), _MICROSECOND), fields)


def _resource(span: Mapping[str, Any], processes: Mapping[str, Any]) -> dict[str, Any]:
    process = mapped(processes.get(string(span.get("processID")))) or mapped(span.get("process"))
    name = process.get("serviceName")
    return {**_tags(process.get("tags")), **({"service.name": name} if name else {})}


JAEGER: Final = Container(name="jaeger", accepts=accepts, items=read_record)
