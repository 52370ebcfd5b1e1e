"""The guard as hooks of a Strands agent.

with guard.run(model="claude-sonnet-4", harness="my agent 1.4"):
    agent = Agent(model=model, tools=tools, hooks=[GuardHooks()])
    agent("why does the test fail?")
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping
from typing import TYPE_CHECKING, Any

from agentguard import AgentGuardError, Run, RunHalted, ToolCall, ToolResult, Usage, current_run

try:
    from strands.hooks import (
        AfterToolCallEvent,
        BeforeModelCallEvent,
        BeforeToolCallEvent,
        HookProvider,
        HookRegistry,
        MessageAddedEvent,
    )
    from strands.types.tools import AgentTool
except ImportError as error:
    from agentguard import IntegrationMissing

    raise IntegrationMissing("strands-agents", "strands") from error

if TYPE_CHECKING:
    from agentguard.attempt import Attempt

__all__ = ["GuardHooks"]


class GuardHooks(HookProvider):
    """Judges every tool call of an agent before it runs, and charges what its model uses.

    A refused call gives the model a tool result with the feedback and status "error". A halt leaves the agent as
    `RunHalted`. Calls of one model message are one parallel turn.
    """

    def __init__(self, run: Run | None = None) -> None:
        """Guard by `run`; None means the run whose `with` block the agent is called in."""
        self._run = run
        self._open: dict[str, Attempt] = {}

    @property
    def run(self) -> Run:
        """The run that judges; AgentGuardError when there is none."""
        run = self._run or current_run()
        if run is None:
            raise AgentGuardError("no run is active; call the agent inside `with guard.run(...)`, or pass run=")
        return run

    def register_hooks(self, registry: HookRegistry, **kwargs: Any) -> None:
        """Add the hooks to an agent."""
        registry.add_callback(BeforeToolCallEvent, self.before_tool)
        registry.add_callback(AfterToolCallEvent, self.after_tool)
        registry.add_callback(BeforeModelCallEvent, self.before_model)
        registry.add_callback(MessageAddedEvent, self.message_added)

    def before_tool(self, event: BeforeToolCallEvent) -> None:
        """Judge the call; a refused one is cancelled with the feedback as its result."""
        run, call = self.run, _call(event.tool_use)
        calls = _asked(event.agent.messages)
        run.declare_turn(calls or [call], key=" ".join(str(one.id) for one in calls or [call]))
        try:
            attempt = run.begin(call)
        except RunHalted as halt:
            # Tools run in tasks whose BaseException is dropped (tools/executors of 1.62); `before_model` raises it.
            event.cancel_tool = halt.decision.feedback or halt.decision.reason
            return
        attempt.leave_context()  # the tool runs in a context of its own
        if attempt.feedback is not None:
            event.cancel_tool = str(attempt.feedback)
            return
        self._open[call.id or ""] = attempt
        if event.selected_tool is not None:
            event.selected_tool = _Watched(event.selected_tool, lambda error: self._left(run, call, error))

    def before_model(self, event: BeforeModelCallEvent) -> None:
        """End a run that was halted."""
        run = self.run
        if run.halted is not None:
            raise RunHalted(run.halted, run.trajectory)

    def after_tool(self, event: AfterToolCallEvent) -> None:
        """Record what the call gave back."""
        attempt = self._open.pop(event.tool_use["toolUseId"], None)
        if attempt is None:
            return
        if event.exception is not None:
            self.run.raised(attempt, event.exception)
        else:
            self.run.returned(attempt, _result(event.result))

    def _left(self, run: Run, call: ToolCall, error: BaseException) -> None:
        """A cancelled tool gives no `AfterToolCallEvent`: what its call held is released here."""
        attempt = self._open.pop(call.id or "", None)
        if attempt is not None:
            run.raised(attempt, error)

    def message_added(self, event: MessageAddedEvent) -> None:
        """Charge what the model used for a message of its own."""
        metadata: Mapping[str, Any] = event.message.get("metadata") or {}
        used = metadata.get("usage")
        if event.message["role"] == "assistant" and used is not None:
            cached = used.get("cacheReadInputTokens")
            self.run.charge(Usage(used.get("inputTokens"), used.get("outputTokens"), cached))


class _Watched(AgentTool):
    """A tool that says when it is left by a cancellation."""

    def __init__(self, tool: AgentTool, left: Callable[[BaseException], None]) -> None:
        super().__init__()
        self._tool = tool
        self._left = left

    @property
    def tool_name(self) -> str:
        """As the tool's."""
        return self._tool.tool_name

    @property
    def tool_spec(self) -> Any:
        """As the tool's."""
        return self._tool.tool_spec

    @property
    def tool_type(self) -> str:
        """As the tool's."""
        return self._tool.tool_type

    async def stream(self, tool_use: Any, invocation_state: dict[str, Any], **kwargs: Any) -> AsyncGenerator[Any, None]:
        """As the tool's."""
        try:
            async for event in self._tool.stream(tool_use, invocation_state, **kwargs):
                yield event
        except Exception:
            raise
        except BaseException as error:
            self._left(error)
            raise


def _call(tool_use: Mapping[str, Any]) -> ToolCall:
    return ToolCall(tool_use["name"], tool_use["input"], tool_use["toolUseId"])


def _asked(messages: Any) -> list[ToolCall]:
    """Return the calls of the model's last message."""
    last = next((message for message in reversed(messages) if message["role"] == "assistant"), None)
    return [] if last is None else [_call(block["toolUse"]) for block in last["content"] if "toolUse" in block]


def _result(result: Mapping[str, Any]) -> ToolResult:
    texts = [block.get("text", block.get("json", block)) for block in result["content"]]
    return ToolResult(texts[0] if len(texts) == 1 else texts, result.get("status") == "error")
