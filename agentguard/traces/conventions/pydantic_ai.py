"""Pydantic AI and Logfire: version 1 and 2 names beside the GenAI ones; later versions use the GenAI names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentguard.traces.convention import Answered, Asked, Convention
from agentguard.traces.messages import calls_in, parsed, results_in
from agentguard.traces.shapes import is_list, is_object

if TYPE_CHECKING:
    from collections.abc import Iterator

    from agentguard.traces.span import Span


def asked(span: Span) -> list[Asked] | None:
    """Return the calls in the last message of `events` (version 1) of a model span."""
    events = parsed(span.attributes.get("events"))
    if not is_list(events):
        return None
    choices = [event for event in events if is_object(event) and event.get("event.name") == "gen_ai.choice"]
    return calls_in(choices, "events")


def history(span: Span) -> Iterator[tuple[str, Answered]]:
    """Yield the tool results in `events` (version 1) of a model span."""
    yield from results_in(span.attributes.get("events"))


CONVENTION = Convention(
    name="pydantic_ai",
    markers=frozenset(
        {"logfire.msg", "logfire.json_schema", "tool_arguments", "tool_response", "pydantic_ai.tool.failure_stage"}
    ),
    arguments=("tool_arguments",),
    result=("tool_response",),
    refused={"pydantic_ai.tool.failure_stage": frozenset({"validation"})},
    asked=asked,
    history=history,
    answer=("final_result",),
    agent=("agent_name",),
    model=("model_name",),
    cost=("operation.cost",),
)
