"""Imports only go down the floors, and a live guard pays for nothing of the offline half."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]

ONLY_OFFLINE = (
    "agentguard.backtest",
    "agentguard.cli",
    "agentguard.metrics",
    "agentguard.report",
    "agentguard.scoring",
    "agentguard.traces",
    "altair",
    "fsspec",
    "jinja2",
    "pyarrow",
    "rich",
    "scipy",
    "typer",
)
FRAMEWORKS = ("anthropic", "crewai", "fastmcp", "google.adk", "langchain", "mcp", "openai", "agents", "pydantic_ai")


def test_imports_only_go_down_the_floors():
    command = [str(Path(sys.executable).with_name("lint-imports")), "--no-cache", "--no-logo"]
    linted = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, env=os.environ | {"COLUMNS": "200"})
    assert linted.returncode == 0, linted.stdout + linted.stderr


@pytest.mark.parametrize("package", [*ONLY_OFFLINE, *FRAMEWORKS])
def test_importing_agentguard_leaves_out(package: str, live_modules: frozenset[str]):
    assert package not in live_modules


@pytest.fixture(scope="module")
def live_modules() -> frozenset[str]:
    """Return the names of the modules that `import agentguard` brings in a fresh interpreter."""
    code = "import sys, agentguard; print(*sys.modules, sep='\\n')"
    listed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return frozenset(listed.stdout.split())
