"""The contract on loops over real OpenAI clients and a scripted server on loopback."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest
from agentguard_openai import run_tools, run_tools_async
from openai import AsyncOpenAI, OpenAI
from scripted import served

from agentguard import Guard, Run, RunHalted, Usage
from agentguard.testing.contract import Asked, Contract, Feature, Played, Reply, asking

SEARCH: dict[str, Any] = {"name": "search", "parameters": {"type": "object", "properties": {}}}
# Retries would hide a server that fails; the loopback needs no proxy of the machine's.
SETTINGS: dict[str, Any] = {"api_key": "none", "max_retries": 0}


class Chat:
    """The loop of chat completions."""

    features = frozenset(Feature)

    def __init__(self) -> None:
        self.request = {"model": "scripted", "tools": [{"type": "function", "function": SEARCH}]}

    def ask(self, client: Any, items: list[Any], *, streaming: bool) -> Any:
        if not streaming:
            return client.chat.completions.create(messages=items, **self.request)
        # `stream` left beta in 1.94.
        completions = client.chat.completions if hasattr(client.chat.completions, "stream") else None
        completions = completions or client.beta.chat.completions
        with completions.stream(messages=items, stream_options={"include_usage": True}, **self.request) as stream:
            return stream.get_final_completion()

    def said(self, response: Any) -> list[Any]:
        return [response.choices[0].message.model_dump(exclude_none=True, include={"role", "content", "tool_calls"})]

    def text(self, response: Any) -> str:
        return response.choices[0].message.content

    def play(
        self,
        replies: Sequence[Reply],
        tools: Mapping[str, Callable[..., Any]],
        *,
        run: Run | None,
        streaming: bool = False,
    ) -> Played:
        played = Played()
        items: list[Any] = [{"role": "user", "content": "go"}]
        with served(replies, played) as url, OpenAI(base_url=url, **SETTINGS) as client:
            try:
                while played.final is None:
                    response = self.ask(client, items, streaming=streaming)
                    answers = bare(response, tools) if run is None else run_tools(run, response, tools)
                    items += [*self.said(response), *answers]
                    played.final = None if answers else self.text(response)
            except (Exception, RunHalted) as error:
                played.error = error
        return played

    async def play_async(
        self, replies: Sequence[Reply], tools: Mapping[str, Callable[..., Any]], *, run: Run | None
    ) -> Played:
        assert run is not None
        played = Played()
        items: list[Any] = [{"role": "user", "content": "go"}]
        with served(replies, played) as url:
            async with AsyncOpenAI(base_url=url, **SETTINGS) as client:
                try:
                    while played.final is None:
                        response = await self.ask(client, items, streaming=False)
                        answers = await run_tools_async(run, response, tools)
                        items += [*self.said(response), *answers]
                        played.final = None if answers else self.text(response)
                except (Exception, RunHalted) as error:
                    played.error = error
        return played


class Responses(Chat):
    """The loop of responses."""

    def __init__(self) -> None:
        self.request = {"model": "scripted", "tools": [{"type": "function", "strict": False, **SEARCH}]}

    def ask(self, client: Any, items: list[Any], *, streaming: bool) -> Any:
        if not streaming:
            return client.responses.create(input=items, **self.request)
        with client.responses.stream(input=items, **self.request) as stream:
            return stream.get_final_response()

    def said(self, response: Any) -> list[Any]:
        return [item.model_dump(exclude_none=True, exclude={"parsed_arguments"}) for item in response.output]

    def text(self, response: Any) -> str:
        return response.output_text


def bare(response: Any, tools: Mapping[str, Callable[..., Any]]) -> list[Any]:
    """Answer a response as `run_tools` does, with a guard that has nothing to say."""
    from agentguard import Mode, Policy

    with Guard(Policy(mode=Mode.OBSERVE), quiet=True).run(model="none", harness="bare") as run:
        return run_tools(run, response, tools)


class TestChatContract(Contract):
    driver = Chat()


class TestResponsesContract(Contract):
    driver = Responses()


BOTH = pytest.mark.parametrize("driver", [Chat(), Responses()], ids=["chat", "responses"])


def search(query: str) -> str:
    return f"no hits for {query}"


@BOTH
def test_malformed_arguments_are_answered_and_the_loop_goes_on(driver: Chat):
    broken = Reply((Asked("search", {"raw": '{"query": "a'}, "call-0"),))
    with Guard(quiet=True).run(model="none", harness="test") as run:
        played = driver.play([broken, *asking("b", first=1)], {"search": search}, run=run)
    assert played.final == "done"
    assert "JSON" in played.answers["call-0"]
    assert run.trajectory.steps[0].call.raw_arguments == '{"query": "a'


@BOTH
def test_a_streamed_run_is_charged_and_its_arguments_are_whole(driver: Chat):
    with Guard(quiet=True).run(model="none", harness="test") as run:
        driver.play(asking("a", "b"), {"search": search}, run=run, streaming=True)
    assert run.ledger.tokens == 3 * 15
    assert [step.call.arguments for step in run.trajectory.steps] == [{"query": "a"}, {"query": "b"}]


def test_calls_of_one_turn_run_side_by_side():
    meeting = asyncio.Barrier(2)

    async def meet(at: int) -> str:
        await meeting.wait()
        return "met"

    turn = Reply(tuple(Asked("meet", {"at": at}, f"call-{at}") for at in range(2)), usage=Usage(1, 1))

    async def main() -> Played:
        with Guard(quiet=True).run(model="none", harness="test") as run:
            return await Chat().play_async([turn, Reply(text="done")], {"meet": meet}, run=run)

    assert asyncio.run(asyncio.wait_for(main(), 20)).answers == {"call-0": "met", "call-1": "met"}
