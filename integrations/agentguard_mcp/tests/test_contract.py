"""The contract on a real FastMCP server and a real MCP client session, joined in memory, called by a script."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from importlib.metadata import version
from typing import Any

import pytest
from agentguard_mcp.client import GuardedSession
from agentguard_mcp.server import GuardMiddleware
from fastmcp import Client, FastMCP

from agentguard import AgentGuardError, Guard, Run, RunHalted, ToolCall
from agentguard.testing.contract import Asked, Contract, Feature, Played, Reply

MCP_1 = version("mcp").startswith("1.")

# There is no model in MCP: nothing to stream, and no usage. A tool's exception travels as text in an error result.
_NOT_IN_MCP = {Feature.STREAMING, Feature.USAGE, Feature.TOOL_EXCEPTION}
# tools/call does not say which calls belong together, and a halt is answered like any refusal: the other side of the
# wire cannot be raised at.
_NOT_ON_A_SERVER = {Feature.PARALLEL, Feature.HALT_RAISES}


def server_with(tools: Mapping[str, Callable[..., Any]], *middleware: Any) -> FastMCP:
    server: FastMCP = FastMCP("contract", middleware=list(middleware))
    for name, function in tools.items():
        server.tool(function, name=name)
    return server


async def run_script(session: Any, replies: Sequence[Reply], run: Run | None, played: Played) -> None:
    """Do what an agent loop does whose model gives these replies, until the run is halted."""
    seen: list[tuple[str, str]] = []
    for reply in replies:
        played.requests.append(list(seen))
        if not reply.calls:
            played.final = reply.text
            return
        seen += [("call", asked.id) for asked in reply.calls]
        await call_all(session, reply.calls, run, played)
        seen += [("answer", asked.id) for asked in reply.calls]
        if run is not None and run.halted is not None:
            return


async def call_all(session: Any, calls: Sequence[Asked], run: Run | None, played: Played) -> None:
    async def answer(asked: Asked) -> None:
        result = await session.call_tool(asked.name, dict(asked.arguments))
        played.answers[asked.id] = "".join(block.text for block in result.content)

    if run is None or len(calls) == 1:
        await asyncio.gather(*map(answer, calls))
        return
    with run.turn([ToolCall(asked.name, asked.arguments) for asked in calls]):
        await asyncio.gather(*map(answer, calls))


class OnServer:
    features = frozenset(Feature) - _NOT_IN_MCP - _NOT_ON_A_SERVER

    @asynccontextmanager
    async def session(self, tools: Mapping[str, Callable[..., Any]], run: Run | None) -> AsyncIterator[Any]:
        async with Client(server_with(tools, *([] if run is None else [GuardMiddleware(run)]))) as client:
            yield client.session

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
        async with self.session(tools, run) as session:
            try:
                await run_script(session, replies, run, played)
            except (Exception, RunHalted) as error:
                played.error = error
        return played


class OnClient(OnServer):
    features = frozenset(Feature) - _NOT_IN_MCP

    @asynccontextmanager
    async def session(self, tools: Mapping[str, Callable[..., Any]], run: Run | None) -> AsyncIterator[Any]:
        async with Client(server_with(tools)) as client:
            yield client.session if run is None else GuardedSession(client.session, run)


class TestServerContract(Contract):
    driver = OnServer()


class TestClientContract(Contract):
    driver = OnClient()

    # mcp 1 runs a server's handlers in the context of its connection, not of the request: guarded on both sides of the
    # wire by one run, which takes both sides in one process, a call counts twice.
    @pytest.mark.skipif(MCP_1, reason="mcp 1 does not carry the context of a call to a server in the same process")
    def test_a_call_is_counted_once_when_the_tool_itself_is_guarded_too(self) -> None:
        super().test_a_call_is_counted_once_when_the_tool_itself_is_guarded_too()


def read(path: str) -> str:
    """Read a file."""
    raise OSError(f"cannot read {path}")


@pytest.mark.parametrize("driver", [OnServer(), OnClient()], ids=["server", "client"])
def test_a_refused_call_is_an_error_result_on_the_wire(driver: OnServer):
    def search(query: str) -> str:
        return f"no hits for {query}"

    async def main() -> list[bool]:
        with Guard(quiet=True).run(model="none", harness="test") as run:
            async with driver.session({"search": search}, run) as session:
                results = [await session.call_tool("search", {"query": "a"}) for _ in range(3)]
        return [result.model_dump(by_alias=True)["isError"] for result in results]

    assert asyncio.run(main()) == [False, False, True]


def test_a_halted_run_leaves_the_server_up_and_says_so_to_the_client():
    played = Played()

    async def main() -> list[str]:
        with Guard(quiet=True).run(model="none", harness="test") as run:
            async with OnServer().session({"read": read}, run) as session:
                for at in range(12):
                    await call_all(session, [Asked("read", {"path": "x"}, f"call-{at}")], run, played)
                return [tool.name for tool in (await session.list_tools()).tools]

    assert asyncio.run(main()) == ["read"]
    assert len(played.answers) == 12
    assert "cannot read x" not in played.answers["call-11"]


def test_a_guarded_session_without_a_run_names_the_way_out():
    async def main() -> None:
        async with Client(server_with({"read": read})) as client:
            await GuardedSession(client.session).call_tool("read", {"path": "x"})

    with pytest.raises(AgentGuardError, match="pass run="):
        asyncio.run(main())


def test_a_guarded_session_finds_the_run_of_its_block():
    async def main() -> None:
        async with Client(server_with({"read": read})) as client:
            await GuardedSession(client.session).call_tool("read", {"path": "x"})

    with Guard(quiet=True).run(model="none", harness="test") as run:
        asyncio.run(main())
    (step,) = run.trajectory.steps
    assert step.result is not None
    assert step.result.is_error
