"""A report as Markdown, short enough for a comment on a pull request."""

from __future__ import annotations

import re
from collections.abc import Iterator

from agentguard.report import Report
from agentguard.report.diagnoses import diagnoses
from agentguard.report.terminal import counts, gate_lines, notes, rate, share, where
from agentguard.scoring import Grade, Row

_LIMIT = 20
_ACTIVE = re.compile(r"([\\`*_{}\[\]()#+\-.!|<>~&@])")


def markdown(report: Report, *, limit: int = _LIMIT) -> str:
    """Return the Markdown. Of the failing runs the worst `limit` are shown, and the rest counted; 0 shows all."""
    return "\n".join(_lines(report, limit)) + "\n"


def _lines(report: Report, limit: int) -> Iterator[str]:
    yield f"## agentguard: {report.verdict}"
    yield f"\n{counts(report)}\n"
    yield f"| model | harness | {' | '.join(_HEADINGS)} |"
    yield f"|---|---|{'---:|' * len(_HEADINGS)}"
    yield from (_row(row) for row in report.rows)
    for row in report.rows:
        for found in diagnoses(row):
            yield f"\n**{text(row.key.model)} + {text(row.key.harness)}**: {text(found.evidence)}. {text(found.fix)}"
    yield from _failing(report, limit)
    for note in (*notes(report), *gate_lines(report)):
        yield f"\n{text(note)}"


_HEADINGS = ("runs", "success", "back to back", "selection", "arguments", "over budget", "not ended", "steps")


def _row(row: Row) -> str:
    cells = [
        text(row.key.model),
        text(row.key.harness),
        f"{row.runs:,}",
        *(_cell(rate(value)) for value in (row.success, row.back_to_back)),
        share(row.selection),
        share(row.arguments),
        *(_cell(rate(value)) for value in (row.over_budget, row.not_terminated)),
        "–" if row.median_steps is None else f"{row.median_steps:g}",
    ]
    return f"| {' | '.join(cells)} |"


def _cell(told: str) -> str:
    value, _, interval = told.partition("\n")
    return f"{value} ({interval})" if interval else value


def _failing(report: Report, limit: int) -> Iterator[str]:
    failing = report.failing()
    if not failing:
        return
    yield f"\n<details><summary>{report.grades[Grade.FAIL]:,} failing runs</summary>\n"
    for run in failing[: limit or None]:
        yield f"- **{text(run.run_id)}** ({text(run.key.model)} + {text(run.key.harness)})"
        yield from (f"  {number}. {text(reason.text)}{where(reason)}" for number, reason in enumerate(run.reasons, 1))
    if limit and len(failing) > limit:
        yield f"\n{len(failing) - limit:,} more failing runs"
    yield "\n</details>"


def text(raw: str) -> str:
    """Return a text from a trace so that Markdown shows it and obeys nothing in it.

    >>> text("[a](b) <i>@you</i>")
    '\\\\[a\\\\]\\\\(b\\\\) &lt;i&gt;&#64;you&lt;/i&gt;'
    """
    printable = "".join(character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in raw)
    return _ACTIVE.sub(_harmless, printable)


def _harmless(found: re.Match[str]) -> str:
    return _ENTITIES.get(found[0]) or f"\\{found[0]}"


_ENTITIES = {"<": "&lt;", ">": "&gt;", "&": "&amp;", "@": "&#64;", "|": "&#124;"}
