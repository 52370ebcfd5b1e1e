"""OpenInference: flattened messages, `input.value` and `output.value`.

https://github.com/Arize-ai/openinference/blob/main/spec/semantic_conventions.md
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agentguard.traces.convention import Answered, Asked, Convention, Role
from agentguard.traces.messages import calls_in

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from agentguard.traces.span import Span

_OUTPUT = "llm.output_messages."
_INPUT = "llm.input_messages."
_FIRST_OUTPUT = ("llm.output_messages.0.message.role", "llm.output_messages.0.message.content")


def asked(span: Span) -> list[Asked] | None:
    """Return the calls in `llm.output_messages`, else those in the provider's response under `output.value`."""
    attributes = span.attributes
    found = list(_flattened(attributes))
    if found or any(key in attributes for key in _FIRST_OUTPUT):
        return found
    if attributes.get("output.mime_type") != "application/json":
        return None
    return calls_in(attributes.get("output.value"), "output.value")


def history(span: Span) -> Iterator[tuple[str, Answered]]:
    """Yield the tool results in `llm.input_messages`."""
    attributes = span.attributes
    for key, call_id in attributes.items():
        if key.startswith(_INPUT) and key.endswith(".message.tool_call_id"):
            content = attributes.get(key.removesuffix("tool_call_id") + "content")
            yield call_id, Answered(content, is_error=False)


def _flattened(attributes: Mapping[str, Any]) -> Iterator[Asked]:
    prefixes = {
        key.partition(".tool_call.")[0] for key in attributes if key.startswith(_OUTPUT) and ".tool_call." in key
    }
    for prefix in sorted(prefixes, key=_position):
        call = prefix + ".tool_call."
        name = attributes.get(call + "function.name")
        if name:
            arguments = call + "function.arguments"
            yield Asked(attributes.get(call + "id"), name, attributes.get(arguments), arguments)


def _position(prefix: str) -> list[int]:
    return [int(part) for part in prefix.split(".") if part.isdigit()]


_KINDS = {
    "TOOL": Role.TOOL,
    "LLM": Role.MODEL,
    "AGENT": Role.AGENT,
    "CHAIN": Role.CHAIN,
}

CONVENTION = Convention(
    name="openinference",
    markers=frozenset({"openinference.span.kind"}),
    roles={"openinference.span.kind": _KINDS | {kind.lower(): role for kind, role in _KINDS.items()}},
    tool_name=("tool.name", "tool_call.function.name"),
    call_id=("tool_call.id", "tool.id"),
    arguments=("tool_call.function.arguments", "input.value"),
    result=("output.value",),
    schema=("tool.json_schema", "tool.parameters"),
    tools=("smolagents.tools_names",),
    asked=asked,
    history=history,
    answer=("output.value",),
    finish=("llm.finish_reason",),
    model=("llm.model_name",),
    agent=("agent.name", "graph.node.id"),
    conversation=("session.id",),
    input_tokens=("llm.token_count.prompt",),
    output_tokens=("llm.token_count.completion",),
    cached_tokens=("llm.token_count.prompt_details.cache_read",),
    cost=("llm.cost.total",),
)
