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
from agentguard.traces.span import Event, Kind, LogRecord, Span, Status

_DEEPEST: Final = 200


class _Value(msgspec.Struct, gc=False, rename="camel"):
    string_value: str | None = None
    int_value: str | int | None = None
    bool_value: bool | None = None
    double_value: float | str | None = None
    array_value: msgspec.Raw | None = None
    kvlist_value: msgspec.Raw | None = None
    bytes_value: str | None = None


class _Attribute(msgspec.Struct, gc=False):
    key: str
    value: _Value | None = None


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
_STATUS: Final = tuple(Status)
_KINDS: Final = tuple(Kind)


def accepts(record: Any) -> bool:
    """Whether a record is an export request, or a bare span of one."""
    if not isinstance(record, Mapping):
        return False
    return any(_get(record, key) is not None for key in ("resourceSpans", "resourceLogs", "batches", "scopeSpans"))


def read_line(line: bytes, where: str) -> Iterator[Item | FaultyRecord]:
    """Yield the spans of a line that is strictly OTLP/JSON; anything else raises FaultyRecord at once."""
    try:
        request = _decoder.decode(line)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise FaultyRecord("not strict", str(error)) from error
    return _strict(request, where)


def _strict(request: _Request, where: str) -> Iterator[Span]:
    for resource_spans in request.resource_spans:
        found = resource_spans.resource
        resource = _attributes(found.attributes) if found is not None else {}
        for scope_spans in resource_spans.scope_spans:
            scope = scope_spans.scope
            name, version = ("", "") if scope is None else (scope.name, scope.version)
            for span in scope_spans.spans:
                yield _span(span, name, version, resource, where)


def _span(span: _Span, scope: str, version: str, resource: Mapping[str, Any], where: str) -> Span:
    status = span.status
    code = status.code if status is not None else 0
    return Span(
        trace_id=_id(span.trace_id, 32),
        span_id=_id(span.span_id, 16),
        parent_id=_id(span.parent_span_id, 16) or None,
        name=span.name,
        kind=_KINDS[span.kind] if 0 <= span.kind < 6 else Kind.UNSPECIFIED,
        start_ns=_whole(span.start_time_unix_nano),
        end_ns=_whole(span.end_time_unix_nano),
        status_code=_STATUS[code] if 0 <= code < 3 else Status.UNSET,
        status_message=status.message if status is not None else "",
        attributes=_attributes(span.attributes),
        events=tuple(Event(e.name, _whole(e.time_unix_nano), _attributes(e.attributes)) for e in span.events),
        scope_name=scope,
        scope_version=version,
        resource=resource,
        where=where,
    )


def _attributes(found: list[_Attribute]) -> dict[str, Any]:
    attributes: dict[str, Any] = {}
    for attribute in found:
        value = attribute.value
        if value is None:
            continue
        text = value.string_value
        attributes[attribute.key] = text if text is not None else _value(value)
    return attributes


def _value(value: _Value) -> Any:
    if value.int_value is not None:
        return _whole(value.int_value)
    if value.bool_value is not None:
        return value.bool_value
    if value.double_value is not None:
        return _number(value.double_value)
    if value.array_value is not None:
        return _loose_value({"arrayValue": msgspec.json.decode(value.array_value)}, 0)
    if value.kvlist_value is not None:
        return _loose_value({"kvlistValue": msgspec.json.decode(value.kvlist_value)}, 0)
    if value.bytes_value is not None:
        return _bytes(value.bytes_value)
    return ""


def _whole(value: str | float | None) -> int | None:
    if value is None or value == "":
        return None
    try:
        return int(value)
    except (ValueError, OverflowError):
        return None


def _number(value: Any) -> float | None:
    try:
        return float(value)
    except (TypeError, ValueError):
        return None


def _bytes(text: str) -> bytes | str:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return text


def _id(text: Any, digits: int) -> str:
    """Return an id in lower-case hex; base64 is turned into it, anything else stays as it is."""
    if not isinstance(text, str):
        return str(text) if isinstance(text, int) else ""
    if len(text) == digits or not text:
        return text.lower()
    if len(text) == digits + 2 and text.startswith("0x"):
        return text[2:].lower()
    try:
        raw = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return text
    return raw.hex() if len(raw) * 2 == digits else text


# --- loosely ----------------------------------------------------------------------------------------------


def read_record(record: Any, where: str) -> Iterator[Item | FaultyRecord]:
    """Yield the spans and log records of a parsed request, whatever its writer made of the specification."""
    for key in ("resourceSpans", "batches"):
        for group in _list(_get(record, key)):
            yield from _loose_resource(group, where)
    for group in _list(_get(record, "resourceLogs")):
        yield from _loose_logs(group, where)
    if _get(record, "scopeSpans") is not None:
        yield from _loose_resource(record, where)


def _loose_resource(group: Any, where: str) -> Iterator[Span | FaultyRecord]:
    resource = _loose_attributes(_get(_get(group, "resource"), "attributes"))
    scopes = [scope for key in ("scopeSpans", "instrumentationLibrarySpans") for scope in _list(_get(group, key))]
    for scope_spans in scopes:
        scope = _get(scope_spans, "scope") or _get(scope_spans, "instrumentationLibrary")
        for span in _list(_get(scope_spans, "spans")):
            yield loose_span(span, scope, resource, where)


