"""The guard as FastMCP server middleware.

server = FastMCP("search", middleware=[GuardMiddleware(run)])
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agentguard import AgentGuardError, Run, RunHalted, ToolCall, current_run
from agentguard_mcp.results import recorded

try:
    from fastmcp.exceptions import ToolError
    from fastmcp.server.middleware import Middleware
except ImportError as error:
    from agentguard import IntegrationMissing

    raise IntegrationMissing("fastmcp", "mcp") from error

if TYPE_CHECKING:
    from fastmcp.server.middleware import CallNext, MiddlewareContext
    from mcp.types import CallToolRequestParams

__all__ = ["GuardMiddleware"]


class GuardMiddleware(Middleware):
    """Judges every `tools/call` of a server before its tool is looked up.

    A refused call gives the client a result with `isError` and the feedback as its text. So does a halt, for every
    call from then on: a server lives on when one run of it is over. `run.halted` tells.
    """

    def __init__(self, run: Run | None = None) -> None:
        """Guard by `run`; None means the run whose `with` block the server is started in."""
        super().__init__()
        self._run = run

    @property
    def run(self) -> Run:
        """The run that judges; AgentGuardError when there is none."""
        run = self._run or current_run()
        if run is None:
            raise AgentGuardError("no run is active; start the server inside `with guard.run(...)`, or pass run=")
        return run

    async def on_call_tool(
        self, context: MiddlewareContext[CallToolRequestParams], call_next: CallNext[CallToolRequestParams, Any]
    ) -> Any:
        """Judge the call; run it, or answer it with the feedback."""
        run, asked = self.run, context.message
        try:
            attempt = await run.begin_async(ToolCall(asked.name, asked.arguments or {}))
        except RunHalted as halt:
            raise ToolError(halt.decision.feedback or halt.decision.reason) from halt
        if attempt.feedback is not None:
            raise ToolError(attempt.feedback)
        try:
            result = await call_next(context)
        except BaseException as error:
            run.raised(attempt, error)
            raise
        # 2.9 has no ToolResult: the blocks come as a list. `is_error` came with 3.
        blocks = result if isinstance(result, list) else result.content
        run.returned(attempt, recorded(blocks, is_error=getattr(result, "is_error", False)))
        return result
