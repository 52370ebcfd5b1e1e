"""The contract on real Pydantic AI agents with a scripted model, and what only this framework has."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from typing import Any

from agentguard_pydantic_ai import GuardCapability
from pydantic_ai import Agent, Tool
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import DeltaToolCall, FunctionModel
from pydantic_ai.usage import RequestUsage

from agentguard import Run
from agentguard.testing.contract import Contract, Feature, Played, Reply


def scripted(replies: Sequence[Reply], played: Played) -> FunctionModel:
    script = iter(replies)

    def answer(messages: list[ModelMessage], info: Any) -> ModelResponse:
        played.requests.append(history(messages, played.answers))
        reply = next(script)
        calls = [ToolCallPart(call.name, dict(call.arguments), tool_call_id=call.id) for call in reply.calls]
        used = RequestUsage(input_tokens=reply.usage.input_tokens or 0, output_tokens=reply.usage.output_tokens or 0)
        return ModelResponse(parts=[*([TextPart(reply.text)] if reply.text else []), *calls], usage=used)

    async def stream(messages: list[ModelMessage], info: Any) -> AsyncGenerator[Any, None]:
        for index, part in enumerate(answer(messages, info).parts):
            if isinstance(part, TextPart):
                yield part.content
            elif isinstance(part, ToolCallPart):
                yield {index: DeltaToolCall(part.tool_name, part.args_as_json_str(), tool_call_id=part.tool_call_id)}

    return FunctionModel(answer, stream_function=stream)


def history(messages: list[ModelMessage], answers: dict[str, str]) -> list[tuple[str, str]]:
    seen: list[tuple[str, str]] = []
    for part in (part for message in messages for part in message.parts):
        if part.part_kind == "tool-call":
            seen.append(("call", part.tool_call_id))
        elif part.part_kind in ("tool-return", "retry-prompt"):
            seen.append(("answer", part.tool_call_id))
            answers[part.tool_call_id] = str(part.content)
    return seen


def agent_for(
    replies: Sequence[Reply], tools: Mapping[str, Callable[..., Any]], run: Run | None
) -> tuple[Agent[None, str], Played]:
    played = Played()
    made = [Tool(function, name=name) for name, function in tools.items()]
    capabilities = [] if run is None else [GuardCapability(run)]
    return Agent(scripted(replies, played), tools=made, capabilities=capabilities), played


async def plainly(agent: Agent[None, str]) -> str:
    # Not `run_sync`: it leaves the event loop that it makes unclosed, which is a warning at the end.
    return (await agent.run("go")).output


async def streamed(agent: Agent[None, str]) -> str:
    async with agent.run_stream("go") as stream:
        return await stream.get_output()


class PydanticAI:
    features = frozenset(Feature)

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
            if isinstance(error, asyncio.CancelledError):
                raise
        return played


class TestContract(Contract):
    driver = PydanticAI()
