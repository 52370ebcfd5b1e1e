"""The contract on real Strands agents with a scripted model."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from typing import Any

from agentguard_strands import GuardHooks
from strands import Agent, tool
from strands.models import Model

from agentguard import Run
from agentguard.testing.contract import Contract, Feature, Played, Reply


class ScriptedModel(Model):
    def __init__(self, replies: Sequence[Reply], played: Played) -> None:
        self.replies = iter(replies)
        self.played = played

    def update_config(self, **model_config: Any) -> None: ...

    def get_config(self) -> dict[str, Any]:
        return {}

    def structured_output(self, *args: Any, **kwargs: Any) -> Any:
        raise AssertionError("no contract asks for it")

    async def stream(self, messages: Any, *args: Any, **kwargs: Any) -> AsyncGenerator[Any, None]:
        self.played.requests.append(history(messages, self.played.answers))
        reply = next(self.replies)
        yield {"messageStart": {"role": "assistant"}}
        if reply.text:
            yield {"contentBlockStart": {"start": {}}}
            yield {"contentBlockDelta": {"delta": {"text": reply.text}}}
            yield {"contentBlockStop": {}}
        for call in reply.calls:
            yield {"contentBlockStart": {"start": {"toolUse": {"name": call.name, "toolUseId": call.id}}}}
            yield {"contentBlockDelta": {"delta": {"toolUse": {"input": json.dumps(dict(call.arguments))}}}}
            yield {"contentBlockStop": {}}
        yield {"messageStop": {"stopReason": "tool_use" if reply.calls else "end_turn"}}
        used = {"inputTokens": reply.usage.input_tokens, "outputTokens": reply.usage.output_tokens}
        yield {"metadata": {"usage": {**used, "totalTokens": 15}, "metrics": {"latencyMs": 1}}}


def history(messages: Any, answers: dict[str, str]) -> list[tuple[str, str]]:
    seen: list[tuple[str, str]] = []
    for message in messages:
        for block in message["content"]:
            if "toolUse" in block:
                seen.append(("call", block["toolUse"]["toolUseId"]))
            if "toolResult" in block:
                result = block["toolResult"]
                seen.append(("answer", result["toolUseId"]))
                answers[result["toolUseId"]] = " ".join(part.get("text", "") for part in result["content"])
    return seen


def agent_for(replies: Sequence[Reply], tools: Mapping[str, Callable[..., Any]], run: Run | None) -> tuple[Any, Played]:
    played = Played()
    made = [tool(name=name, description=name)(function) for name, function in tools.items()]
    hooks = [] if run is None else [GuardHooks(run)]
    model = ScriptedModel(replies, played)
    return Agent(model=model, tools=made, hooks=hooks, callback_handler=None), played


class Strands:
    # Strands turns a tool's exception into a result with status "error" (tools/decorator.py), so its type is gone.
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
            played.final = str(agent("go")).strip()
        except BaseException as error:
            played.error = error
        return played

    async def play_async(
        self, replies: Sequence[Reply], tools: Mapping[str, Callable[..., Any]], *, run: Run | None
    ) -> Played:
        agent, played = agent_for(replies, tools, run)
        try:
            async for event in agent.stream_async("go"):
                if "result" in event:
                    played.final = str(event["result"]).strip()
        except Exception as error:
            played.error = error
        except BaseException as error:
            played.error = error
            if type(error).__name__ == "CancelledError":
                raise
        return played


class TestContract(Contract):
    driver = Strands()
