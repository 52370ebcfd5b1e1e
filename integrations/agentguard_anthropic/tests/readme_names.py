"""What the example of the README starts from."""

from __future__ import annotations

import atexit
from contextlib import ExitStack

from anthropic import Anthropic
from scripted import served

from agentguard.testing.contract import Played, asking

SEARCH = {
    "name": "search",
    "input_schema": {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]},
}


def search(query: str) -> str:
    """Search the documentation."""
    return f"no hits for {query}"


stack = ExitStack()
atexit.register(stack.close)
url = stack.enter_context(served(asking("failing test"), Played()))
client = stack.enter_context(Anthropic(base_url=url, api_key="none"))
