"""`agentguard lint`: mistakes in references, before anything is scored by them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from agentguard.cli.options import Format, Json


def lint(
    reference: Annotated[Path, typer.Argument(help="TOML, YAML, JSON or JSON lines.", show_default=False)],
    traces: Annotated[
        list[str] | None, typer.Argument(help="Recorded runs to hold the tool names and schemas against.")
    ] = None,
    as_json: Json = False,
    format: Format = None,
) -> None:
    """Look for mistakes in references: unknown tools, arguments against schemas, duplicates, tools that never occur.

    Exit code 0 when nothing is odd, 1 when something is, 2 for bad input.

    Example: `agentguard lint tasks.toml runs/`
    """
    import msgspec
    import orjson

    from agentguard.cli import terminal
    from agentguard.cli.runs import read_runs
    from agentguard.reference import load_references
    from agentguard.report.lint import lint as linted
    from agentguard.report.lint import seen_in
    from agentguard.report.terminal import clean
    from agentguard.traces import ReadReport

    references = load_references(reference)
    seen = None
    if traces:
        with terminal.reading() as progress:
            seen = seen_in(read_runs(traces, told=ReadReport(), format=format, progress=progress))
    found = linted(references, seen)
    if as_json:
        terminal.write(orjson.dumps([msgspec.structs.asdict(oddity) for oddity in found]))
    else:
        for oddity in found:
            typer.echo(f"{reference}: {clean(oddity.where)}: {oddity.code}: {clean(oddity.text)}")
        total = len(references.tasks) + len(references.runs)
        typer.echo(f"{total:,} references, {len(found):,} oddities")
    raise typer.Exit(1 if found else 0)
