"""A report as one HTML file that needs nothing beside it: no request, no font, no script but its own.

Whatever a trace says stands in the page as text: the template escapes, the script only sets text, and the content
security policy lets nothing run but the script whose hash it names.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import orjson

from agentguard.errors import IntegrationMissing
from agentguard.report import Report
from agentguard.report.diagnoses import DEFAULTS, diagnoses
from agentguard.report.page.charts import charts
from agentguard.report.page.runs import run_data
from agentguard.report.terminal import counts, gate_lines, notes, rate, share
from agentguard.scoring import Row
from agentguard.statistics import Band

_HERE: Final = Path(__file__).parent


def page(report: Report) -> bytes:
    """Return the page. Runs scored with `keep=True` can be opened call by call."""
    template = _environment().get_template("page.html.j2")
    style, script = (_text(name) for name in ("page.css", "page.js"))
    whole: str = template.render(
        report=report,
        counts=counts(report),
        gates=list(gate_lines(report)),
        notes=list(notes(report)),
        rows=[_row(row) for row in sorted(report.rows, key=lambda row: not row.is_comparable)],
        repeated=[row for row in report.rows if row.trials is not None and row.trials.every is not None],
        confused=[row for row in report.rows if row.instead],
        bands=_bands(report.rows),
        lengths=[{"key": row.key, "bands": _by_length(row)} for row in report.rows],
        diagnoses=[found for row in report.rows for found in diagnoses(row)],
        too_few=DEFAULTS.runs,
        charts=charts(report),
        style=style,
        script=script,
        policy=_policy(style, script),
        data=_inert(orjson.dumps([run_data(run) for run in report.runs], default=str)),
    )
    return whole.encode()


def _environment() -> Any:
    try:
        jinja2 = import_module("jinja2")
    except ImportError:
        raise IntegrationMissing("jinja2", "score") from None
    return jinja2.Environment(
        loader=jinja2.FileSystemLoader(_HERE), autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True
    )


def _text(name: str) -> str:
    return (_HERE / name).read_text(encoding="utf-8")


def _policy(style: str, script: str) -> str:
    hashes = {kind: _hash(text) for kind, text in (("style", style), ("script", script))}
    rules = [f"{kind}-src '{digest}'" for kind, digest in hashes.items()]
    return "; ".join(["default-src 'none'", *rules, "base-uri 'none'", "form-action 'none'"])


def _hash(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def _inert(data: bytes) -> str:
    """Return JSON that no HTML parser takes for anything else."""
    return data.decode().replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def _bands(rows: Iterable[Row]) -> list[str]:
    shown = {band.shortest: _length(band) for row in rows for band in row.loops_by_length}
    return [name for _, name in sorted(shown.items())]


def _length(band: Band) -> str:
    return f"{band.shortest}+ calls" if band.longest is None else f"{band.shortest}-{band.longest} calls"


def _by_length(row: Row) -> dict[str, str]:
    return {_length(band): f"{share(band.looped / band.runs)} of {band.runs:,}" for band in row.loops_by_length}


def _row(row: Row) -> dict[str, Any]:
    cells = {
        "success": rate(row.success),
        "back to back": rate(row.back_to_back),
        "selection": share(row.selection),
        "arguments": share(row.arguments),
        "over budget": rate(row.over_budget),
        "not ended": rate(row.not_terminated),
        "accidental": rate(row.accidental),
        "steps": "–" if row.median_steps is None else f"{row.median_steps:g}",
        "unscored": f"{row.unscored:,}",
    }
    return {
        "key": row.key,
        "is_comparable": row.is_comparable,
        "runs": row.runs,
        "cells": {name: told.partition("\n") for name, told in cells.items()},
    }
