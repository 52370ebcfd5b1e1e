"""What the example of the README starts from."""

from __future__ import annotations

from test_contract import ScriptedClient

from agentguard.testing.contract import Asked, Played, Reply


def search(query: str) -> str:
    """Search the documentation."""
    return f"no hits for {query}"


client = ScriptedClient([Reply((Asked("search", {"query": "failing test"}, "call-0"),)), Reply(text="done")], Played())
