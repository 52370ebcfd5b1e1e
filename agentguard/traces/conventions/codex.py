"""Codex CLI: `codex.*` log events (openai/codex, pull request 2103)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentguard.traces.convention import Convention, Role
from agentguard.traces.records import EVENT_NAME, span_of

if TYPE_CHECKING:
    from agentguard.traces.span import LogRecord, Span

_EVENTS = {"codex.tool_result": Role.TOOL, "codex.sse_event": Role.MODEL}
_TOKENS = "input_token_count"


def from_log(record: LogRecord) -> Span | None:
    """Return a span for a tool result, or for the event of a streamed model response that has its tokens."""
    streamed = "event.kind" in record.attributes
    return None if streamed and _TOKENS not in record.attributes else span_of(record, _EVENTS, "conversation.id")


CONVENTION = Convention(
    name="codex",
    markers=frozenset({EVENT_NAME}),
    roles={EVENT_NAME: _EVENTS},
    tool_name=("tool_name",),
    call_id=("call_id",),
    arguments=("arguments",),
    result=("output",),
    failed={"success": frozenset({False, "false"})},
    model=("model", "slug"),
    conversation=("conversation.id",),
    input_tokens=(_TOKENS,),
    output_tokens=("output_token_count",),
    cached_tokens=("cached_token_count",),
    from_log=from_log,
)
