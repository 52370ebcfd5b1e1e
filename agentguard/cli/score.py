"""`agentguard score`: verdicts about recorded runs, and the figures of every model + harness."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from agentguard.cli.options import Format, Harness, Json, Model, Strict, Traces
from agentguard.matching.calls import Match


def score(
    traces: Traces,
    reference: Annotated[
        Path | None, typer.Option(help="TOML, YAML, JSON or JSON lines of the calls expected, by task or by run.")
    ] = None,
    match: Annotated[Match | None, typer.Option(help="Match by this mode, whatever the references say.")] = None,
    step_budget: Annotated[
        int | None,
        typer.Option(min=0, help="Calls that may reach a tool, where no reference says; more of them fail the run."),
    ] = None,
    outcomes: Annotated[
        Path | None, typer.Option(help="JSON, JSON lines or CSV of run_id and outcome, where the traces tell none.")
    ] = None,
    metric: Annotated[
        list[str] | None,
        typer.Option(help="Also work out this metric of an installed package.", show_default=False),
    ] = None,
    write: Annotated[
        list[Path] | None,
        typer.Option(
            help="Also write a report, by its ending: .html, .json, .xml (JUnit), .md, .csv or .parquet (runs), "
            ".calls.csv or .calls.parquet. May be given several times.",
            show_default=False,
        ),
    ] = None,
    fail_under: Annotated[
        list[str] | None,
        typer.Option(
            help="Gate: a floor under a share of every model + harness, e.g. selection=0.9; it fails when the 95% "
            "interval lies below it. May be given several times.",
            show_default=False,
        ),
    ] = None,
    fail_on: Annotated[
        list[str] | None,
        typer.Option(
            help="Gate: what no run may have: loops, budget, ending, accidental or match. May be given several times.",
            show_default=False,
        ),
    ] = None,
    as_json: Json = False,
    limit: Annotated[
        int, typer.Option(min=0, help="How many failing runs to show, the worst first; 0 shows all.")
    ] = 10,
    format: Format = None,
    model: Model = None,
    harness: Harness = None,
    strict: Strict = False,
) -> None:
    """Score recorded runs: were the necessary calls made, loops, steps against budget, how it ended.

    Exit code 0 when no run fails, 1 when one does, 2 for bad input, 3 when nothing could be scored. Where gates are
    given, they decide instead of the runs' verdicts.

    Example: `agentguard score runs/ --reference tasks.toml --match superset --step-budget 20`
    """
    import msgspec

    from agentguard.cli import terminal
    from agentguard.cli.outcomes import load_outcomes
    from agentguard.cli.runs import read_runs, refuse_skipped
    from agentguard.metrics import with_named
    from agentguard.reference import load_references
    from agentguard.report import report
    from agentguard.report.as_json import as_json as written
    from agentguard.report.files import form_of
    from agentguard.report.gates import fault, floor, gates
    from agentguard.report.terminal import show
    from agentguard.scoring import matched_by
    from agentguard.scoring import score as scored
    from agentguard.traces.report import ReadReport

    if match is not None and reference is None:
        raise typer.BadParameter("says how to match, and --reference is missing: what to match with")
    told = ReadReport()
    metrics = with_named(metric or ())
    floors = [floor(text) for text in fail_under or ()]
    faults = [fault(text) for text in fail_on or ()]
    forms = [(path, form_of(path)) for path in write or ()]
    keep = any(path.suffix == ".html" for path, _ in forms)
    known = load_outcomes(outcomes) if outcomes is not None else None
    references = load_references(reference) if reference is not None else None
    if references is not None and match is not None:
        references = matched_by(references, match)
    with terminal.reading() as progress:
        runs = read_runs(
            traces, told=told, format=format, model=model, harness=harness, outcomes=known, progress=progress
        )
        judged = scored(runs, references=references, step_budget=step_budget, metrics=metrics, keep=keep)
        found = report(judged, told)
    found = msgspec.structs.replace(found, gates=tuple(gates(found, floors=floors, faults=faults)))
    if strict:
        refuse_skipped(told)
    for path, form in forms:
        path.write_bytes(form(found))
    if as_json:
        terminal.write(written(found))
    else:
        show(found, terminal.stdout(), limit=limit)
    raise typer.Exit(found.exit_code)
