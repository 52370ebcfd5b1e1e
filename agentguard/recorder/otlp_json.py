"""Ended spans as lines of OTLP/JSON (https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding).

The text is put together by hand: through nested dicts a span costs three times as much, most of it garbage collection.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final, cast

import orjson
from opentelemetry.trace import SpanContext, StatusCode

if TYPE_CHECKING:
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import ReadableSpan
    from opentelemetry.sdk.util.instrumentation import InstrumentationScope

Clean = Callable[[str, str], str]
"""Takes an attribute's key and text; returns the text as it may be written."""

_STATUS: Final = {StatusCode.UNSET: 0, StatusCode.OK: 1, StatusCode.ERROR: 2}
_HAS_IS_REMOTE, _IS_REMOTE = 0x100, 0x200  # SpanFlags of opentelemetry/proto/trace/v1/trace.proto


def encoded(spans: Iterable[ReadableSpan], clean: Clean | None = None) -> bytes:
    """Return one line with all the spans, grouped by resource and scope.

    `clean` is applied to every text of an attribute that the guard did not write: the guard's own are clean already.
    """
    groups: dict[int, tuple[Resource, dict[int, tuple[Any, list[str]]]]] = {}
    for span in spans:
        _, scopes = groups.setdefault(id(span.resource), (span.resource, {}))
        scope = span.instrumentation_scope
        ours = scope is not None and scope.name == "agentguard"
        scopes.setdefault(id(scope), (scope, []))[1].append(_span(span, None if ours else clean))
    told = ",".join(_resource(resource, scopes) for resource, scopes in groups.values())
    return f'{{"resourceSpans":[{told}]}}\n'.encode()


def _resource(resource: Resource, scopes: Mapping[int, tuple[Any, list[str]]]) -> str:
    told = ",".join(f'{{"scope":{{{_scope(scope)}}},"spans":[{",".join(found)}]}}' for scope, found in scopes.values())
    attributes = _attributes(resource.attributes, None)
    return f'{{"resource":{{"attributes":[{attributes}]}},"scopeSpans":[{told}]{_schema(resource.schema_url)}}}'


def _scope(scope: InstrumentationScope | None) -> str:
    if scope is None:
        return ""
    return f'"name":{_text(scope.name)}' + (f',"version":{_text(scope.version)}' if scope.version else "")


def _schema(url: str | None) -> str:
    return f',"schemaUrl":{_text(url)}' if url else ""


def _span(span: ReadableSpan, clean: Clean | None) -> str:
    context, parent = cast("SpanContext", span.context), span.parent
    flags = context.trace_flags | _HAS_IS_REMOTE
    above = ""
    if parent is not None:
        above = f"{parent.span_id:016x}"
        flags |= _IS_REMOTE if parent.is_remote else 0
    return (
        f'{{"traceId":"{context.trace_id:032x}","spanId":"{context.span_id:016x}"{_state(context)},'
        f'"parentSpanId":"{above}","flags":{flags},"name":{_text(span.name)},"kind":{span.kind.value + 1},'
        f'"startTimeUnixNano":"{span.start_time or 0}","endTimeUnixNano":"{span.end_time or 0}",'
        f'"attributes":[{_attributes(span.attributes, clean)}]{_more(span, clean)},"status":{{{_status(span)}}}}}'
    )


def _state(context: SpanContext) -> str:
    return f',"traceState":{_text(context.trace_state.to_header())}' if context.trace_state else ""


def _more(span: ReadableSpan, clean: Clean | None) -> str:
    """Return what most spans do not have."""
    told = f',"droppedAttributesCount":{span.dropped_attributes}' if span.dropped_attributes else ""
    events, links = span.events, span.links
    if events:
        told += f',"events":[{",".join(_event(event, clean) for event in events)}]'
    if span.dropped_events:
        told += f',"droppedEventsCount":{span.dropped_events}'
    if links:
        told += f',"links":[{",".join(_link(link, clean) for link in links)}]'
    return told


def _event(event: Any, clean: Clean | None) -> str:
    attributes = _attributes(event.attributes, clean)
    return f'{{"timeUnixNano":"{event.timestamp}","name":{_text(event.name)},"attributes":[{attributes}]}}'


def _link(link: Any, clean: Clean | None) -> str:
    ids = f'"traceId":"{link.context.trace_id:032x}","spanId":"{link.context.span_id:016x}"'
    return f'{{{ids},"attributes":[{_attributes(link.attributes, clean)}]}}'


def _status(span: ReadableSpan) -> str:
    code, said = _STATUS[span.status.status_code], span.status.description
    if not code:
        return ""
    return f'"message":{_text(said)},"code":{code}' if said is not None else f'"code":{code}'


# ---------------------------------------------------------------- attributes

_heads: dict[str, tuple[str, str, str]] = {}
_MOST_HEADS: Final = 4_096


def _attributes(attributes: Mapping[str, Any] | None, clean: Clean | None) -> str:
    if not attributes:
        return ""
    told: list[str] = []
    for key, value in _plain(attributes).items():
        text, number, other = _heads.get(key) or _head(key)
        kind = cast("Any", type(value))
        if kind is str:
            told.append(f"{text}{_text(value if clean is None else clean(key, value))}}}}}")
        elif kind is int:
            told.append(f'{number}{value}"}}}}')
        else:
            told.append(f"{other}{_value(value, key, clean)}}}")
    return ",".join(told)


def _plain(attributes: Any) -> Mapping[str, Any]:
    # The SDK's mapping looks every key up under Python code; its copy is a plain dict.
    plain: Mapping[str, Any] = attributes.copy() if hasattr(attributes, "copy") else attributes
    return plain


def _head(key: str) -> tuple[str, str, str]:
    start = f'{{"key":{_text(key)},"value":'
    head = (start + '{"stringValue":', start + '{"intValue":"', start)
    if len(_heads) < _MOST_HEADS:
        _heads[key] = head
    return head


def _value(value: Any, key: str, clean: Clean | None) -> str:
    if isinstance(value, bool):
        return '{"boolValue":true}' if value else '{"boolValue":false}'
    if isinstance(value, str):
        return f'{{"stringValue":{_text(value if clean is None else clean(key, value))}}}'
    if isinstance(value, int):
        return f'{{"intValue":"{value:d}"}}'
    if isinstance(value, float):
        return f'{{"doubleValue":{_double(value)}}}'
    return "{}" if value is None else _container(value, key, clean)


def _container(value: Any, key: str, clean: Clean | None) -> str:
    if isinstance(value, (bytes, bytearray)):
        return f'{{"bytesValue":"{base64.b64encode(value).decode()}"}}'
    kind = cast("Any", type(value))
    if issubclass(kind, (list, tuple)):
        return f'{{"arrayValue":{{"values":[{",".join(_value(item, key, clean) for item in value)}]}}}}'
    if issubclass(kind, Mapping):
        return f'{{"kvlistValue":{{"values":[{_attributes(value, clean)}]}}}}'
    return _value(str(value), key, clean)


def _double(value: float) -> str:
    if math.isfinite(value):
        return orjson.dumps(value).decode()
    return '"NaN"' if math.isnan(value) else '"Infinity"' if value > 0 else '"-Infinity"'


def _text(text: str) -> str:
    """Return JSON text; half of a surrogate pair, which JSON in UTF-8 cannot carry, becomes a question mark."""
    try:
        return orjson.dumps(text).decode()
    except TypeError:
        return orjson.dumps(str(text).encode("utf-8", "replace").decode()).decode()
