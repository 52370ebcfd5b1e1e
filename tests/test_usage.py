"""Model use read from other instrumentations' spans, counted once and charged to the run that asked."""

from __future__ import annotations

import threading
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import orjson
import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.trace import NoOpTracerProvider, Tracer
from structlog.testing import capture_logs

from agentguard import Guard, Usage, current_run
from agentguard import usage as usage_module
from agentguard.usage import UsageProcessor, usage_of

CHAT = {
    "gen_ai.operation.name": "chat",
    "gen_ai.request.model": "gpt-4o",
    "gen_ai.usage.input_tokens": 100,
    "gen_ai.usage.output_tokens": 10,
}


def traced(charge: Callable[[Usage, str | None], None]) -> Tracer:
    provider = TracerProvider()
    provider.add_span_processor(UsageProcessor(charge))
    return provider.get_tracer("framework")


def charged(make: Callable[[Tracer], Any]) -> list[tuple[Usage, str | None]]:
    found: list[tuple[Usage, str | None]] = []
    make(traced(lambda usage, model: found.append((usage, model))))
    return found


def test_a_model_span_is_charged():
    assert charged(lambda tracer: tracer.start_span("chat", attributes=CHAT).end()) == [(Usage(100, 10), "gpt-4o")]


def test_what_is_set_while_the_span_is_open_counts():
    def make(tracer: Tracer) -> None:
        span = tracer.start_span("chat", attributes={"gen_ai.request.model": "gpt-4o"})
        span.set_attribute("gen_ai.response.model", "gpt-4o-2024-08-06")
        span.set_attribute("gen_ai.usage.input_tokens", 7)
        span.end()

    assert charged(make) == [(Usage(7), "gpt-4o-2024-08-06")]


def test_a_total_on_the_root_is_not_counted_twice():
    def make(tracer: Tracer) -> None:
        total = {"gen_ai.operation.name": "invoke_agent", "gen_ai.usage.input_tokens": 200}
        with tracer.start_as_current_span("agent", attributes=total), tracer.start_as_current_span("turn"):
            tracer.start_span("chat", attributes=CHAT).end()
            tracer.start_span("chat", attributes=CHAT).end()

    assert charged(make) == [(Usage(100, 10), "gpt-4o")] * 2


def test_a_total_counts_where_nothing_below_told_it():
    def make(tracer: Tracer) -> None:
        with tracer.start_as_current_span("agent", attributes={"gen_ai.usage.input_tokens": 200}):
            tracer.start_span("tool").end()

    assert charged(make) == [(Usage(200), None)]


def test_two_instrumentations_of_one_call_count_once():
    def make(tracer: Tracer) -> None:
        with tracer.start_as_current_span("framework", attributes=CHAT):
            tracer.start_span("provider", attributes={**CHAT, "gen_ai.response.model": "gpt-4o-mini"}).end()

    assert charged(make) == [(Usage(100, 10), "gpt-4o-mini")]


def test_spans_without_tokens_are_not_charged():
    assert charged(lambda tracer: tracer.start_span("tool", attributes={"gen_ai.tool.name": "x"}).end()) == []


@pytest.mark.parametrize(
    ("attributes", "usage"),
    [
        ({"llm.token_count.prompt": 5, "llm.token_count.completion": 2}, Usage(5, 2)),
        ({"llm.token_count.prompt": 5, "llm.token_count.prompt_details.cache_read": 3}, Usage(5, None, 3)),
        ({"gen_ai.usage.prompt_tokens": 5, "gen_ai.usage.completion_tokens": 2}, Usage(5, 2)),
        ({"gen_ai.usage.input_tokens": 5, "gen_ai.usage.prompt_tokens": 5}, Usage(5)),
        ({"gen_ai.usage.input_tokens": 5, "gen_ai.usage.cache_read.input_tokens": 64}, Usage(69, None, 64)),
        ({"gen_ai.usage.output_tokens": 2}, Usage(None, 2)),
        ({"gen_ai.usage.input_tokens": 0}, Usage(0)),
        ({"gen_ai.usage.input_tokens": "5"}, None),
        ({"gen_ai.usage.input_tokens": True}, None),
        ({"gen_ai.usage.input_tokens": -1}, None),
        ({"gen_ai.usage.cache_read.input_tokens": 5}, None),
        ({"gen_ai.usage.input_tokens": 5, "operation.cost": 0.25}, Usage(5, None, None, Decimal("0.25"))),
        ({"gen_ai.usage.input_tokens": 5, "llm.cost.total": "0.5"}, Usage(5, None, None, Decimal("0.5"))),
        ({"gen_ai.usage.input_tokens": 5, "operation.cost": float("nan")}, Usage(5)),
        ({"gen_ai.usage.input_tokens": 5, "operation.cost": "much"}, Usage(5)),
        ({"gen_ai.usage.input_tokens": 5, "operation.cost": True}, Usage(5)),
        ({}, None),
    ],
)
def test_every_instrumentations_names_are_read(attributes: dict[str, Any], usage: Usage | None):
    assert usage_of(attributes) == usage


