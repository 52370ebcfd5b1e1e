"""Every attribute, event and span name that is written or read, in one place.

The GenAI names are held as strings of our own: the convention is in development and its Python constants moved
(https://github.com/open-telemetry/semantic-conventions-genai).
"""

from __future__ import annotations

# --- OpenTelemetry GenAI: written by the guard, read by the scorer -----------------------------------------------
OPERATION_NAME = "gen_ai.operation.name"
PROVIDER_NAME = "gen_ai.provider.name"
AGENT_NAME = "gen_ai.agent.name"
CONVERSATION_ID = "gen_ai.conversation.id"
REQUEST_MODEL = "gen_ai.request.model"
RESPONSE_MODEL = "gen_ai.response.model"
TOOL_NAME = "gen_ai.tool.name"
TOOL_TYPE = "gen_ai.tool.type"
TOOL_DESCRIPTION = "gen_ai.tool.description"
TOOL_CALL_ID = "gen_ai.tool.call.id"
TOOL_CALL_ARGUMENTS = "gen_ai.tool.call.arguments"
TOOL_CALL_RESULT = "gen_ai.tool.call.result"
TOOL_DEFINITIONS = "gen_ai.tool.definitions"
USAGE_INPUT_TOKENS = "gen_ai.usage.input_tokens"
USAGE_OUTPUT_TOKENS = "gen_ai.usage.output_tokens"
USAGE_CACHE_READ_TOKENS = "gen_ai.usage.cache_read.input_tokens"
ERROR_TYPE = "error.type"
EXECUTE_TOOL = "execute_tool"
INVOKE_AGENT = "invoke_agent"
INVOKE_WORKFLOW = "invoke_workflow"
MCP_METHOD = "mcp.method.name"
MCP_TOOLS_CALL = "tools/call"

EVALUATION_RESULT = "gen_ai.evaluation.result"
EVALUATION_NAME = "gen_ai.evaluation.name"
EVALUATION_SCORE = "gen_ai.evaluation.score.value"
EVALUATION_LABEL = "gen_ai.evaluation.score.label"
EVALUATION_EXPLANATION = "gen_ai.evaluation.explanation"

# --- OpenInference: written on demand, for the panes of Phoenix and MLflow -------------------------------------------
OI_SPAN_KIND = "openinference.span.kind"
OI_INPUT_VALUE = "input.value"
OI_INPUT_MIME = "input.mime_type"
OI_OUTPUT_VALUE = "output.value"
OI_OUTPUT_MIME = "output.mime_type"

# --- our own: the run root -----------------------------------------------------------------------------------------
RUN_ID = "agentguard.run.id"
RUN_PARENT_ID = "agentguard.run.parent_id"
RUN_ENDING = "agentguard.run.ending"
RUN_OUTCOME = "agentguard.run.outcome"
RUN_STEPS = "agentguard.run.steps"
RUN_REFUSED = "agentguard.run.refused"
RUN_HALT_CODE = "agentguard.run.halt.code"
RUN_INPUT_TOKENS = "agentguard.run.usage.input_tokens"
RUN_OUTPUT_TOKENS = "agentguard.run.usage.output_tokens"
RUN_CACHED_TOKENS = "agentguard.run.usage.cached_tokens"
RUN_COST_USD = "agentguard.run.usage.cost_usd"
RUN_TASK = "agentguard.run.task"
RUN_STARTED = "agentguard.run_started"
HARNESS_NAME = "agentguard.harness.name"
HARNESS_DIGEST = "agentguard.harness.digest"
POLICY_NAME = "agentguard.policy.name"
POLICY_DIGEST = "agentguard.policy.digest"
POLICY_MODE = "agentguard.policy.mode"
BUDGET_LIMIT = "agentguard.budget.{kind}.limit"
BUDGET_USED = "agentguard.budget.{kind}.used"

# --- our own: one call ---------------------------------------------------------------------------------------------
CALL_SEQ = "agentguard.call.seq"
CALL_LANE = "agentguard.call.lane"
CALL_TURN = "agentguard.call.turn"
CALL_USER_TURN = "agentguard.call.user_turn"
CALL_FINGERPRINT = "agentguard.call.fingerprint"
CALL_EXECUTED = "agentguard.call.executed"
CALL_ACTION = "agentguard.call.action"
CALL_ID_SYNTHETIC = "agentguard.call.id.synthetic"
RESULT_FINGERPRINT = "agentguard.result.fingerprint"
CONTENT_TRUNCATED = "agentguard.content.truncated"
CONTENT_REDACTED = "agentguard.content.redacted"

# --- our own: one event per verdict ----------------------------------------------------------------------------------
VERDICT = "agentguard.verdict"
VERDICT_CHECK = "agentguard.verdict.check"
VERDICT_CODE = "agentguard.verdict.code"
VERDICT_ACTION = "agentguard.verdict.action"
VERDICT_REASON = "agentguard.verdict.reason"
VERDICT_LIMIT = "agentguard.verdict.limit"
VERDICT_USED = "agentguard.verdict.used"
