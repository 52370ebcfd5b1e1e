"""The guard as middleware of a Microsoft Agent Framework agent.

agent = Agent(client, tools=[search], middleware=guard_middleware())
with guard.run(model="gpt-5", harness="my agent 1.4"):
    await agent.run("why does the test fail?")
"""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, cast

from agentguard import AgentGuardError, Run, ToolCall, ToolResult, Usage, current_run
from agentguard.trajectory import MAIN_LANE
from agentguard.wrapping import to_call

try:
    from agent_framework import (
        ChatContext,
        ChatMiddleware,
        ChatResponse,
        Content,
        FunctionInvocationContext,
        FunctionMiddleware,
        Message,
        MiddlewareTermination,
    )
    from agent_framework.exceptions import UserInputRequiredException
except ImportError as error:
    from agentguard import IntegrationMissing

    raise IntegrationMissing("agent-framework-core", "agent-framework") from error

if TYPE_CHECKING:
    from pydantic import BaseModel

__all__ = ["guard_middleware"]

_LANE: contextvars.ContextVar[str] = contextvars.ContextVar("agentguard_agent_framework_lane", default=MAIN_LANE)
"""The guarded tool whose code this is; an agent that runs inside it, as one of `Agent.as_tool`, has it as its lane."""


def guard_middleware(run: Run | None = None) -> list[ChatMiddleware | FunctionMiddleware]:
    """Return the middleware that judges the tool calls of an agent and charges what its model uses.

    Guards by `run`; None means the run whose `with` block the agent is run in. A refused call gives the model the
    feedback as its result. A halt leaves the agent as `RunHalted`. Calls of one model response are one parallel turn.
    """
    asked = _Asked(run)
    return [_Answers(asked), _Calls(asked)]


class _Asked:
    """What the model asked for and was not answered yet."""

    def __init__(self, run: Run | None) -> None:
        self._run = run
        self._calls: dict[tuple[str, str, str], ToolCall] = {}
        """By run, lane and call id."""

    @property
    def run(self) -> Run:
        run = self._run or current_run()
        if run is None:
            raise AgentGuardError("no run is active; run the agent inside `with guard.run(...)`, or pass run=")
        return run

    def note(self, call: ToolCall) -> None:
        self._calls[self._key(call.id)] = call

    def take(self, call_id: str | None) -> ToolCall | None:
        return self._calls.pop(self._key(call_id), None)

    def _key(self, call_id: str | None) -> tuple[str, str, str]:
        return self.run.run_id, _LANE.get(), call_id or ""


class _Answers(ChatMiddleware):
    """Charges and declares every answer of the model."""

    def __init__(self, asked: _Asked) -> None:
        self._asked = asked

    async def process(self, context: ChatContext, call_next: Callable[[], Awaitable[None]]) -> None:
        """Send the request; take in the answer, now or when its stream is used up."""
        await self._judge_unseen(context.messages)
        if context.stream:
            context.stream_result_hooks.append(self._take_in)
        await call_next()
        if isinstance(context.result, ChatResponse):
            self._take_in(context.result)

    def _take_in(self, response: ChatResponse[Any]) -> ChatResponse[Any]:
        run, used = self._asked.run, response.usage_details
        if used:
            run.charge(_usage(used), model=response.model)
        calls = [_call(content) for content in _contents(response.messages, "function_call") if _is_local(content)]
        if calls:
            with run.lane(_LANE.get()):
                run.declare_turn(calls, key=" ".join(str(call.id) for call in calls))
        for call in calls:
            self._asked.note(call)
        return response

    async def _judge_unseen(self, messages: Any) -> None:
        """Judge calls that the framework answered without a word to function middleware.

        These are calls of tools that an agent does not have and, up to 1.22, arguments that do not pass.
        """
        for message in messages:
            for at, content in enumerate(message.contents):
                call = self._asked.take(content.call_id) if content.type == "function_result" else None
                if call is not None:
                    message.contents[at] = await self._judged(call, content)

    async def _judged(self, call: ToolCall, answer: Content) -> Content:
        run = self._asked.run
        with run.lane(_LANE.get()):
            attempt = await run.begin_async(call)
        if attempt.feedback is None:
            run.returned(attempt, ToolResult(answer.result, True))
            return answer
        return Content.from_function_result(call.id or "", result=str(attempt.feedback), exception=answer.exception)


class _Calls(FunctionMiddleware):
    """Judges every call that is about to run."""

    def __init__(self, asked: _Asked) -> None:
        self._asked = asked

    async def process(self, context: FunctionInvocationContext, call_next: Callable[[], Awaitable[None]]) -> None:
        """Judge the call; run it, or answer it with the feedback."""
        run, call_id = self._asked.run, context.metadata.get("call_id")
        call = self._asked.take(call_id) or to_call(context.function.name, _mapping(context.arguments), call_id)
        with run.lane(_LANE.get()):
            attempt = await run.begin_async(call)
            if attempt.feedback is not None:
                context.result = str(attempt.feedback)
                return
            try:
                await _entered(call, call_next)
            except MiddlewareTermination:
                run.returned(attempt, _result(context.result))
                raise
            except UserInputRequiredException:
                # Put off, not failed: what the call held is given back, as of a cancelled one.
                run.raised(attempt, asyncio.CancelledError())
                raise
            except BaseException as error:
                run.raised(attempt, error)
                raise
            run.returned(attempt, _result(context.result))


async def _entered(call: ToolCall, call_next: Callable[[], Awaitable[None]]) -> None:
    """Run the tool, whose own agents have its name as their lane."""
    token = _LANE.set(call.name)
    try:
        await call_next()
    finally:
        _LANE.reset(token)


def _contents(messages: list[Message], kind: str) -> Iterator[Content]:
    return (content for message in messages for content in message.contents if content.type == kind)


def _is_local(content: Content) -> bool:
    """Whether the agent runs the call itself; 1.3 to 1.22 lack some of the marks of a service's own calls."""
    return not getattr(content, "informational_only", False) and not getattr(content, "hosted", False)


def _call(content: Content) -> ToolCall:
    return to_call(content.name or "", content.arguments, content.call_id)


def _mapping(arguments: BaseModel | Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the arguments of a call that no answer of the model tells of, e.g. one approved in a later run."""
    return arguments if isinstance(arguments, Mapping) else arguments.model_dump()


def _result(result: Any) -> ToolResult:
    """Return a result as a trajectory keeps it: its text, where it is nothing else."""
    parts = cast("list[Any]", result) if isinstance(result, list) else [result]
    kept = [_plain(part) for part in parts]
    return ToolResult(kept[0] if len(kept) == 1 else kept)


def _plain(part: Any) -> Any:
    if not isinstance(part, Content):
        return part
    return part.text if part.type == "text" else part.to_dict()


def _usage(used: Mapping[str, Any]) -> Usage:
    # The name of the cached count is 1.23's; before, every client had its own.
    cached = used.get("cache_read_input_token_count")
    return Usage(used.get("input_token_count"), used.get("output_token_count"), cached)
