"""The worked example: it passes by its final state and fails by its trajectory."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agentguard.cli import main

REASONS = [
    "repeated identical call search_docs",
    "repeated identical call read_file",
    "8 steps against a budget of 5",
]


@pytest.fixture
def told(capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    with pytest.raises(SystemExit) as ended:
        main(["demo", "--json"])
    assert ended.value.code == 0
    return json.loads(capsys.readouterr().out)


def test_the_observed_run_makes_the_eight_calls(told: dict[str, Any]):
    assert [(step["tool"], step["args"]) for step in told["observed"]["steps"]] == [
        ("search_docs", {"q": "failing test"}),
        ("search_docs", {"q": "failing test"}),
        ("read_file", {"path": "src/mian.py"}),
        ("read_file", {"path": "src/mian.py"}),
        ("run_tests", {}),
        ("list_dir", {"path": "src"}),
        ("edit_file", {"path": "src/main.py"}),
        ("run_tests", {}),
    ]
    assert all(step["executed"] for step in told["observed"]["steps"])


def test_it_passes_by_its_response_and_fails_by_its_trajectory(told: dict[str, Any]):
    assert (told["observed"]["response_level"], told["observed"]["verdict"]) == ("pass", "fail")


def test_it_fails_for_exactly_three_reasons(told: dict[str, Any]):
    assert [reason["text"] for reason in told["observed"]["reasons"]] == REASONS


def test_its_necessary_calls_were_made(told: dict[str, Any]):
    scores = told["observed"]["scores"]
    assert (scores["match"]["value"], scores["match"]["data"]["mode"]) == (1.0, "superset")
    assert scores["selection"]["data"]["recall"] == 1.0
    assert scores["arguments"]["value"] == 1.0


def test_no_reason_is_about_a_run_of_the_tests(told: dict[str, Any]):
    loops = [reason for reason in told["observed"]["reasons"] if reason["code"] == "repeat.identical"]
    assert [reason["steps"] for reason in loops] == [[0, 1], [2, 3]]


def test_it_is_an_accidental_recovery(told: dict[str, Any]):
    recovery = told["observed"]["scores"]["recovery"]
    assert (recovery["value"], recovery["data"]["by"]) == (1.0, "other calls")


def test_the_enforcing_guard_blocks_both_repeats_and_saves_three_calls(told: dict[str, Any]):
    refused = [(step["tool"], step["code"]) for step in told["enforced"]["steps"] if not step["executed"]]
    assert refused == [("search_docs", "repeat.identical"), ("read_file", "repeat.identical")]
    assert told["saved"] == {"calls": 3, "of": 8, "blocked": 2}


def test_the_guarded_run_passes(told: dict[str, Any]):
    enforced = told["enforced"]
    assert (enforced["response_level"], enforced["verdict"], enforced["reasons"]) == ("pass", "pass", [])


def test_people_read_the_same_three_reasons_and_no_other(capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit):
        main(["demo"])
    lines = capsys.readouterr().out.splitlines()
    numbered = [line.strip() for line in lines if line.startswith("     ")]
    assert numbered == [f"{n}. {text}" for n, text in enumerate(
        [f"{REASONS[0]} (calls 1-2)", f"{REASONS[1]} (calls 3-4)", f"{REASONS[2]} (calls 6-8)"], 1
    )]  # fmt: skip
    assert lines[-1].startswith("Saved: 3 of 8 calls did not run (2 blocked")
    assert max(map(len, lines)) <= 100
