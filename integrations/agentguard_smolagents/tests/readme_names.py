"""What the example of the README starts from."""

from __future__ import annotations

from test_contract import ScriptedModel

from agentguard.testing.contract import Asked, Played, Reply


def search(query: str) -> str:
    """Search the documentation.

    Args:
        query: What to look for.
    """
    return f"no hits for {query}"


model = ScriptedModel([Reply((Asked("search", {"query": "failing test"}, "call-0"),)), Reply(text="done")], Played())
