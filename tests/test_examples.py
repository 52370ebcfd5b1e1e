"""The examples run as they stand, and show what their text says."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"


@pytest.mark.parametrize("name", ["agent_sync", "agent_async"])
def test_a_loop_is_broken_and_the_project_repaired(name: str):
    *calls, ending, answer = run(name)
    assert [line.partition(": ")[0] for line in calls] == [
        *["read_file"] * 3,
        *["grep", "list_dir", "read_file", "run_tests", "write_file", "run_tests"],
    ]
    assert calls[:2] == ["read_file: error: No such file or directory"] * 2
    assert "not run" in calls[2]
    assert (ending, answer) == ("finished: 7 calls ran", "repaired: 1 passed")


def run(name: str) -> list[str]:
    """Return the lines that an example prints."""
    command = [sys.executable, str(EXAMPLES / f"{name}.py")]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout.splitlines()
