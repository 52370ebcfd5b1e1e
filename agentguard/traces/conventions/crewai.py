"""CrewAI under OpenLLMetry: `crewai.*`, conversation and tokens as Python reprs on the crew's span."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentguard.call import Usage
from agentguard.traces.arguments import python_literal
from agentguard.traces.convention import Convention
from agentguard.traces.shapes import is_object, whole

if TYPE_CHECKING:
    from agentguard.traces.span import Span


def usage(span: Span) -> Usage | None:
    """Return the tokens of `crewai.crew.usage_metrics`."""
    text = span.attributes.get("crewai.crew.usage_metrics")
    told = python_literal(text) if isinstance(text, str) else text
    if not is_object(told):
        return None
    return Usage(
        whole(told.get("prompt_tokens")),
        whole(told.get("completion_tokens")),
        whole(told.get("cached_prompt_tokens")),
    )


CONVENTION = Convention(
    name="crewai",
    markers=frozenset({"crewai.crew.tasks_output", "crewai.agent.tools", "crewai.crew.usage_metrics"}),
    tools=("crewai.agent.tools",),
    answer=("crewai.crew.result", "crewai.crew.tasks_output"),
    usage=usage,
)
