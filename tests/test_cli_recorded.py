"""All recorded runs beside the checkout, scored by one command as a user gives it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.shared


@pytest.fixture(scope="module")
def told(shared_data: Path) -> dict[str, Any]:
    files = sorted((shared_data / "trajectories").glob("*.jsonl.xz"))
    command = [Path(sys.executable).with_name("agentguard"), "score", *files, "--json"]
    ended = subprocess.run(command, capture_output=True, check=False)
    assert (ended.returncode, ended.stderr) == (1, b"")
    return json.loads(ended.stdout)


def test_every_run_and_call_is_scored(told: dict[str, Any]):
    totals = told["totals"]
    assert (totals["runs"], totals["calls"], totals["skipped"]) == (4421, 25040, 0)
    assert sum(row["runs"] for row in told["rows"]) == 4421


def test_no_gold_run_has_a_call_back_to_back(told: dict[str, Any]):
    gold = [row for row in told["rows"] if row["model"] == "reference"]
    assert sum(row["runs"] for row in gold) == 964
    assert [row["back_to_back"]["hits"] for row in gold] == [0] * len(gold)


def test_tau_bench_has_its_rate_for_every_model_and_harness(told: dict[str, Any]):
    tau = [row for row in told["rows"] if row["harness"].startswith("tau-bench/")]
    assert sum(row["back_to_back"]["of"] for row in tau) == 648
    assert all(row["back_to_back"]["share"] is not None for row in tau)


def test_a_repeat_is_what_the_field_calls_one(told: dict[str, Any]):
    sql = [row for row in told["rows"] if row["harness"].startswith("intercode-sql")]
    hits, of = (sum(row["back_to_back"][name] for row in sql) for name in ("hits", "of"))
    assert hits / of == pytest.approx(0.31, abs=0.03)
