"""MLflow's own attributes on exported spans."""

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
    """Return the calls in `mlflow.spanOutputs` of a model span."""
    output = span.attributes.get("mlflow.spanOutputs")
    return None if output is None else calls_in(output, "mlflow.spanOutputs")


def history(span: Span) -> Iterator[tuple[str, Answered]]:
    """Yield the tool results in `mlflow.spanInputs` of a model span."""
    yield from results_in(span.attributes.get("mlflow.spanInputs"))


def usage(span: Span) -> Usage | None:
    """Return the tokens of `mlflow.chat.tokenUsage`, or of the trace where its root carries them."""
    told = parsed(span.attributes.get("mlflow.chat.tokenUsage") or span.attributes.get("mlflow.trace.tokenUsage"))
    if not is_object(told):
        return None
    read, written, cached = (
        whole(told.get(key)) for key in ("input_tokens", "output_tokens", "cache_read_input_tokens")
    )
    return Usage(read, written, cached)


_KINDS = {
    "TOOL": Role.TOOL,
    "CHAT_MODEL": Role.MODEL,
    "LLM": Role.MODEL,
    "AGENT": Role.AGENT,
    "CHAIN": Role.CHAIN,
    "WORKFLOW": Role.WORKFLOW,
}

CONVENTION = Convention(
    name="mlflow",
    markers=frozenset({"mlflow.spanType", "mlflow.spanInputs", "mlflow.spanOutputs"}),
    # an attribute of MLflow's is JSON: the kind may stand in quotes of its own
    roles={"mlflow.spanType": _KINDS | {f'"{kind}"': role for kind, role in _KINDS.items()}},
    tool_name=("mlflow.spanFunctionName",),
    arguments=("mlflow.spanInputs",),
    result=("mlflow.spanOutputs",),
    asked=asked,
    usage=usage,
    history=history,
    answer=("mlflow.spanOutputs",),
    model=("mlflow.llm.model",),
    conversation=("mlflow.trace.session",),
)
