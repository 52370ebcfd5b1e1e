"""The same agent, asynchronous: the wrapped dispatcher is awaited, and a deadline cuts what takes too long.

python examples/agent_async.py
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from workshop import make_project, scripted_model, tools_for

from agentguard import Guard, Policy

POLICY = Policy.from_dict({"budget": {"steps": 20, "seconds": 60}, "tools": {"run_tests": {"deadline": 30}}})


async def repair(folder: Path) -> str:
    """Let the agent repair the project in this folder; return what it says at the end."""
    tools = tools_for(folder)

    async def dispatch(name: str, arguments: dict[str, Any]) -> str:
        return await asyncio.to_thread(tools[name], **arguments)

    guard = Guard(POLICY, tools=tools.values(), quiet=True)
    async with guard.run(model="scripted", harness="agent_async 1") as run:
        answer = await converse(run.wrap(dispatch))
        run.finish(outcome=answer.endswith("1 passed"))
    print(f"{run.trajectory.ending.name.lower()}: {sum(step.executed for step in run.trajectory.steps)} calls ran")
    return answer


async def converse(dispatch: Callable[[str, dict[str, Any]], Awaitable[str]]) -> str:
    """Run the calls that the model asks for until it answers."""
    model = scripted_model()
    name, arguments = next(model)
    while True:
        try:
            result = await dispatch(name, arguments)
        except OSError as error:  # the tool's own error, as it would be without a guard
            result = f"error: {error.strerror}"
        print(f"{name}: {result.splitlines()[0]}")
        try:
            name, arguments = model.send(result)
        except StopIteration as end:
            return end.value


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        make_project(Path(folder))
        print(asyncio.run(repair(Path(folder))))
