"""Our own spans: `agentguard.*` beside the GenAI names."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

from agentguard import semconv
from agentguard.call import Usage
from agentguard.traces.convention import Convention
from agentguard.traces.shapes import whole

if TYPE_CHECKING:
    from agentguard.traces.span import Span


def usage(span: Span) -> Usage | None:
    """Return what the guard was told of a run's tokens and cost."""
    told = span.attributes
    read, written = whole(told.get(semconv.RUN_INPUT_TOKENS)), whole(told.get(semconv.RUN_OUTPUT_TOKENS))
    cost = told.get(semconv.RUN_COST_USD)
    if read is None and written is None and cost is None:
        return None
    return Usage(read, written, None, Decimal(str(cost)) if isinstance(cost, float) else None)


CONVENTION = Convention(
    name="agentguard",
    markers=frozenset(
        {semconv.RUN_ID, semconv.CALL_SEQ, semconv.CALL_ACTION, semconv.RUN_ENDING, semconv.CALL_FINGERPRINT}
    ),
    refused={semconv.CALL_EXECUTED: frozenset({False, "false"})},
    usage=usage,
    conversation=(semconv.CONVERSATION_ID,),
)
