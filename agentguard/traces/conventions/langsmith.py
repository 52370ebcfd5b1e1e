"""LangSmith's OpenTelemetry export: `langsmith.*`, inputs and outputs as `gen_ai.prompt` and `gen_ai.completion`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentguard.traces.convention import Answered, Asked, Convention, Role
from agentguard.traces.messages import calls_in, results_in

if TYPE_CHECKING:
    from collections.abc import Iterator

    from agentguard.traces.span import Span


def asked(span: Span) -> list[Asked] | None:
    """Return the calls in `gen_ai.completion` of a model span."""
    output = span.attributes.get("gen_ai.completion")
    return None if output is None else calls_in(output, "gen_ai.completion")


def history(span: Span) -> Iterator[tuple[str, Answered]]:
    """Yield the tool results in `gen_ai.prompt` of a model span."""
    yield from results_in(span.attributes.get("gen_ai.prompt"))


CONVENTION = Convention(
    name="langsmith",
    markers=frozenset({"langsmith.span.kind", "langsmith.trace.name", "langsmith.span.id"}),
    roles={
        "langsmith.span.kind": {
            "tool": Role.TOOL,
            "llm": Role.MODEL,
            "chain": Role.CHAIN,
            "agent": Role.AGENT,
        }
    },
    arguments=("gen_ai.prompt",),
    result=("gen_ai.completion",),
    asked=asked,
    history=history,
    answer=("gen_ai.completion",),
    model=("gen_ai.response.model", "gen_ai.request.model", "langsmith.metadata.ls_model_name"),
    agent=("langsmith.metadata.lc_agent_name",),
    conversation=("langsmith.metadata.thread_id", "langsmith.trace.session_id"),
    input_tokens=("gen_ai.usage.input_tokens",),
    output_tokens=("gen_ai.usage.output_tokens",),
    cached_tokens=("gen_ai.usage.cache_read.input_tokens", "gen_ai.usage.input_token_details.cache_read"),
)
