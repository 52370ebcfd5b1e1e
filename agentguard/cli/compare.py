"""`agentguard compare`: a new set of runs beside an older one of the same tasks."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from agentguard.cli.options import Format, Json

if TYPE_CHECKING:
    from rich.console import Console

    from agentguard.report.comparing import Comparison


def compare(
    base: Annotated[
        str, typer.Argument(help="The runs to compare with: a file, folder or pattern.", show_default=False)
    ],
    new: Annotated[str, typer.Argument(help="The new runs.", show_default=False)],
    reference: Annotated[Path | None, typer.Option(help="References, by task or by run.")] = None,
    step_budget: Annotated[int | None, typer.Option(min=0, help="Calls that may reach a tool.")] = None,
    as_json: Json = False,
    format: Format = None,
) -> None:
    """Compare two sets of runs by the tasks that both have: every metric, with the uncertainty of the difference.

    Exit code 0 when nothing is worse beyond its 95% interval, 1 when something is, 2 for bad input, 3 when the two
    sets have no task in common.

    Example: `agentguard compare runs/main runs/branch --reference tasks.toml`
    """
    import orjson

    from agentguard.cli import terminal
    from agentguard.cli.runs import read_runs
    from agentguard.reference import load_references
    from agentguard.report.comparing import compare as compared
    from agentguard.scoring import score
    from agentguard.traces import ReadReport

    references = load_references(reference) if reference is not None else None
    with terminal.reading() as progress:
        one, other = (
            list(
                score(
                    read_runs([path], told=ReadReport(), format=format, progress=progress),
                    references=references,
                    step_budget=step_budget,
                )
            )
            for path in (base, new)
        )
    found = compared(one, other)
    if as_json:
        terminal.write(orjson.dumps(_as_dict(found)))
    else:
        _show(found, terminal.stdout())
    raise typer.Exit(3 if not found.metrics else 1 if found.worse else 0)


def _as_dict(found: Comparison) -> dict[str, Any]:
    import msgspec

    told: dict[str, Any] = msgspec.to_builtins(found)
    return told | {"worse": [one.metric for one in found.worse]}


def _show(found: Comparison, console: Console) -> None:
    from rich.table import Table

    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="bold")
    table.add_column("metric")
    for heading in ("tasks", "base", "new", "difference", "95% interval"):
        table.add_column(heading, justify="right")
    table.add_column("")
    for one in found.metrics:
        interval = "–" if one.interval is None else f"{one.interval.low:+.3f} to {one.interval.high:+.3f}"
        figures = (f"{one.base:.3f}", f"{one.new:.3f}", f"{one.difference:+.3f}", interval)
        table.add_row(one.metric, f"{one.tasks:,}", *figures, str(one.change))
    console.print(table)
    paired = found.verdicts
    if paired.p is not None:
        console.print(
            f"\nverdicts of tasks run once by each: {paired.both} pass with both, {paired.only_base} only with base, "
            f"{paired.only_new} only with new, {paired.neither} with neither (McNemar's exact p {paired.p:.3f})"
        )
    worse = ", ".join(one.metric for one in found.worse)
    said = f"WORSE: {worse}" if worse else "NOT WORSE" if found.metrics else "NOT ENOUGH DATA: no task in common"
    console.print(f"\n{said}")
