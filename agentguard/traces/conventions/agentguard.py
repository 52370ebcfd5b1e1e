"""Our own spans: `agentguard.*` beside the GenAI names."""

from __future__ import annotations

from agentguard import semconv
from agentguard.traces.convention import Convention

CONVENTION = Convention(
    name="agentguard",
    markers=frozenset(
        {semconv.RUN_ID, semconv.CALL_SEQ, semconv.CALL_ACTION, semconv.RUN_ENDING, semconv.CALL_FINGERPRINT}
    ),
    refused={semconv.CALL_EXECUTED: frozenset({False, "false"})},
    conversation=(semconv.CONVERSATION_ID,),
)
