"""What the example of the README starts from."""

from __future__ import annotations

import atexit
from contextlib import ExitStack

from scripted import as_tool, configured, served

from agentguard.testing.contract import Played, asking


def look_up(query: str) -> str:
    """Search the documentation."""
    return f"no hits for {query}"


stack = ExitStack()
atexit.register(stack.close)
url = stack.enter_context(served(asking("failing test"), Played()))
search = as_tool("search", look_up)
options = stack.enter_context(configured(url, {"search": look_up}))
