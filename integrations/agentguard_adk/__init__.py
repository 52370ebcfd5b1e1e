"""The guard as a plugin of Google's Agent Development Kit.

with guard.run(model="gemini-3.5-flash", harness="my agent 1.4"):
    runner = Runner(app=App(name="app", root_agent=agent, plugins=[GuardPlugin()]), ...)
    async for event in runner.run_async(...):
        ...
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Any

from agentguard import AgentGuardError, Run, ToolCall, ToolResult, Usage, current_run

try:
    from google.adk.plugins.base_plugin import BasePlugin
except ImportError as error:
    from agentguard import IntegrationMissing

    raise IntegrationMissing("google-adk", "adk") from error

if TYPE_CHECKING:
    from google.adk.agents.callback_context import CallbackContext
    from google.adk.models.llm_response import LlmResponse
    from google.adk.tools.base_tool import BaseTool
    from google.adk.tools.tool_context import ToolContext

    from agentguard.attempt import Attempt

__all__ = ["GuardPlugin"]


class GuardPlugin(BasePlugin):
    """Judges every tool call of an app before it runs, and charges what its models use.

    A refused call gives the model `{"error": feedback}` as the tool's response. A halt leaves the runner as
    `RunHalted`. Calls of one model response are one parallel turn; an agent other than the first has a lane.
    """

    def __init__(self, run: Run | None = None, *, name: str = "agentguard") -> None:
        """Guard by `run`; None means the run whose `with` block the runner is used in."""
        super().__init__(name=name)
        self._run = run
        self._open: dict[str, Attempt] = {}
        self._turns: dict[str, list[ToolCall]] = {}
        """Calls of the last model response, by agent."""
        self._first: str | None = None

    @property
    def run(self) -> Run:
        """The run that judges; AgentGuardError when there is none."""
        run = self._run or current_run()
        if run is None:
            raise AgentGuardError("no run is active; use the runner inside `with guard.run(...)`, or pass run=")
        return run

    async def after_model_callback(self, *, callback_context: CallbackContext, llm_response: LlmResponse) -> None:
        """Charge what the model used, and note what it asks for."""
        self._first = self._first or callback_context.agent_name
        parts = llm_response.content.parts if llm_response.content else None
        asked = [part.function_call for part in parts or [] if part.function_call]
        if asked:
            calls = [ToolCall(call.name or "", dict(call.args or {}), call.id) for call in asked]
            self._turns[callback_context.agent_name] = calls
        used = llm_response.usage_metadata
        if used is not None and not llm_response.partial:
            tokens = Usage(used.prompt_token_count, used.candidates_token_count, used.cached_content_token_count)
            self.run.charge(tokens)

    async def before_tool_callback(
        self, *, tool: BaseTool, tool_args: dict[str, Any], tool_context: ToolContext
    ) -> dict[str, Any] | None:
        """Judge the call; a refused one is answered with the feedback."""
        return await self._judge(tool, tool_args, tool_context)

    async def after_tool_callback(
        self, *, tool: BaseTool, tool_args: dict[str, Any], tool_context: ToolContext, result: Any
    ) -> None:
        """Record what the call gave back."""
        attempt = self._open.pop(_id(tool_context), None)
        if attempt is not None:
            self.run.returned(attempt, ToolResult(result))

    async def on_tool_error_callback(
        self, *, tool: BaseTool, tool_args: dict[str, Any], tool_context: ToolContext, error: Exception
    ) -> dict[str, Any] | None:
        """Record what the tool raised; a call of a tool that does not exist is judged here, where ADK tells of it."""
        attempt = self._open.pop(_id(tool_context), None)
        if attempt is not None:
            self.run.raised(attempt, error)
            return None
        return await self._judge(tool, tool_args, tool_context)

    async def _judge(self, tool: BaseTool, tool_args: dict[str, Any], context: ToolContext) -> dict[str, Any] | None:
        run = self.run
        agent = context.agent_name
        call = ToolCall(tool.name, dict(tool_args), _id(context))
        with run.lane("main" if agent in (None, self._first) else agent):
            calls = self._turns.get(agent) or [call]
            run.declare_turn(calls, key=f"{agent} {' '.join(str(one.id) for one in calls)}")
            attempt = await run.begin_async(call)
        attempt.leave_context()  # the tool may run on another thread
        if attempt.feedback is not None:
            return {"error": str(attempt.feedback)}
        self._open[_id(context)] = attempt
        task = asyncio.current_task()
        if task is not None:
            task.add_done_callback(partial(self._left, run, _id(context)))
        return None

    def _left(self, run: Run, call_id: str, task: asyncio.Task[Any]) -> None:
        """A cancelled tool gives no callback: what its call held is released when its task is done."""
        attempt = self._open.pop(call_id, None)
        if attempt is not None:
            run.raised(attempt, asyncio.CancelledError())


def _id(context: ToolContext) -> str:
    return context.function_call_id or ""
