"""Gemini CLI: its own operation names and JSON attributes on spans, and `gemini_cli.*` log events.

https://github.com/google-gemini/gemini-cli/blob/main/docs/cli/telemetry.md
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentguard.traces.convention import Convention, Role
from agentguard.traces.records import EVENT_NAME, span_of

if TYPE_CHECKING:
    from agentguard.traces.span import LogRecord, Span

_EVENTS = {"gemini_cli.tool_call": Role.TOOL, "gemini_cli.api_response": Role.MODEL}


def from_log(record: LogRecord) -> Span | None:
    """Return a span for a tool call or a model response that was logged."""
    return span_of(record, _EVENTS, "session.id")


CONVENTION = Convention(
    name="gemini_cli",
    markers=frozenset({EVENT_NAME, "input-json", "output-json", "gen_ai.tool.call_id"}),
    roles={EVENT_NAME: _EVENTS},
    tool_name=("function_name",),
    call_id=("gen_ai.tool.call_id", "tool_call_id", "call_id"),
    arguments=("function_args", "input-json"),
    result=("output-json",),
    failed={"success": frozenset({False, "false"})},
    refused={"decision": frozenset({"reject"})},
    model=("model",),
    conversation=("session.id",),
    input_tokens=("input_token_count",),
    output_tokens=("output_token_count",),
    cached_tokens=("cached_content_token_count",),
    from_log=from_log,
)
