"""The contract on a loop over real Anthropic clients and a scripted server on loopback."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest
from agentguard_anthropic import run_tools, run_tools_async
from anthropic import Anthropic, AsyncAnthropic
from anthropic.types import Message, ToolUseBlock
from scripted import as_message, served

from agentguard import Guard, Mode, Policy, Run, RunHalted
from agentguard.testing.contract import Asked, Contract, Feature, Played, Reply, asking

REQUEST: dict[str, Any] = {
    "model": "scripted",
    "max_tokens": 100,
    "tools": [{"name": "search", "input_schema": {"type": "object", "properties": {}}}],
}
# Retries would hide a server that fails.
SETTINGS: dict[str, Any] = {"api_key": "none", "max_retries": 0}


def ask(client: Any, messages: list[Any], *, streaming: bool) -> Any:
    if not streaming:
        return client.messages.create(messages=messages, **REQUEST)
    with client.messages.stream(messages=messages, **REQUEST) as stream:
        return stream.get_final_message()


def bare(response: Any, tools: Mapping[str, Callable[..., Any]]) -> list[Any]:
    """Answer a response as `run_tools` does, with a guard that has nothing to say."""
    with Guard(Policy(mode=Mode.OBSERVE), quiet=True).run(model="none", harness="bare") as run:
        return run_tools(run, response, tools)


class Loop:
    features = frozenset(Feature)

    def play(
        self,
        replies: Sequence[Reply],
        tools: Mapping[str, Callable[..., Any]],
        *,
        run: Run | None,
        streaming: bool = False,
    ) -> Played:
        played = Played()
        messages: list[Any] = [{"role": "user", "content": "go"}]
        with served(replies, played) as url, Anthropic(base_url=url, **SETTINGS) as client:
            try:
                while played.final is None:
                    response = ask(client, messages, streaming=streaming)
                    answers = bare(response, tools) if run is None else run_tools(run, response, tools)
                    messages += [{"role": "assistant", "content": response.content}, *answers]
                    played.final = None if answers else response.content[0].text
            except (Exception, RunHalted) as error:
                played.error = error
        return played

    async def play_async(
        self, replies: Sequence[Reply], tools: Mapping[str, Callable[..., Any]], *, run: Run | None
    ) -> Played:
        assert run is not None
        played = Played()
        messages: list[Any] = [{"role": "user", "content": "go"}]
        with served(replies, played) as url:
            async with AsyncAnthropic(base_url=url, **SETTINGS) as client:
                try:
                    while played.final is None:
                        response = await ask(client, messages, streaming=False)
                        answers = await run_tools_async(run, response, tools)
                        messages += [{"role": "assistant", "content": response.content}, *answers]
                        played.final = None if answers else response.content[0].text
                except (Exception, RunHalted) as error:
                    played.error = error
        return played


class TestContract(Contract):
    driver = Loop()


def search(query: str) -> str:
    return f"no hits for {query}"


def test_arguments_that_are_no_object_are_answered_as_an_error():
    block = ToolUseBlock.model_construct(type="tool_use", id="call-0", name="search", input="failing test")
    message = Message.model_validate(as_message(Reply())).model_copy(update={"content": [block]})
    with Guard(quiet=True).run(model="none", harness="test") as run:
        (answer,) = run_tools(run, message, {"search": search})
    assert [result["is_error"] for result in answer["content"]] == [True]
    assert "JSON" in answer["content"][0]["content"]
    assert run.trajectory.steps[0].call.raw_arguments == "failing test"


def test_a_streamed_run_is_charged_and_its_arguments_are_whole():
    with Guard(quiet=True).run(model="none", harness="test") as run:
        Loop().play(asking("a", "b"), {"search": search}, run=run, streaming=True)
    assert run.ledger.tokens == 3 * 15
    assert [step.call.arguments for step in run.trajectory.steps] == [{"query": "a"}, {"query": "b"}]


def test_results_of_one_turn_are_one_message():
    turn = as_message(Reply(tuple(Asked("search", {"query": q}, q) for q in "ab")))
    with Guard(quiet=True).run(model="none", harness="test") as run:
        (message,) = run_tools(run, Message.model_validate(turn), {"search": search})
    assert [block["tool_use_id"] for block in message["content"]] == ["a", "b"]
    assert [block["is_error"] for block in message["content"]] == [False, False]


@pytest.mark.parametrize(("read", "written"), [(30, 0), (0, 20), (30, 20)])
def test_tokens_of_the_cache_are_input_tokens(read: int, written: int):
    data = as_message(Reply(text="done"))
    data["usage"] |= {"cache_read_input_tokens": read, "cache_creation_input_tokens": written}
    with Guard(quiet=True).run(model="none", harness="test") as run:
        run_tools(run, Message.model_validate(data), {})
    used = run.trajectory.usage
    assert used is not None
    assert (used.input_tokens, used.output_tokens, used.cached_tokens) == (10 + read + written, 5, read)


def test_calls_of_one_turn_run_side_by_side():
    async def main() -> Played:
        meeting = asyncio.Barrier(2)

        async def meet(at: int) -> str:
            await meeting.wait()
            return "met"

        turn = Reply(tuple(Asked("meet", {"at": at}, f"call-{at}") for at in range(2)))
        with Guard(quiet=True).run(model="none", harness="test") as run:
            return await Loop().play_async([turn, Reply(text="done")], {"meet": meet}, run=run)

    assert asyncio.run(asyncio.wait_for(main(), 20)).answers == {"call-0": "met", "call-1": "met"}
