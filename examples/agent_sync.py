"""An agent loop written by hand, with a guard between the model and its tools.

python examples/agent_sync.py
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from workshop import make_project, scripted_model, tools_for

from agentguard import Guard


def repair(folder: Path) -> str:
    """Let the agent repair the project in this folder; return what it says at the end."""
    tools = tools_for(folder)

    def dispatch(name: str, arguments: dict[str, Any]) -> str:
        return tools[name](**arguments)

    guard = Guard(tools=tools.values(), quiet=True)
    with guard.run(model="scripted", harness="agent_sync 1") as run:
        answer = converse(run.wrap(dispatch))
        run.finish(outcome=answer.endswith("1 passed"))
    print(f"{run.trajectory.ending.name.lower()}: {sum(step.executed for step in run.trajectory.steps)} calls ran")
    return answer


def converse(dispatch: Callable[[str, dict[str, Any]], str]) -> str:
    """Run the calls that the model asks for until it answers."""
    model = scripted_model()
    name, arguments = next(model)
    while True:
        try:
            result = dispatch(name, arguments)
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
        print(repair(Path(folder)))
