"""A report as tables for other tools: one row a run, or one row a call, as CSV or Parquet."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Mapping
from importlib import import_module
from typing import Any

from agentguard.errors import IntegrationMissing
from agentguard.report import Report
from agentguard.scoring import RunScore


def run_rows(report: Report) -> Iterator[dict[str, Any]]:
    """Yield one row a run: who, the verdict, and every metric's value under its name; None is not applicable."""
    for run in report.runs:
        yield {
            **_key(run),
            "task": run.task,
            "source": run.source,
            "verdict": str(run.grade),
            "response_level": str(run.response),
            "outcome": run.outcome,
            "ending": str(run.ending),
            "calls": run.calls,
            "reasons": "; ".join(reason.text for reason in run.reasons),
            "unscored": "; ".join(run.unscored),
            **{f"score_{name}": score.value for name, score in run.scores.items()},
        }


def call_rows(report: Report) -> Iterator[dict[str, Any]]:
    """Yield one row for every call that a reason or a score points at: where in the run, and what was found there."""
    for run in report.runs:
        pointed = ((step, name, None, None) for name, score in run.scores.items() for step in score.steps)
        reasons = ((step, None, reason.code, reason.text) for reason in run.reasons for step in reason.steps)
        for step, metric, code, text in (*pointed, *reasons):
            yield {**_key(run), "call": step, "metric": metric, "code": code, "reason": text}


def _key(run: RunScore) -> dict[str, Any]:
    return {
        "run_id": run.run_id,
        "model": run.key.model,
        "harness": run.key.harness,
        "harness_digest": run.key.digest,
    }


def as_csv(rows: Iterable[Mapping[str, Any]]) -> str:
    """Return rows as CSV with a head. A text that a spreadsheet would take for a formula is quoted by an apostrophe."""
    table = list(rows)
    out = io.StringIO()
    writer = csv.DictWriter(out, list(table[0]) if table else [], lineterminator="\n")
    writer.writeheader()
    writer.writerows({name: _harmless(value) for name, value in row.items()} for row in table)
    return out.getvalue()


def _harmless(value: Any) -> Any:
    return f"'{value}" if isinstance(value, str) and value[:1] in ("=", "+", "-", "@", "\t", "\r") else value


def as_parquet(rows: Iterable[Mapping[str, Any]]) -> bytes:
    """Return rows as a Parquet file."""
    try:
        arrow, parquet = import_module("pyarrow"), import_module("pyarrow.parquet")
    except ImportError:
        raise IntegrationMissing("pyarrow", "score") from None
    out = io.BytesIO()
    parquet.write_table(arrow.Table.from_pylist(list(rows)), out)
    return out.getvalue()
