"""The contract on real ADK runners with a scripted model."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from typing import Any

from agentguard_adk import GuardPlugin
from google.adk.agents import LlmAgent
from google.adk.apps import App
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_response import LlmResponse
from google.adk.runners import InMemoryRunner
from google.genai import types

from agentguard import Run
from agentguard.testing.contract import Contract, Feature, Played, Reply


class ScriptedModel(BaseLlm):
    model: str = "scripted"
    replies: list[Any]
    played: Any
    at: int = 0

    async def generate_content_async(self, llm_request: Any, stream: bool = False) -> AsyncGenerator[LlmResponse, None]:
        self.played.requests.append(history(llm_request.contents, self.played.answers))
        reply: Reply = self.replies[self.at]
        self.at += 1
        parts = [types.Part(text=reply.text)] if reply.text else []
        parts += [
            types.Part(function_call=types.FunctionCall(id=call.id, name=call.name, args=dict(call.arguments)))
            for call in reply.calls
        ]
        yield LlmResponse(
            content=types.Content(role="model", parts=parts),
            usage_metadata=types.GenerateContentResponseUsageMetadata(
                prompt_token_count=reply.usage.input_tokens, candidates_token_count=reply.usage.output_tokens
            ),
        )


def history(contents: Any, answers: dict[str, str]) -> list[tuple[str, str]]:
    seen: list[tuple[str, str]] = []
    for content in contents:
        for part in content.parts or []:
            if part.function_call:
                seen.append(("call", part.function_call.id or part.function_call.name))
            if part.function_response:
                name = part.function_response.id or part.function_response.name
                seen.append(("answer", name))
                response = part.function_response.response or {}
                answers[name] = str(response.get("result", response.get("error", response)))
    return seen


class Adk:
    # ADK streams every run: `run_async` gives events as they come.
    features = frozenset(Feature)

    def play(
        self,
        replies: Sequence[Reply],
        tools: Mapping[str, Callable[..., Any]],
        *,
        run: Run | None,
        streaming: bool = False,
    ) -> Played:
        return asyncio.run(self.play_async(replies, tools, run=run))

    async def play_async(
        self, replies: Sequence[Reply], tools: Mapping[str, Callable[..., Any]], *, run: Run | None
    ) -> Played:
        played = Played()
        agent = LlmAgent(
            name="agent", model=ScriptedModel(replies=list(replies), played=played), tools=list(tools.values())
        )
        plugins = [] if run is None else [GuardPlugin(run)]
        runner = InMemoryRunner(app=App(name="app", root_agent=agent, plugins=plugins))
        session = await runner.session_service.create_session(app_name="app", user_id="user")
        message = types.Content(role="user", parts=[types.Part(text="go")])
        try:
            async for event in runner.run_async(user_id="user", session_id=session.id, new_message=message):
                if event.is_final_response() and event.content and event.content.parts:
                    played.final = event.content.parts[0].text
        except Exception as error:
            played.error = error
        except BaseException as error:
            played.error = error
            if type(error).__name__ == "CancelledError":
                raise
        return played


class TestContract(Contract):
    driver = Adk()
