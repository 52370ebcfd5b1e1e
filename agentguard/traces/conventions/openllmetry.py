"""OpenLLMetry (Traceloop): `traceloop.*`, and the flattened prompts and completions of its older versions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agentguard.traces.convention import Answered, Asked, Convention, Role

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from agentguard.traces.span import Span

_COMPLETION = "gen_ai.completion."
_PROMPT = "gen_ai.prompt."


def asked(span: Span) -> list[Asked] | None:
    """Return the calls in `gen_ai.completion.N.tool_calls.M.*`."""
    attributes = span.attributes
    if not any(key.startswith(_COMPLETION) for key in attributes):
        return None
    return list(_flattened(attributes))


def history(span: Span) -> Iterator[tuple[str, Answered]]:
    """Yield the tool results in `gen_ai.prompt.N.*`."""
    attributes = span.attributes
    for key, call_id in attributes.items():
        if key.startswith(_PROMPT) and key.endswith(".tool_call_id"):
            yield call_id, Answered(attributes.get(key.removesuffix("tool_call_id") + "content"), is_error=False)


def _flattened(attributes: Mapping[str, Any]) -> Iterator[Asked]:
    names = [
        key for key in attributes if key.startswith(_COMPLETION) and ".tool_calls." in key and key.endswith(".name")
    ]
    for key in sorted(names, key=_position):
        stem = key.removesuffix("name")
        arguments = stem + "arguments"
        yield Asked(attributes.get(stem + "id"), attributes[key], attributes.get(arguments), arguments)


def _position(key: str) -> list[int]:
    return [int(part) for part in key.split(".") if part.isdigit()]


CONVENTION = Convention(
    name="openllmetry",
    markers=frozenset(
        {
            "traceloop.span.kind",
            "traceloop.entity.name",
            "tool.arguments",
            "llm.request.type",
            "gen_ai.completion.0.role",
            "gen_ai.completion.0.finish_reason",
            "gen_ai.completion.0.content",
            "gen_ai.completion.0.tool_calls.0.name",
        }
    ),
    roles={
        "traceloop.span.kind": {
            "tool": Role.TOOL,
            "agent": Role.AGENT,
            "workflow": Role.WORKFLOW,
            "task": Role.CHAIN,
        },
        "llm.request.type": dict.fromkeys(("chat", "completion"), Role.MODEL),
        "gen_ai.completion.0.role": {"assistant": Role.MODEL},
    },
    # the LlamaIndex instrumentation marks a tool by nothing else
    present={"tool.arguments": Role.TOOL},
    tool_name=("tool.name", "traceloop.entity.name"),
    arguments=("tool.arguments", "traceloop.entity.input"),
    result=("traceloop.entity.output",),
    failed={"gen_ai.task.status": frozenset({"error", "failed", "failure"})},
    asked=asked,
    history=history,
    answer=("traceloop.entity.output", "gen_ai.completion.0.content"),
    finish=("gen_ai.completion.0.finish_reason",),
    model=("gen_ai.response.model", "gen_ai.request.model"),
    agent=("gen_ai.agent.name", "traceloop.entity.name"),
    conversation=(
        "traceloop.association.properties.session_id",
        "traceloop.association.properties.thread_id",
        "traceloop.association.properties.conversation_id",
    ),
    input_tokens=("gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens"),
    output_tokens=("gen_ai.usage.output_tokens", "gen_ai.usage.completion_tokens"),
    cached_tokens=("gen_ai.usage.cache_read.input_tokens", "gen_ai.usage.cache_read_input_tokens"),
)
