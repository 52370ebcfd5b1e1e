"""Each convention from its own markers."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agentguard.call import ToolResult, Usage
from agentguard.traces.assemble import assemble
from agentguard.traces.span import Event, LogRecord, Span, Status
from agentguard.trajectory import Trajectory

ARGUMENTS = {"n": 1}
TEXT = json.dumps(ARGUMENTS)
OPENAI = json.dumps(
    [{"role": "assistant", "tool_calls": [{"id": "c", "function": {"name": "page", "arguments": TEXT}}]}]
)


def span(id: str, at: int, attributes: dict[str, Any], name: str = "s", **fields: Any) -> Span:
    parent = None if id == "root" else "root"
    times = {"start_ns": at, "end_ns": 100 if parent is None else at + 1}
    return Span(trace_id="t", span_id=id, parent_id=parent, name=name, attributes=attributes, **{**times, **fields})


def run_of(root: dict[str, Any], model: dict[str, Any] | None, tool: dict[str, Any], **fields: Any) -> Trajectory:
    spans = [span("root", 0, root), span("tool", 20, tool, **fields)]
    spans += [span("model", 10, model)] if model is not None else []
    (run,) = assemble(spans)
    return run


CONVENTIONS: dict[str, tuple[dict[str, Any], dict[str, Any] | None, dict[str, Any]]] = {
    "otel_genai": (
        {"gen_ai.operation.name": "invoke_agent", "gen_ai.conversation.id": "s"},
        {"gen_ai.operation.name": "chat", "gen_ai.output.messages": OPENAI, "gen_ai.usage.input_tokens": 9},
        {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": "page",
            "gen_ai.tool.call.id": "c",
            "gen_ai.tool.call.arguments": TEXT,
            "gen_ai.tool.call.result": "7",
        },
    ),
    "openinference": (
        {"openinference.span.kind": "AGENT", "session.id": "s"},
        {
            "openinference.span.kind": "LLM",
            "llm.output_messages.0.message.tool_calls.0.tool_call.id": "c",
            "llm.output_messages.0.message.tool_calls.0.tool_call.function.name": "page",
            "llm.output_messages.0.message.tool_calls.0.tool_call.function.arguments": TEXT,
            "llm.token_count.prompt": 9,
        },
        {"openinference.span.kind": "TOOL", "tool.name": "page", "input.value": TEXT, "output.value": "7"},
    ),
    "openinference, response only": (
        {"openinference.span.kind": "AGENT", "session.id": "s"},
        {
            "openinference.span.kind": "LLM",
            "output.value": OPENAI,
            "output.mime_type": "application/json",
            "llm.token_count.prompt": 9,
        },
        {"openinference.span.kind": "TOOL", "tool.name": "page", "tool.parameters": TEXT, "output.value": "7"},
    ),
    "openllmetry, older": (
        {"traceloop.span.kind": "workflow", "traceloop.association.properties.session_id": "s"},
        {
            "llm.request.type": "chat",
            "gen_ai.completion.0.tool_calls.0.id": "c",
            "gen_ai.completion.0.tool_calls.0.name": "page",
            "gen_ai.completion.0.tool_calls.0.arguments": TEXT,
            "gen_ai.usage.prompt_tokens": 9,
        },
        {
            "traceloop.span.kind": "tool",
            "traceloop.entity.name": "page",
            "traceloop.entity.input": TEXT,
            "traceloop.entity.output": "7",
        },
    ),
    "pydantic_ai, version 1": (
        {"gen_ai.operation.name": "invoke_agent", "logfire.msg": "agent run", "gen_ai.conversation.id": "s"},
        {
            "gen_ai.operation.name": "chat",
            "logfire.msg": "chat",
            "events": json.dumps(
                [
                    {"event.name": "gen_ai.user.message", "content": "go"},
                    {"event.name": "gen_ai.choice", "message": json.loads(OPENAI)[0]},
                ]
            ),
            "gen_ai.usage.input_tokens": 9,
        },
        {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": "page",
            "gen_ai.tool.call.id": "c",
            "tool_arguments": TEXT,
            "tool_response": "7",
        },
    ),
    "langsmith": (
        {"langsmith.span.kind": "chain", "langsmith.metadata.thread_id": "s"},
        {"langsmith.span.kind": "llm", "gen_ai.completion": OPENAI, "gen_ai.usage.input_tokens": 9},
        {
            "langsmith.span.kind": "tool",
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": "page",
            "gen_ai.tool.call.id": "c",
            "gen_ai.prompt": TEXT,
            "gen_ai.completion": "7",
        },
    ),
    "mlflow": (
        {"mlflow.spanType": '"AGENT"', "mlflow.trace.session": "s"},
        {
            "mlflow.spanType": '"CHAT_MODEL"',
            "mlflow.spanOutputs": OPENAI,
            "mlflow.chat.tokenUsage": '{"input_tokens": 9}',
        },
        {
            "mlflow.spanType": '"TOOL"',
            "mlflow.spanFunctionName": "page",
            "mlflow.spanInputs": TEXT,
            "mlflow.spanOutputs": "7",
        },
    ),
    "langfuse": (
        {"langfuse.observation.type": "agent", "langfuse.session.id": "s"},
        {
            "langfuse.observation.type": "generation",
            "langfuse.observation.output": OPENAI,
            "gen_ai.usage.input_tokens": 9,
        },
        {
            "langfuse.observation.type": "tool",
            "gen_ai.tool.name": "page",
            "langfuse.observation.input": TEXT,
            "langfuse.observation.output": "7",
        },
    ),
    "vercel_ai": (
        {"ai.operationId": "ai.generateText", "ai.telemetry.metadata.sessionId": "s"},
        {
            "ai.operationId": "ai.generateText.doGenerate",
            "ai.response.toolCalls": json.dumps([{"toolCallId": "c", "toolName": "page", "args": TEXT}]),
            "ai.usage.promptTokens": 9,
        },
        {
            "ai.operationId": "ai.toolCall",
            "ai.toolCall.name": "page",
            "ai.toolCall.id": "c",
            "ai.toolCall.args": TEXT,
            "ai.toolCall.result": "7",
        },
    ),
    "google_adk, older": (
        {"gen_ai.operation.name": "invoke_agent", "gen_ai.conversation.id": "s"},
        {
            "gen_ai.operation.name": "generate_content",
            "gcp.vertex.agent.llm_response": json.dumps(
                {"content": {"parts": [{"function_call": {"id": "c", "name": "page", "args": ARGUMENTS}}]}}
            ),
            "gen_ai.usage.input_tokens": 9,
        },
        {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": "page",
            "gen_ai.tool.call.id": "c",
            "gcp.vertex.agent.tool_call_args": TEXT,
            "gcp.vertex.agent.tool_response": "7",
        },
    ),
    "claude_code": (
        {"span.type": "interaction", "session.id": "s"},
        {"span.type": "llm_request", "input_tokens": 2, "cache_read_tokens": 4, "cache_creation_tokens": 3},
        {
            "span.type": "tool",
            "tool_name": "page",
            "tool_use_id": "c",
            "tool_input": TEXT,
            "tool_output": "7",
        },
    ),
    "gemini_cli": (
        {"gen_ai.operation.name": "agent_call", "session.id": "s", "gen_ai.conversation.id": "s"},
        {"gen_ai.operation.name": "llm_call", "gen_ai.usage.input_tokens": 9},
        {
            "gen_ai.operation.name": "tool_call",
            "gen_ai.tool.name": "page",
            "gen_ai.tool.call.id": "c",
            "input-json": TEXT,
            "output-json": "7",
        },
    ),
}


@pytest.mark.parametrize("convention", CONVENTIONS)
def test_a_call_of_each_convention_is_read(convention):
    run = run_of(*CONVENTIONS[convention])
    (step,) = run.steps
    assert (step.call.name, step.call.arguments, step.result) == ("page", ARGUMENTS, ToolResult(7))
    assert step.missing == ()
    assert (step.turn, step.executed) == (1, True)


@pytest.mark.parametrize("convention", CONVENTIONS)
def test_tokens_and_conversation_of_each_convention_are_read(convention):
    run = run_of(*CONVENTIONS[convention])
    assert run.usage is not None
    assert run.usage.input_tokens == 9
    assert run.meta["conversation"] == "s"


@pytest.mark.parametrize("convention", ["otel_genai", "openinference", "openllmetry, older", "vercel_ai", "langsmith"])
def test_a_model_span_alone_tells_its_calls(convention):
    root, model, _ = CONVENTIONS[convention]
    assert model is not None
    (run,) = assemble([span("root", 0, root), span("model", 10, model)])
    assert [(step.call.name, step.call.arguments, step.executed) for step in run.steps] == [("page", ARGUMENTS, None)]


FAILURES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "status": ({}, {"status_code": Status.ERROR, "status_message": "boom"}),
    "error.type": ({"error.type": "boom"}, {}),
    "exception": ({}, {"events": (Event("exception", 1, {"exception.message": "boom"}),)}),
    "gen_ai.tool.status": ({"gen_ai.tool.status": "error", "gen_ai.tool.call.result": "boom"}, {}),
    "gen_ai.task.status": ({"traceloop.span.kind": "tool", "gen_ai.task.status": "failure", "error.type": "boom"}, {}),
    "langfuse": (
        {"langfuse.observation.type": "tool", "langfuse.observation.level": "ERROR", "error.type": "boom"},
        {},
    ),
    "mcp": ({"mcp.method.name": "tools/call", "error.type": "boom"}, {}),
}


@pytest.mark.parametrize("way", FAILURES)
def test_a_failure_is_seen_however_it_is_told(way):
    attributes, fields = FAILURES[way]
    tool = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "page", **attributes}
    (step,) = run_of({"gen_ai.operation.name": "invoke_agent"}, None, tool, **fields).steps
    assert step.result == ToolResult("boom", is_error=True)


def test_an_exception_that_an_ok_span_dealt_with_is_no_failure():
    tool = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "page", "gen_ai.tool.call.result": "7"}
    event = Event("exception", 1, {"exception.message": "boom"})
    run = run_of({"gen_ai.operation.name": "invoke_agent"}, None, tool, status_code=Status.OK, events=(event,))
    assert run.steps[0].result == ToolResult(7)


def test_a_call_that_validation_rejected_never_reached_the_tool():
    tool = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "page", "tool_arguments": TEXT}
    tool["pydantic_ai.tool.failure_stage"] = "validation"
    run = run_of({"gen_ai.operation.name": "invoke_agent"}, None, tool, status_code=Status.ERROR)
    assert run.steps[0].executed is False


@pytest.mark.parametrize(
    "name", ["execute_tool page", "tools/call page", "MCP send tools/call page", "page.run", "page.tool", "page"]
)
def test_a_tools_name_is_read_off_the_span_where_no_attribute_has_it(name):
    run = run_of({"openinference.span.kind": "AGENT"}, None, {"openinference.span.kind": "TOOL"}, name=name)
    assert run.steps[0].call.name == "page"


def test_what_span_events_carry_is_read():
    tool = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "page", "gen_ai.tool.call.id": "c"}
    blocks = json.dumps([{"toolUse": {"toolUseId": "c", "name": "page", "input": ARGUMENTS}}])
    (run,) = assemble(
        [
            span("root", 0, {"gen_ai.operation.name": "invoke_agent"}),
            span("m", 10, {"gen_ai.operation.name": "chat"}, events=(Event("gen_ai.choice", 1, {"message": blocks}),)),
            span(
                "tool",
                20,
                tool,
                events=(
                    Event("gen_ai.tool.message", 1, {"content": TEXT}),
                    Event("gen_ai.choice", 2, {"message": '[{"text": "7"}]'}),
                ),
            ),
        ]
    )
    assert [(step.call.arguments, step.call.id, step.result) for step in run.steps] == [(ARGUMENTS, "c", ToolResult(7))]


@pytest.mark.parametrize("as_event", [False, True])
def test_the_operations_details_in_the_log_belong_to_their_span(as_event):
    name = "gen_ai.client.inference.operation.details"
    history = [{"role": "tool", "parts": [{"type": "tool_call_response", "id": "c", "response": "no such tool"}]}]
    details = {"gen_ai.output.messages": json.loads(OPENAI), "gen_ai.input.messages": history}
    events = (Event(name, 1, details),) if as_event else ()
    logs = [] if as_event else [LogRecord(event_name=name, trace_id="t", span_id="m", attributes=details)]
    (run,) = assemble([span("m", 10, {"gen_ai.operation.name": "chat"}, events=events)], logs)
    assert [(step.call.name, step.call.id, step.result) for step in run.steps] == [
        ("page", "c", ToolResult("no such tool"))
    ]


def test_a_tool_message_in_the_log_answers_a_call():
    choice = {"message": json.loads(OPENAI)[0]}
    logs = [
        LogRecord(event_name="gen_ai.choice", trace_id="t", span_id="m", body=choice),
        LogRecord(event_name="gen_ai.tool.message", trace_id="t", span_id="m", body={"id": "c", "content": "seven"}),
    ]
    (run,) = assemble([span("m", 10, {"gen_ai.operation.name": "chat"})], logs)
    assert run.steps[0].result == ToolResult("seven")


def record(name: str, at: int, **attributes: Any) -> LogRecord:
    return LogRecord(event_name=name, time_ns=at, attributes=attributes, where=f"log:{at}")


def test_claude_codes_log_events_are_a_run_of_their_session():
    session = {"session.id": "s", "model": "m"}
    (run,) = assemble(
        [],
        [
            record("claude_code.api_request", 1_000, **session, input_tokens=2, cache_read_tokens=5, output_tokens=1),
            record("claude_code.tool_decision", 1_500, **session, tool_name="Bash"),
            record("claude_code.tool_result", 2_000, **session, tool_name="Bash", tool_input=TEXT, success="true"),
            record("claude_code.tool_result", 3_000, **session, tool_name="Bash", success="false", error="x"),
        ],
    )
    assert [(step.call.name, step.call.arguments) for step in run.steps] == [("Bash", ARGUMENTS), ("Bash", None)]
    assert [step.result is not None and step.result.is_error for step in run.steps] == [False, True]
    assert (run.key.model, run.usage) == ("m", Usage(7, 1, 5))


def test_log_events_of_a_trace_that_has_spans_are_not_counted_again():
    tool = {"span.type": "tool", "tool_name": "Bash", "tool_use_id": "c"}
    again = LogRecord(event_name="claude_code.tool_result", trace_id="t", attributes={"tool_name": "Bash"})
    (run,) = assemble([span("root", 0, {"span.type": "interaction"}), span("tool", 1, tool)], [again])
    assert len(run.steps) == 1


def test_codex_log_events_are_a_run_of_their_conversation():
    shared = {"conversation.id": "s", "model": "m", "event.timestamp": "2026-12-01T10:00:00Z"}
    events = [
        {"event.name": "codex.sse_event", "event.kind": "response.completed", "input_token_count": 9},
        {"event.name": "codex.sse_event", "event.kind": "response.output_text.delta"},
        {"event.name": "codex.tool_result", "call_id": "c", "tool_name": "shell", "arguments": TEXT, "output": "7"},
    ]
    (run,) = assemble([], [LogRecord(attributes={**shared, **each}, where=str(at)) for at, each in enumerate(events)])
    assert [(step.call.name, step.call.arguments, step.result) for step in run.steps] == [
        ("shell", ARGUMENTS, ToolResult(7))
    ]
    assert run.usage == Usage(9)


def test_gemini_log_events_are_a_run_of_their_session():
    called = {"session.id": "s", "function_name": "page", "function_args": TEXT, "success": True, "duration_ms": 5}
    answered = {"session.id": "s", "model": "m", "input_token_count": 9, "output_token_count": 1}
    (run,) = assemble(
        [], [record("gemini_cli.api_response", 1, **answered), record("gemini_cli.tool_call", 2, **called)]
    )
    assert [(step.call.name, step.call.arguments) for step in run.steps] == [("page", ARGUMENTS)]
    assert run.usage == Usage(9, 1)


def test_log_records_of_anything_else_make_no_run():
    assert list(assemble([], [record("other", 1), LogRecord(body={"a": 1})])) == []


@pytest.mark.parametrize("moment", ["yesterday", None])
def test_a_log_event_without_a_readable_time_is_read(moment):
    attributes = {"conversation.id": "s", "tool_name": "x", "event.timestamp": moment, "duration_ms": "long"}
    (run,) = assemble([], [LogRecord(event_name="codex.tool_result", attributes=attributes)])
    assert run.steps[0].started_at is None


def test_a_conversation_in_the_output_tells_calls_that_no_span_does():
    messages = [
        {"role": "user", "content": "before"},
        {"role": "assistant", "tool_calls": [{"id": "old", "function": {"name": "page", "arguments": '{"n": 9}'}}]},
        {"role": "user", "content": "now"},
        {"role": "assistant", "tool_calls": [{"id": "a", "function": {"name": "nope", "arguments": "{}"}}]},
        {"role": "tool", "tool_call_id": "a", "content": "no such tool"},
        {"role": "assistant", "tool_calls": [{"id": "b", "function": {"name": "page", "arguments": TEXT}}]},
    ]
    root = {"openinference.span.kind": "AGENT", "output.value": json.dumps({"messages": messages})}
    run = run_of(root, None, {"openinference.span.kind": "TOOL", "tool.name": "page", "input.value": TEXT})
    assert [(step.call.name, step.call.id, step.executed) for step in run.steps] == [
        ("nope", "a", False),
        ("page", "b", True),
    ]
    assert run.steps[0].result == ToolResult("no such tool")
