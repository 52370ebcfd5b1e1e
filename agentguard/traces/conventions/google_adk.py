"""Google's Agent Development Kit: `gcp.vertex.agent.*` beside the GenAI names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentguard.traces.convention import Answered, Asked, Convention
from agentguard.traces.messages import calls_in, results_in

if TYPE_CHECKING:
    from collections.abc import Iterator

    from agentguard.traces.span import Span

_RESPONSE = "gcp.vertex.agent.llm_response"
_EMPTY = ("{}", "", "<not serializable>")


def asked(span: Span) -> list[Asked] | None:
    """Return the calls in `gcp.vertex.agent.llm_response` of a model span."""
    output = span.attributes.get(_RESPONSE)
    return None if output is None or output in _EMPTY else calls_in(output, _RESPONSE)


def history(span: Span) -> Iterator[tuple[str, Answered]]:
    """Yield the tool results in `gcp.vertex.agent.llm_request` of a model span."""
    yield from results_in(span.attributes.get("gcp.vertex.agent.llm_request"))


CONVENTION = Convention(
    name="google_adk",
    markers=frozenset({"gcp.vertex.agent.event_id", "gcp.vertex.agent.tool_call_args", _RESPONSE}),
    arguments=("gcp.vertex.agent.tool_call_args",),
    result=("gcp.vertex.agent.tool_response",),
    asked=asked,
    history=history,
    conversation=("gcp.vertex.agent.session_id",),
)
