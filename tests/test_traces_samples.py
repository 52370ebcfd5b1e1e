"""Spans of instrumentations recorded for this project (`tests/traces/README.md`), each with its golden steps."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from agentguard.call import Usage
from agentguard.traces.assemble import assemble
from agentguard.traces.read import read as read_files
from agentguard.traces.span import Event, Kind, LogRecord, Span, Status
from agentguard.trajectory import Ending, Trajectory

SAMPLES = Path(__file__).parent / "traces"

WEATHER = ("get_weather", {"city": "Zürich"})
WRONG_TYPE = ("book_flight", {"flight_id": "F1", "seats": "two"})
UNKNOWN = ("cancel_flight", {"flight_id": "F1"})
SOLD_OUT = ("book_flight", {"flight_id": "X9", "seats": 2})
BOOKED = ("book_flight", {"flight_id": "F1", "seats": 2})
STORY = [WEATHER, WRONG_TYPE, UNKNOWN, SOLD_OUT, BOOKED]
SHORT_STORY = [WEATHER, UNKNOWN, SOLD_OUT]
PREFIXED = [(f"travel-{name}", arguments) for name, arguments in STORY]

GOLDEN = {
    "agno__openinference": STORY,
    "autogen__openinference": STORY,
    "crewai__openllmetry": STORY,
    "google-adk__latest": STORY,
    "google-adk__openinference": STORY,
    "haystack__native": STORY,
    "langchain__langfuse": STORY,
    "langchain__langsmith": SHORT_STORY,
    "langchain__mlflow": STORY,
    "langchain__openllmetry": SHORT_STORY,
    "llamaindex__openllmetry": SHORT_STORY,
    "semantic-kernel__native": PREFIXED,
    "strands__latest": STORY,
    "vercel-ai__native": STORY,
    "vercel-ai__native-streaming": STORY,
    "vercel-ai__otel-genai": STORY,
}
WITHOUT_TOOL_SPANS = {"crewai__openllmetry"}
CHECKS_NO_TYPES = {"google-adk__latest", "google-adk__openinference", "haystack__native"}
"""The wrongly typed argument reached the tool."""

each_sample = pytest.mark.parametrize("sample", sorted(GOLDEN))


@each_sample
def test_calls_are_those_the_model_asked_for(sample):
    steps = read(sample).steps
    assert [(step.call.name, step.call.arguments) for step in steps] == GOLDEN[sample]


@each_sample
def test_call_ids_are_the_models(sample):
    assert [step.call.id for step in read(sample).steps] == [f"call_{at}_1" for at in range(1, len(GOLDEN[sample]) + 1)]


@each_sample
def test_each_call_is_a_turn_of_its_own(sample):
    steps = read(sample).steps
    assert [step.turn for step in steps] == [*range(1, len(steps) + 1)]


@each_sample
def test_execution_is_never_claimed_wrongly(sample):
    ran = {"get_weather": True, "cancel_flight": False, "book_flight": True}
    for step in read(sample).steps:
        name = step.call.name.removeprefix("travel-")
        really = ran[name] and ((name, step.call.arguments) != WRONG_TYPE or sample in CHECKS_NO_TYPES)
        assert step.executed in (None, really)
        assert (step.executed is None) or sample not in WITHOUT_TOOL_SPANS or not really


@each_sample
def test_what_worked_and_what_failed_is_told_apart(sample):
    steps = {step.call.name.removeprefix("travel-"): step.result for step in read(sample).steps[:1]}
    weather = steps["get_weather"]
    assert weather is not None
    assert (weather.content, weather.is_error) == ({"city": "Zürich", "temp_c": 21.5, "sky": "sunny"}, False)
    sold_out = next(step for step in read(sample).steps if step.call.arguments == SOLD_OUT[1])
    assert sold_out.result is not None
    assert sold_out.result.is_error is (sample not in WITHOUT_TOOL_SPANS)
    assert "sold out" in str(sold_out.result.content)


@each_sample
def test_the_end_is_read_from_evidence(sample):
    assert read(sample).ending is Ending.FINISHED


def test_requests_written_over_one_another_are_not_counted():
    assert read("google-adk__openinference").usage is None


def test_tokens_of_a_crew_are_read_from_its_own_sum():
    usage = read("crewai__openllmetry").usage
    assert usage is not None
    assert (usage.input_tokens, usage.output_tokens, usage.cached_tokens) == (1020, 90, 384)


def read(sample: str) -> Trajectory:
    records = list(load(SAMPLES / f"{sample}.jsonl"))
    logs = SAMPLES / f"{sample}.logs.jsonl"
    records += load(logs) if logs.exists() else []
    spans = [each for each in records if isinstance(each, Span)]
    (found,) = assemble(spans, [each for each in records if isinstance(each, LogRecord)])
    return found


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


@pytest.mark.parametrize(
    "sample", ["haystack__native", "langchain__langfuse", "langchain__mlflow", "vercel-ai__native"]
)
def test_the_model_is_named_without_what_stands_around_it(sample):
    assert read(sample).key.model == "gpt-5"


GEMINI = [
    ("list_directory", {"dir_path": "."}),
    ("read_file", {"file_path": "/nonexistent.txt"}),
    ("nosuch", {"x": 1}),
    ("run_shell_command", {"command": "echo hello"}),
    ("list_directory", {"dir_path": "."}),
]
CODEX = [
    ("exec_command", {"cmd": "echo hello"}),
    ("exec_command", {"cmd": "cat /nonexistent"}),
    ("nosuch", {"x": 1}),
    ("update_plan", {"plan": [{"step": "a", "status": "completed"}]}),
    ("exec_command", {"cmd": "echo hello"}),
]


@pytest.mark.parametrize(
    ("files", "calls"),
    [
        (["gemini-cli__native.jsonl"], GEMINI),
        (["gemini-cli__native.logs.jsonl"], GEMINI),
        (["gemini-cli__native.jsonl", "gemini-cli__native.logs.jsonl"], GEMINI),
        (["codex__native.logs.jsonl"], CODEX),
    ],
)
def test_a_session_of_a_coding_agent_is_one_run_from_spans_or_logs(files, calls):
    (run,) = read_files([str(SAMPLES / name) for name in files])
    assert [(step.call.name, step.call.arguments) for step in run.steps] == calls
    assert [step.turn for step in run.steps] == [1, 2, 3, 4, 5]
    assert run.key.model in ("gemini-2.5-flash", "gpt-5")
    assert run.ending is Ending.FINISHED
    assert run.usage is not None
    assert (run.usage.input_tokens, run.usage.output_tokens) == (600, 120)


def test_calls_that_a_coding_agent_turned_down_are_told_from_those_that_failed():
    (codex,) = read_files([str(SAMPLES / "codex__native.logs.jsonl")])
    assert [step.result is not None and step.result.is_error for step in codex.steps] == [
        False,
        False,
        True,
        True,
        False,
    ]
    (gemini,) = read_files([str(SAMPLES / "gemini-cli__native.jsonl")])
    assert [step.executed for step in gemini.steps] == [True, False, False, True, True]


def test_claude_code_tells_arguments_in_its_logs_and_results_in_its_spans():
    (logs,) = read_files([str(SAMPLES / "claude-code__native.logs.jsonl")])
    assert [(step.call.name, step.call.arguments) for step in logs.steps] == [
        ("Bash", {"command": "echo hello", "description": "say"}),
        ("Read", {"file_path": "/nonexistent.txt"}),
        ("Bash", {"command": "exit 3", "description": "fail"}),
        ("Bash", {"command": "echo hello", "description": "say"}),
    ]
    (spans,) = read_files([str(SAMPLES / "claude-code__native.jsonl")])
    assert [step.call.name for step in spans.steps] == ["Bash", "Read", "Bash", "Bash"]
    told = [step.result for step in spans.steps if step.result is not None]
    assert [result.is_error for result in told] == [False, True, True, False]
    assert (told[0].content, told[2].content) == ("hello", "Shell command failed")
    assert spans.ending is logs.ending is Ending.FINISHED
    assert spans.usage == Usage(660, 120, 60)
    assert logs.usage == Usage(660, 120, 60, Decimal("0.003618"))
