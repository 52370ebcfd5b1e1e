"""What the example of the README starts from."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from fastmcp import Client


async def three_equal_calls(server: Any) -> list[str]:
    async with Client(server) as client:
        results = [await client.session.call_tool("search", {"query": "failing test"}) for _ in range(3)]
    return [result.content[0].text for result in results]


def call_thrice(server: Any) -> list[str]:
    """Play a client that asks three times for the same thing."""
    return asyncio.run(three_equal_calls(server))


client: Callable[[Any], list[str]] = call_thrice
