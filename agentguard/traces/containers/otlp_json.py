"""OTLP/JSON: export requests as the OpenTelemetry Collector's file exporter writes them, and looser relatives.

Read strictly and fast where a line is what the specification says; otherwise loosely: snake_case keys, enums by name,
numbers as numbers or texts, ids in hex or base64, nulls, `instrumentationLibrarySpans`, and `batches` for
`resourceSpans` as Tempo writes it.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, cast

import msgspec

from agentguard.traces.container import Container, FaultyRecord, Item
from agentguard.traces.shapes import is_object
from agentguard.traces.span import Event, Kind, LogRecord, Span, Status
from agentguard.traces.values import SPAN_DIGITS, TRACE_DIGITS, decimal, hex_id, integer, listed, string

_DEEPEST: Final = 200


class _Value(msgspec.Struct, gc=False, rename="camel"):
    string_value: str | None = None
    int_value: str | int | None = None
    bool_value: bool | None = None
    double_value: float | str | None = None
    array_value: _Array | None = None
    kvlist_value: _Object | None = None
    bytes_value: str | None = None


class _Attribute(msgspec.Struct, gc=False):
    key: str
    value: _Value | None = None


class _Array(msgspec.Struct, gc=False):
    values: list[_Value] = []


class _Object(msgspec.Struct, gc=False):
    values: list[_Attribute] = []


class _Event(msgspec.Struct, gc=False, rename="camel"):
    name: str = ""
    time_unix_nano: str | int | None = None
    attributes: list[_Attribute] = []


class _Status(msgspec.Struct, gc=False):
    code: int = 0
    message: str = ""


class _Span(msgspec.Struct, gc=False, rename="camel"):
    trace_id: str
    span_id: str
    parent_span_id: str = ""
    name: str = ""
    kind: int = 0
    start_time_unix_nano: str | int | None = None
    end_time_unix_nano: str | int | None = None
    attributes: list[_Attribute] = []
    events: list[_Event] = []
    status: _Status | None = None


class _Scope(msgspec.Struct, gc=False):
    name: str = ""
    version: str = ""


class _ScopeSpans(msgspec.Struct, gc=False):
    spans: list[_Span] = []
    scope: _Scope | None = None


class _Resource(msgspec.Struct, gc=False):
    attributes: list[_Attribute] = []


class _ResourceSpans(msgspec.Struct, gc=False, rename="camel"):
    scope_spans: list[_ScopeSpans]
    resource: _Resource | None = None


class _Request(msgspec.Struct, gc=False, rename="camel"):
    resource_spans: list[_ResourceSpans]


_decoder = msgspec.json.Decoder(_Request)
_NO_SCOPE: Final = _Scope()
_NO_STATUS: Final = _Status()
_STATUS: Final = tuple(Status)
_KINDS: Final = tuple(Kind)


def accepts(record: Any) -> bool:
    """Whether a record is an export request, or a bare span of one."""
    if not is_object(record):
        return False
    if any(_get(record, key) is not None for key in _REQUESTS):
        return True
    return _get(record, "traceId") is not None and _get(record, "startTimeUnixNano") is not None


_REQUESTS: Final = ("resourceSpans", "resourceLogs", "batches", "scopeSpans", "instrumentationLibrarySpans")


def read_line(line: bytes, where: str) -> list[Item | FaultyRecord]:
    """Return the spans of a line that is strictly OTLP/JSON; anything else raises FaultyRecord at once."""
    try:
        request = _decoder.decode(line)
        spans: list[Item | FaultyRecord] = []
        for resource_spans in request.resource_spans:
            _take(resource_spans, where, spans)
        return spans
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, ValueError, IndexError) as error:
        raise FaultyRecord("not strict", str(error)) from error


def _take(resource_spans: _ResourceSpans, where: str, spans: list[Item | FaultyRecord]) -> None:
    found = resource_spans.resource
    resource = _attributes(found.attributes) if found is not None else {}
    for scope_spans in resource_spans.scope_spans:
        scope = scope_spans.scope or _NO_SCOPE
        spans += [_span(span, scope, resource, where) for span in scope_spans.spans]


def _span(span: _Span, scope: _Scope, resource: Mapping[str, Any], where: str) -> Span:
    trace_id, span_id, parent_id = span.trace_id, span.span_id, span.parent_span_id
    if len(trace_id) != TRACE_DIGITS or len(span_id) != SPAN_DIGITS or span.kind < 0:
        raise ValueError("ids of another kind")
    status, start, end = span.status or _NO_STATUS, span.start_time_unix_nano, span.end_time_unix_nano
    return Span(
        trace_id=trace_id.lower(),
        span_id=span_id.lower(),
        parent_id=parent_id.lower() or None,
        name=span.name,
        kind=_KINDS[span.kind],
        start_ns=int(start) if start else None,
        end_ns=int(end) if end else None,
        status_code=_STATUS[status.code],
        status_message=status.message,
        attributes=_attributes(span.attributes),
        events=tuple([_event(event) for event in span.events]) if span.events else (),
        scope_name=scope.name,
        scope_version=scope.version,
        resource=resource,
        where=where,
    )


def _event(event: _Event) -> Event:
    return Event(event.name, integer(event.time_unix_nano), _attributes(event.attributes))


def _attributes(found: list[_Attribute]) -> dict[str, Any]:
    attributes: dict[str, Any] = {}
    for attribute in found:
        value = attribute.value
        if value is not None:
            text = value.string_value
            attributes[attribute.key] = text if text is not None else _value(value)
    return attributes


def _value(value: _Value) -> Any:
    if value.int_value is not None:
        return int(value.int_value)
    if value.string_value is not None:
        return value.string_value
    if value.bool_value is not None:
        return value.bool_value
    if value.double_value is not None:
        return decimal(value.double_value)
    if value.array_value is not None:
        return [_value(each) for each in value.array_value.values]
    if value.kvlist_value is not None:
        return _attributes(value.kvlist_value.values)
    return _bytes(value.bytes_value) if value.bytes_value is not None else None


def _bytes(text: str) -> bytes | str:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return text


# --- loosely ----------------------------------------------------------------------------------------------


def read_record(record: Any, where: str) -> Iterator[Item | FaultyRecord]:
    """Yield the spans and log records of a parsed request, whatever its writer made of the specification."""
    for key in ("resourceSpans", "batches"):
        for group in listed(_get(record, key)):
            yield from _loose_resource(group, where)
    for group in listed(_get(record, "resourceLogs")):
        yield from _loose_logs(group, where)
    if _get(record, "scopeSpans") is not None or _get(record, "instrumentationLibrarySpans") is not None:
        yield from _loose_resource(record, where)
    if _get(record, "traceId") is not None:
        yield loose_span(record, None, {}, where)


def _loose_resource(group: Any, where: str) -> Iterator[Span | FaultyRecord]:
    resource = _loose_attributes(_get(_get(group, "resource"), "attributes"))
    scopes = [scope for key in ("scopeSpans", "instrumentationLibrarySpans") for scope in listed(_get(group, key))]
    for scope_spans in scopes:
        scope = _get(scope_spans, "scope") or _get(scope_spans, "instrumentationLibrary")
        for span in listed(_get(scope_spans, "spans")):
            yield loose_span(span, scope, resource, where)


def loose_span(span: Any, scope: Any, resource: Mapping[str, Any], where: str) -> Span | FaultyRecord:
    """Return one span of a loosely written request, or what is wrong with it."""
    if not is_object(span):
        return FaultyRecord("not a span", f"a span is an object, not {type(span).__name__}; the others were read")
    trace_id, span_id = hex_id(_get(span, "traceId"), TRACE_DIGITS), hex_id(_get(span, "spanId"), SPAN_DIGITS)
    if not trace_id or not span_id:
        return FaultyRecord("span without id", "traceId and spanId are needed to place it; the other spans were read")
    status = _get(span, "status")
    return Span(
        trace_id=trace_id,
        span_id=span_id,
        parent_id=hex_id(_get(span, "parentSpanId") or "", SPAN_DIGITS) or None,
        name=string(_get(span, "name")),
        kind=span_kind(_get(span, "kind")),
        start_ns=integer(_get(span, "startTimeUnixNano")),
        end_ns=integer(_get(span, "endTimeUnixNano")),
        status_code=status_code(_get(status, "code")),
        status_message=string(_get(status, "message")),
        attributes=_loose_attributes(_get(span, "attributes")),
        events=tuple(_loose_event(event) for event in _mappings(_get(span, "events"))),
        scope_name=string(_get(scope, "name")),
        scope_version=string(_get(scope, "version")),
        resource=resource,
        where=where,
    )


def _loose_event(event: Mapping[str, Any]) -> Event:
    return Event(
        string(_get(event, "name")),
        integer(_get(event, "timeUnixNano")),
        _loose_attributes(_get(event, "attributes")),
    )


def _loose_logs(group: Any, where: str) -> Iterator[LogRecord | FaultyRecord]:
    resource = _loose_attributes(_get(_get(group, "resource"), "attributes"))
    for scope_logs in listed(_get(group, "scopeLogs")):
        scope = _get(scope_logs, "scope")
        for record in listed(_get(scope_logs, "logRecords")):
            if not is_object(record):
                yield FaultyRecord("not a log record", "a log record is an object; the others were read")
                continue
            attributes = _loose_attributes(_get(record, "attributes"))
            yield LogRecord(
                event_name=string(_get(record, "eventName") or attributes.get("event.name")),
                trace_id=hex_id(_get(record, "traceId") or "", TRACE_DIGITS) or None,
                span_id=hex_id(_get(record, "spanId") or "", SPAN_DIGITS) or None,
                time_ns=integer(_get(record, "timeUnixNano")) or integer(_get(record, "observedTimeUnixNano")),
                body=_loose_value(_get(record, "body"), 0),
                attributes=attributes,
                scope_name=string(_get(scope, "name")),
                scope_version=string(_get(scope, "version")),
                resource=resource,
                where=where,
            )


def _get(record: Any, key: str) -> Any:
    """Return a field by its camelCase or snake_case name; None when it is absent or null."""
    if not is_object(record):
        return None
    fields = cast("Mapping[str, Any]", record)
    value = fields.get(key)
    return fields.get(_snake(key)) if value is None else value


def _snake(key: str) -> str:
    return "".join("_" + char.lower() if char.isupper() else char for char in key)


def span_kind(value: Any) -> Kind:
    if isinstance(value, str):
        return Kind.__members__.get(value.upper().removeprefix("SPAN_KIND_"), Kind.UNSPECIFIED)
    return Kind(value) if isinstance(value, int) and 0 <= value < 6 else Kind.UNSPECIFIED


def status_code(value: Any) -> Status:
    if isinstance(value, str):
        return Status.__members__.get(value.upper().removeprefix("STATUS_CODE_"), Status.UNSET)
    return Status(value) if isinstance(value, int) and 0 <= value < 3 else Status.UNSET


def _loose_attributes(found: Any) -> dict[str, Any]:
    if is_object(found):  # some writers give a plain object
        return {str(key): value for key, value in cast("Mapping[Any, Any]", found).items()}
    return {
        pair["key"]: _loose_value(pair.get("value"), 0)
        for pair in _mappings(found)
        if isinstance(pair.get("key"), str) and pair.get("value") is not None
    }


def _mappings(value: Any) -> list[Mapping[str, Any]]:
    return [item for item in listed(value) if is_object(item)]


def _loose_value(value: Any, depth: int) -> Any:
    if depth > _DEEPEST:
        return None
    if not is_object(value):
        return value
    for key, read in _READERS.items():
        inner = _get(value, key)
        if inner is not None:
            return read(inner, depth)
    return None


def _array(inner: Any, depth: int) -> list[Any]:
    return [_loose_value(item, depth + 1) for item in listed(_get(inner, "values"))]


def _object(inner: Any, depth: int) -> dict[str, Any]:
    pairs = _mappings(_get(inner, "values"))
    return {str(pair.get("key")): _loose_value(pair.get("value"), depth + 1) for pair in pairs}


_READERS: Final[Mapping[str, Callable[[Any, int], Any]]] = {
    "stringValue": lambda inner, depth: inner if isinstance(inner, str) else str(inner),
    "intValue": lambda inner, depth: integer(inner),
    "boolValue": lambda inner, depth: bool(inner),
    "doubleValue": lambda inner, depth: decimal(inner),
    "arrayValue": _array,
    "kvlistValue": _object,
    "bytesValue": lambda inner, depth: _bytes(inner) if isinstance(inner, str) else None,
}

OTLP_JSON: Final = Container(name="otlp-json", accepts=accepts, items=read_record, line=read_line)
