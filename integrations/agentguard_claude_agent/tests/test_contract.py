"""The contract on the real CLI that the SDK's wheel carries, which talks to a scripted server on loopback."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import claude_agent_sdk as sdk
import pytest
from agentguard_claude_agent import GuardedClient, query
from scripted import configured, served

from agentguard import Run, RunHalted
from agentguard.testing.contract import Contract, Feature, Played, Reply

# 0.1.52 leaves the streams between its own tasks open.
pytestmark = pytest.mark.filterwarnings("ignore:Unclosed <MemoryObject:ResourceWarning")


async def asked_once(options: Any, run: Run | None) -> str | None:
    messages = sdk.query(prompt="go", options=options) if run is None else query(prompt="go", options=options, run=run)
    results = [message async for message in messages if isinstance(message, sdk.ResultMessage)]
    return results[-1].result


async def conversed(options: Any, run: Run) -> str | None:
    async with GuardedClient(options, run=run) as client:
        await client.query("go")
        results = [message async for message in client.receive_response() if isinstance(message, sdk.ResultMessage)]
    return results[-1].result


class ClaudeAgent:
    # UNKNOWN_TOOL: the CLI answers a name that it does not know before any hook (seen in 2.1.332).
    # TOOL_EXCEPTION: mcp makes an error result of it (mcp/server/lowlevel/server.py), which the CLI gives the model.
    features = frozenset(Feature) - {Feature.UNKNOWN_TOOL, Feature.TOOL_EXCEPTION}

    def play(
        self,
        replies: Sequence[Reply],
        tools: Mapping[str, Callable[..., Any]],
        *,
        run: Run | None,
        streaming: bool = False,
    ) -> Played:
        played = Played()
        with served(replies, played) as url, configured(url, tools, include_partial_messages=streaming) as options:
            try:
                played.final = asyncio.run(asked_once(options, run))
            except (Exception, RunHalted) as error:
                played.error = error
        return played

    async def play_async(
        self, replies: Sequence[Reply], tools: Mapping[str, Callable[..., Any]], *, run: Run | None
    ) -> Played:
        assert run is not None
        played = Played()
        with served(replies, played) as url, configured(url, tools) as options:
            try:
                played.final = await conversed(options, run)
            except (Exception, RunHalted) as error:
                played.error = error
        return played


class TestContract(Contract):
    driver = ClaudeAgent()
