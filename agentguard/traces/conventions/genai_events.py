"""OpenTelemetry GenAI content kept in events: `gen_ai.choice`, `gen_ai.tool.message` and the operation details.

Strands writes them as span events with JSON attributes, others as log records with a structured body; the reader hands
both over as events of the span.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agentguard.traces.convention import Answered, Asked
from agentguard.traces.messages import calls_in, parsed, results_in

if TYPE_CHECKING:
    from collections.abc import Iterator

    from agentguard.traces.span import Span

CHOICE = "gen_ai.choice"
TOOL_MESSAGE = "gen_ai.tool.message"
DETAILS = "gen_ai.client.inference.operation.details"
EVENTS = frozenset({CHOICE, TOOL_MESSAGE, DETAILS})


def asked(span: Span) -> list[Asked] | None:
    """Return the calls in the choices of a model span."""
    found: list[Asked] | None = None
    for name, _, attributes in span.events:
        if name == CHOICE:
            found = (found or []) + calls_in(_message(attributes), CHOICE)
        elif name == DETAILS and "gen_ai.output.messages" in attributes:
            found = calls_in(attributes["gen_ai.output.messages"], DETAILS)
    return found


def history(span: Span) -> Iterator[tuple[str, Answered]]:
    """Yield the tool results that a model span was given."""
    for name, _, attributes in span.events:
        if name == DETAILS:
            yield from results_in(attributes.get("gen_ai.input.messages"))
        elif name == TOOL_MESSAGE:
            yield from _answers(attributes)


def arguments(span: Span) -> Any:
    """Return the arguments of a tool span: the content of the message to the tool."""
    for name, _, attributes in span.events:
        if name == TOOL_MESSAGE:
            return attributes.get("content")
        if name == DETAILS and _input_part(attributes) is not None:
            return _input_part(attributes)
    return None


def result(span: Span) -> Any:
    """Return the result of a tool span: the message of its choice, or the content of Claude Code's output event."""
    for name, _, attributes in span.events:
        for key in _RESULTS.get(name, ()):
            if key in attributes:
                return attributes[key]
    return None


_RESULTS = {CHOICE: ("message",), "tool.output": ("content", "output")}


def _input_part(attributes: Any) -> Any:
    calls = calls_in(attributes.get("gen_ai.input.messages"), DETAILS)
    return calls[0].arguments if len(calls) == 1 else None


def _message(attributes: Any) -> Any:
    message = parsed(attributes.get("message"))
    return None if isinstance(message, str) else message


def _answers(attributes: Any) -> Iterator[tuple[str, Answered]]:
    content = parsed(attributes.get("content"))
    found = list(results_in(content))
    if not found and isinstance(attributes.get("id"), str):
        found = [(attributes["id"], Answered(content, is_error=False))]
    yield from found
