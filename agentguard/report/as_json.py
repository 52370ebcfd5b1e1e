"""A report as JSON, for machines; docs/report.schema.json describes it."""

from __future__ import annotations

from typing import Any

import msgspec
import orjson

from agentguard.metrics import Score
from agentguard.report import Report
from agentguard.report.diagnoses import DEFAULTS, diagnoses
from agentguard.scoring import Grade, Rate, Row, RunScore
from agentguard.statistics import wilson
from agentguard.traces.report import Skipped


def as_json(report: Report) -> bytes:
    """Return the whole report as one JSON object."""
    return orjson.dumps(as_dict(report), default=str)


def as_dict(report: Report) -> dict[str, Any]:
    """Return what `as_json` writes."""
    grades = report.grades
    return {
        "verdict": report.verdict,
        "gates": [msgspec.structs.asdict(gate) for gate in report.gates],
        "totals": {
            "runs": len(report.runs),
            "calls": report.calls,
            **{str(grade): grades[grade] for grade in Grade},
            "skipped": sum(report.skipped.values()),
            "without_harness": report.without_harness,
            "without_reference": report.without_reference,
        },
        "rows": [_row(row) for row in report.rows],
        "runs": [run_as_dict(run) for run in report.runs],
        "skipped": {"reasons": report.skipped, "examples": [_skipped(one) for one in report.skipped_examples]},
    }


def run_as_dict(run: RunScore) -> dict[str, Any]:
    """Return one run's scores as JSON values."""
    return {
        "run_id": run.run_id,
        "model": run.key.model,
        "harness": run.key.harness,
        "harness_digest": run.key.digest,
        "task": run.task,
        "source": run.source,
        "verdict": str(run.grade),
        "response_level": str(run.response),
        "reasons": [msgspec.structs.asdict(reason) for reason in run.reasons],
        "unscored": run.unscored,
        "ending": str(run.ending),
        "outcome": run.outcome,
        "calls": run.calls,
        "scores": {name: _score(score) for name, score in run.scores.items()},
    }


def _score(score: Score) -> dict[str, Any]:
    said: dict[str, Any] = {"value": score.value}
    if score.steps:
        said["steps"] = score.steps
    if score.unscored is not None:
        said["unscored"] = score.unscored
    if score.data:
        said["data"] = score.data
    return said


def _row(row: Row) -> dict[str, Any]:
    said: dict[str, Any] = {"model": row.key.model, "harness": row.key.harness, "harness_digest": row.key.digest}
    for field in row.__struct_fields__:
        value = getattr(row, field)
        if isinstance(value, Rate):
            said[field] = _rate(value)
        elif field not in ("key", "figures", "trials", "loops_by_length", "instead"):
            said[field] = value
    said["trials"] = None if row.trials is None else msgspec.structs.asdict(row.trials)
    said["instead"] = [msgspec.structs.asdict(one) for one in row.instead]
    said["loops_by_length"] = [msgspec.structs.asdict(band) for band in row.loops_by_length]
    said["comparable"] = row.is_comparable
    said["too_few_runs"] = row.runs < DEFAULTS.runs
    said["diagnoses"] = [{"code": d.code, "evidence": d.evidence, "fix": d.fix} for d in diagnoses(row)]
    said["figures"] = {name: msgspec.structs.asdict(figure) for name, figure in row.figures.items()}
    return said


def _rate(rate: Rate) -> dict[str, Any]:
    interval = wilson(rate.hits, rate.of)
    low, high = (interval.low, interval.high) if interval is not None else (None, None)
    return {"hits": rate.hits, "of": rate.of, "share": rate.share, "low": low, "high": high}


def _skipped(one: Skipped) -> dict[str, Any]:
    return {"path": one.path, "line": one.line, "reason": one.reason, "fault": one.fault}
