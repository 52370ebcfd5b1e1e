"""`agentguard score` from the command line."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agentguard import __version__
from agentguard.cli import main

Outcome = tuple[int, str, str]
Command = Callable[..., Outcome]


@pytest.fixture
def agentguard(capsys: pytest.CaptureFixture[str]) -> Command:
    """Return the command: exit code, standard output and standard error."""

    def command(*arguments: object) -> Outcome:
        with pytest.raises(SystemExit) as ended:
            main([str(argument) for argument in arguments])
        told = capsys.readouterr()
        return int(ended.value.code or 0), told.out, told.err

    return command


def run(run_id: str = "r1", *tools: str, **fields: Any) -> dict[str, Any]:
    steps = [{"tool": tool, "args": {"n": 1}, "result": "ok", "turn": turn} for turn, tool in enumerate(tools)]
    return {"run_id": run_id, "model": "m", "harness": "h 1", "success": True, "steps": steps} | fields


def written(path: Path, *runs: dict[str, Any]) -> Path:
    path.write_text("".join(json.dumps(each) + "\n" for each in runs))
    return path


def test_runs_without_a_fault_are_ready(agentguard: Command, tmp_path: Path):
    code, out, err = agentguard("score", written(tmp_path / "a.jsonl", run("r1", "a", "b")))
    assert (code, err) == (0, "")
    assert out.splitlines()[-1] == "READY: 1 run, 2 calls: 1 pass, 0 fail, 0 could not be scored"


def test_a_failing_run_is_told_with_every_reason(agentguard: Command, tmp_path: Path):
    code, out, _ = agentguard("score", written(tmp_path / "a.jsonl", run("r1", "a", "a", "b")), "--step-budget", 2)
    lines = out.splitlines()
    assert code == 1
    assert "FAIL r1  m + h 1" in lines
    assert "     1. repeated identical call a (calls 1-2)" in lines
    assert "     2. 3 steps against a budget of 2 (call 3)" in lines
    assert lines[-1].startswith("NOT READY: ")


def test_what_cannot_be_scored_is_a_third_outcome(agentguard: Command, tmp_path: Path):
    blind = run("r1") | {"steps": [{"tool": "a", "args": None}, {"tool": "a", "args": None}]}
    code, out, _ = agentguard("score", written(tmp_path / "a.jsonl", blind))
    assert (code, out.splitlines()[-1]) == (
        3,
        "NOT ENOUGH DATA: 1 run, 2 calls: 0 pass, 0 fail, 1 could not be scored",
    )


def test_runs_that_cannot_be_scored_are_counted_by_reason(agentguard: Command, tmp_path: Path):
    blind = run("r2") | {"steps": [{"tool": "a", "args": None}, {"tool": "a", "args": None}]}
    _, out, _ = agentguard("score", written(tmp_path / "a.jsonl", run("r1", "a"), blind))
    assert (
        "1 run not scored in full: neither arguments nor fingerprints of neighbouring calls were recorded"
        in out.splitlines()
    )


def test_the_same_model_under_two_harnesses_is_two_rows(agentguard: Command, tmp_path: Path):
    path = written(tmp_path / "a.jsonl", run("r1", "a"), run("r2", "a", harness="h 2"))
    _, out, _ = agentguard("score", path, "--json")
    assert [(row["model"], row["harness"]) for row in json.loads(out)["rows"]] == [("m", "h 1"), ("m", "h 2")]


def test_json_carries_totals_rates_reasons_and_scores(agentguard: Command, tmp_path: Path):
    path = written(tmp_path / "a.jsonl", run("r1", "a", "a"), run("r2", "a", "b", success=False))
    code, out, _ = agentguard("score", path, "--json")
    told = json.loads(out)
    assert code == 1
    assert told["totals"]["runs"] == 2
    assert told["totals"]["calls"] == 4
    assert told["verdict"] == "NOT READY"
    back_to_back = told["rows"][0]["back_to_back"]
    assert (back_to_back["hits"], back_to_back["of"], back_to_back["share"]) == (1, 2, 0.5)
    assert back_to_back["low"] < 0.5 < back_to_back["high"]
    first, second = told["runs"]
    assert first["reasons"] == [
        {"code": "repeat.identical", "text": "repeated identical call a", "steps": [0, 1]},
    ]
    assert first["scores"]["repeats"] == {
        "value": 1.0,
        "steps": [1],
        "data": {"stale": 1, "changing": 0, "unknown": 0, "refused": 0},
    }
    assert [reason["text"] for reason in second["reasons"]] == ["the final state is wrong"]


def test_a_run_without_a_harness_is_filed_under_unknown_with_one_warning(agentguard: Command, tmp_path: Path):
    path = written(tmp_path / "a.jsonl", run("r1", "a", harness=None), run("r2", "a", harness=None))
    code, out, _ = agentguard("score", path)
    warnings = [line for line in out.splitlines() if "without a harness" in line]
    assert code == 0
    assert warnings == [
        "2 runs without a harness, filed under unknown: such figures compare with nothing; name it by --harness"
    ]


def test_harness_and_model_can_be_named(agentguard: Command, tmp_path: Path):
    path = written(tmp_path / "a.jsonl", run("r1", "a", harness=None))
    _, out, _ = agentguard("score", path, "--harness", "mine 2", "--model", "n", "--json")
    assert [(row["model"], row["harness"]) for row in json.loads(out)["rows"]] == [("n", "mine 2")]


@pytest.mark.parametrize(
    "text",
    ['{"r1": false}', '{"run_id": "r1", "outcome": "fail"}\n{"run_id": "x", "outcome": 1}', "run_id,success\nr1,0\n"],
    ids=["object", "lines", "csv"],
)
def test_outcomes_may_stand_beside_the_traces(agentguard: Command, tmp_path: Path, text: str):
    outcomes = tmp_path / "outcomes"
    outcomes.write_text(text)
    path = written(tmp_path / "a.jsonl", run("r1", "a", success=None))
    _, out, _ = agentguard("score", path, "--outcomes", outcomes, "--json")
    assert json.loads(out)["runs"][0]["outcome"] is False


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ('{"r1": "maybe"}', ":1: 'maybe' is neither pass nor fail; write true or false"),
        ('{"run_id": "r1"}', ":1: a line without run_id and outcome; give both"),
        ('{"run_id": "r1", "outcome": 1}\n{"run', ":2: no JSON"),
        ('{"run_id": "r1", "outcome": 1}\n[1]', ":2: no JSON object"),
        ("name\nr1\n", ":2: a line without run_id and outcome; give both"),
    ],
)
def test_a_fault_in_outcomes_is_told_by_its_line(agentguard: Command, tmp_path: Path, text: str, fault: str):
    outcomes = tmp_path / "outcomes"
    outcomes.write_text(text)
    code, _, err = agentguard("score", written(tmp_path / "a.jsonl", run("r1", "a")), "--outcomes", outcomes)
    assert code == 2
    assert err.startswith(f"error: {outcomes}{fault}")


def test_outcomes_that_are_not_there_are_bad_input(agentguard: Command, tmp_path: Path):
    code, _, err = agentguard("score", written(tmp_path / "a.jsonl", run()), "--outcomes", tmp_path / "none")
    assert (code, "cannot be read" in err) == (2, True)


def test_a_torn_line_is_shown_and_the_rest_scored(agentguard: Command, tmp_path: Path):
    path = written(tmp_path / "a.jsonl", run("r1", "a"))
    path.write_text(path.read_text() + '{"run_id": "r2", "ste')
    code, out, _ = agentguard("score", path)
    assert code == 0
    assert "skipped 1 x torn line" in out.splitlines()
    assert f"{path}:2: torn line" in out


def test_strict_refuses_what_could_not_be_read(agentguard: Command, tmp_path: Path):
    path = written(tmp_path / "a.jsonl", run("r1", "a"))
    path.write_text(path.read_text() + '{"run_id": "r2", "ste')
    code, out, err = agentguard("score", path, "--strict")
    assert (code, out) == (2, "")
    assert err.startswith(f"error: {path}:2: torn line: ")


def test_no_run_at_all_is_bad_input(agentguard: Command, tmp_path: Path):
    path = tmp_path / "a.jsonl"
    path.write_text('{"some": "thing"}\n')
    code, _, err = agentguard("score", path)
    assert code == 2
    assert err.startswith(f"error: {path}: no run in it: {path}:1: ")


def test_a_path_that_means_no_file_is_bad_input(agentguard: Command, tmp_path: Path):
    code, _, err = agentguard("score", tmp_path / "none")
    assert (code, err) == (2, f"error: {tmp_path / 'none'}: no such file, folder or pattern\n")


def test_failing_runs_are_limited_with_a_count_of_the_rest(agentguard: Command, tmp_path: Path):
    path = written(tmp_path / "a.jsonl", *[run(f"r{n}", *["a"] * (n + 2)) for n in range(5)])
    _, out, _ = agentguard("score", path, "--limit", 2)
    shown = [line.split()[1] for line in out.splitlines() if line.startswith("FAIL")]
    assert shown == ["r4", "r3"]
    assert "3 more failing runs; --limit 0 shows all" in out.splitlines()
    _, out, _ = agentguard("score", path, "--limit", 0)
    assert len([line for line in out.splitlines() if line.startswith("FAIL")]) == 5


def test_what_a_trace_says_cannot_drive_the_terminal(agentguard: Command, tmp_path: Path):
    hostile = run("r\x1b[2J1", "a\x1b]0;x\x07", "a\x1b]0;x\x07", model="m\x1b[31m")
    _, out, _ = agentguard("score", written(tmp_path / "a.jsonl", hostile))
    assert "\x1b" not in out
    assert "\x07" not in out


def test_the_table_fits_a_hundred_columns(agentguard: Command, tmp_path: Path):
    long = run("r1", "a", model="a-model-with-a-long-name " * 3, harness="a-harness-with-a-long-name/" * 4)
    _, out, _ = agentguard("score", written(tmp_path / "a.jsonl", long), "--step-budget", 5)
    assert max(map(len, out.splitlines())) <= 100


@pytest.fixture
def references(tmp_path: Path) -> Path:
    path = tmp_path / "tasks.toml"
    path.write_text(
        '[tasks.t]\nmatch = "superset"\nstep_budget = 3\n'
        'calls = [{tool = "a", arguments = {n = 1}}, {tool = "b", arguments = {n = 2}}, {tool = "c"}]\n'
    )
    return path


def test_runs_are_held_against_the_reference_of_their_task(agentguard: Command, tmp_path: Path, references: Path):
    path = written(tmp_path / "a.jsonl", run("r1", "a", "b", "d", "e", task="t"), run("r2", "a"))
    code, out, _ = agentguard("score", path, "--reference", references)
    lines = out.splitlines()
    assert code == 1
    assert "     1. expected c, not called" in lines
    assert "     2. b: arguments differ from those expected: n (call 2)" in lines
    assert "     3. 4 steps against a budget of 3 (call 4)" in lines
    assert "1 run without a reference, not matched" in lines


def test_selection_and_arguments_are_two_numbers(agentguard: Command, tmp_path: Path, references: Path):
    path = written(tmp_path / "a.jsonl", run("r1", "a", "b", "d", task="t"))
    _, out, _ = agentguard("score", path, "--reference", references, "--json")
    told = json.loads(out)
    assert (told["rows"][0]["selection"], told["rows"][0]["arguments"]) == (pytest.approx(2 / 3), 0.5)
    assert told["runs"][0]["scores"]["selection"]["data"]["instead"] == [["c", "d"]]


def test_another_mode_may_be_asked_for(agentguard: Command, tmp_path: Path, references: Path):
    path = written(tmp_path / "a.jsonl", run("r1", "a", task="t"))
    code, out, _ = agentguard("score", path, "--reference", references, "--match", "subset", "--json")
    assert (code, json.loads(out)["runs"][0]["scores"]["match"]["data"]) == (0, {"mode": "subset"})


def test_a_mode_without_a_reference_is_bad_input(agentguard: Command, tmp_path: Path):
    code, _, err = agentguard("score", written(tmp_path / "a.jsonl", run()), "--match", "exact")
    assert (code, "--reference is missing" in err) == (2, True)


def test_a_reference_that_is_not_there_or_wrong_is_bad_input(agentguard: Command, tmp_path: Path, references: Path):
    path = written(tmp_path / "a.jsonl", run())
    code, _, err = agentguard("score", path, "--reference", tmp_path / "none.toml")
    assert (code, err) == (2, f"error: {tmp_path / 'none.toml'}: No such file or directory\n")
    references.write_text("[tasks.t]\nmatch = 'sideways'\ncalls = []\n")
    code, _, err = agentguard("score", path, "--reference", references)
    assert code == 2
    assert err.startswith(f"error: {references}: tasks.t.match: unknown value 'sideways'")


def test_reports_are_written_by_their_ending(agentguard: Command, tmp_path: Path):
    path = written(tmp_path / "a.jsonl", run("r1", "a", "a"))
    code, _, _ = agentguard("score", path, "--write", tmp_path / "out.md", "--write", tmp_path / "out.xml")
    assert code == 1
    assert (tmp_path / "out.md").read_text().startswith("## agentguard: NOT READY")
    assert (tmp_path / "out.xml").read_text().startswith("<?xml")


def test_a_report_with_an_unknown_ending_is_bad_input_before_anything_is_read(agentguard: Command, tmp_path: Path):
    code, _, err = agentguard("score", tmp_path / "none", "--write", tmp_path / "out.docx")
    assert (code, "unknown ending of a report" in err) == (2, True)


def test_gates_decide_and_the_last_line_names_those_that_fail(agentguard: Command, tmp_path: Path):
    path = written(tmp_path / "a.jsonl", *[run(f"r{n}", "a", "a") for n in range(20)])
    code, out, _ = agentguard("score", path, "--fail-under", "success=0.9")
    assert (code, out.splitlines()[-1][:5]) == (0, "READY")
    code, out, _ = agentguard("score", path, "--fail-under", "success=0.9", "--fail-on", "loops")
    assert (code, out.splitlines()[-1]) == (1, "NOT READY: no loops")
    assert "gate FAILS: no loops (20 of 20 runs, the first r0)" in out.splitlines()
    code, _, err = agentguard("score", path, "--fail-on", "crash")
    assert (code, err.startswith("error: crash: ")) == (2, True)


def test_a_person_at_a_terminal_sees_how_much_was_read(
    agentguard: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm-256color")
    _, out, err = agentguard("score", written(tmp_path / "a.jsonl", run("r1", "a")))
    assert "reading and scoring" in err
    assert "\x1b[" in out


def test_no_color_is_honoured(agentguard: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("NO_COLOR", "1")
    _, out, _ = agentguard("score", written(tmp_path / "a.jsonl", run("r1", "a", "a")))
    assert "\x1b[31m" not in out
    assert "\x1b[1;31m" not in out


@pytest.mark.parametrize("command", ["demo", "score", "show", "compare", "lint", "backtest"])
def test_the_help_of_every_command_shows_an_example(agentguard: Command, command: str):
    code, out, _ = agentguard(command, "--help")
    assert (code, f"Example: agentguard {command}" in out) == (0, True)


@pytest.mark.parametrize("command", ["init", "check", "schema"])
def test_the_help_of_policy_shows_an_example(agentguard: Command, command: str):
    code, out, _ = agentguard("policy", command, "--help")
    assert (code, f"Example: agentguard policy {command}" in out) == (0, True)


def test_the_version_is_told(agentguard: Command):
    assert agentguard("--version") == (0, f"agentguard {__version__}\n", "")
