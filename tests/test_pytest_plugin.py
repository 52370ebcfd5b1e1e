"""The plugin for tests of agents, used as its users do."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agentguard import Guard, Policy, ToolCall, ToolResult, Trajectory
from agentguard.matching import Match, Rules
from agentguard.pytest_plugin import assert_trajectory
from agentguard.reference import Reference
from agentguard.testing import script
from agentguard.traces.containers.plain import to_line
from agentguard.trajectory import Ending, Step


def a_run(*calls: tuple[str, dict[str, Any]], policy: dict[str, Any] | None = None) -> Any:
    with Guard(Policy.from_dict(policy or {}), quiet=True).run(model="m", harness="h", run_id="r") as run:
        script(calls, run.wrap(lambda name, arguments: "ok"))
    return run


FIX = a_run(("list_dir", {"path": "src"}), ("edit_file", {"path": "a.py"}), ("run_tests", {}))


def failure(check: Any) -> str:
    with pytest.raises(pytest.fail.Exception) as failed:
        check()
    return str(failed.value)


def test_assertions_chain(trajectory: Any) -> None:
    held = (
        trajectory(FIX)
        .superset(["list_dir", ("edit_file", {"path": "a.py"})])
        .in_order([ToolCall("list_dir", {"path": "src"}), "run_tests"])
        .any_order(["run_tests", "edit_file", "list_dir"])
        .exact(["list_dir", "edit_file", "run_tests"])
        .subset(["list_dir", "edit_file", "run_tests", "search"])
        .within(steps=3)
        .no_loops()
        .no_failures()
        .finished()
    )
    assert held.trajectory == FIX.trajectory


def test_a_missing_call_fails_with_the_difference() -> None:
    told = failure(lambda: assert_trajectory(FIX).superset(["list_dir", ("edit_file", {"path": "b.py"})]))
    assert told.startswith("trajectory r is not superset:")
    assert "edit_file" in told
    assert "b.py" in told


def test_too_many_steps_fail_with_the_steps() -> None:
    assert failure(lambda: assert_trajectory(FIX).within(steps=2)) == (
        "trajectory r is too long:\n  3 steps against a budget of 2\n\n"
        "    1  list_dir\n    2  edit_file\n    3  run_tests"
    )


def test_a_repeat_fails_with_its_calls() -> None:
    told = failure(lambda: assert_trajectory(a_run(("f", {}), ("f", {}), ("g", {}))).no_loops())
    assert "identical back to back: f (call 2)" in told


def test_a_refused_call_fails_as_a_failure() -> None:
    refused = a_run(("f", {"i": 0}), ("f", {"i": 1}), policy={"budget": {"calls_per_tool": 1}})
    assert "failed or refused: f (call 2)" in failure(lambda: assert_trajectory(refused).no_failures())
    failed = Trajectory(run_id="r", steps=(Step(call=ToolCall("f", {}), result=ToolResult("no", True)),))
    assert "failed or refused: f (call 1)" in failure(lambda: assert_trajectory(failed).no_failures())


def test_a_run_that_did_not_finish_fails() -> None:
    halted = Trajectory(run_id="r", ending=Ending.HALTED)
    assert "it is halted" in failure(lambda: assert_trajectory(halted).finished())


def test_what_cannot_be_judged_is_told_so() -> None:
    unknown = Trajectory(run_id="r", steps=(Step(call=ToolCall("f"), missing=("arguments",)),))
    told = failure(lambda: assert_trajectory(unknown).exact([("f", {"x": 1})]))
    assert told.startswith("trajectory r could not be judged:")


def test_a_reference_brings_its_own_rules() -> None:
    reference = Reference(calls=(), match=Match.SUBSET, rules=Rules())
    told = failure(lambda: assert_trajectory(FIX).matches(reference))
    assert told.startswith("trajectory r is not subset:")


def test_a_file_with_one_run_is_read(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    path.write_bytes(to_line(FIX.trajectory) + b"\n")
    assert assert_trajectory(path).exact(["list_dir", "edit_file", "run_tests"]).trajectory.run_id == "r"


def test_a_file_with_two_runs_is_not_guessed_at(tmp_path: Path) -> None:
    path = tmp_path / "runs.jsonl"
    path.write_bytes((to_line(FIX.trajectory) + b"\n") * 2)
    assert "holds 2 runs, not one" in failure(lambda: assert_trajectory(path))
