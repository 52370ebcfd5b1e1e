"""`agentguard compare` from the command line, and what it makes of two sets of runs."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agentguard.cli import main
from agentguard.report.comparing import Change, Comparison, compare
from agentguard.scoring import score
from agentguard.traces import read

pytest.importorskip("scipy")


def run(number: int, *tools: str, success: bool = True) -> dict[str, Any]:
    steps = [{"tool": tool, "args": {}, "result": "ok"} for tool in tools]
    names = {"run_id": f"r{number}", "task": f"t{number}", "model": "m", "harness": "h"}
    return {**names, "success": success, "steps": steps}


def written(path: Path, runs: Callable[[int], dict[str, Any]], many: int = 30) -> Path:
    path.write_text("".join(json.dumps(runs(number)) + "\n" for number in range(many)))
    return path


def compared(base: Path, new: Path) -> Comparison:
    return compare(*(list(score(read(str(path)))) for path in (base, new)))


def changes(found: Comparison) -> dict[str, Change]:
    return {one.metric: one.change for one in found.metrics if one.change is not Change.SAME}


@pytest.fixture
def base(tmp_path: Path) -> Path:
    return written(tmp_path / "base.jsonl", lambda number: run(number, "a", "b", success=number % 3 > 0))


def test_the_same_runs_differ_in_nothing(base: Path):
    found = compared(base, base)
    assert changes(found) == {}
    assert (found.verdicts.only_base, found.verdicts.only_new, found.verdicts.p) == (0, 0, 1.0)


def test_more_of_what_is_good_is_better_and_more_of_what_is_not_is_worse(base: Path, tmp_path: Path):
    new = written(tmp_path / "new.jsonl", lambda number: run(number, "a", "b", "b"))
    found = compared(base, new)
    assert changes(found) == {
        "outcome": Change.BETTER,
        "repeats": Change.WORSE,
        "steps": Change.WORSE,
        "waste": Change.WORSE,
    }
    assert [one.metric for one in found.worse] == ["repeats", "steps", "waste"]
    steps = next(one for one in found.metrics if one.metric == "steps")
    assert (steps.base, steps.new, steps.difference, steps.tasks) == (2.0, 3.0, 1.0, 30)


def test_a_difference_within_the_interval_is_none(base: Path, tmp_path: Path):
    new = written(tmp_path / "new.jsonl", lambda number: run(number, "a", "b", success=number % 3 != 1))
    assert changes(compared(base, new)) == {}


def test_one_task_in_common_tells_nothing(base: Path, tmp_path: Path):
    found = compared(base, written(tmp_path / "new.jsonl", lambda number: run(number, "a", "a"), many=1))
    assert changes(found) == {}
    assert {one.tasks for one in found.metrics} == {1}


def ended(*arguments: object) -> int:
    with pytest.raises(SystemExit) as end:
        main([str(argument) for argument in arguments])
    return int(end.value.code or 0)


def test_worse_runs_fail_the_command(base: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    new = written(tmp_path / "new.jsonl", lambda number: run(number, "a", "b", "b"))
    assert ended("compare", base, new) == 1
    lines = [line.rstrip() for line in capsys.readouterr().out.splitlines()]
    assert "steps              30  2.000  3.000      +1.000  +1.000 to +1.000  worse" in lines
    assert lines[-1] == "WORSE: repeats, steps, waste"
    assert ended("compare", base, new, "--json") == 1
    assert json.loads(capsys.readouterr().out)["worse"] == ["repeats", "steps", "waste"]


def test_runs_no_worse_are_fine(base: Path, capsys: pytest.CaptureFixture[str]):
    assert ended("compare", base, base) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[-1] == "NOT WORSE"
    assert any(line.startswith("verdicts of tasks run once by each: 20 pass with both") for line in lines)


def test_no_task_in_common_is_not_enough(base: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    new = written(tmp_path / "new.jsonl", lambda number: run(number + 100, "a"))
    assert ended("compare", base, new) == 3
    assert capsys.readouterr().out.splitlines()[-1] == "NOT ENOUGH DATA: no task in common"


def test_references_are_used_for_both(base: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    (tmp_path / "tasks.toml").write_text('[tasks.t1]\nmatch = "exact"\ncalls = ["a", "b"]\n')
    assert ended("compare", base, base, "--reference", tmp_path / "tasks.toml", "--json") == 0
    told = {one["metric"]: one for one in json.loads(capsys.readouterr().out)["metrics"]}
    assert (told["match"]["base"], told["match"]["tasks"]) == (1.0, 1)
