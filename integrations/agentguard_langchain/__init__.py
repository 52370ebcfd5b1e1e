"""The guard as LangChain agent middleware.

with guard.run(model="gpt-5", harness="my agent 1.4") as run:
    agent = create_agent(model, tools, middleware=[GuardMiddleware()])
    agent.invoke({"messages": [...]})
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any

from agentguard import AgentGuardError, Run, ToolCall, ToolResult, Usage, current_run

try:
    from langchain.agents.middleware import AgentMiddleware
    from langchain_core.messages import AIMessage, ToolMessage
except ImportError as error:
    from agentguard import IntegrationMissing

    raise IntegrationMissing("langchain", "langchain") from error

if TYPE_CHECKING:
    from langchain.agents.middleware.types import ModelRequest, ModelResponse
    from langgraph.prebuilt.tool_node import ToolCallRequest

__all__ = ["GuardMiddleware"]


class GuardMiddleware(AgentMiddleware):
    """Judges every tool call of an agent before it runs, and charges what its model uses.

    A refused call gives the model a `ToolMessage` with the feedback and status "error". A halt leaves the agent as
    `RunHalted`. Calls of one model message are one parallel turn.
    """

    def __init__(self, run: Run | None = None) -> None:
        """Guard by `run`; None means the run whose `with` block the agent is invoked in."""
        super().__init__()
        self._run = run

    @property
    def run(self) -> Run:
        """The run that judges; AgentGuardError when there is none."""
        run = self._run or current_run()
        if run is None:
            raise AgentGuardError("no run is active; invoke the agent inside `with guard.run(...)`, or pass run=")
        return run

    def wrap_tool_call(self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Any]) -> Any:
        """Judge the call; run it, or answer it with the feedback."""
        run, call = self.run, _call(request)
        calls, key = _turn(request)
        run.declare_turn(calls, key=key)
        attempt = run.begin(call)
        if attempt.feedback is not None:
            return _refusal(call, attempt.feedback)
        try:
            result = handler(request)
        except BaseException as error:
            run.raised(attempt, error)
            raise
        run.returned(attempt, _result(result))
        return result

    async def awrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Awaitable[Any]]
    ) -> Any:
        """As `wrap_tool_call`, asynchronously."""
        run, call = self.run, _call(request)
        calls, key = _turn(request)
        run.declare_turn(calls, key=key)
        attempt = await run.begin_async(call)
        if attempt.feedback is not None:
            return _refusal(call, attempt.feedback)
        try:
            result = await handler(request)
        except BaseException as error:
            run.raised(attempt, error)
            raise
        run.returned(attempt, _result(result))
        return result

    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]
    ) -> ModelResponse[Any]:
        """Charge what the model used."""
        response = handler(request)
        self._charge(response)
        return response

    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]]
    ) -> ModelResponse[Any]:
        """As `wrap_model_call`, asynchronously."""
        response = await handler(request)
        self._charge(response)
        return response

    def _charge(self, response: ModelResponse[Any]) -> None:
        for message in response.result:
            if isinstance(message, AIMessage) and message.usage_metadata is not None:
                self.run.charge(*_usage(message))


def _call(request: ToolCallRequest) -> ToolCall:
    asked = request.tool_call
    return ToolCall(asked["name"], asked["args"], asked.get("id"))


def _turn(request: ToolCallRequest) -> tuple[Sequence[ToolCall], str]:
    """Return the calls of the model message that this one is in, and what identifies it."""
    messages = request.state["messages"] if isinstance(request.state, dict) else request.state.messages
    message = next((m for m in reversed(messages) if isinstance(m, AIMessage) and m.tool_calls), None)
    if message is None:
        return [_call(request)], str(request.tool_call.get("id"))
    calls = [ToolCall(asked["name"], asked["args"], asked.get("id")) for asked in message.tool_calls]
    return calls, f"{message.id} {[call.id for call in calls]}"


def _refusal(call: ToolCall, feedback: str) -> ToolMessage:
    return ToolMessage(content=str(feedback), tool_call_id=call.id or "", name=call.name, status="error")


def _result(result: Any) -> ToolResult:
    if isinstance(result, ToolMessage):
        return ToolResult(result.content, result.status == "error")
    return ToolResult(result)


def _usage(message: AIMessage) -> tuple[Usage]:
    used = message.usage_metadata or {}
    details: Any = used.get("input_token_details") or {}
    return (Usage(used.get("input_tokens"), used.get("output_tokens"), details.get("cache_read")),)
