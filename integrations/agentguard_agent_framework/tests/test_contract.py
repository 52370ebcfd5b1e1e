"""The contract on real agents of Agent Framework with a scripted chat client."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Any

from agent_framework import (
    Agent,
    BaseChatClient,
    ChatMiddlewareLayer,
    ChatResponse,
    ChatResponseUpdate,
    Content,
    FunctionInvocationLayer,
    Message,
    tool,
)
from agentguard_agent_framework import guard_middleware

from agentguard import Run
from agentguard.testing.contract import Contract, Feature, Played, Reply


class ScriptedClient(FunctionInvocationLayer[Any], ChatMiddlewareLayer[Any], BaseChatClient[Any]):
    def __init__(self, replies: Sequence[Reply], played: Played, **settings: Any) -> None:
        super().__init__(**settings)
        self.replies = iter(replies)
        self.played = played

    def _inner_get_response(self, *, messages: Any, stream: bool, options: Any, **kwargs: Any) -> Any:
        self.played.requests.append(history(messages, self.played.answers))
        reply = next(self.replies)
        if stream:
            return self._build_response_stream(self.updates(reply))
        return self.answer(reply)

    async def answer(self, reply: Reply) -> ChatResponse[Any]:
        message = Message(role="assistant", contents=contents(reply))
        return ChatResponse(messages=[message], usage_details=usage(reply))

    async def updates(self, reply: Reply) -> AsyncIterator[ChatResponseUpdate]:
        for content in [*contents(reply), Content.from_usage(usage(reply))]:
            yield ChatResponseUpdate(role="assistant", contents=[content])


def contents(reply: Reply) -> list[Content]:
    asked = [Content.from_function_call(c.id, c.name, arguments=json.dumps(dict(c.arguments))) for c in reply.calls]
    return [*([Content.from_text(reply.text)] if reply.text else []), *asked]


def usage(reply: Reply) -> Any:
    return {"input_token_count": reply.usage.input_tokens, "output_token_count": reply.usage.output_tokens}


def history(messages: Sequence[Message], answers: dict[str, str]) -> list[tuple[str, str]]:
    seen: list[tuple[str, str]] = []
    for message in messages:
        for content in message.contents:
            if content.type == "function_call":
                seen.append(("call", content.call_id or ""))
            if content.type == "function_result":
                seen.append(("answer", content.call_id or ""))
                answers[content.call_id or ""] = str(content.result)
    return seen


def agent_for(replies: Sequence[Reply], tools: Mapping[str, Callable[..., Any]], run: Run | None) -> tuple[Any, Played]:
    played = Played()
    made = [tool(function, name=name, description=name) for name, function in tools.items()]
    middleware: list[Any] = [] if run is None else guard_middleware(run)
    return Agent(ScriptedClient(replies, played), tools=made, middleware=middleware), played


async def streamed(agent: Any) -> str:
    return "".join([update.text async for update in agent.run("go", stream=True)])


async def plainly(agent: Any) -> str:
    return str((await agent.run("go")).text)


class AgentFramework:
    # The loop makes a result of a tool's exception (`_auto_invoke_function` in _tools.py), so its type is gone.
    features = frozenset(Feature) - {Feature.TOOL_EXCEPTION}

    def play(
        self,
        replies: Sequence[Reply],
        tools: Mapping[str, Callable[..., Any]],
        *,
        run: Run | None,
        streaming: bool = False,
    ) -> Played:
        agent, played = agent_for(replies, tools, run)
        try:
            played.final = asyncio.run(streamed(agent) if streaming else plainly(agent))
        except BaseException as error:
            played.error = error
        return played

    async def play_async(
        self, replies: Sequence[Reply], tools: Mapping[str, Callable[..., Any]], *, run: Run | None
    ) -> Played:
        agent, played = agent_for(replies, tools, run)
        try:
            played.final = await plainly(agent)
        except Exception as error:
            played.error = error
        except BaseException as error:
            played.error = error
            if type(error).__name__ == "CancelledError":
                raise
        return played


class TestContract(Contract):
    driver = AgentFramework()
