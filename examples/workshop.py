"""A small broken project, the tools an agent has in it, and a scripted model that stands for a real one."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Generator
from pathlib import Path

Call = tuple[str, dict[str, str]]

BROKEN = "def add(a, b):\n    return a - b\n"
REPAIRED = "def add(a, b):\n    return a + b\n"
CHECK = "from main import add\nassert add(2, 2) == 4, f'add(2, 2) is {add(2, 2)}'\nprint('1 passed')\n"


def make_project(folder: Path) -> None:
    """Write a module with a fault and a check that finds it."""
    (folder / "src").mkdir()
    (folder / "src" / "main.py").write_text(BROKEN)
    (folder / "src" / "check.py").write_text(CHECK)


def tools_for(folder: Path) -> dict[str, Callable[..., str]]:
    """Return the tools by name; the guard learns their arguments from the annotations."""

    def read_file(path: str) -> str:
        """Return the text of a file."""
        return (folder / path).read_text()

    def list_dir(path: str) -> str:
        """Return the names in a folder."""
        return "\n".join(sorted(entry.name for entry in (folder / path).iterdir()))

    def write_file(path: str, text: str) -> str:
        """Replace the text of a file."""
        (folder / path).write_text(text)
        return f"wrote {path}"

    def run_tests() -> str:
        """Run the checks of the project."""
        command = [sys.executable, "-B", "src/check.py"]
        ran = subprocess.run(command, cwd=folder, capture_output=True, text=True)
        return (ran.stdout or ran.stderr).strip().splitlines()[-1]

    return {tool.__name__: tool for tool in (read_file, list_dir, write_file, run_tests)}


def scripted_model() -> Generator[Call, str, str]:
    """Ask for one call after another, each time being sent its result; return the answer at the end.

    It insists on a misspelt file, and asks for a tool that it does not have.
    """
    for _ in range(3):
        yield "read_file", {"path": "src/mian.py"}
    yield "grep", {"pattern": "add"}
    yield "list_dir", {"path": "src"}
    yield "read_file", {"path": "src/main.py"}
    yield "run_tests", {}
    yield "write_file", {"path": "src/main.py", "text": REPAIRED}
    result = yield "run_tests", {}
    return f"repaired: {result}"
