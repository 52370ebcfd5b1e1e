"""Langfuse: `langfuse.observation.*`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentguard.call import Usage
from agentguard.traces.convention import Answered, Asked, Convention, Role
from agentguard.traces.messages import calls_in, parsed, results_in
from agentguard.traces.shapes import is_object, whole

if TYPE_CHECKING:
    from collections.abc import Iterator

    from agentguard.traces.span import Span


def asked(span: Span) -> list[Asked] | None:
    """Return the calls in `langfuse.observation.output` of a generation."""
    output = span.attributes.get("langfuse.observation.output")
    return None if output is None else calls_in(output, "langfuse.observation.output")


def history(span: Span) -> Iterator[tuple[str, Answered]]:
    """Yield the tool results in `langfuse.observation.input` of a generation."""
    yield from results_in(span.attributes.get("langfuse.observation.input"))


def usage(span: Span) -> Usage | None:
    """Return the tokens of `langfuse.observation.usage_details`, whose input leaves out what has a key of its own."""
    told = parsed(span.attributes.get("langfuse.observation.usage_details"))
    if not is_object(told):
        return None
    counts = {key: count for key, value in told.items() if (count := whole(value)) is not None}
    return Usage(
        _summed(counts, "input"), _summed(counts, "output"), counts.get("input_cache_read", counts.get("cache_read"))
    )


def _summed(counts: dict[str, int], kind: str) -> int | None:
    mine = [count for key, count in counts.items() if key == kind or key.startswith(f"{kind}_")]
    return sum(mine) if kind in counts else None


CONVENTION = Convention(
    name="langfuse",
    markers=frozenset({"langfuse.observation.type"}),
    roles={
        "langfuse.observation.type": {
            "tool": Role.TOOL,
            "generation": Role.MODEL,
            "agent": Role.AGENT,
            "chain": Role.CHAIN,
        }
    },
    tool_name=("gen_ai.tool.name",),
    call_id=("gen_ai.tool.call.id",),
    arguments=("langfuse.observation.input",),
    result=("langfuse.observation.output",),
    failed={"langfuse.observation.level": frozenset({"ERROR"})},
    asked=asked,
    history=history,
    answer=("langfuse.observation.output",),
    usage=usage,
    model=("langfuse.observation.model.name", "gen_ai.response.model", "gen_ai.request.model"),
    conversation=("langfuse.session.id", "session.id"),
    input_tokens=("gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens"),
    output_tokens=("gen_ai.usage.output_tokens", "gen_ai.usage.completion_tokens"),
)
