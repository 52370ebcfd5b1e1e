"""The figures of the report against SQL over the Parquet that it writes."""

from __future__ import annotations

import lzma
from pathlib import Path
from typing import Any

import pytest

from agentguard.report import Report, report
from agentguard.report.tables import as_parquet, run_rows
from agentguard.scoring import Rate, score
from agentguard.statistics import wilson
from agentguard.traces import ReadReport, read

duckdb = pytest.importorskip("duckdb")
pytest.importorskip("pyarrow")
pytestmark = pytest.mark.shared

QUERY = """
with told as (select *, score_repeats > 0 or score_repeated_turns > 0 as again from runs),
rates as (select model, harness, again, sum(again::int) over key as hits, count(again) over key as of from told
          window key as (partition by model, harness))
select model, harness, count(*) as runs, sum(calls) as calls, sum(outcome::int) as successes, count(outcome) as known,
       sum(again::int) as looped, count(again) as decided, sum((verdict = 'fail')::int) as failed,
       median(score_steps) as steps, avg(score_waste) as waste, sum((ending = 'halted')::int) as halted
from told group by model, harness order by model, harness
"""
INTERVAL = """
select (p + z*z/(2*n) - z*sqrt(p*(1-p)/n + z*z/(4*n*n))) / (1 + z*z/n),
       (p + z*z/(2*n) + z*sqrt(p*(1-p)/n + z*z/(4*n*n))) / (1 + z*z/n)
from (select ?::double / ?::double as p, ?::double as n, 1.959963984540054 as z)
"""
EVERY = """
with tries as (select model, harness, task, sum(outcome::int) as c, count(outcome) as n from runs
               where outcome is not null and task is not null group by model, harness, task)
select avg(case when c < 4 then 0 else (c * (c-1) * (c-2) * (c-3)) / (n * (n-1) * (n-2) * (n-3))::double end)
from tries where model = 'gpt-4o' and harness = 'tau-bench/tool-calling' and n >= 4
"""


@pytest.fixture(scope="module")
def told(shared_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Report:
    runs = tmp_path_factory.mktemp("sql") / "runs.jsonl"
    packed = sorted((shared_data / "trajectories").glob("*.jsonl.xz"))
    runs.write_bytes(b"".join(lzma.decompress(path.read_bytes()) for path in packed))
    return report(score(read(str(runs)), step_budget=15), ReadReport())


@pytest.fixture(scope="module")
def database(told: Report, tmp_path_factory: pytest.TempPathFactory) -> Any:
    path = tmp_path_factory.mktemp("sql") / "runs.parquet"
    path.write_bytes(as_parquet(run_rows(told)))
    connection = duckdb.connect()
    connection.execute(f"create view runs as select * from '{path}'")
    yield connection
    connection.close()


def test_counts_rates_medians_and_means_agree(told: Report, database: Any):
    found = database.execute(QUERY).fetchall()
    expected = [
        (
            row.key.model,
            row.key.harness,
            row.runs,
            row.calls,
            row.success.hits if row.success.of else None,
            row.success.of,
            row.back_to_back.hits,
            row.back_to_back.of,
            row.passed.of - row.passed.hits,
            row.median_steps,
            pytest.approx(row.figures["waste"].mean),
            row.not_terminated.hits,
        )
        for row in told.rows
    ]
    assert found == expected


def test_intervals_agree(told: Report, database: Any):
    for row in told.rows:
        rate: Rate = row.back_to_back
        interval = wilson(rate.hits, rate.of)
        assert interval is not None
        low, high = database.execute(INTERVAL, [rate.hits, rate.of, rate.of]).fetchone()
        assert (interval.low, interval.high) == (pytest.approx(low, abs=1e-9), pytest.approx(high, abs=1e-9))


def test_the_chance_that_every_trial_passes_agrees(told: Report, database: Any):
    (row,) = [row for row in told.rows if row.key.model == "gpt-4o" and row.key.harness == "tau-bench/tool-calling"]
    assert row.trials is not None
    assert row.trials.k == 4
    assert row.trials.every == pytest.approx(database.execute(EVERY).fetchone()[0])
