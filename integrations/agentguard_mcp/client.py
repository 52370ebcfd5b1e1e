"""The guard around an MCP client session.

session = GuardedSession(session)
await session.call_tool("search", {"query": "failing test"})
"""

from __future__ import annotations

from typing import Any

from agentguard import AgentGuardError, Run, ToolCall, current_run
from agentguard_mcp.results import recorded

try:
    from mcp.types import CallToolResult
except ImportError as error:
    from agentguard import IntegrationMissing

    raise IntegrationMissing("mcp", "mcp") from error

__all__ = ["GuardedSession"]


class GuardedSession:
    """A `ClientSession` or `Client` of mcp whose tool calls are judged before they are sent.

    A refused call returns a result with `isError` and the feedback as its text. A halt raises `RunHalted`. Everything
    else is the session's own.
    """

    def __init__(self, session: Any, run: Run | None = None) -> None:
        """Guard by `run`; None means the run whose `with` block a call is made in."""
        self._session = session
        self._run = run

    def __getattr__(self, name: str) -> Any:
        return getattr(self._session, name)

    @property
    def run(self) -> Run:
        """The run that judges; AgentGuardError when there is none."""
        run = self._run or current_run()
        if run is None:
            raise AgentGuardError("no run is active; call the tool inside `with guard.run(...)`, or pass run=")
        return run

    async def call_tool(self, name: str, arguments: dict[str, Any] | None = None, *args: Any, **settings: Any) -> Any:
        """Judge the call; send it, or answer it with the feedback. Further arguments are the session's own."""
        run = self.run
        attempt = await run.begin_async(ToolCall(name, arguments or {}))
        if attempt.feedback is not None:
            return _refusal(attempt.feedback)
        try:
            result = await self._session.call_tool(name, arguments, *args, **settings)
        except BaseException as error:
            run.raised(attempt, error)
            raise
        # A session that was told to may give back a request for input instead, which says nothing of the tool.
        run.returned(attempt, _recorded(result) if isinstance(result, CallToolResult) else None)
        return result


def _recorded(result: CallToolResult) -> Any:
    # `isError` in mcp 1, `is_error` in mcp 2; on the wire it is the same.
    is_error = result.model_dump(by_alias=True, include={"isError", "is_error"}).get("isError", False)
    return recorded(result.content, is_error=is_error)


def _refusal(feedback: str) -> CallToolResult:
    return CallToolResult.model_validate({"content": [{"type": "text", "text": str(feedback)}], "isError": True})
