"""Log records beside spans: content that a span's own record leaves out, and calls that only log events tell."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from agentguard import semconv
from agentguard.traces.conventions import BUILT_IN
from agentguard.traces.conventions.genai_events import EVENTS
from agentguard.traces.messages import parsed
from agentguard.traces.reading import read
from agentguard.traces.records import event_name
from agentguard.traces.shapes import is_object

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from agentguard.traces.span import LogRecord, Span

_CARRIED = EVENTS | {semconv.EVALUATION_RESULT}
_FROM_LOG = tuple(each.from_log for each in BUILT_IN.values() if each.from_log is not None)

Event = tuple[str, int | None, "Mapping[str, Any]"]


def joined_logs(spans: Iterable[Span], logs: Iterable[LogRecord]) -> dict[str, list[Span]]:
    """Return spans by trace: log records of a span become its events, those that stand alone spans of their own."""
    spans, logs = list(spans), list(logs)
    # spans that no convention knows tell of no calls, so that log records are not the same calls told twice
    traced = {span.trace_id for span in spans if read(span) is not None} if logs else set[str]()
    events: dict[tuple[str | None, str], list[Event]] = {}
    alone: list[Span] = []
    for record in logs:
        if record.span_id and event_name(record) in _CARRIED:
            events.setdefault((record.trace_id, record.span_id), []).append(_event(record))
            continue
        if record.trace_id in traced:
            continue
        span = next((made for make in _FROM_LOG if (made := make(record)) is not None), None)
        if span is not None:
            alone.append(span)
    traces: dict[str, list[Span]] = {}
    for span in spans:
        extra = events.get((span.trace_id, span.span_id)) if events else None
        traces.setdefault(span.trace_id, []).append(span if extra is None else _with(span, extra))
    for span in alone:
        traces.setdefault(span.trace_id, []).append(span)
    return traces


def _event(record: LogRecord) -> Event:
    body = parsed(record.body)
    return event_name(record), record.time_ns, {**record.attributes, **(body if is_object(body) else {})}


def _with(span: Span, extra: list[Event]) -> Span:
    return msgspec.structs.replace(span, events=(*span.events, *extra))
