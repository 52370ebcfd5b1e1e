"""Every recorded pair of a reference and a run gets the verdict that the definitions give."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agentguard.matching import (
    ANYTHING,
    Arguments,
    Attempts,
    Call,
    Comparison,
    Folded,
    Match,
    OneOf,
    Rules,
    Status,
    Tolerance,
    compare,
    counted,
    longest_repeat,
)

ORDER_FREE = ("any_order", "superset", "subset", "f1", "selection_f1")
CASES = Path(__file__).resolve().parents[2] / "shared" / "data" / "cases" / "match.jsonl"

ARGUMENTS = {
    None: Arguments(),
    "ignore": ANYTHING,
    "actual_superset": Arguments(allow_extra=True),
    "actual_subset": Arguments(allow_missing=True),
    "tolerance": Arguments(values=Tolerance(absolute=1e-6)),
    "casefold": Arguments(values=Folded()),
    "accepted": Arguments(values=OneOf()),
}
FIGURES = {
    "f1": lambda both, actual: both.calls.f1,
    "precision": lambda both, actual: both.calls.precision,
    "recall": lambda both, actual: both.calls.recall,
    "selection_f1": lambda both, actual: both.selection.f1,
    "args_given_selection": lambda both, actual: both.arguments,
    "lcs_recall": lambda both, actual: both.recall_in_order,
    "longest_repeat": lambda both, actual: longest_repeat(actual),
}


def cases() -> list[dict[str, Any]]:
    return [json.loads(line) for line in CASES.read_text().splitlines()] if CASES.is_file() else []


@pytest.mark.shared
@pytest.mark.parametrize("case", cases(), ids=lambda case: case["id"])
def test_case(case: dict[str, Any]):
    assert answer(case, reverse=False) == pytest.approx(case["expected"], abs=5e-5)


@pytest.mark.shared
@pytest.mark.parametrize("case", [case for case in cases() if case["mode"] in ORDER_FREE])
def test_case_with_its_reference_written_backwards(case: dict[str, Any]):
    assert answer(case, reverse=True) == pytest.approx(case["expected"], abs=5e-5)


def test_there_are_cases(shared_data: Path):
    assert len(cases()) >= 128


def answer(case: dict[str, Any], *, reverse: bool) -> Any:
    actual = read_calls(case["actual"], case)
    both = put_side_by_side(read_calls(case["reference"][:: -1 if reverse else 1], case), actual, case)
    if case["mode"] in FIGURES:
        return FIGURES[case["mode"]](both, actual)
    return both.passes(Match(case["mode"]))


def put_side_by_side(reference: list[Call], actual: list[Call], case: dict[str, Any]) -> Comparison:
    mode = case.get("args_mode")
    arguments = Arguments(only=tuple(mode)) if isinstance(mode, list) else ARGUMENTS[mode]
    return compare(reference, actual, Rules(default=arguments))


def read_calls(calls: list[dict[str, Any]], case: dict[str, Any]) -> list[Call]:
    read = [Call(call["tool"], call["args"], call.get("turn"), Status(call.get("status", "ok"))) for call in calls]
    return counted(
        read, failed=Attempts(case.get("failed_calls", "count")), refused=Attempts(case.get("refused_calls", "count"))
    )
