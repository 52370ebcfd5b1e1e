"""Outcomes that stand beside the traces: which runs reached the right final state."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, cast

from agentguard.errors import TraceError
from agentguard.traces.outcomes import as_outcome


def load_outcomes(path: Path) -> dict[str, bool]:
    """Return the outcome by run id.

    The file is a JSON object of run id to outcome, JSON lines with `run_id` and `outcome` (or `success`), or CSV with
    such columns. An outcome is true, false, pass, fail, 1, 0 and the like; anything else is a TraceError.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise TraceError(str(path), None, f"cannot be read: {error}") from error
    return {run_id: _outcome(path, line, value) for line, run_id, value in _pairs(path, text)}


def _pairs(path: Path, text: str) -> Iterator[tuple[int, str, Any]]:
    if not text.lstrip().startswith("{"):
        yield from (_pair(path, line, row) for line, row in enumerate(csv.DictReader(io.StringIO(text)), 2))
        return
    try:
        whole = json.loads(text)
    except json.JSONDecodeError:
        yield from (_pair(path, line, _object(path, line, row)) for line, row in _lines(text))
        return
    if "run_id" in whole:
        yield _pair(path, 1, whole)
    else:
        yield from ((1, run_id, value) for run_id, value in whole.items())


def _lines(text: str) -> Iterator[tuple[int, str]]:
    return ((number, line) for number, line in enumerate(text.splitlines(), 1) if line.strip())


def _object(path: Path, line: int, text: str) -> Mapping[str, Any]:
    try:
        found: Any = json.loads(text)
    except json.JSONDecodeError as error:
        raise TraceError(str(path), line, f"no JSON ({error}); one object a line is read") from None
    if not isinstance(found, dict):
        raise TraceError(str(path), line, "no JSON object; give run_id and outcome")
    return cast("Mapping[str, Any]", found)


def _pair(path: Path, line: int, row: Mapping[str, Any]) -> tuple[int, str, Any]:
    value = row.get("outcome", row.get("success"))
    if row.get("run_id") is None or value is None:
        raise TraceError(str(path), line, "a line without run_id and outcome; give both")
    return line, str(row["run_id"]), value


def _outcome(path: Path, line: int, value: Any) -> bool:
    outcome = as_outcome(value)
    if outcome is None:
        raise TraceError(str(path), line, f"{value!r} is neither pass nor fail; write true or false")
    return outcome
