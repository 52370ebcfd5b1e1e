"""Vercel AI SDK: `ai.*`. The outer span of a generation is the run, the inner one (`.do...`) the model request."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentguard.traces.convention import Answered, Asked, Convention, Role
from agentguard.traces.messages import calls_in, results_in

if TYPE_CHECKING:
    from collections.abc import Iterator

    from agentguard.traces.span import Span

_CALLS = "ai.response.toolCalls"


def asked(span: Span) -> list[Asked] | None:
    """Return the calls in `ai.response.toolCalls` of a model span."""
    attributes = span.attributes
    if _CALLS in attributes:
        return calls_in(attributes[_CALLS], _CALLS)
    return [] if "ai.response.text" in attributes or "ai.response.finishReason" in attributes else None


def history(span: Span) -> Iterator[tuple[str, Answered]]:
    """Yield the tool results in `ai.prompt.messages` of a model span."""
    yield from results_in(span.attributes.get("ai.prompt.messages"))


CONVENTION = Convention(
    name="vercel_ai",
    markers=frozenset({"ai.operationId"}),
    roles={
        "ai.operationId": {
            "ai.toolCall": Role.TOOL,
            "ai.generateText.doGenerate": Role.MODEL,
            "ai.streamText.doStream": Role.MODEL,
            "ai.generateObject.doGenerate": Role.MODEL,
            "ai.streamObject.doStream": Role.MODEL,
            "ai.generateText": Role.AGENT,
            "ai.streamText": Role.AGENT,
            "ai.generateObject": Role.AGENT,
            "ai.streamObject": Role.AGENT,
        }
    },
    tool_name=("ai.toolCall.name",),
    call_id=("ai.toolCall.id",),
    arguments=("ai.toolCall.args", "ai.toolCall.input"),
    result=("ai.toolCall.result", "ai.toolCall.output"),
    asked=asked,
    history=history,
    answer=("ai.response.text",),
    finish=("ai.response.finishReason",),
    model=("ai.response.model", "gen_ai.response.model", "ai.model.id"),
    agent=("ai.telemetry.functionId",),
    conversation=("ai.telemetry.metadata.sessionId", "ai.telemetry.metadata.threadId"),
    input_tokens=("ai.usage.inputTokens", "ai.usage.promptTokens", "gen_ai.usage.input_tokens"),
    output_tokens=("ai.usage.outputTokens", "ai.usage.completionTokens", "gen_ai.usage.output_tokens"),
    cached_tokens=("ai.usage.cachedInputTokens",),
)
