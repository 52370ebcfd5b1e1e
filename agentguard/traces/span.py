"""The neutral span and log record that every container is read into."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec


class Status(enum.IntEnum):
    """What a span says of its own success, numbered as OTLP numbers it."""

    UNSET = 0
    OK = 1
    ERROR = 2


class Kind(enum.IntEnum):
    """Which side of a call a span is on, numbered as OTLP numbers it."""

    UNSPECIFIED = 0
    INTERNAL = 1
    SERVER = 2
    CLIENT = 3
    PRODUCER = 4
    CONSUMER = 5


class Event(NamedTuple):
    """Something that happened at one moment of a span."""

    name: str
    time_ns: int | None
    """Nanoseconds since the epoch."""
    attributes: Mapping[str, Any]


class Span(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One span of any format, with plain Python values."""

    trace_id: str
    span_id: str
    parent_id: str | None = None
    """None for the root of a trace."""
    name: str = ""
    kind: Kind = Kind.UNSPECIFIED
    start_ns: int | None = None
    """Nanoseconds since the epoch. None when not recorded."""
    end_ns: int | None = None
    status_code: Status = Status.UNSET
    status_message: str = ""
    attributes: Mapping[str, Any] = {}
    events: tuple[Event, ...] = ()
    scope_name: str = ""
    scope_version: str = ""
    resource: Mapping[str, Any] = {}
    where: str = ""
    """Where it was read: "file:line"."""


class LogRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One log record of any format, with plain Python values."""

    event_name: str = ""
    trace_id: str | None = None
    """None when the record stands outside any trace."""
    span_id: str | None = None
    time_ns: int | None = None
    """Nanoseconds since the epoch. None when not recorded."""
    body: Any = None
    attributes: Mapping[str, Any] = {}
    scope_name: str = ""
    scope_version: str = ""
    resource: Mapping[str, Any] = {}
    where: str = ""
