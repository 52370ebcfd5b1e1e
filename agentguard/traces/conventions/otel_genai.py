"""OpenTelemetry GenAI: names of 1.27 to 1.41, and the older token names still met.

https://github.com/open-telemetry/semantic-conventions-genai; `gen_ai.completion.N.*` is OpenLLMetry's older form.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentguard import semconv
from agentguard.traces.convention import Answered, Asked, Convention, Role
from agentguard.traces.messages import calls_in, results_in

if TYPE_CHECKING:
    from collections.abc import Iterator

    from agentguard.traces.span import Span

OUTPUT_MESSAGES = "gen_ai.output.messages"
INPUT_MESSAGES = "gen_ai.input.messages"


def asked(span: Span) -> list[Asked] | None:
    """Return the calls in `gen_ai.output.messages`."""
    messages = span.attributes.get(OUTPUT_MESSAGES)
    return None if messages is None else calls_in(messages, OUTPUT_MESSAGES)


def history(span: Span) -> Iterator[tuple[str, Answered]]:
    """Yield the tool results in `gen_ai.input.messages`."""
    messages = span.attributes.get(INPUT_MESSAGES)
    return results_in(messages)


_MODEL = dict.fromkeys(("chat", "generate_content", "text_completion", "llm_call"), Role.MODEL)

CONVENTION = Convention(
    name="otel_genai",
    markers=frozenset({semconv.OPERATION_NAME}),
    roles={
        semconv.OPERATION_NAME: {
            semconv.EXECUTE_TOOL: Role.TOOL,
            semconv.INVOKE_AGENT: Role.AGENT,
            "invoke_workflow": Role.WORKFLOW,
            "create_agent": Role.SETUP,
            **_MODEL,
            "tool_call": Role.TOOL,
            "agent_call": Role.AGENT,
            "user_prompt": Role.WORKFLOW,
        }
    },
    tool_name=(semconv.TOOL_NAME,),
    call_id=(semconv.TOOL_CALL_ID,),
    arguments=(semconv.TOOL_CALL_ARGUMENTS,),
    result=(semconv.TOOL_CALL_RESULT,),
    schema=("gen_ai.tool.json_schema",),
    tools=(semconv.TOOL_DEFINITIONS, "gen_ai.agent.tools"),
    failed={"gen_ai.tool.status": frozenset({"error", "failed", "failure"}), semconv.ERROR_TYPE: frozenset()},
    asked=asked,
    history=history,
    answer=(OUTPUT_MESSAGES,),
    finish=("gen_ai.response.finish_reasons", "gen_ai.response.finish_reason"),
    model=(semconv.RESPONSE_MODEL, semconv.REQUEST_MODEL),
    agent=(semconv.AGENT_NAME,),
    conversation=(semconv.CONVERSATION_ID,),
    input_tokens=(semconv.USAGE_INPUT_TOKENS, "gen_ai.usage.prompt_tokens"),
    output_tokens=(semconv.USAGE_OUTPUT_TOKENS, "gen_ai.usage.completion_tokens"),
    cached_tokens=(semconv.USAGE_CACHE_READ_TOKENS, "gen_ai.usage.cache_read_input_tokens"),
)
