"""What a backend says of a trace, in one form for both: asked of Phoenix over REST, of MLflow by its own client."""

from __future__ import annotations

import json
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final, TypeVar

import mlflow
from mlflow.entities import Span as MlflowSpan
from mlflow.entities import Trace as MlflowTrace

from agentguard.semconv import CALL_SEQ, VERDICT, VERDICT_CODE

T = TypeVar("T")

DEADLINE: Final = 60.0
"""Seconds from the export until a backend gives everything back."""


@dataclass(frozen=True, kw_only=True)
class Seen:
    """A span as a backend shows it."""

    name: str
    kind: str
    """The backend's word for it, which chooses how it is drawn."""
    parent: str | None = None
    """The parent's name."""
    given: Any = None
    """What the pane of the input holds."""
    gave: Any = None
    """What the pane of the output holds."""
    status: str = "UNSET"
    message: str = ""
    """Of the status."""
    verdicts: tuple[str, ...] = ()
    """The codes of its `agentguard.verdict` events."""


def phoenix_spans(url: str, project: str, *, count: int) -> list[dict[str, Any]]:
    """Return a project's spans as Phoenix exports them, once there are so many."""
    address = f"{url}/v1/projects/{urllib.parse.quote(project)}/spans?limit=1000"
    return _awaited(lambda: _spans(address), count, len)


def mlflow_traces(url: str, experiment: str, *, count: int) -> list[MlflowTrace]:
    """Return an experiment's traces, once there are so many spans in them."""
    mlflow.set_tracking_uri(url)
    return _awaited(
        lambda: mlflow.search_traces(locations=[experiment], return_type="list"),
        count,
        lambda traces: sum(len(trace.data.spans) for trace in traces),
    )


def get(address: str) -> Any:
    """Return what an address answers in JSON."""
    with urllib.request.urlopen(address, timeout=30) as answer:
        return json.load(answer)


def by_phoenix(spans: Sequence[dict[str, Any]]) -> list[Seen]:
    """Return what Phoenix shows, the root first, then by order of arrival."""
    names = {span["context"]["span_id"]: span["name"] for span in spans}
    ordered = sorted(spans, key=lambda span: _place(span["parent_id"], span["attributes"]))
    return [
        Seen(
            name=span["name"],
            kind=span["span_kind"],
            parent=names[span["parent_id"]] if span["parent_id"] else None,
            given=_value(span["attributes"], "input"),
            gave=_value(span["attributes"], "output"),
            status=span["status_code"],
            message=span["status_message"],
            verdicts=_verdicts((event["name"], event["attributes"]) for event in span["events"]),
        )
        for span in ordered
    ]


def by_mlflow(trace: MlflowTrace) -> list[Seen]:
    """Return what MLflow shows, the root first, then by order of arrival."""
    names = {span.span_id: span.name for span in trace.data.spans}
    ordered = sorted(trace.data.spans, key=lambda span: _place(span.parent_id, span.attributes))
    return [_mlflow_span(span, names) for span in ordered]


def _mlflow_span(span: MlflowSpan, names: dict[str, str]) -> Seen:
    return Seen(
        name=span.name,
        kind=span.span_type,
        parent=names[span.parent_id] if span.parent_id else None,
        given=span.inputs,
        gave=span.outputs,
        status=span.status.status_code.value,
        message=span.status.description,
        verdicts=_verdicts((event.name, event.attributes) for event in span.events),
    )


def _value(attributes: dict[str, Any], pane: str) -> Any:
    value = attributes.get(f"{pane}.value")
    return json.loads(value) if attributes.get(f"{pane}.mime_type") == "application/json" else value


def _verdicts(events: Any) -> tuple[str, ...]:
    return tuple(attributes[VERDICT_CODE] for name, attributes in events if name == VERDICT)


def _spans(address: str) -> list[dict[str, Any]]:
    try:
        return list(get(address)["data"])
    except urllib.error.HTTPError as error:
        if error.code != HTTPStatus.NOT_FOUND:  # the project is made when its first span is stored
            raise
        return []


def _place(parent: str | None, attributes: Mapping[str, Any]) -> tuple[bool, int]:
    # Phoenix keeps microseconds, within which a run and its record of the start begin
    return parent is not None, attributes.get(CALL_SEQ, -1)


def _awaited(ask: Callable[[], T], count: int, size: Callable[[T], int]) -> T:
    until = time.monotonic() + DEADLINE
    while size(answer := ask()) < count:
        if time.monotonic() > until:
            raise TimeoutError(f"{size(answer)} of {count} spans were given back within {DEADLINE:.0f} s")
        time.sleep(0.25)
    return answer
