"""The contract on real LangChain agents with a scripted chat model."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from agentguard_langchain import GuardMiddleware
from langchain.agents import create_agent
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import StructuredTool

from agentguard import Run
from agentguard.testing.contract import Contract, Feature, Played, Reply


class ScriptedModel(BaseChatModel):
    replies: list[Any]
    played: Any
    at: int = 0

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Any, **kwargs: Any) -> ScriptedModel:
        return self

    def _generate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        self.played.requests.append(history(messages))
        for message in messages:
            if isinstance(message, ToolMessage):
                self.played.answers[message.tool_call_id] = str(message.content)
        reply = self.replies[self.at]
        self.at += 1
        usage = reply.usage
        message = AIMessage(
            content=reply.text,
            tool_calls=[{"name": c.name, "args": dict(c.arguments), "id": c.id} for c in reply.calls],
            usage_metadata={
                "input_tokens": usage.input_tokens,
                "output_tokens": usage.output_tokens,
                "total_tokens": usage.input_tokens + usage.output_tokens,
            },
        )
        return ChatResult(generations=[ChatGeneration(message=message)])


def history(messages: list[BaseMessage]) -> list[tuple[str, str]]:
    seen: list[tuple[str, str]] = []
    for message in messages:
        if isinstance(message, AIMessage):
            seen += [("call", str(call["id"])) for call in message.tool_calls]
        if isinstance(message, ToolMessage):
            seen.append(("answer", message.tool_call_id))
    return seen


def as_tool(name: str, function: Callable[..., Any]) -> StructuredTool:
    if name == "wait":
        return StructuredTool.from_function(coroutine=function, name=name, description=name)
    return StructuredTool.from_function(function, name=name, description=name)


def agent_for(replies: Sequence[Reply], tools: Mapping[str, Callable[..., Any]], run: Run | None) -> tuple[Any, Played]:
    played = Played()
    model = ScriptedModel(replies=list(replies), played=played)
    middleware = [] if run is None else [GuardMiddleware(run)]
    return create_agent(model, [as_tool(*item) for item in tools.items()], middleware=middleware), played


class LangChain:
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
            if streaming:
                *_, last = agent.stream({"messages": [("user", "go")]}, stream_mode="values")
            else:
                last = agent.invoke({"messages": [("user", "go")]})
            played.final = last["messages"][-1].content
        except BaseException as error:
            played.error = error
        return played

    async def play_async(
        self, replies: Sequence[Reply], tools: Mapping[str, Callable[..., Any]], *, run: Run | None
    ) -> Played:
        agent, played = agent_for(replies, tools, run)
        try:
            last = await agent.ainvoke({"messages": [("user", "go")]})
            played.final = last["messages"][-1].content
        except Exception as error:
            played.error = error
        except BaseException as error:
            played.error = error
            if type(error).__name__ == "CancelledError":
                raise
        return played


class TestContract(Contract):
    driver = LangChain()
