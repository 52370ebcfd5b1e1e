"""Claude Code: `claude_code.*` spans, and log events where spans are off.

https://code.claude.com/docs/en/monitoring-usage
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentguard.traces.convention import Convention, Role
from agentguard.traces.records import EVENT_NAME, span_of

if TYPE_CHECKING:
    from agentguard.traces.span import LogRecord, Span

_EVENTS = {
    "claude_code.tool_result": Role.TOOL,
    "tool_result": Role.TOOL,
    "claude_code.api_request": Role.MODEL,
    "api_request": Role.MODEL,
}


def from_log(record: LogRecord) -> Span | None:
    """Return a span for a tool result or a model request that was logged."""
    return span_of(record, _EVENTS, "session.id")


CONVENTION = Convention(
    name="claude_code",
    markers=frozenset({"span.type", EVENT_NAME}),
    roles={
        "span.type": {
            "interaction": Role.AGENT,
            "llm_request": Role.MODEL,
            "tool": Role.TOOL,
            "tool.execution": Role.INSIDE,
        },
        EVENT_NAME: _EVENTS,
    },
    tool_name=("tool_name",),
    call_id=("gen_ai.tool.call.id", "tool_use_id"),
    arguments=("tool_input", "tool_parameters"),
    result=("tool_output",),
    failed={"success": frozenset({False, "false"})},
    refused={"decision": frozenset({"reject"})},
    finish=("stop_reason",),
    model=("gen_ai.response.model", "gen_ai.request.model", "model"),
    conversation=("session.id",),
    input_tokens=("input_tokens",),
    output_tokens=("output_tokens",),
    cached_tokens=("cache_read_tokens",),
    input_besides=("cache_read_tokens", "cache_creation_tokens"),
    cost=("cost_usd",),
    from_log=from_log,
)
