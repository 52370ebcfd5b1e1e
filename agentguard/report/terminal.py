"""A report for people at a terminal: readable at 100 columns and without colour."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from agentguard.metrics import BUILT_IN, Reason
from agentguard.report import Report
from agentguard.report.diagnoses import DEFAULTS, diagnoses
from agentguard.scoring import Figure, Grade, Rate, Row, RunScore
from agentguard.statistics import wilson

DASH = "–"
"""Stands for what does not apply or was not recorded."""

WORDS = {
    Grade.PASS: Text("PASS", "bold green"),
    Grade.FAIL: Text("FAIL", "bold red"),
    Grade.UNSCORED: Text("UNSCORED", "bold yellow"),
}


def show(report: Report, console: Console, *, limit: int) -> None:
    """Print the report. Of the failing runs the worst `limit` are shown, and the rest counted; 0 shows all."""
    console.print(table(report))
    for row in report.rows:
        for line in _remarks(row):
            console.print(f"\n{clean(row.key.model)} + {clean(row.key.harness)}: {line}", soft_wrap=True)
    for run in report.failing()[: limit or None]:
        console.print()
        show_run(run, console)
    _say_the_rest(report, console, limit)
    for line in (*notes(report), *gate_lines(report)):
        console.print(Text(clean(line), "yellow"), soft_wrap=True)
    console.print(Text.assemble("\n", (report.verdict, "bold"), f": {_answer(report)}"), soft_wrap=True)


def _remarks(row: Row) -> Iterator[str]:
    """Yield what there is to say about a row beside its figures in the table."""
    for name, figure in row.figures.items():
        if name not in BUILT_IN:
            yield f"{clean(name)} {_told(figure)}"
    if row.instead:
        yield "called " + ", ".join(
            f"{clean(one.called)} for {clean(one.wanted)} ({one.times:,})" for one in row.instead
        )
    for found in diagnoses(row):
        yield f"{found.evidence}\n  {found.fix}"


def gate_lines(report: Report) -> Iterator[str]:
    """Yield how each gate came out."""
    for gate in report.gates:
        word = {True: "holds", False: "FAILS", None: "cannot be judged"}[gate.holds]
        yield f"gate {word}: {gate.name} ({gate.why})"


def _answer(report: Report) -> str:
    return "; ".join(clean(gate.name) for gate in report.missed()) or counts(report)


def counts(report: Report) -> str:
    """Return how many runs and calls there are, and the verdicts, in one line."""
    grades = report.grades
    runs = f"{counted(len(report.runs), 'run')}, {counted(report.calls, 'call')}"
    return (
        f"{runs}: {grades[Grade.PASS]:,} pass, {grades[Grade.FAIL]:,} fail, "
        f"{grades[Grade.UNSCORED]:,} could not be scored"
    )


def counted(count: int, thing: str) -> str:
    """Return a count with its noun.

    >>> counted(1, "run"), counted(2000, "run")
    ('1 run', '2,000 runs')
    """
    return f"{count:,} {thing}{'' if count == 1 else 's'}"


def clean(text: str) -> str:
    """Return a text from a trace without what a terminal would obey."""
    return "".join(character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in text)


def table(report: Report) -> Table:
    """Return one line a model + harness."""
    shown = Table(box=None, padding=(0, 1, 0, 0), header_style="bold", pad_edge=False)
    shown.add_column("model\nharness", overflow="fold")
    for heading in _HEADINGS:
        shown.add_column(heading, justify="right", vertical="top")
    for row in report.rows:
        shown.add_row(f"{clean(row.key.model)}\n{clean(_harness(row))}", *_cells(row))
    return shown


_HEADINGS = (
    "runs", "success", "back to\nback", "selec-\ntion", "argu-\nments", "over\nbudget", "not\nended", "acci-\ndental",
    "steps", "un-\nscored",
)  # fmt: skip


def _harness(row: Row) -> str:
    return row.key.harness if row.key.digest is None else f"{row.key.harness} {row.key.digest[:8]}"


def _cells(row: Row) -> list[str]:
    return [
        f"{row.runs:,}",
        rate(row.success),
        rate(row.back_to_back),
        share(row.selection),
        share(row.arguments),
        rate(row.over_budget),
        rate(row.not_terminated),
        str(row.accidental.hits) if row.accidental.of else DASH,
        DASH if row.median_steps is None else f"{row.median_steps:g}",
        f"{row.unscored:,}",
    ]


def share(value: float | None) -> str:
    """Return a share as a whole percentage; a share that is not quite all or nothing never reads 100 or 0."""
    if value is None:
        return DASH
    if 0 < value < 0.01 or 0.99 < value < 1:
        return f"{value:.1%}"
    return f"{value:.0%}"


def rate(value: Rate) -> str:
    """Return a rate with its 95% interval under it."""
    interval = wilson(value.hits, value.of)
    under = "" if interval is None else f"\n{100 * interval.low:.0f}-{100 * interval.high:.0f}"
    return f"{share(value.share)}{under}"


def show_run(run: RunScore, console: Console) -> None:
    """Print what there is to say about one run."""
    filed = clean(f"{run.key.model} + {run.key.harness}")
    console.print(Text.assemble(WORDS[run.grade], f" {clean(run.run_id)}", (f"  {filed}", "dim")), soft_wrap=True)
    for number, reason in enumerate(run.reasons, 1):
        console.print(_indented(Text(f"{number}. {clean(reason.text)}{where(reason)}")))
    for fault in run.unscored:
        console.print(_indented(Text(f"not scored: {clean(fault)}", "yellow")))


def where(reason: Reason) -> str:
    """Return which calls a reason is about, counted from 1 as people do.

    >>> where(Reason("repeat.identical", "", (0, 1, 2, 5)))
    ' (calls 1-3, 6)'
    """
    if not reason.steps:
        return ""
    spans: list[tuple[int, int]] = []
    for step in reason.steps:
        if spans and spans[-1][1] == step - 1:
            spans[-1] = (spans[-1][0], step)
        else:
            spans.append((step, step))
    told = ", ".join(str(first + 1) if first == last else f"{first + 1}-{last + 1}" for first, last in spans)
    return f" (call{'s' if len(reason.steps) > 1 else ''} {told})"


def _indented(text: Text) -> Padding:
    return Padding(text, (0, 0, 0, 5), expand=False)


def _told(figure: Figure) -> str:
    mean = DASH if figure.mean is None else f"mean {figure.mean:.3g} over {counted(figure.runs, 'run')}"
    return mean if not figure.unscored else f"{mean}, {figure.unscored:,} could not be scored"


def _say_the_rest(report: Report, console: Console, limit: int) -> None:
    rest = report.grades[Grade.FAIL] - limit
    if limit and rest > 0:
        console.print(f"\n{counted(rest, 'more failing run')}; --limit 0 shows all")


def notes(report: Report) -> Iterator[str]:
    """Yield what a reader has to know about what is not in the figures."""
    if report.without_harness:
        yield (
            f"{counted(report.without_harness, 'run')} without a harness, filed under unknown: "
            "such figures compare with nothing; name it by --harness"
        )
    few = sum(row.runs < DEFAULTS.runs for row in report.rows)
    if few:
        yield f"{counted(few, 'row')} with fewer than {DEFAULTS.runs} runs: too few to say much"
    if report.without_reference:
        yield f"{counted(report.without_reference, 'run')} without a reference, not matched"
    for fault, count in Counter(fault for run in report.runs for fault in run.unscored).most_common():
        yield f"{counted(count, 'run')} not scored in full: {fault}"
    for reason, count in report.skipped.items():
        yield f"skipped {count:,} x {reason}"
    yield from (f"  {example}" for example in list(dict.fromkeys(map(str, report.skipped_examples)))[:5])
