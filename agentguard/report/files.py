"""Reports in files: the ending of a file's name says which form it is to have."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

from agentguard.errors import AgentGuardError
from agentguard.report import Report
from agentguard.report.as_json import as_json
from agentguard.report.junit import junit
from agentguard.report.markdown import markdown
from agentguard.report.page import page
from agentguard.report.tables import as_csv, as_parquet, call_rows, run_rows

Form = Callable[[Report], bytes]

BUILT_IN: Final[dict[str, Form]] = {
    ".json": as_json,
    ".xml": junit,
    ".html": page,
    ".md": lambda report: markdown(report).encode(),
    ".calls.csv": lambda report: as_csv(call_rows(report)).encode(),
    ".calls.parquet": lambda report: as_parquet(call_rows(report)),
    ".csv": lambda report: as_csv(run_rows(report)).encode(),
    ".parquet": lambda report: as_parquet(run_rows(report)),
}
"""By the ending; the first that fits."""


def form_of(path: Path) -> Form:
    """Return the form that a file's name asks for; an ending that is not known is an AgentGuardError."""
    for ending, form in BUILT_IN.items():
        if path.name.endswith(ending):
            return form
    raise AgentGuardError(f"{path}: unknown ending of a report; known: {', '.join(BUILT_IN)}")
