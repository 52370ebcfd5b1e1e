"""The contract on real agents of smolagents with a scripted model."""

# mypy: disable-error-code="import-untyped"

from __future__ import annotations

import ast
import inspect
import json
from collections.abc import Callable, Generator, Mapping, Sequence
from typing import Any

from agentguard_smolagents import guard_agent
from smolagents import ChatMessage, CodeAgent, LogLevel, MessageRole, Model, MultiStepAgent, Tool, ToolCallingAgent
from smolagents.models import (
    ChatMessageStreamDelta,
    ChatMessageToolCall,
    ChatMessageToolCallFunction,
    ChatMessageToolCallStreamDelta,
)
from smolagents.monitoring import TokenUsage

from agentguard import Run
from agentguard.testing.contract import Asked, Contract, Feature, Played, Reply


class ScriptedModel(Model):  # type: ignore[misc, unused-ignore]
    """Asks for the calls of its replies; a reply without any is the final answer."""

    def __init__(self, replies: Sequence[Reply], played: Played) -> None:
        super().__init__()
        self.replies = iter(replies)
        self.given: list[Reply] = []
        self.played = played

    def generate(self, messages: list[ChatMessage], *args: Any, **kwargs: Any) -> ChatMessage:
        reply = self.next(messages)
        calls = list(reply.calls) or [Asked("final_answer", {"answer": reply.text}, "final")]
        return ChatMessage(role=MessageRole.ASSISTANT, content=None, tool_calls=asked(calls), token_usage=usage(reply))

    def next(self, messages: list[ChatMessage]) -> Reply:
        self.played.requests.append(history(messages, self.given, self.played.answers))
        self.given.append(next(self.replies))
        return self.given[-1]


class StreamingModel(ScriptedModel):
    def generate_stream(
        self, messages: list[ChatMessage], *args: Any, **kwargs: Any
    ) -> Generator[ChatMessageStreamDelta]:
        answer = self.generate(messages)
        for index, call in enumerate(answer.tool_calls or []):
            yield ChatMessageStreamDelta(tool_calls=[streamed(call, index)])
        yield ChatMessageStreamDelta(content=answer.content, token_usage=answer.token_usage)


class CodingModel(ScriptedModel):
    """Writes one line of code for each call."""

    def generate(self, messages: list[ChatMessage], *args: Any, **kwargs: Any) -> ChatMessage:
        reply = self.next(messages)
        code = "\n".join([line(call) for call in reply.calls] or [f"final_answer({reply.text!r})"])
        return ChatMessage(role=MessageRole.ASSISTANT, content=f"<code>\n{code}\n</code>", token_usage=usage(reply))


def line(call: Asked) -> str:
    arguments = ", ".join(f"{name}={value!r}" for name, value in call.arguments.items())
    return f"print({call.name}({arguments}))"


def asked(calls: Sequence[Asked]) -> list[ChatMessageToolCall]:
    return [
        ChatMessageToolCall(
            id=call.id,
            type="function",
            function=ChatMessageToolCallFunction(name=call.name, arguments=dict(call.arguments)),
        )
        for call in calls
    ]


def usage(reply: Reply) -> TokenUsage:
    return TokenUsage(reply.usage.input_tokens or 0, reply.usage.output_tokens or 0)


def streamed(call: ChatMessageToolCall, index: int) -> ChatMessageToolCallStreamDelta:
    function = ChatMessageToolCallFunction(name=call.function.name, arguments=json.dumps(call.function.arguments))
    return ChatMessageToolCallStreamDelta(index=index, id=call.id, type="function", function=function)


def history(messages: list[ChatMessage], given: list[Reply], answers: dict[str, str]) -> list[tuple[str, str]]:
    """Read the calls of each step, and what came back for all of them as one text."""
    seen: list[tuple[str, str]] = []
    waiting: list[str] = []
    for message in messages:
        if message.role == MessageRole.TOOL_CALL:
            waiting = called(text_of(message), given)
            seen += [("call", one) for one in waiting]
        if message.role == MessageRole.TOOL_RESPONSE:  # alone where a tool raised: that step keeps no calls
            seen += [("answer", one) for one in waiting]
            answers.update(dict.fromkeys(waiting, text_of(message)))
            waiting = []
    return seen


def called(text: str, given: list[Reply]) -> list[str]:
    calls = ast.literal_eval(text.removeprefix("Calling tools:\n"))
    if calls[0]["function"]["name"] == "python_interpreter":  # one for all the code; numbered by the step
        return [call.id for call in given[int(calls[0]["id"].removeprefix("call_")) - 1].calls]
    return [call["id"] for call in calls]


def text_of(message: ChatMessage) -> str:
    assert isinstance(message.content, list)
    return str(message.content[0]["text"])


def as_tool(name: str, function: Callable[..., Any]) -> Tool:
    inputs = {one: {"type": "string", "description": one} for one in inspect.signature(function).parameters}
    body = {"name": name, "description": name, "inputs": inputs, "output_type": "string"}
    made = type(name, (Tool,), {**body, "skip_forward_signature_validation": True, "forward": staticmethod(function)})
    return made()


class ToolCalling:
    # No part of smolagents is asynchronous; a tool's exception is made an error of the step (`execute_tool_call` and
    # `_run_stream` in agents.py), so its type is gone.
    features = frozenset(Feature) - {Feature.ASYNC, Feature.TOOL_EXCEPTION}

    def agent(self, replies: Sequence[Reply], tools: list[Tool], played: Played, *, streaming: bool) -> MultiStepAgent:
        kind = StreamingModel if streaming else ScriptedModel
        return ToolCallingAgent(
            tools=tools, model=kind(replies, played), stream_outputs=streaming, verbosity_level=LogLevel.OFF
        )

    def play(
        self,
        replies: Sequence[Reply],
        tools: Mapping[str, Callable[..., Any]],
        *,
        run: Run | None,
        streaming: bool = False,
    ) -> Played:
        played = Played()
        agent = self.agent(replies, [as_tool(*item) for item in tools.items()], played, streaming=streaming)
        if run is not None:
            guard_agent(agent, run)
        try:
            played.final = last(agent.run("go", stream=True)) if streaming else agent.run("go")
        except BaseException as error:
            played.error = error
        return played

    async def play_async(self, *args: Any, **kwargs: Any) -> Played:
        raise AssertionError("nothing is asynchronous here")


def last(steps: Any) -> str:
    *_, final = steps
    return str(final.output)


class Coding(ToolCalling):
    # Code makes its calls one after another, and a name that it does not know is an error before any call.
    features = ToolCalling.features - {Feature.PARALLEL, Feature.UNKNOWN_TOOL}

    def agent(self, replies: Sequence[Reply], tools: list[Tool], played: Played, *, streaming: bool) -> MultiStepAgent:
        return CodeAgent(tools=tools, model=CodingModel(replies, played), verbosity_level=LogLevel.OFF)


class TestToolCallingAgent(Contract):
    driver = ToolCalling()


class TestCodeAgent(Contract):
    driver = Coding()
