"""What figures say, and which fix they imply."""

from __future__ import annotations

from typing import Any

import pytest

from agentguard.report.diagnoses import Thresholds, diagnoses
from agentguard.scoring import Figure, Rate, Row
from agentguard.trajectory import RunKey


def row(**figures: Any) -> Row:
    wasted = figures.pop("wasted", 0.0)
    plain: dict[str, Any] = {
        "key": RunKey("m", "h"),
        "runs": 100,
        "calls": 1000,
        "selection": None,
        "arguments": None,
        "median_steps": 10.0,
        "mean_cost_usd": None,
        "trials": None,
        "marginal_steps": None,
        "instead": (),
        "loops_by_length": (),
        "unscored": 0,
        "figures": {"waste": Figure(mean=wasted, median=0.0, runs=100, unscored=0)},
    }
    rates = ("passed", "success", "back_to_back", "over_budget", "not_terminated", "accidental")
    return Row(**plain | {name: Rate(0, 100) for name in rates} | figures)


def codes(found: Row, **limits: Any) -> list[str]:
    return [diagnosis.code for diagnosis in diagnoses(found, Thresholds(**limits))]


def test_high_completion_with_many_steps_wastes_money():
    (found,) = diagnoses(row(success=Rate(90, 100), over_budget=Rate(30, 100)))
    assert (found.code, found.evidence) == ("expensive", "success 90%, over budget 30%")
    assert found.fix == "it works and wastes money: look at the tool descriptions before the model"


def test_wasted_calls_say_the_same_without_a_budget():
    (found,) = diagnoses(row(success=Rate(90, 100), over_budget=Rate(0, 0), wasted=3.0))
    assert found.evidence == "success 90%, wasted calls 30%"


def test_high_completion_with_loops_is_luck():
    assert codes(row(success=Rate(90, 100), back_to_back=Rate(5, 100))) == ["lucky"]


def test_right_tools_with_wrong_arguments_are_a_schema_problem():
    (found,) = diagnoses(row(selection=0.95, arguments=0.5))
    assert (found.code, found.evidence) == ("schema", "selection 95%, arguments 50%")


def test_everything_high_speaks_of_the_golden_set():
    assert codes(row(success=Rate(95, 100), selection=0.97, arguments=0.96)) == ["golden_set"]


@pytest.mark.parametrize(
    "found",
    [row(), row(success=Rate(0, 0)), row(success=Rate(90, 100)), row(selection=0.5, arguments=0.2)],
    ids=["low success", "nobody told", "no reference", "wrong tools"],
)
def test_other_figures_say_nothing(found: Row):
    assert diagnoses(found) == []


def test_too_few_runs_say_nothing():
    assert codes(row(success=Rate(9, 10), back_to_back=Rate(5, 10), runs=10)) == []


def test_thresholds_can_be_overridden():
    found = row(success=Rate(60, 100), back_to_back=Rate(5, 100))
    assert codes(found) == []
    assert codes(found, success=0.5) == ["lucky"]


def test_a_row_without_waste_wastes_nothing():
    assert codes(row(success=Rate(90, 100), figures={})) == []
