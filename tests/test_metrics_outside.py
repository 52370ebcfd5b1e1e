"""Metrics that other packages offer."""

from __future__ import annotations

import importlib.metadata
import json
from pathlib import Path
from typing import Any

import pytest

from agentguard.cli import main
from agentguard.errors import AgentGuardError
from agentguard.metrics import BUILT_IN, Score, Subject, with_named
from agentguard.trajectory import Trajectory


def first_call(subject: Subject) -> Score:
    return Score("first_call", float(len(subject.trajectory.steps[0].call.name)))


class Point:
    """An entry point of an installed package."""

    def __init__(self, name: str, loaded: Any) -> None:
        self.name = name
        self.loaded = loaded

    def load(self) -> Any:
        if isinstance(self.loaded, Exception):
            raise self.loaded
        return self.loaded


@pytest.fixture(autouse=True)
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    offered = [Point("first_call", first_call), Point("broken", ImportError("no such module"))]
    whole = importlib.metadata.entry_points
    monkeypatch.setattr(
        importlib.metadata,
        "entry_points",
        lambda **given: offered if given.get("group") == "agentguard.metrics" else whole(**given),
    )


def test_the_built_in_metrics_need_no_look_up(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(importlib.metadata, "entry_points", None)
    assert with_named(["repeats"]) == BUILT_IN


def test_a_metric_of_an_installed_package_is_found_by_name():
    assert [*with_named(["first_call"])] == [*BUILT_IN, "first_call"]


def test_a_metric_that_nobody_offers_is_told_with_those_known():
    with pytest.raises(AgentGuardError, match=r"fist_call: no metric of this name; known: match, .*, first_call"):
        with_named(["fist_call"])


def test_a_metric_that_does_not_load_is_told():
    with pytest.raises(AgentGuardError, match="broken: the metric cannot be loaded: ImportError: no such module"):
        with_named(["broken"])


def test_a_metric_that_raises_leaves_the_run_unscored_by_it():
    score = with_named(["first_call"])["first_call"](Subject(Trajectory(run_id="empty")))
    assert score == Score("first_call", unscored="the metric failed: IndexError: tuple index out of range")


def test_the_command_shows_its_figures(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    runs = [{"run_id": "r", "model": "m", "harness": "h", "steps": [{"tool": "search", "args": {}}]}]
    runs += [{"run_id": "empty", "model": "m", "harness": "h", "steps": []}]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(run) + "\n" for run in runs))
    with pytest.raises(SystemExit):
        main(["score", str(tmp_path / "a.jsonl"), "--metric", "first_call"])
    assert "m + h: first_call mean 6 over 1 run, 1 could not be scored" in capsys.readouterr().out.splitlines()