def charge_current(usage: Usage, model: str | None) -> None:
    run = current_run()
    if run is not None:
        run.charge(usage, model=model)


def test_the_run_that_asked_is_charged():
    tracer = traced(charge_current)
    guard = Guard(tracer_provider=NoOpTracerProvider(), quiet=True)
    with guard.run(model="m", harness="h") as run:
        tracer.start_span("chat", attributes=CHAT).end()
    tracer.start_span("chat", attributes=CHAT).end()
    assert run.trajectory.usage == Usage(100, 10, None, Decimal("0.00035"))


def test_a_stream_that_ends_elsewhere_is_charged_where_it_began():
    tracer = traced(charge_current)
    guard = Guard(tracer_provider=NoOpTracerProvider(), quiet=True)
    with guard.run(model="m", harness="h") as run:
        span = tracer.start_span("chat", attributes=CHAT)
    thread = threading.Thread(target=span.end)
    thread.start()
    thread.join()
    assert run.trajectory.usage is not None
    assert run.trajectory.usage.input_tokens == 100


def test_a_charge_that_fails_is_logged_once():
    def refuse(usage: Usage, model: str | None) -> None:
        raise RuntimeError("no")

    tracer = traced(refuse)
    with capture_logs() as logs:
        tracer.start_span("chat", attributes=CHAT).end()
        tracer.start_span("chat", attributes=CHAT).end()
    assert [(entry["event"], entry["error"]) for entry in logs] == [("agentguard.charge_failed", "RuntimeError: no")]


def test_spans_that_never_end_are_forgotten(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(usage_module, "_MOST_OPEN", 2)
    processor = UsageProcessor(lambda usage, model: None)
    provider = TracerProvider()
    provider.add_span_processor(processor)
    kept = [provider.get_tracer("t").start_span("s") for _ in range(9)]
    assert len(processor._open) == 2
    assert len(kept) == 9


@pytest.mark.shared
@pytest.mark.parametrize("story", ["clean", "loop", "fail_recover", "parallel"])
def test_recorded_spans_of_real_instrumentations_add_up(shared_data: Any, story: str):
    """Play recorded spans in their order of ending through the processor; the scripted model says what is true."""
    for path in sorted((shared_data / "traces").glob(f"*__{story}.jsonl")):
        spans = [
            span
            for line in path.read_bytes().splitlines()
            for resource in orjson.loads(line)["resourceSpans"]
            for scope in resource["scopeSpans"]
            for span in scope["spans"]
        ]
        model_spans = [span for span in spans if _is_model_call(span)]
        if not model_spans:
            continue
        expected = sum(_attribute(span, "input") for span in model_spans)
        assert _played(spans) == expected, path.name


def _is_model_call(span: dict[str, Any]) -> bool:
    told = {each["key"]: each["value"] for each in span["attributes"]}
    kind = told.get("openinference.span.kind", told.get("gen_ai.operation.name", {})).get("stringValue")
    return kind in {"LLM", "chat", "generate_content", "text_completion"} and _attribute(span, "input") > 0


def _attribute(span: dict[str, Any], which: str) -> int:
    names = {"input": ("gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens", "llm.token_count.prompt")}[which]
    told = {each["key"]: each["value"] for each in span["attributes"]}
    return next((int(told[name]["intValue"]) for name in names if name in told), 0)


def _played(spans: list[dict[str, Any]]) -> int:
    total: list[int] = []
    tracer = traced(lambda usage, model: total.append(usage.input_tokens or 0))
    by_id = {span["spanId"]: span for span in spans}
    opened: dict[str, trace.Span] = {}

    def opened_span(span_id: str) -> trace.Span:
        if span_id not in opened:
            span = by_id[span_id]
            parent = span.get("parentSpanId")
            above = trace.set_span_in_context(opened_span(parent)) if parent in by_id else None
            told = {each["key"]: _plain(each["value"]) for each in span["attributes"]}
            opened[span_id] = tracer.start_span(span["name"], above, attributes=told)
        return opened[span_id]

    for span in spans:
        opened_span(span["spanId"])
    for span in sorted(spans, key=lambda each: int(each["endTimeUnixNano"])):
        opened_span(span["spanId"]).end()
    return sum(total)


def _plain(value: dict[str, Any]) -> Any:
    return int(value["intValue"]) if "intValue" in value else str(next(iter(value.values()), ""))
