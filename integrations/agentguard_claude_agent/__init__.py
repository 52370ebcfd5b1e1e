"""The guard for the Claude Agent SDK: `query` and `GuardedClient` stand in for the SDK's `query` and `ClaudeSDKClient`.

with guard.run(model="claude-sonnet-5", harness="my agent 1.4") as run:
    async for message in query(prompt="why does the test fail?", options=options):
        ...
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterable
from typing import TYPE_CHECKING, Any

from agentguard import Run, RunHalted
from agentguard.layers import elsewhere

try:
    import claude_agent_sdk as sdk
except ImportError as error:
    from agentguard import IntegrationMissing

    raise IntegrationMissing("claude-agent-sdk", "claude-agent") from error

from agentguard_claude_agent.declared import declared
from agentguard_claude_agent.session import Session

if TYPE_CHECKING:
    from claude_agent_sdk import ClaudeAgentOptions, Message, Transport

__all__ = ["GuardedClient", "declared", "query"]


async def query(
    *,
    prompt: str | AsyncIterable[dict[str, Any]],
    options: ClaudeAgentOptions | None = None,
    transport: Transport | None = None,
    run: Run | None = None,
) -> AsyncGenerator[Message]:
    """Yield the messages of the SDK's `query`, every tool call judged; asyncio only.

    `run` judges; None means the run whose `with` block this is iterated in, AgentGuardError when there is none. A
    refused call gives the model the feedback. A halt ends the CLI and leaves as `RunHalted`.
    """
    # Through a client, because only a client can stop the CLI: it goes on for seconds after its input has ended.
    client = GuardedClient(options, transport, run=run)
    try:
        await client.connect(_streamed(prompt) if isinstance(prompt, str) else prompt)
        async for message in client.receive_messages():
            yield message
    finally:
        await client.disconnect()


class GuardedClient(sdk.ClaudeSDKClient):
    """A `ClaudeSDKClient` whose every tool call is judged; asyncio only.

    A refused call gives the model the feedback. A halt interrupts the CLI and leaves `receive_response` and
    `receive_messages` as `RunHalted`, in place of the result; until `Run.resume`, `query` raises it too.
    """

    def __init__(
        self, options: ClaudeAgentOptions | None = None, transport: Transport | None = None, *, run: Run | None = None
    ) -> None:
        """Guard by `run`; None means the run whose `with` block `connect` or, later, `query` is called in."""
        self._unguarded = options or sdk.ClaudeAgentOptions()
        super().__init__(self._unguarded, transport)
        self._run = run
        self._session: Session | None = None
        """What guards the connection; None while there is none."""
        self._pump: asyncio.Task[None] | None = None

    async def connect(self, prompt: str | AsyncIterable[dict[str, Any]] | None = None) -> None:
        """As the SDK's; AgentGuardError when no run is active."""
        session = Session(self._unguarded, self._run)
        session.enter()
        self._session, self.options = session, session.options
        with elsewhere(session.running):  # the SDK's tasks, which run tools of this process, start in here
            await super().connect(prompt)
        session.is_busy = prompt is not None
        self._pump = asyncio.create_task(session.pump(super().receive_messages()))

    async def query(self, prompt: str | AsyncIterable[dict[str, Any]], session_id: str = "default") -> None:
        """As the SDK's; RunHalted when the run was halted."""
        if self._session is not None:
            run = self._session.enter()
            if run.halted is not None:
                raise RunHalted(run.halted, run.trajectory)
            self._session.is_busy = True
        await super().query(prompt, session_id)

    async def receive_messages(self) -> AsyncGenerator[Message]:
        """As the SDK's; RunHalted in place of the result of a run that was halted."""
        session = self._session
        async for message in super().receive_messages() if session is None else session.messages(self.interrupt):
            yield message

    async def disconnect(self) -> None:
        """As the SDK's, after interrupting a turn that is under way. Calls that still run count as cancelled."""
        try:
            if self._session is not None:
                # When its input ends the CLI goes on for seconds, and asks no hook any more (seen in 2.1.332).
                await self._session.stop(self.interrupt)
        finally:
            await self._left()

    async def _left(self) -> None:
        session, pump, self._session, self._pump = self._session, self._pump, None, None
        try:
            await super().disconnect()
        finally:
            if session is not None:
                await session.close(pump)


async def _streamed(prompt: str) -> AsyncGenerator[dict[str, Any]]:
    message = {"role": "user", "content": prompt}
    yield {"type": "user", "message": message, "parent_tool_use_id": None, "session_id": ""}
