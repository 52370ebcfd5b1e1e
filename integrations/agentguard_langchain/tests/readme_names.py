"""What the example of the README starts from."""

from __future__ import annotations

from test_contract import ScriptedModel

from agentguard import Usage
from agentguard.testing.contract import Asked, Played, Reply


def search(query: str) -> str:
    """Search the documentation."""
    return f"no hits for {query}"


model = ScriptedModel(
    replies=[
        Reply((Asked("search", {"query": "failing test"}, "call-0"),), usage=Usage(10, 5)),
        Reply(text="done", usage=Usage(10, 5)),
    ],
    played=Played(),
)
