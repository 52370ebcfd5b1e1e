"""`agentguard lint` from the command line, and what it finds."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agentguard.call import ToolCall
from agentguard.cli import main
from agentguard.matching import ANYTHING, Call, Match
from agentguard.reference import Reference, References
from agentguard.report.lint import lint, seen_in
from agentguard.trajectory import Step, Trajectory

SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}


def oddities(reference: Reference, *runs: Trajectory) -> list[tuple[str, str]]:
    found = lint(References(tasks={"t": reference}), seen_in(runs) if runs else None)
    return [(oddity.code, oddity.text) for oddity in found]


def reference(*calls: Call, match: Match = Match.EXACT, **fields: Any) -> Reference:
    return Reference(calls=calls, match=match, **fields)


def run(*tools: str, schemas: dict[str, Any] | None = None) -> Trajectory:
    return Trajectory(run_id="r", task="t", steps=tuple(Step(call=ToolCall(t, {})) for t in tools), tools=schemas)


def test_a_sound_reference_has_none():
    assert oddities(reference(Call("a", {"n": 1}), Call("b", {})), run("a", "b", schemas={"a": SCHEMA})) == []


def test_a_call_that_stands_there_twice_is_told_once():
    found = oddities(reference(*[Call("a", {})] * 3))
    assert [code for code, _ in found] == ["calls.duplicate"]


def test_a_superset_without_a_budget_licenses_anything():
    assert oddities(reference(Call("a", {}), match=Match.SUPERSET))[0][0] == "superset.unbounded"
    assert oddities(reference(Call("a", {}), match=Match.SUPERSET, step_budget=4)) == []


def test_a_budget_below_the_calls_can_never_be_kept():
    assert oddities(reference(Call("a", {}), Call("b", {}), step_budget=1)) == [
        ("budget.short", "a budget of 1 steps for 2 calls can never be kept")
    ]
    assert oddities(reference(Call("a", {}), Call("b", {}), match=Match.SUBSET, step_budget=1)) == []


def test_equal_alternatives_are_told():
    other = reference(Call("a", {}))
    assert oddities(reference(Call("a", {}), alternatives=(other,)))[0][1].startswith("two alternatives are the same")


def test_an_unknown_tool_is_told_with_the_nearest_name():
    assert oddities(reference(Call("serch", {})), run("search", schemas={"search": {}})) == [
        ("tool.unknown", "serch: no tool of the runs has this name; did you mean search?")
    ]


def test_a_tool_that_never_occurs_is_told():
    assert oddities(reference(Call("zap", {})), run("search")) == [
        ("tool.unseen", "zap: never called in any of the runs")
    ]


def test_arguments_are_held_against_the_schemas_of_the_runs():
    found = oddities(reference(Call("a", {"n": "one"})), run("a", schemas={"a": SCHEMA}))
    assert [code for code, _ in found] == ["arguments.invalid"]
    assert found[0][1].startswith("a $.n: ")


def test_arguments_that_are_not_compared_plainly_are_not_held_against_schemas():
    assert oddities(reference(Call("a", {"n": "o.*"}, rule=ANYTHING)), run("a", schemas={"a": SCHEMA})) == []


def test_an_unusable_schema_of_a_trace_is_not_the_references_fault():
    assert oddities(reference(Call("a", {"n": 1})), run("a", schemas={"a": {"type": "none such"}})) == []


def test_references_that_no_run_is_of_are_told():
    found = lint(References(tasks={"other": reference()}, runs={"r": reference(), "q": reference()}), seen_in([run()]))
    assert [(oddity.where, oddity.code) for oddity in found] == [
        ("task other", "reference.unused"),
        ("run q", "reference.unused"),
    ]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "tasks.toml"
    path.write_text('[tasks.t]\nmatch = "exact"\ncalls = [{tool = "serch", arguments = {}}]\n')
    return path


def ended(*arguments: object) -> int:
    with pytest.raises(SystemExit) as end:
        main([str(argument) for argument in arguments])
    return int(end.value.code or 0)


def test_lint_without_traces_looks_at_the_references_alone(file: Path, capsys: pytest.CaptureFixture[str]):
    assert ended("lint", file) == 0
    assert capsys.readouterr().out == "1 references, 0 oddities\n"


def test_lint_with_traces_tells_what_is_odd(file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    told = {"run_id": "r", "task": "t", "steps": [{"tool": "search", "args": {}}]}
    (tmp_path / "runs.jsonl").write_text(json.dumps(told) + "\n")
    assert ended("lint", file, tmp_path / "runs.jsonl") == 1
    assert capsys.readouterr().out.splitlines() == [
        f"{file}: task t: tool.unseen: serch: never called in any of the runs; did you mean search?",
        "1 references, 1 oddities",
    ]
    assert ended("lint", file, tmp_path / "runs.jsonl", "--json") == 1
    assert [oddity["code"] for oddity in json.loads(capsys.readouterr().out)] == ["tool.unseen"]
