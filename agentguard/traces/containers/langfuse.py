"""Langfuse: traces with their observations, or observations alone, as its interface and its exports give them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from agentguard.traces.container import Container, FaultyRecord, Items
from agentguard.traces.shapes import is_object
from agentguard.traces.span import Event, Span, Status
from agentguard.traces.values import listed, mapped, moment, string

_TYPE: Final = "langfuse.observation.type"
_INPUT: Final = "langfuse.observation.input"
_OUTPUT: Final = "langfuse.observation.output"


def accepts(record: Any) -> bool:
    """Whether a record is a trace of Langfuse's, or one observation."""
    if not is_object(record):
        return False
    return "observations" in record or "parentObservationId" in record or ("traceId" in record and "type" in record)


def read_record(record: Mapping[str, Any], where: str) -> Items:
    """Yield a span for each observation, and one around them for the trace."""
    if "observations" not in record:
        yield _span(record, "", {}, where)
        return
    trace_id = string(record.get("id"))
    yield Span(
        trace_id=trace_id,
        span_id=trace_id,
        name=string(record.get("name")),
        start_ns=moment(record.get("timestamp")),
        attributes=_known(
            {
                _TYPE: "chain",
                _INPUT: record.get("input"),
                _OUTPUT: record.get("output"),
                "langfuse.session.id": record.get("sessionId"),
                **_metadata(record),
            }
        ),
        where=where,
    )
    for observation in listed(record["observations"]):
        yield _span(observation, trace_id, {"langfuse.session.id": record.get("sessionId")}, where)


def _span(observation: Any, trace: str, told: Mapping[str, Any], where: str) -> Span | FaultyRecord:
    if not is_object(observation):
        return FaultyRecord("not an observation", f"an object is wanted, not {type(observation).__name__}")
    trace_id, span_id = string(observation.get("traceId")) or trace, string(observation.get("id"))
    if not trace_id or not span_id:
        return FaultyRecord("span without id", "traceId and id are needed to place it; the others were read")
    failed = observation.get("level") == "ERROR"
    message = string(observation.get("statusMessage"))
    return Span(
        trace_id=trace_id,
        span_id=span_id,
        parent_id=string(observation.get("parentObservationId")) or trace or None,
        name=string(observation.get("name")),
        start_ns=moment(observation.get("startTime")),
        end_ns=moment(observation.get("endTime")),
        status_code=Status.ERROR if failed else Status.UNSET,
        status_message=message,
        attributes=_known({**told, **_attributes(observation)}),
        events=(Event("exception", None, {"exception.message": message}),) if failed and message else (),
        scope_name=string(mapped(mapped(observation.get("metadata")).get("scope")).get("name")),
        resource=mapped(mapped(observation.get("metadata")).get("resourceAttributes")),
        where=where,
    )


def _attributes(observation: Mapping[str, Any]) -> dict[str, Any]:
    usage = {**mapped(observation.get("usage")), **mapped(observation.get("usageDetails"))}
    kind = string(observation.get("type")).lower()
    return {
        **_metadata(observation),
        _TYPE: kind,
        _INPUT: observation.get("input"),
        _OUTPUT: observation.get("output"),
        "langfuse.observation.level": observation.get("level"),
        "langfuse.observation.model.name": observation.get("model") or observation.get("providedModelName"),
        "langfuse.session.id": observation.get("sessionId"),
        "gen_ai.tool.name": observation.get("name") if kind == "tool" else None,
        "gen_ai.usage.input_tokens": usage.get("input"),
        "gen_ai.usage.output_tokens": usage.get("output"),
    }


def _metadata(record: Mapping[str, Any]) -> dict[str, Any]:
    # what arrived as OpenTelemetry keeps its attributes here
    return dict(mapped(mapped(record.get("metadata")).get("attributes")))


def _known(attributes: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in attributes.items() if value is not None}


LANGFUSE: Final = Container(name="langfuse", accepts=accepts, items=read_record)
