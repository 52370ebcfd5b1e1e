"""One connection to the CLI under guard: the hooks that judge its calls, and the messages that tell what they are."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, cast

from claude_agent_sdk import (
    AssistantMessage,
    HookMatcher,
    PermissionResultDeny,
    ResultMessage,
    ToolResultBlock,
    ToolUseBlock,
    UserMessage,
)
from claude_agent_sdk.types import StreamEvent, TaskStartedMessage

from agentguard import AgentGuardError, Run, RunHalted, ToolCall, ToolResult, current_run
from agentguard_claude_agent.turns import Turns
from agentguard_claude_agent.usage import Meter

if TYPE_CHECKING:
    from claude_agent_sdk import ClaudeAgentOptions, Message

    from agentguard.attempt import Attempt

__all__ = ["Session", "recorded"]

_PATIENCE: Final = 86_400.0
"""Seconds that the CLI waits for a decision: approving a call may take as long as a person takes. Its own default is
60, and then it runs the call."""
_TIMES: Final = frozenset({"durationMs", "durationSeconds", "totalDurationMs"})
"""Keys of the CLI's own tools for how long they took: the same result would look new."""
_NOTIFICATION: Final = "<task-notification>"
"""What the CLI submits as a prompt when work in the background is done (seen in 2.1.332)."""


