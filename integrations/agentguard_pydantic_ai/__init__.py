"""The guard as a capability of a Pydantic AI agent.

agent = Agent(model, tools=[search], capabilities=[GuardCapability()])
with guard.run(model="gpt-5", harness="my agent 1.4"):
    agent.run_sync("why does the test fail?")
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from agentguard import AgentGuardError, Run, ToolCall, ToolResult, Usage, current_run
from agentguard.wrapping import to_call

try:
    from pydantic import ValidationError
    from pydantic_ai import Agent
    from pydantic_ai.capabilities import AbstractCapability
    from pydantic_ai.exceptions import ApprovalRequired, CallDeferred, ModelRetry
    from pydantic_ai.messages import ToolReturn
except ImportError as error:
    from agentguard import IntegrationMissing

    raise IntegrationMissing("pydantic-ai-slim", "pydantic-ai") from error

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelResponse, ToolCallPart
    from pydantic_ai.models import ModelRequestContext
    from pydantic_ai.tools import RunContext, ToolDefinition

    from agentguard.attempt import Attempt

__all__ = ["GuardCapability"]

_TOOL: contextvars.ContextVar[str | None] = contextvars.ContextVar("agentguard_pydantic_ai_tool", default=None)
"""The guarded tool whose code this is."""


class GuardCapability(AbstractCapability[Any]):
    """Judges every tool call of an agent before it runs, and charges what its model uses.

    A refused call gives the model the feedback as the tool's return. A halt leaves the agent as `RunHalted`. Calls of
    one model response are one parallel turn; an agent that runs inside a guarded tool has the tool's name as its lane.
    """

    def __init__(self, run: Run | None = None) -> None:
        """Guard by `run`; None means the run whose `with` block the agent is run in."""
        self._run = run
        self._lane: str | None = None
        self._refused: dict[str, str] = {}
        """Feedback on arguments that did not pass, by call id."""
        self._unknown: dict[str, Attempt] = {}
        """Calls of tools that the agent does not have, by call id; no tool hook tells of them."""

    @property
    def run(self) -> Run:
        """The run that judges; AgentGuardError when there is none."""
        run = self._run or current_run()
        if run is None:
            raise AgentGuardError("no run is active; run the agent inside `with guard.run(...)`, or pass run=")
        return run

    async def for_run(self, ctx: RunContext[Any]) -> GuardCapability:
        """Return a capability for one run of the agent: runs side by side share nothing but the guard's run."""
        fresh = GuardCapability(self._run)
        fresh._lane = _TOOL.get()
        return fresh

    async def after_model_request(
        self, ctx: RunContext[Any], *, request_context: ModelRequestContext, response: ModelResponse
    ) -> ModelResponse:
        """Charge what the model used, and declare what it asks for."""
        run = self.run
        used = response.usage
        if used.has_values():
            usage = Usage(used.input_tokens, used.output_tokens, used.cache_read_tokens)
            run.charge(usage, model=response.model_name)
        tools = request_context.model_request_parameters
        outputs = {tool.name for tool in tools.output_tools}
        calls = [_call(part, part.args) for part in response.tool_calls if part.tool_name not in outputs]
        if calls:
            await self._announce(
                run, calls, key=f"{ctx.run_id} {ctx.run_step}", known={t.name for t in tools.function_tools}
            )
        return response

    async def _announce(self, run: Run, calls: list[ToolCall], *, key: str, known: set[str]) -> None:
        with self._in_lane(run):
            run.declare_turn(calls, key=key)
            for call in calls:
                if call.name not in known:
                    attempt = self._unknown[call.id or ""] = await run.begin_async(call)
                    attempt.leave_context()

    async def wrap_tool_validate(
        self,
        ctx: RunContext[Any],
        *,
        call: ToolCallPart,
        tool_def: ToolDefinition,
        args: str | dict[str, Any],
        handler: Callable[..., Any],
    ) -> dict[str, Any]:
        """Judge arguments that do not pass; those that do are judged when the call is about to run."""
        try:
            passed: dict[str, Any] = await handler(args)
        except (ValidationError, ModelRetry) as error:
            if tool_def.kind != "function" and not ctx.tool_call_approved:
                raise
            feedback = await self._judge_invalid(_call(call, args), error)
            if feedback is None:
                raise
            self._refused[call.tool_call_id] = feedback
            return {}
        return passed

    async def _judge_invalid(self, call: ToolCall, error: Exception) -> str | None:
        run = self.run
        with self._in_lane(run):
            attempt = await run.begin_async(call)
            if attempt.feedback is None:
                run.raised(attempt, error)
        return attempt.feedback

    async def wrap_tool_execute(
        self,
        ctx: RunContext[Any],
        *,
        call: ToolCallPart,
        tool_def: ToolDefinition,
        args: dict[str, Any],
        handler: Callable[..., Any],
    ) -> Any:
        """Judge the call; run it, or answer it with the feedback."""
        if tool_def.kind == "output":  # 1.71 sends output tools this way too
            return await handler(args)
        feedback = self._refused.pop(call.tool_call_id, None)
        if feedback is not None:
            return str(feedback)
        run = self.run
        with self._in_lane(run):
            attempt = self._unknown.pop(call.tool_call_id, None) or await run.begin_async(_call(call, call.args))
            if attempt.feedback is not None:
                return str(attempt.feedback)
            return await _entered(run, attempt, handler, args)

    async def after_node_run(self, ctx: RunContext[Any], *, node: Any, result: Any) -> Any:
        """Answer calls of unknown tools, which the framework has answered by now, with the feedback."""
        if self._unknown and Agent.is_call_tools_node(node):
            unknown, self._unknown = self._unknown, {}
            request = getattr(result, "request", None)  # an `End` has none
            parts = [] if request is None else [self._answered(part, unknown) for part in request.parts]
            if request is not None:
                result.request = replace(request, parts=parts)
            for attempt in unknown.values():
                self._settle(attempt, None)
        return result

    def _answered(self, part: Any, unknown: dict[str, Attempt]) -> Any:
        attempt = unknown.pop(getattr(part, "tool_call_id", None) or "", None)
        if attempt is None:
            return part
        self._settle(attempt, part.content)
        return part if attempt.feedback is None else replace(part, content=str(attempt.feedback))

    def _settle(self, attempt: Attempt, answer: Any) -> None:
        if attempt.feedback is None:
            self.run.returned(attempt, ToolResult(answer, True))

    def _in_lane(self, run: Run) -> contextlib.AbstractContextManager[None]:
        return contextlib.nullcontext() if self._lane is None else run.lane(self._lane)


async def _entered(run: Run, attempt: Attempt, handler: Callable[..., Any], args: dict[str, Any]) -> Any:
    """Run the tool and record what came of it."""
    token = _TOOL.set(attempt.call.name)
    try:
        result = await handler(args)
    except (CallDeferred, ApprovalRequired):
        # Put off, not failed: what the call held is given back, as of a cancelled one.
        run.raised(attempt, asyncio.CancelledError())
        raise
    except BaseException as error:
        run.raised(attempt, error)
        raise
    finally:
        _TOOL.reset(token)
    if isinstance(result, ToolReturn):
        run.returned(attempt, result.return_value)
        return result
    return run.returned(attempt, result)


def _call(part: ToolCallPart, arguments: str | dict[str, Any] | None) -> ToolCall:
    return to_call(part.tool_name, arguments, part.tool_call_id)
