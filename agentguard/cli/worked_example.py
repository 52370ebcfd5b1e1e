"""The run that passes and should not: an agent with tools over a small project, really run under a guard."""

from __future__ import annotations

from collections.abc import Callable, Generator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agentguard.guard import Guard
from agentguard.matching import Call, Match
from agentguard.policy import Mode, Policy
from agentguard.recorder import record
from agentguard.reference import Reference
from agentguard.spans import Content
from agentguard.wrapping import Feedback

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider

STEP_BUDGET = 5
TASK = "make the failing test pass"

Asked = tuple[str, dict[str, Any]]
Conversation = Generator[Asked, str, None]


class Project:
    """One file with a fault in it, and the tools of the agent that is to mend it."""

    def __init__(self) -> None:
        self.files = {"src/main.py": "def add(a, b):\n    return a - b\n"}

    def search_docs(self, q: str) -> str:
        """Search the documentation."""
        return f"no page mentions {q!r}"

    def read_file(self, path: str) -> str:
        """Read a file."""
        if path not in self.files:
            raise FileNotFoundError(f"no such file: {path}")
        return self.files[path]

    def list_dir(self, path: str) -> str:
        """List a folder."""
        return "\n".join(name for name in self.files if name.startswith(f"{path}/"))

    def edit_file(self, path: str) -> str:
        """Correct the sign in a file."""
        self.files[path] = self.files[path].replace("a - b", "a + b")
        return f"edited {path}"

    def run_tests(self) -> str:
        """Run the project's only test."""
        names: dict[str, Any] = {}
        exec(self.files["src/main.py"], names)
        return "1 passed" if names["add"](2, 3) == 5 else "1 failed: add(2, 3) is not 5"

    def tools(self) -> list[Callable[..., str]]:
        """Return the tools."""
        return [self.search_docs, self.read_file, self.list_dir, self.edit_file, self.run_tests]


def model() -> Conversation:
    """Stand in for a model: it asks again when an answer does not help, and takes another way when it is refused."""
    yield from _insisting("search_docs", {"q": "failing test"})
    refused = yield from _insisting("read_file", {"path": "src/mian.py"})
    if not refused:
        yield "run_tests", {}
    yield "list_dir", {"path": "src"}
    yield "edit_file", {"path": "src/main.py"}
    yield "run_tests", {}


def policy(mode: Mode) -> Policy:
    """Return the policy of both runs: no identical call back to back, and five steps."""
    return Policy.from_dict(
        {"name": "demo", "mode": str(mode), "repeats": {"block": 1}, "budget": {"steps": STEP_BUDGET}}
    )


def run(folder: Path, mode: Mode) -> None:
    """Let the agent mend the project under a guard, and record its spans into the folder."""
    from opentelemetry.sdk.trace import TracerProvider

    provider = TracerProvider()
    with record(folder, tracer_provider=provider, compress=False):
        trace(provider, mode)


def trace(provider: TracerProvider, mode: Mode, *, openinference: bool = False) -> None:
    """Let the agent mend the project under a guard that writes its spans, with content, to a provider."""
    project = Project()
    tools = {tool.__name__: tool for tool in project.tools()}
    guard = Guard(
        policy(mode),
        tools=project.tools(),
        tracer_provider=provider,
        content=Content(capture=True),
        openinference=openinference,
        quiet=True,
    )
    with guard.run(model="scripted", harness=f"demo, guard {_WORDS[mode]}", task=TASK) as run:
        _converse(run.wrap(lambda name, arguments: tools[name](**arguments)))
        run.finish(outcome=project.run_tests() == "1 passed")


_WORDS = {Mode.OBSERVE: "observing", Mode.ENFORCE: "enforcing"}


REFERENCE = Reference(
    calls=(Call("list_dir", {"path": "src"}), Call("edit_file", {"path": "src/main.py"})),
    match=Match.SUPERSET,
    step_budget=STEP_BUDGET,
)
"""The calls without which the task cannot be done; others are tolerated, within the budget."""


def _insisting(name: str, arguments: dict[str, Any]) -> Generator[Asked, str, bool]:
    """Ask twice; return whether the second time was refused."""
    yield name, arguments
    answer = yield name, arguments
    return isinstance(answer, Feedback)


def _converse(dispatch: Callable[[str, dict[str, Any]], str]) -> None:
    conversation = model()
    name, arguments = next(conversation)
    while True:
        try:
            answer = dispatch(name, arguments)
        except OSError as error:  # what a harness does: the model reads the tool's error
            answer = f"error: {error}"
        try:
            name, arguments = conversation.send(answer)
        except StopIteration:
            return