class Session:
    """Judges the calls of one connection and charges what its model uses."""

    def __init__(self, options: ClaudeAgentOptions, run: Run | None) -> None:
        """Guard what these options set up; `run` None means the run whose block `enter` is called in."""
        self.running: list[tuple[str, bytes]] = []
        """Run and fingerprint of the calls that are under way."""
        self._given = run
        self._run = run
        self._attempts: dict[str, Attempt] = {}
        """Calls under way, by the id of their block."""
        self._unseen: dict[str, tuple[ToolCall, str | None]] = {}
        """Calls that the model asked for and no hook has told of, each with the call that it is made inside of."""
        self._lanes: dict[str, str] = {}
        """Lanes of sub-agents, by the agent's id and by the id of the call that started it."""
        self._inbox: asyncio.Queue[Message | BaseException | None] = asyncio.Queue()
        """What the caller gets: messages, what ends them, and None after the last."""
        self._stopped = asyncio.Event()
        """Set when the CLI was stopped, or where nothing halted."""
        self._stopped.set()
        self.is_busy = False
        """Whether the main agent is at work on a turn."""
        self._agents: set[str] = set()
        """Sub-agents that are at work, by id; the latest CLI has them in the background, where they outlive a turn."""
        self._turns = Turns()
        self._meter = Meter(fresh=not (options.resume or options.continue_conversation))
        self._partial = options.include_partial_messages
        self._in_process = _in_process(options.mcp_servers)
        self.options = self._guarded(options)

    @property
    def run(self) -> Run:
        """The run that judges; AgentGuardError when there is none."""
        if self._run is None:
            raise AgentGuardError("no run is active; connect inside `with guard.run(...)`, or pass run=")
        return self._run

    def enter(self) -> Run:
        """Judge by the run of the block that this is called in, unless one was given; return it."""
        # Hooks are called in the context that the connection was made in, which may be that of an earlier run.
        self._run = self._given or current_run() or self._run
        return self.run

    # --- messages ------------------------------------------------------------------------------------------

    async def pump(self, messages: AsyncIterator[Message]) -> None:
        """Take in every message as it comes: hooks wait for what they tell, and the caller may be slow."""
        try:
            async for message in messages:
                self._note(message)
                if self._partial or not isinstance(message, StreamEvent):
                    self._inbox.put_nowait(message)
        except Exception as error:
            self._inbox.put_nowait(error)
        finally:
            self.is_busy = False
            self._turns.end()
            self._inbox.put_nowait(None)
            await messages.aclose()  # type: ignore[attr-defined] # generators all, declared as iterators

    async def messages(self, interrupt: Callable[[], Awaitable[None]]) -> AsyncGenerator[Message]:
        """Yield the messages; a halt interrupts the CLI and is raised in place of the result."""
        while (message := await self._inbox.get()) is not None:
            if isinstance(message, RunHalted):
                in_turn = self.is_busy
                await self._stop_halted(interrupt, message)
                if not in_turn:  # it was an agent in the background, and no result follows
                    break
            elif isinstance(message, BaseException):
                raise message
            elif isinstance(message, ResultMessage) and self.run.halted is not None:
                if self._stopped.is_set():  # else the halt comes next
                    break
            else:
                yield message
        if message is None:
            self._inbox.put_nowait(None)  # for whoever asks again
        if self.run.halted is not None:
            raise RunHalted(self.run.halted, self.run.trajectory)

    async def stop(self, interrupt: Callable[[], Awaitable[None]]) -> None:
        """Interrupt the agents that are at work, if any are, and let the hooks answer that waited for it."""
        at_work = self.is_busy or bool(self._agents)
        self.is_busy = False
        self._agents.clear()
        try:
            if at_work:
                await interrupt()
        finally:
            self._stopped.set()

    async def _stop_halted(self, interrupt: Callable[[], Awaitable[None]], halt: RunHalted) -> None:
        try:
            await self.stop(interrupt)
        except Exception as error:  # a CLI that does not answer does not undo the halt
            raise halt from error

    async def close(self, pump: asyncio.Task[None] | None) -> None:
        """Give back what calls hold that were cut off."""
        if pump is not None:
            pump.cancel()
            await asyncio.wait([pump])
        for call in list(self._attempts):
            self._cancel(call)

    def _note(self, message: Message) -> None:
        if isinstance(message, (ResultMessage, StreamEvent)):
            self.is_busy = isinstance(message, StreamEvent)
        if isinstance(message, AssistantMessage):
            for block in _asked(message):
                call = self._call(block.name, block.input, block.id)
                self._unseen[block.id] = (call, message.parent_tool_use_id)
        self._turns.note(message, self._unseen)
        self._meter.note(message, self.run)
        if isinstance(message, TaskStartedMessage) and message.tool_use_id is not None:
            self._lanes[message.tool_use_id] = self._lanes.get(message.task_id, message.task_id)
        for result in _answered(message):
            self._came(result)

    def _came(self, block: ToolResultBlock) -> None:
        """Settle a call that no hook settled: it was not permitted, or the CLI knows no such tool."""
        result = ToolResult(recorded(block.content), bool(block.is_error))
        call, inside = self._unseen.pop(block.tool_use_id, (None, None))
        if call is None:
            self._settle(block.tool_use_id, result)
            return
        if self.run.halted is not None:
            return
        try:
            with self._in(self._lanes.get(inside or "")):
                attempt = self.run.begin(call)
        except RunHalted as halt:
            self._halt(halt)
            return
        if attempt.feedback is None:
            self.run.returned(attempt, result)

    # --- hooks ---------------------------------------------------------------------------------------------

    def _guarded(self, options: ClaudeAgentOptions) -> ClaudeAgentOptions:
        ours: dict[Any, Any] = {
            "PreToolUse": self._before,
            "PostToolUse": self._after,
            "PostToolUseFailure": self._failed,
            "UserPromptSubmit": self._prompted,
            "SubagentStart": self._started,
            "SubagentStop": self._ended,
        }
        hooks: dict[Any, list[HookMatcher]] = {**(options.hooks or {})}
        for event, hook in ours.items():
            hooks[event] = [HookMatcher(hooks=[hook], timeout=_PATIENCE), *hooks.get(event, [])]
        permit = options.can_use_tool and self._permitting(options.can_use_tool)
        return replace(options, hooks=hooks, can_use_tool=permit, include_partial_messages=True)

    async def _before(self, told: Any, call_id: str | None, context: Any) -> dict[str, Any]:
        """Judge a call: no answer lets it run."""
        call, run, agent = self._call(told["tool_name"], told["tool_input"], call_id), self.run, told.get("agent_id")
        # The messages of a sub-agent come without their ends: its calls are judged one by one.
        turn = await self._turns.of(call_id) if call_id and not agent else None
        self._unseen.pop(call_id or "", None)
        try:
            with self._in(agent and self._lane(told)):
                if turn is not None:
                    run.declare_turn(turn.calls, key=turn.key)
                attempt = await run.begin_async(call)
        except RunHalted as halt:
            await self._halt(halt).wait()
            return {"continue_": False, "stopReason": halt.decision.reason, **_denied(halt.decision.feedback or "")}
        if attempt.feedback is not None:
            return _denied(attempt.feedback)
        self._attempts[call_id or ""] = attempt
        self.running.append((run.run_id, attempt.place.key))
        return {}

    async def _after(self, told: Any, call_id: str | None, context: Any) -> dict[str, Any]:
        self._settle(call_id, ToolResult(recorded(told["tool_response"])))
        return {}

    async def _failed(self, told: Any, call_id: str | None, context: Any) -> dict[str, Any]:
        if told.get("is_interrupt"):
            self._cancel(call_id)
        else:
            self._settle(call_id, ToolResult(told["error"], True))
        return {}

    async def _prompted(self, told: Any, call_id: str | None, context: Any) -> dict[str, Any]:
        """Take in a message of the user. After a halt the model does not get it, nor any news of the background."""
        run = self.run
        if run.halted is not None:
            return {"continue_": False, "stopReason": run.halted.reason}
        if not told["prompt"].startswith(_NOTIFICATION):
            run.user_turn()
        return {}

    async def _started(self, told: Any, call_id: str | None, context: Any) -> dict[str, Any]:
        self._agents.add(told["agent_id"])
        self._lane(told)
        return {}

    async def _ended(self, told: Any, call_id: str | None, context: Any) -> dict[str, Any]:
        """Give back what calls of the sub-agent hold that nothing came back of."""
        lane = self._lane(told)
        self._agents.discard(told["agent_id"])
        for call in [call for call, attempt in self._attempts.items() if attempt.lane == lane]:
            self._cancel(call)
        return {}

    def _permitting(self, can_use_tool: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        async def permit(name: str, arguments: dict[str, Any], context: Any) -> Any:
            answer = await can_use_tool(name, arguments, context)
            if isinstance(answer, PermissionResultDeny):
                self._cancel(context.tool_use_id)
            return answer

        return permit

    # --- calls ---------------------------------------------------------------------------------------------

    def _call(self, name: str, arguments: Mapping[str, Any], call_id: str | None) -> ToolCall:
        return ToolCall(self.name_of(name), arguments, call_id)

    def name_of(self, name: str) -> str:
        """Return the name that a tool is judged by: an MCP tool's own where that is clear, else the CLI's."""
        declared = self.run.guard.tools
        server, _, own = name.removeprefix("mcp__").partition("__")
        if not own or not name.startswith("mcp__") or name in declared:
            return name
        return own if own in declared or server in self._in_process else name

    def _lane(self, told: Any) -> str:
        agent: str = told["agent_id"]
        return self._lanes.setdefault(agent, f"{told['agent_type']}:{agent}")

    def _in(self, lane: str | None) -> AbstractContextManager[None]:
        return self.run.lane(lane) if lane else nullcontext()

    def _halt(self, halt: RunHalted) -> asyncio.Event:
        """Have the caller stop the CLI; the event says when that is done, so that the model gets no word before."""
        if self._stopped.is_set():
            self._stopped.clear()
            self._inbox.put_nowait(halt)
        return self._stopped

    def _settle(self, call_id: str | None, result: ToolResult) -> None:
        attempt = self._taken(call_id)
        if attempt is not None:
            self.run.returned(attempt, result)

    def _cancel(self, call_id: str | None) -> None:
        attempt = self._taken(call_id)
        if attempt is not None:
            self.run.raised(attempt, asyncio.CancelledError())

    def _taken(self, call_id: str | None) -> Attempt | None:
        attempt = self._attempts.pop(call_id or "", None)
        if attempt is not None:
            self.running.remove((self.run.run_id, attempt.place.key))
        return attempt


def _asked(message: AssistantMessage) -> list[ToolUseBlock]:
    return [block for block in message.content if isinstance(block, ToolUseBlock)]


def _answered(message: Message) -> list[ToolResultBlock]:
    if not isinstance(message, UserMessage) or isinstance(message.content, str):
        return []
    return [block for block in message.content if isinstance(block, ToolResultBlock)]


def _denied(feedback: str) -> dict[str, Any]:
    said = {"permissionDecision": "deny", "permissionDecisionReason": str(feedback)}
    return {"hookSpecificOutput": {"hookEventName": "PreToolUse", **said}}


def recorded(content: Any) -> Any:
    """Return what a tool gave back: the text of blocks that are all text, anything else as it is but for its times."""
    if isinstance(content, list):
        blocks = cast("list[Any]", content)
        is_text = all(isinstance(block, dict) and "text" in block for block in blocks)
        return "\n".join(block["text"] for block in blocks) if is_text else blocks
    if isinstance(content, dict):
        fields = cast("dict[str, Any]", content)
        return {name: value for name, value in fields.items() if name not in _TIMES}
    return content


def _in_process(servers: Any) -> frozenset[str]:
    """Return the servers whose tools are functions of this process, by the names that the CLI makes of theirs."""
    if not isinstance(servers, dict):  # a path or JSON, where no server is of this process
        return frozenset()
    named = cast("dict[str, Any]", servers)
    ours = [name for name, server in named.items() if server.get("type") == "sdk"]
    return frozenset(re.sub(r"[^a-zA-Z0-9_-]", "_", name) for name in ours)
