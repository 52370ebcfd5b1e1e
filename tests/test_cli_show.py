"""`agentguard show` from the command line."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from agentguard.cli import main

Outcome = tuple[int, str, str]
Command = Callable[..., Outcome]
STEPS = [
    {"tool": "search", "args": {"q": "a"}, "result": "found\nit", "turn": 1, "error": False},
    {"tool": "search", "raw_arguments": "{q", "result": "no", "error": True, "lane": "sub"},
    {"tool": "read", "executed": False},
    {"tool": "read"},
    {"tool": "edit", "args": {}, "action": "block", "verdicts": [{"code": "x", "action": "block", "reason": "again"}]},
]
RUN = {"run_id": "r1", "model": "m", "harness": "h 1", "success": None, "steps": STEPS, "notes": ["guessed a lot"]}


@pytest.fixture
def agentguard(capsys: pytest.CaptureFixture[str]) -> Command:
    """Return the command: exit code, standard output and standard error."""

    def command(*arguments: object) -> Outcome:
        with pytest.raises(SystemExit) as ended:
            main([str(argument) for argument in arguments])
        told = capsys.readouterr()
        return int(ended.value.code or 0), told.out, told.err

    return command


@pytest.fixture
def path(tmp_path: Path) -> Path:
    target = tmp_path / "a.jsonl"
    target.write_text(json.dumps(RUN) + "\n")
    return target


def test_a_run_is_shown_call_by_call(agentguard: Command, path: Path):
    code, out, err = agentguard("show", path)
    assert (code, err) == (0, "")
    assert [line.rstrip() for line in out.splitlines()] == [
        "r1",
        "  m + h 1; finished, outcome not told; 5 calls",
        "  note: guessed a lot",
        '    1. search {"q":"a"} [turn 1]',
        "       -> found it",
        "    2. search '{q' (not a JSON object) [lane sub]",
        "       error: no",
        "    3. read (arguments not recorded)",
        "       did not run",
        "    4. read (arguments not recorded)",
        "       (result not recorded)",
        "    5. edit {}",
        "       refused: again",
    ]


def test_json_is_the_plain_form_and_reads_back_as_it_is(agentguard: Command, path: Path, tmp_path: Path):
    _, first, _ = agentguard("show", path, "--json")
    (tmp_path / "again.jsonl").write_text(first)
    _, second, _ = agentguard("show", tmp_path / "again.jsonl", "--json")
    assert first.count("\n") == 1
    assert json.loads(second) == json.loads(first) | {"source": json.loads(second)["source"]}
    assert [step["tool"] for step in json.loads(first)["steps"]] == ["search", "search", "read", "read", "edit"]


def test_what_was_skipped_is_said_on_standard_error(agentguard: Command, path: Path):
    path.write_text(path.read_text() + "{torn\n" * 101)
    code, out, err = agentguard("show", path)
    assert (code, out.startswith("r1")) == (0, True)
    assert err.startswith(f"skipped {path}:2: torn line")
    assert err.splitlines()[-1] == "skipped 1 more"


def test_strict_fails_on_what_was_skipped(agentguard: Command, path: Path):
    path.write_text(path.read_text() + "{torn\n")
    code, _, err = agentguard("show", path, "--strict")
    assert code == 2
    assert f"error: {path}:2: torn line" in err


@pytest.mark.shared
def test_why_says_where_a_field_was_read_from(agentguard: Command, shared_data: Path):
    _, out, _ = agentguard("show", shared_data / "traces" / "pydantic-ai__openai-v6__clean.jsonl", "--why")
    assert any(line.strip().startswith("name: span ") for line in out.splitlines())
