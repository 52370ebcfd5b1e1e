"""Imports only go down the floors, and a live guard pays for nothing of the offline half."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import grimp
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
    "opentelemetry.sdk",
    "pyarrow",
    "scipy",
    "typer",
)
EFFECTS = {"asyncio", "opentelemetry", "os", "random", "socket", "subprocess", "time", "urllib"}
FRAMEWORKS = (
    "agent_framework", "agents", "anthropic", "claude_agent_sdk", "crewai", "fastmcp", "google.adk", "langchain",
    "llama_index", "mcp", "openai", "pydantic_ai", "smolagents", "strands",
)  # fmt: skip


def test_imports_only_go_down_the_floors():
    command = [str(Path(sys.executable).with_name("lint-imports")), "--no-cache", "--no-logo"]
    linted = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, env=os.environ | {"COLUMNS": "200"})
    assert linted.returncode == 0, linted.stdout + linted.stderr


def test_the_lowest_floors_touch_no_clock_file_network_or_tracer():
    graph = grimp.build_graph(
        "agentguard", include_external_packages=True, exclude_type_checking_imports=True, cache_dir=None
    )
    low = [f"agentguard.{name}" for floor in floors()[-4:] for name in floor if f"agentguard.{name}" in graph.modules]
    touched = {module: graph.find_modules_directly_imported_by(module) & EFFECTS for module in low}
    assert {module: effects for module, effects in touched.items() if effects} == {}


@pytest.mark.parametrize("package", [*ONLY_OFFLINE, *FRAMEWORKS])
def test_importing_agentguard_leaves_out(package: str, live_modules: frozenset[str]):
    assert package not in live_modules


@pytest.fixture(scope="module")
def live_modules() -> frozenset[str]:
    """Return the names of the modules that `import agentguard` brings in a fresh interpreter."""
    code = "import sys, agentguard; print(*sys.modules, sep='\\n')"
    listed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return frozenset(listed.stdout.split())


def floors() -> list[list[str]]:
    """Return the names of the modules of each floor, the highest first."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    layers = next(contract for contract in contracts if contract["id"] == "floors")["layers"]
    return [[name.strip(" ()") for name in layer.replace(":", "|").split("|")] for layer in layers]
