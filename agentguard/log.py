"""Logging as a guest: through structlog as the host configured it, and never to standard output."""

from __future__ import annotations

import sys
from typing import Any


def logger() -> Any:
    """Return the logger of agentguard.

    Where the host has not configured structlog, its default would print to standard output, which belongs to the
    host: an MCP server over stdio speaks its protocol there. Then it is standard error.
    """
    import structlog  # half of what importing agentguard would take, for what most runs never say

    if structlog.is_configured():
        return structlog.get_logger("agentguard")
    return structlog.wrap_logger(structlog.PrintLogger(sys.stderr))
