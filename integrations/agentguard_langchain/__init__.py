"""The guard as LangChain agent middleware.

with guard.run(model="gpt-5", harness="my agent 1.4") as run:
    agent = create_agent(model, tools, middleware=[GuardMiddleware()])
    agent.invoke({"messages": [...]})
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from agentguard import AgentGuardError, Run, ToolCall, ToolResult, Usage, current_run

try:
    from langchain.agents.middleware import AgentMiddleware
    from langchain_core.messages import AIMessage, ToolMessage
except ImportError as error:
    from agentguard import IntegrationMissing

    raise IntegrationMissing("langchain", "langchain") from error

if TYPE_CHECKING:
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
        self._charged: WeakKeyDictionary[Run, str] = WeakKeyDictionary()
        """The message of the model that was charged last, by run."""

    @property
    def run(self) -> Run:
        """The run that judges; AgentGuardError when there is none."""
        run = self._run or current_run()
        if run is None:
            raise AgentGuardError("no run is active; invoke the agent inside `with guard.run(...)`, or pass run=")
        return run

    def wrap_tool_call(self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Any]) -> Any:
        """Judge the call; run it, or answer it with the feedback."""
        run = self.run
        call = self._announce(run, request)
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
        run = self.run
        call = self._announce(run, request)
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

    def after_agent(self, state: Any, runtime: Any) -> None:
        """Charge the last model message, which no tool call follows."""
        self._charge(self.run, _last_answer(state))

    async def aafter_agent(self, state: Any, runtime: Any) -> None:
        """As `after_agent`, asynchronously."""
        self._charge(self.run, _last_answer(state))

    def _announce(self, run: Run, request: ToolCallRequest) -> ToolCall:
        """Charge and declare the model message that the call is in, once for all its calls; return the call."""
        message, call = _last_answer(request.state), _call(request.tool_call)
        if message is not None and message.tool_calls:
            self._charge(run, message)
            run.declare_turn([_call(asked) for asked in message.tool_calls], key=_key(message))
        return call

    def _charge(self, run: Run, message: AIMessage | None) -> None:
        # Here and not in `wrap_model_call`, which costs every step twice what judging it does.
        if message is None or message.usage_metadata is None or self._charged.get(run) == _key(message):
            return
        self._charged[run] = _key(message)
        run.charge(_usage(message))


def _call(asked: Any) -> ToolCall:
    return ToolCall(asked["name"], asked["args"], asked.get("id"))


def _last_answer(state: Any) -> AIMessage | None:
    """Return the last message of the model in an agent's state."""
    messages: Sequence[Any] = state["messages"] if isinstance(state, dict) else state.messages
    return next((message for message in reversed(messages) if isinstance(message, AIMessage)), None)


def _key(message: AIMessage) -> str:
    return str(message.id or id(message))


def _refusal(call: ToolCall, feedback: str) -> ToolMessage:
    return ToolMessage(content=str(feedback), tool_call_id=call.id or "", name=call.name, status="error")


def _result(result: Any) -> ToolResult:
    if isinstance(result, ToolMessage):
        return ToolResult(result.content, result.status == "error")
    return ToolResult(result)


def _usage(message: AIMessage) -> Usage:
    used = message.usage_metadata or {}
    details: Any = used.get("input_token_details") or {}
    return Usage(used.get("input_tokens"), used.get("output_tokens"), details.get("cache_read"))
