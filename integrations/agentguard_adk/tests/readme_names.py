"""What the example of the README starts from."""

from __future__ import annotations

import asyncio
from typing import Any

from google.genai import types
from test_contract import ScriptedModel

from agentguard.testing.contract import Asked, Played, Reply


def search(query: str) -> str:
    """Search the documentation."""
    return f"no hits for {query}"


def ask(runner: Any, text: str) -> None:
    """Ask an agent."""

    async def main() -> None:
        session = await runner.session_service.create_session(app_name="app", user_id="user")
        message = types.Content(role="user", parts=[types.Part(text=text)])
        async for _ in runner.run_async(user_id="user", session_id=session.id, new_message=message):
            pass

    asyncio.run(main())


model = ScriptedModel(
    replies=[Reply((Asked("search", {"query": "failing test"}, "call-0"),)), Reply(text="done")], played=Played()
)
