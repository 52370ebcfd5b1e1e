"""The OpenAI Agents SDK's own traces: `trace` and `trace.span` objects, one a line, as its exporter sends them.

A request to the Responses endpoint is known by its id and tokens alone: what it asked for is in no record.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from agentguard import semconv
from agentguard.traces.container import Container, FaultyRecord, Items
from agentguard.traces.shapes import is_object
from agentguard.traces.span import Event, Kind, Span, Status
from agentguard.traces.values import mapped, moment, string

_SCOPE: Final = "openai.agents"
_OUTPUT: Final = "gen_ai.output.messages"
_INPUT: Final = "gen_ai.input.messages"


def accepts(record: Any) -> bool:
    """Whether a record is a trace or a span of the SDK's."""
    return is_object(record) and record.get("object") in ("trace", "trace.span")


def read_record(record: Mapping[str, Any], where: str) -> Items:
    """Yield the span that a record is; a trace is the span around those without a parent."""
    span_id = string(record.get("id"))
    trace_id = span_id if record["object"] == "trace" else string(record.get("trace_id"))
    if not span_id or not trace_id:
        yield FaultyRecord("span without id", "id and trace_id are needed to place it")
        return
    if record["object"] == "trace":
        yield Span(
            trace_id=trace_id,
            span_id=trace_id,
            name=string(record.get("workflow_name")),
            kind=Kind.INTERNAL,
            attributes=_workflow(record),
            scope_name=_SCOPE,
            where=where,
        )
        return
    data, error = mapped(record.get("span_data")), mapped(record.get("error"))
    kind = string(data.get("type"))
    if kind != "function" and "tool_name" in mapped(error.get("data")):
        yield _never_found(record, span_id, trace_id, where)
    yield Span(
        trace_id=trace_id,
        span_id=span_id,
        parent_id=string(record.get("parent_id")) or trace_id,
        name=string(data.get("name")) or kind,
        kind=Kind.INTERNAL,
        start_ns=moment(record.get("started_at")),
        end_ns=moment(record.get("ended_at")),
        status_code=Status.ERROR if error else Status.UNSET,
        status_message=_message(error),
        attributes=_known({"agents.span_data.type": kind, **_ATTRIBUTES.get(kind, _other)(data)}),
        events=(Event("exception", None, {"exception.message": _message(error)}),) if error else (),
        scope_name=_SCOPE,
        where=where,
    )


def _never_found(record: Mapping[str, Any], span_id: str, trace_id: str, where: str) -> Span:
    """A tool that does not exist has no span: the error of the turn that asked for it is all there is."""
    error = mapped(record.get("error"))
    return Span(
        trace_id=trace_id,
        span_id=f"{span_id}/tool",
        parent_id=span_id,
        kind=Kind.INTERNAL,
        start_ns=moment(record.get("ended_at")),
        end_ns=moment(record.get("ended_at")),
        status_code=Status.ERROR,
        status_message=_message(error),
        attributes={
            semconv.OPERATION_NAME: semconv.EXECUTE_TOOL,
            semconv.TOOL_NAME: mapped(error.get("data"))["tool_name"],
        },
        events=(Event("exception", None, {"exception.message": _message(error)}),),
        scope_name=_SCOPE,
        where=where,
    )


def _message(error: Mapping[str, Any]) -> str:
    parts = (string(error.get("message")), string(mapped(error.get("data")).get("error")))
    return ": ".join(part for part in parts if part)


def _workflow(record: Mapping[str, Any]) -> dict[str, Any]:
    return _known(
        {
            semconv.OPERATION_NAME: semconv.INVOKE_WORKFLOW,
            semconv.CONVERSATION_ID: record.get("group_id"),
            **{f"metadata.{key}": value for key, value in mapped(record.get("metadata")).items()},
        }
    )


def _function(data: Mapping[str, Any]) -> dict[str, Any]:
    return {
        semconv.OPERATION_NAME: semconv.EXECUTE_TOOL,
        semconv.TOOL_NAME: data.get("name"),
        semconv.TOOL_CALL_ARGUMENTS: data.get("input"),
        semconv.TOOL_CALL_RESULT: data.get("output"),
    }


def _agent(data: Mapping[str, Any]) -> dict[str, Any]:
    return {
        semconv.OPERATION_NAME: semconv.INVOKE_AGENT,
        semconv.AGENT_NAME: data.get("name"),
        "gen_ai.agent.tools": data.get("tools"),
    }


def _generation(data: Mapping[str, Any]) -> dict[str, Any]:
    return {
        **_response(data),
        semconv.REQUEST_MODEL: data.get("model"),
        _INPUT: data.get("input"),
        _OUTPUT: data.get("output"),
    }


def _response(data: Mapping[str, Any]) -> dict[str, Any]:
    usage = mapped(data.get("usage"))
    return {
        semconv.OPERATION_NAME: "chat",
        semconv.USAGE_INPUT_TOKENS: usage.get("input_tokens"),
        semconv.USAGE_OUTPUT_TOKENS: usage.get("output_tokens"),
        semconv.USAGE_CACHE_READ_TOKENS: mapped(usage.get("input_tokens_details")).get("cached_tokens"),
    }


def _other(data: Mapping[str, Any]) -> dict[str, Any]:
    return {"openinference.span.kind": "CHAIN"}


_ATTRIBUTES: Final[Mapping[str, Callable[[Mapping[str, Any]], dict[str, Any]]]] = {
    "function": _function,
    "agent": _agent,
    "generation": _generation,
    "response": _response,
}


def _known(attributes: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in attributes.items() if value is not None}


OPENAI_AGENTS: Final = Container(name="openai-agents", accepts=accepts, items=read_record)
