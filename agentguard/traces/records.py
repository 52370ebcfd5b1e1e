"""Spans made of log records, for programs that tell their tool calls as log events only."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

from agentguard.traces.span import Span

if TYPE_CHECKING:
    from collections.abc import Collection

    from agentguard.traces.span import LogRecord

EVENT_NAME = "event.name"
LOG_TRACE = "log "
"""What the trace id of such a span begins with; the conversation follows."""
_MILLISECOND = 1_000_000


def event_name(record: LogRecord) -> str:
    """Return the event's name: an attribute, else the record's own, else a body that is nothing but the name.

    The attribute is asked first because a logging library may put a place in its own source as the record's name.
    """
    name = record.attributes.get(EVENT_NAME) or record.event_name or record.body
    return name if isinstance(name, str) else ""


def span_of(record: LogRecord, names: Collection[str], conversation: str) -> Span | None:
    """Return a span for a record of one of these events; None for others. `conversation` names its run."""
    name = event_name(record)
    if name not in names:
        return None
    end = record.time_ns or _time(record.attributes.get("event.timestamp"))
    run = record.attributes.get(conversation) or record.trace_id or "unknown"
    return Span(
        trace_id=f"{LOG_TRACE}{run}",
        span_id=f"{record.where or id(record)}:{_within(record, end)}",  # many records may stand in one line
        name=name,
        start_ns=None if end is None else end - _duration(record.attributes.get("duration_ms")),
        end_ns=end,
        attributes={**record.attributes, EVENT_NAME: name},
        scope_name=record.scope_name,
        resource=record.resource,
        where=record.where,
    )


def _within(record: LogRecord, end: int | None) -> Any:
    ids = (record.attributes.get(key) for key in ("call_id", "tool_call_id", "tool_use_id", "request_id"))
    return next((each for each in ids if each), end)


def _time(value: Any) -> int | None:
    try:
        return int(datetime.fromisoformat(str(value)).timestamp() * 1000) * _MILLISECOND
    except (ValueError, OverflowError):
        return None


def _duration(value: Any) -> int:
    try:
        return max(int(float(value) * _MILLISECOND), 0)
    except (TypeError, ValueError, OverflowError):
        return 0
