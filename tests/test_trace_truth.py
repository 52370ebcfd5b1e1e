"""Spans of eleven frameworks against what their models asked for and their tools really ran."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from agentguard.traces.assemble import assemble
from agentguard.traces.span import Event, Kind, LogRecord, Span, Status
from agentguard.trajectory import Ending, Trajectory

TRACES = Path(__file__).resolve().parents[2] / "shared" / "data" / "traces"
RUNS: list[dict[str, Any]] = json.loads((TRACES / "index.json").read_text())["runs"] if TRACES.is_dir() else []

UNRECORDED = {
    "autogen__native__unknown_tool.jsonl": {0},
    "openai-agents__otel-genai__unknown_tool.jsonl": {0},
    "fastmcp__native__nonterm.jsonl": {5},
}
"""Calls that left no trace in any span or log record."""

WITHOUT_ARGUMENTS = {"autogen__native", "fastmcp__native", "google-adk__native"}
WITHOUT_ANY_END = {"autogen__native", "fastmcp__native", "openai-agents__otel-genai"}
"""Neither a model span nor an answer: nothing but an error can say how a run ended."""

pytestmark = pytest.mark.shared
each_run = pytest.mark.parametrize("run", RUNS, ids=[run["file"] for run in RUNS])


def test_the_recorded_spans_are_there(shared_data):
    assert len(RUNS) == 105


@each_run
def test_calls_are_those_the_model_asked_for(run):
    expected = [call["tool"] for call in asked(run)]
    assert [step.call.name for step in read(run).steps] == expected


@each_run
def test_arguments_are_right_or_missing(run):
    steps = read(run).steps
    carried = pair(run) not in WITHOUT_ARGUMENTS
    assert [step.call.arguments for step in steps] == [call["args"] if carried else None for call in asked(run)]
    assert all(("arguments" in step.missing) is not carried for step in steps)


@each_run
def test_call_ids_are_the_models(run):
    for step, call in zip(read(run).steps, asked(run), strict=True):
        assert step.call.id in (None, call["id"])


@each_run
def test_calls_of_one_model_turn_share_a_turn(run):
    turns = [(step.turn, call["turn"]) for step, call in zip(read(run).steps, asked(run), strict=True)]
    assert len(set(turns)) == len({ours for ours, _ in turns}) == len({theirs for _, theirs in turns})


@each_run
def test_execution_is_never_claimed_wrongly(run):
    for step, executed in zip(read(run).steps, really_executed(run), strict=True):
        assert step.executed in (None, executed)


@each_run
def test_errors_are_those_the_tools_raised(run):
    for step, execution in zip(read(run).steps, executions(run), strict=True):
        if execution is not None and step.result is not None:
            assert step.result.is_error is ("error" in execution)


@each_run
def test_results_are_what_the_tools_returned(run):
    for step, execution in zip(read(run).steps, executions(run), strict=True):
        if execution is not None and "error" not in execution and step.result is not None:
            assert step.result.content == execution["result"]


@each_run
def test_every_call_is_a_first_attempt_in_the_main_lane(run):
    assert {(step.attempt, step.lane) for step in read(run).steps} <= {(1, "main")}


@each_run
def test_a_run_that_hit_its_limit_is_not_finished(run):
    ending = read(run).ending
    if run["story"] == "nonterm":
        assert ending in (Ending.HALTED, Ending.UNFINISHED)
    elif pair(run) in WITHOUT_ANY_END:
        assert ending is Ending.UNFINISHED
    elif run["outcome"]["error"] is None:
        assert ending is Ending.FINISHED
    else:
        assert ending in (Ending.FAILED, Ending.HALTED)


@each_run
def test_tokens_are_counted_once(run):
    usage = read(run).usage
    requests = run["model_requests"]
    if usage is not None:
        assert usage.input_tokens == sum(120 + 20 * at for at in range(requests))


def asked(run: dict[str, Any]) -> list[dict[str, Any]]:
    lost = UNRECORDED.get(run["file"], set())
    return [call for at, call in enumerate(run["model_calls"]) if at not in lost]


def pair(run: dict[str, Any]) -> str:
    return run["file"].rpartition("__")[0]


def executions(run: dict[str, Any]) -> list[dict[str, Any] | None]:
    left = [*run["executions"]]
    found: list[dict[str, Any] | None] = []
    for call in asked(run):
        match = next((each for each in left if (each["tool"], each["args"]) == (call["tool"], call["args"])), None)
        if match is not None:
            left.remove(match)
        found.append(match)
    return found


def really_executed(run: dict[str, Any]) -> list[bool]:
    # smolagents runs its final_answer like any tool; the ground truth lists only the three tools of the story
    return [
        execution is not None or call["tool"] == "final_answer"
        for call, execution in zip(asked(run), executions(run), strict=True)
    ]


def read(run: dict[str, Any]) -> Trajectory:
    records = list(load(TRACES / run["file"]))
    if "logs_file" in run:
        records += load(TRACES / run["logs_file"])
    spans = [each for each in records if isinstance(each, Span)]
    logs = [each for each in records if isinstance(each, LogRecord)]
    found = list(assemble(spans, logs))
    assert Counter(type(each) for each in found) == {Trajectory: 1}
    return found[0]


def load(path: Path) -> list[Span | LogRecord]:
    records: list[Span | LogRecord] = []
    for line in path.read_text().splitlines():
        batch = json.loads(line)
        for resource in [*batch.get("resourceSpans", ()), *batch.get("resourceLogs", ())]:
            told = attributes(resource["resource"])
            for scope in [*resource.get("scopeSpans", ()), *resource.get("scopeLogs", ())]:
                records += [span(each, scope, told) for each in scope.get("spans", ())]
                records += [log(each, scope, told) for each in scope.get("logRecords", ())]
    return records


def span(record: dict[str, Any], scope: dict[str, Any], resource: dict[str, Any]) -> Span:
    status = record.get("status", {})
    return Span(
        trace_id=record["traceId"],
        span_id=record["spanId"],
        parent_id=record.get("parentSpanId") or None,
        name=record["name"],
        kind=Kind(record["kind"]),
        start_ns=int(record["startTimeUnixNano"]),
        end_ns=int(record["endTimeUnixNano"]),
        status_code=Status(status.get("code", 0)),
        status_message=status.get("message", ""),
        attributes=attributes(record),
        events=tuple(
            Event(each["name"], int(each["timeUnixNano"]), attributes(each)) for each in record.get("events", ())
        ),
        scope_name=scope["scope"].get("name", ""),
        resource=resource,
    )


def log(record: dict[str, Any], scope: dict[str, Any], resource: dict[str, Any]) -> LogRecord:
    return LogRecord(
        event_name=record.get("eventName", ""),
        trace_id=record.get("traceId") or None,
        span_id=record.get("spanId") or None,
        time_ns=int(record.get("timeUnixNano") or 0),
        body=value(record.get("body") or {}),
        attributes=attributes(record),
        scope_name=scope["scope"].get("name", ""),
        resource=resource,
    )


def attributes(record: dict[str, Any]) -> dict[str, Any]:
    return {each["key"]: value(each["value"]) for each in record.get("attributes", ())}


def value(tagged: dict[str, Any]) -> Any:
    for kind, found in tagged.items():
        if kind == "intValue":
            return int(found)
        if kind == "arrayValue":
            return [value(each) for each in found.get("values", ())]
        if kind == "kvlistValue":
            return {each["key"]: value(each["value"]) for each in found.get("values", ())}
        return found
    return None
