"""LangSmith runs: `Run` objects as its client lists and exports them, flat or with `child_runs` inside."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from agentguard.traces.arguments import python_literal
from agentguard.traces.container import Container, FaultyRecord, Items
from agentguard.traces.shapes import NOT_JSON, from_json, is_object
from agentguard.traces.span import Event, Span, Status
from agentguard.traces.values import listed, mapped, moment, string


def accepts(record: Any) -> bool:
    """Whether a record is a run of LangSmith's."""
    return is_object(record) and "run_type" in record and "inputs" in record


def read_record(record: Mapping[str, Any], where: str) -> Items:
    """Yield a span for a run and for each run inside it."""
    stack: list[tuple[Any, Mapping[str, Any]]] = [(record, {})]
    while stack:
        run, parent = stack.pop()
        if not is_object(run):
            yield FaultyRecord("not a run", f"a run is an object, not {type(run).__name__}; the others were read")
            continue
        yield _span(run, parent, where)
        stack += [(child, run) for child in listed(run.get("child_runs"))]


def _span(run: Mapping[str, Any], parent: Mapping[str, Any], where: str) -> Span | FaultyRecord:
    span_id = string(run.get("id"))
    trace_id = string(run.get("trace_id")) or string(parent.get("trace_id")) or string(run.get("session_id"))
    if not span_id or not trace_id:
        return FaultyRecord("span without id", "id and trace_id are needed to place it; the others were read")
    error = string(run.get("error"))
    return Span(
        trace_id=trace_id,
        span_id=span_id,
        parent_id=string(run.get("parent_run_id")) or string(parent.get("id")) or None,
        name=string(run.get("name")),
        start_ns=moment(run.get("start_time")),
        end_ns=moment(run.get("end_time")),
        status_code=Status.ERROR if error else Status.UNSET,
        status_message=error,
        attributes={key: value for key, value in _attributes(run).items() if value is not None},
        events=(Event("exception", None, _exception(error)),) if error else (),
        where=where,
    )


def _attributes(run: Mapping[str, Any]) -> dict[str, Any]:
    extra = mapped(run.get("extra"))
    metadata, outputs = mapped(extra.get("metadata")), run.get("outputs")
    usage = mapped(mapped(outputs).get("usage_metadata"))
    is_tool = run.get("run_type") == "tool"
    attributes = {f"langsmith.metadata.{key}": value for key, value in metadata.items()}
    attributes |= {
        "langsmith.span.kind": run.get("run_type"),
        "langsmith.trace.name": run.get("name"),
        "gen_ai.prompt": _arguments(run.get("inputs")) if is_tool else run.get("inputs"),
        "gen_ai.completion": _result(outputs) if is_tool else outputs,
        "gen_ai.request.model": metadata.get("ls_model_name") or mapped(extra.get("invocation_params")).get("model"),
        "gen_ai.usage.input_tokens": _count(run.get("prompt_tokens"), usage.get("input_tokens")),
        "gen_ai.usage.output_tokens": _count(run.get("completion_tokens"), usage.get("output_tokens")),
    }
    if is_tool:
        attributes["gen_ai.tool.name"] = run.get("name")
        attributes["gen_ai.tool.call.id"] = metadata.get("tool_call_id") or extra.get("tool_call_id")
    return attributes


def _count(told: Any, otherwise: Any) -> int | None:
    # the interface says 0 where it counted nothing
    return next((each for each in (told, otherwise) if isinstance(each, int) and each), None)


def _arguments(inputs: Any) -> Any:
    """LangChain's tracer records the arguments as one text, the repr of a dict."""
    if not is_object(inputs) or inputs.keys() != {"input"} or not isinstance(inputs["input"], str):
        return inputs
    found = from_json(inputs["input"])
    found = python_literal(inputs["input"]) if found is NOT_JSON else found
    return found if is_object(found) else inputs


def _result(outputs: Any) -> Any:
    return outputs["output"] if is_object(outputs) and outputs.keys() == {"output"} else outputs


def _exception(error: str) -> dict[str, str]:
    # "ValueError('sold out')Traceback ...": the repr of the exception, then its traceback
    kind, bracket, rest = error.partition("(")
    if not bracket or not kind.isidentifier():
        return {"exception.message": error}
    message = rest.partition("Traceback (most recent call last)")[0].strip().removesuffix(")").strip("'\"")
    return {"exception.type": kind, "exception.message": message}


LANGSMITH: Final = Container(name="langsmith", accepts=accepts, items=read_record)
