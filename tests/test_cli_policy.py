"""`agentguard policy` and `agentguard backtest` from the command line."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

from agentguard.cli import main
from agentguard.cli.policy import DEFAULTS
from agentguard.policy import Policy, PolicyFile

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


def test_the_file_that_init_writes_is_the_default_policy(agentguard: Command, tmp_path: Path):
    code, out, _ = agentguard("policy", "init", tmp_path / "p.toml")
    assert (code, out) == (0, f"wrote {tmp_path / 'p.toml'}\n")
    assert Policy.load(tmp_path / "p.toml") == Policy()


def test_every_figure_in_the_file_is_spelled_out():
    said = tomllib.loads(DEFAULTS)
    for table in ("repeats", "failures", "unknown_tool"):
        kind = type(getattr(PolicyFile(), table))
        assert set(said[table]) == set(kind.__struct_fields__)


def test_what_the_file_only_mentions_is_right_too():
    commented = [line.removeprefix("# ") for line in DEFAULTS.splitlines() if line.startswith(("# [", "# "))][1:]
    examples = [line for line in commented if "=" in line or line.startswith("[")]
    budget, rest = examples[: examples.index(next(e for e in examples if e.startswith("[")))], examples
    text = "\n".join(["[budget]", *budget, *rest[len(budget) :]])
    assert Policy.from_dict(tomllib.loads(text)).budget.steps == 40


def test_init_keeps_a_file_that_is_there(agentguard: Command, tmp_path: Path):
    (tmp_path / "p.toml").write_text("mine")
    code, _, err = agentguard("policy", "init", tmp_path / "p.toml")
    assert (code, err) == (2, f"error: {tmp_path / 'p.toml'}: is there already; --force replaces it\n")
    assert (tmp_path / "p.toml").read_text() == "mine"
    code, _, _ = agentguard("policy", "init", tmp_path / "p.toml", "--force")
    assert (code, (tmp_path / "p.toml").read_text()) == (0, DEFAULTS)


def test_init_writes_to_standard_output(agentguard: Command):
    assert agentguard("policy", "init", "-") == (0, DEFAULTS, "")


def test_init_into_no_folder_is_bad_input(agentguard: Command, tmp_path: Path):
    code, _, err = agentguard("policy", "init", tmp_path / "none" / "p.toml")
    assert (code, "cannot be written" in err) == (2, True)


def test_check_names_policy_and_checks(agentguard: Command, tmp_path: Path):
    (tmp_path / "p.toml").write_text('name = "strict"\ndisabled = ["cycles"]\n')
    code, out, _ = agentguard("policy", "check", tmp_path / "p.toml")
    assert code == 0
    assert "policy strict, enforce, digest " in out
    assert "cycles" not in out


def test_check_tells_a_fault_by_its_key(agentguard: Command, tmp_path: Path):
    (tmp_path / "p.toml").write_text("[budget]\nstpes = 3\n")
    code, _, err = agentguard("policy", "check", tmp_path / "p.toml")
    assert code == 2
    assert err.startswith("error: budget.stpes: unknown setting; did you mean steps?")


def test_schema_is_json_schema(agentguard: Command):
    _, out, _ = agentguard("policy", "schema")
    assert "PolicyFile" in json.loads(out)["$defs"]


def run(run_id: str, calls: int, *, success: bool) -> str:
    steps = [{"tool": "search", "args": {"q": "a"}, "result": "none"} for _ in range(calls)]
    told = {"run_id": run_id, "model": "m", "harness": "h", "success": success, "steps": steps}
    return json.dumps(told) + "\n"


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    path = tmp_path / "runs.jsonl"
    path.write_text(run("good", 2, success=True) + run("lucky", 7, success=True) + run("bad", 9, success=False))
    return path


def test_backtest_says_what_the_default_policy_would_have_stopped(agentguard: Command, runs: Path):
    code, out, err = agentguard("backtest", runs)
    assert (code, err) == (0, "")
    *figures, alarm = [line.rstrip() for line in out.splitlines()]
    assert alarm.startswith("halted success lucky, call 5: the identical call stands ")
    assert figures == [
        "3 runs, 18 calls",
        "halted:  2 runs (67%)",
        "  of the 2 successes: 1 (50%)",
        "  of the 1 failures: 1 (100%)",
        "  by repeat.identical: 2",
        "blocked: 4 calls",
        "saved:   12 calls would not have run (67%)",
    ]


def test_backtest_takes_a_policy(agentguard: Command, runs: Path, tmp_path: Path):
    (tmp_path / "p.toml").write_text("[repeats]\nblock = 1\nhalt = 100\n")
    _, out, _ = agentguard("backtest", runs, "--policy", tmp_path / "p.toml", "--json")
    told = json.loads(out)
    assert (told["summary"]["halted"], told["summary"]["blocked_calls"]) == (0, 15)
    assert told["runs"][0] == {
        "run_id": "good",
        "model": "m",
        "harness": "h",
        "outcome": True,
        "blocked": [1],
        "halted_at": None,
        "code": None,
        "reason": None,
    }


def test_backtest_limits_what_it_lists_and_counts_the_rest(agentguard: Command, tmp_path: Path):
    path = tmp_path / "runs.jsonl"
    path.write_text("".join(run(f"r{n}", 6, success=True) for n in range(3)) + "{torn\n")
    _, out, err = agentguard("backtest", path, "--limit", 1)
    assert out.splitlines()[-1] == "2 more halted successes; --limit 0 shows all"
    assert err == "skipped 1 x torn line\n"
    code, _, _ = agentguard("backtest", path, "--strict")
    assert code == 2
