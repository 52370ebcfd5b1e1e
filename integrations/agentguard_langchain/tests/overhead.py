"""What the guard adds to a LangChain tool step, as a share of what LangChain's own call limiter adds.

python overhead.py
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any

from agentguard_langchain import GuardMiddleware
from langchain.agents import create_agent
from langchain.agents.middleware import ToolCallLimitMiddleware
from test_contract import ScriptedModel, as_tool

from agentguard import Guard, Usage
from agentguard.testing.contract import Asked, Played, Reply

STEPS = 60
ROUNDS = 9


def search(query: str) -> str:
    """Search the documentation."""
    return f"no hits for {query}"


def played(middleware: Sequence[Any]) -> float:
    """Return the CPU seconds of this thread for one run of sixty tool calls."""
    replies = [Reply((Asked("search", {"query": str(i)}, f"call-{i}"),), usage=Usage(1, 1)) for i in range(STEPS)]
    model = ScriptedModel(replies=[*replies, Reply(text="done")], played=Played())
    agent = create_agent(model, [as_tool("search", search)], middleware=list(middleware))
    began = time.thread_time()
    agent.invoke({"messages": [("user", "go")]}, {"recursion_limit": 10 * STEPS})
    return time.thread_time() - began


def guarded() -> float:
    with Guard(tools=[search], quiet=True).run(model="scripted", harness="overhead") as run:
        return played([GuardMiddleware(run)])


def limited() -> float:
    return played([ToolCallLimitMiddleware(run_limit=10 * STEPS)])


def added(case: Callable[[], float]) -> float:
    """Return the microseconds that a case adds to each step, each run between two plain ones."""
    extra = []
    for _ in range(ROUNDS):
        before, middle, after = played([]), case(), played([])
        extra.append(middle - (before + after) / 2)
    return statistics.median(extra) / STEPS * 1e6


if __name__ == "__main__":
    played([])
    ours, theirs = added(guarded), added(limited)
    print(f"added to each step: agentguard {ours:.0f} us, ToolCallLimitMiddleware {theirs:.0f} us, {ours / theirs:.2f}")
