"""Haystack's own tracing: `haystack.agent.*` and `haystack.tool.*`, model requests with their content only."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agentguard.call import Usage
from agentguard.traces.convention import Answered, Asked, Convention, Role
from agentguard.traces.messages import parsed
from agentguard.traces.shapes import is_list, is_object, text, whole

if TYPE_CHECKING:
    from collections.abc import Iterator

    from agentguard.traces.span import Span

_INPUT = "haystack.agent.step.llm.input"
_OUTPUT = "haystack.agent.step.llm.output"


def asked(span: Span) -> list[Asked] | None:
    """Return the `tool_call` parts of the replies of a model span."""
    if _OUTPUT not in span.attributes:
        return None
    return [
        Asked(text(call.get("id")), call["tool_name"], call.get("arguments"), _OUTPUT)
        for call in _parts(_replies(span), "tool_call")
        if isinstance(call.get("tool_name"), str)
    ]


def history(span: Span) -> Iterator[tuple[str, Answered]]:
    """Yield the `tool_call_result` parts of the messages of a model span."""
    told = parsed(span.attributes.get(_INPUT))
    for result in _parts(told.get("messages") if is_object(told) else None, "tool_call_result"):
        origin = result.get("origin")
        call_id = text(origin.get("id")) if is_object(origin) else None
        if call_id is not None:
            yield call_id, Answered(result.get("result"), result.get("error") is True)


def usage(span: Span) -> Usage | None:
    """Return the tokens in the meta data of the replies."""
    told = _meta(span).get("usage")
    return Usage(whole(told.get("prompt_tokens")), whole(told.get("completion_tokens"))) if is_object(told) else None


def model(span: Span) -> str | None:
    """Return the model in the meta data of the replies."""
    return text(_meta(span).get("model"))


def _meta(span: Span) -> dict[str, Any]:
    for reply in _objects(_replies(span)):
        meta = reply.get("meta")
        if is_object(meta):
            return meta
    return {}


def _replies(span: Span) -> Any:
    told = parsed(span.attributes.get(_OUTPUT))
    return told.get("replies") if is_object(told) else None


def _parts(messages: Any, kind: str) -> Iterator[dict[str, Any]]:
    for message in _objects(messages):
        for part in _objects(message.get("content")):
            found = part.get(kind)
            if is_object(found):
                yield found


def _objects(value: Any) -> Iterator[dict[str, Any]]:
    return (each for each in value if is_object(each)) if is_list(value) else iter(())


CONVENTION = Convention(
    name="haystack",
    markers=frozenset({"haystack.tool.name", _INPUT, _OUTPUT, "haystack.agent.max_steps"}),
    present={
        "haystack.tool.name": Role.TOOL,
        _INPUT: Role.MODEL,
        _OUTPUT: Role.MODEL,
        "haystack.agent.max_steps": Role.AGENT,
    },
    tool_name=("haystack.tool.name",),
    arguments=("haystack.agent.step.tool.input",),
    result=("haystack.agent.step.tool.output",),
    failed={"haystack.tool.error": frozenset({True, "True", "true"})},
    tools=("haystack.agent.tools",),
    asked=asked,
    history=history,
    answer=("haystack.agent.output",),
    usage=usage,
    model_inside=model,
)
