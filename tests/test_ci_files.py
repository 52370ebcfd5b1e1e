"""The action and the hooks in docs/ do what the commands of this version can do."""

from __future__ import annotations

import os
import re
import shlex
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

yaml = pytest.importorskip("yaml", reason="needs the score extra")

ROOT = Path(__file__).resolve().parents[1]
ACTION: dict[str, Any] = yaml.safe_load((ROOT / "docs" / "github-action" / "action.yml").read_text())
INSTALL, SCORE = ACTION["runs"]["steps"]

AGENTGUARD = [sys.executable, "-c", "from agentguard.cli import main; main()"]
RUN = (
    '{"run_id": "r", "model": "m", "harness": "h", "success": true, "steps": ['
    '{"tool": "f", "args": {}, "result": "x"}, {"tool": "f", "args": {}, "result": "x"}]}\n'
)


def scored(tmp_path: Path, **inputs: str) -> tuple[int, str]:
    """Run the script of the action's second step, with the command of this environment."""
    (tmp_path / "runs.jsonl").write_text(RUN)
    command = tmp_path / "bin" / "agentguard"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec {shlex.join(AGENTGUARD)} "$@"\n')
    command.chmod(command.stat().st_mode | stat.S_IEXEC)
    values = {name: spec.get("default", "") for name, spec in ACTION["inputs"].items()} | inputs
    wanted = {name: values[re.findall(r"inputs\.([a-z-]+)", text)[0]] for name, text in SCORE["env"].items()}
    summary = tmp_path / "summary.md"
    environment = {**os.environ, **wanted, "GITHUB_STEP_SUMMARY": str(summary)}
    environment["PATH"] = f"{command.parent}{os.pathsep}{environment['PATH']}"
    ended = subprocess.run(["bash", "-e", "-c", SCORE["run"]], cwd=tmp_path, env=environment, capture_output=True)
    return ended.returncode, summary.read_text() if summary.exists() else ended.stderr.decode()


def test_every_input_is_used_and_none_is_run_as_a_command() -> None:
    used = set(re.findall(r"inputs\.([a-z-]+)", str([INSTALL["env"], SCORE["env"]])))
    assert used == set(ACTION["inputs"])
    assert "${{" not in INSTALL["run"] + SCORE["run"]


def test_a_loop_fails_the_job_and_stands_in_its_summary(tmp_path: Path) -> None:
    status, summary = scored(tmp_path, traces="runs.jsonl", **{"fail-on": "loops"})
    assert status == 1
    assert "loops" in summary


def test_a_gate_that_holds_passes_the_job(tmp_path: Path) -> None:
    status, summary = scored(tmp_path, traces="runs.jsonl", **{"fail-on": "ending", "step-budget": "5"})
    assert (status, "m" in summary) == (0, True)


def test_bad_input_is_no_failed_gate(tmp_path: Path) -> None:
    assert scored(tmp_path, traces="nowhere.jsonl")[0] == 2


def test_an_input_with_a_command_in_it_is_a_name(tmp_path: Path) -> None:
    assert scored(tmp_path, traces="$(touch${IFS}owned)")[0] == 2
    assert not (tmp_path / "owned").exists()


def test_the_hooks_call_commands_that_are_there() -> None:
    text = (ROOT / "docs" / "ci.md").read_text()
    entries = re.findall(r"entry: agentguard (.+)", text)
    assert entries == ["lint", "policy check"]
    for entry in entries:
        command = [*AGENTGUARD, *entry.split(), "--help"]
        assert subprocess.run(command, capture_output=True, check=False).returncode == 0