def loose_span(span: Any, scope: Any, resource: Mapping[str, Any], where: str) -> Span | FaultyRecord:
    """Return one span of a loosely written request, or what is wrong with it."""
    if not isinstance(span, Mapping):
        return FaultyRecord("not a span", f"a span is an object, not {type(span).__name__}; the others were read")
    trace_id, span_id = _id(_get(span, "traceId"), 32), _id(_get(span, "spanId"), 16)
    if not trace_id or not span_id:
        return FaultyRecord("span without id", "traceId and spanId are needed to place it; the other spans were read")
    status = _get(span, "status")
    return Span(
        trace_id=trace_id,
        span_id=span_id,
        parent_id=_id(_get(span, "parentSpanId") or "", 16) or None,
        name=_string(_get(span, "name")),
        kind=_kind(_get(span, "kind")),
        start_ns=_loose_time(_get(span, "startTimeUnixNano")),
        end_ns=_loose_time(_get(span, "endTimeUnixNano")),
        status_code=_status(_get(status, "code")),
        status_message=_string(_get(status, "message")),
        attributes=_loose_attributes(_get(span, "attributes")),
        events=tuple(_loose_event(event) for event in _mappings(_get(span, "events"))),
        scope_name=_string(_get(scope, "name")),
        scope_version=_string(_get(scope, "version")),
        resource=resource,
        where=where,
    )


def _loose_event(event: Mapping[str, Any]) -> Event:
    return Event(
        _string(_get(event, "name")),
        _loose_time(_get(event, "timeUnixNano")),
        _loose_attributes(_get(event, "attributes")),
    )


def _loose_logs(group: Any, where: str) -> Iterator[LogRecord | FaultyRecord]:
    resource = _loose_attributes(_get(_get(group, "resource"), "attributes"))
    for scope_logs in _list(_get(group, "scopeLogs")):
        scope = _get(scope_logs, "scope")
        for record in _list(_get(scope_logs, "logRecords")):
            if not isinstance(record, Mapping):
                yield FaultyRecord("not a log record", "a log record is an object; the others were read")
                continue
            attributes = _loose_attributes(_get(record, "attributes"))
            yield LogRecord(
                event_name=_string(_get(record, "eventName") or attributes.get("event.name")),
                trace_id=_id(_get(record, "traceId") or "", 32) or None,
                span_id=_id(_get(record, "spanId") or "", 16) or None,
                time_ns=_loose_time(_get(record, "timeUnixNano")) or _loose_time(_get(record, "observedTimeUnixNano")),
                body=_loose_value(_get(record, "body"), 0),
                attributes=attributes,
                scope_name=_string(_get(scope, "name")),
                scope_version=_string(_get(scope, "version")),
                resource=resource,
                where=where,
            )


def _get(record: Any, key: str) -> Any:
    """Return a field by its camelCase or snake_case name; None when it is absent or null."""
    if not isinstance(record, Mapping):
        return None
    fields = cast("Mapping[str, Any]", record)
    value = fields.get(key)
    return fields.get(_snake(key)) if value is None else value


def _snake(key: str) -> str:
    return "".join("_" + char.lower() if char.isupper() else char for char in key)


def _list(value: Any) -> list[Any]:
    return cast("list[Any]", value) if isinstance(value, list) else []


def _string(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _kind(value: Any) -> Kind:
    if isinstance(value, str):
        return Kind.__members__.get(value.upper().removeprefix("SPAN_KIND_"), Kind.UNSPECIFIED)
    return Kind(value) if isinstance(value, int) and 0 <= value < 6 else Kind.UNSPECIFIED


def _status(value: Any) -> Status:
    if isinstance(value, str):
        return Status.__members__.get(value.upper().removeprefix("STATUS_CODE_"), Status.UNSET)
    return Status(value) if isinstance(value, int) and 0 <= value < 3 else Status.UNSET


def _loose_time(value: Any) -> int | None:
    return _whole(value) if isinstance(value, (str, int, float)) and not isinstance(value, bool) else None


def _loose_attributes(found: Any) -> dict[str, Any]:
    if isinstance(found, Mapping):  # some writers give a plain object
        return {str(key): value for key, value in cast("Mapping[Any, Any]", found).items()}
    return {
        pair["key"]: _loose_value(pair.get("value"), 0)
        for pair in _mappings(found)
        if isinstance(pair.get("key"), str) and pair.get("value") is not None
    }


def _mappings(value: Any) -> list[Mapping[str, Any]]:
    return [item for item in _list(value) if isinstance(item, Mapping)]


def _loose_value(value: Any, depth: int) -> Any:
    if depth > _DEEPEST:
        return None
    if not isinstance(value, Mapping):
        return value
    for key, read in _READERS.items():
        inner = _get(value, key)
        if inner is not None:
            return read(inner, depth)
    return None


def _array(inner: Any, depth: int) -> list[Any]:
    return [_loose_value(item, depth + 1) for item in _list(_get(inner, "values"))]


def _object(inner: Any, depth: int) -> dict[str, Any]:
    pairs = _mappings(_get(inner, "values"))
    return {str(pair.get("key")): _loose_value(pair.get("value"), depth + 1) for pair in pairs}


_READERS: Final[Mapping[str, Callable[[Any, int], Any]]] = {
    "stringValue": lambda inner, depth: inner if isinstance(inner, str) else str(inner),
    "intValue": lambda inner, depth: _loose_time(inner),
    "boolValue": lambda inner, depth: bool(inner),
    "doubleValue": lambda inner, depth: _number(inner),
    "arrayValue": _array,
    "kvlistValue": _object,
    "bytesValue": lambda inner, depth: _bytes(inner) if isinstance(inner, str) else None,
}

OTLP_JSON: Final = Container(name="otlp-json", accepts=accepts, items=read_record, line=read_line)
