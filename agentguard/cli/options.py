"""Options that several commands share."""

from __future__ import annotations

from typing import Annotated

import typer

Traces = Annotated[
    list[str],
    typer.Argument(
        help="Trace files (also .gz, .zst, .xz), folders, patterns; - is standard input.", show_default=False
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Write JSON.")]
Format = Annotated[str | None, typer.Option("--format", help="Force the format of the traces.", show_default=False)]
Harness = Annotated[
    str | None,
    typer.Option(help="File the runs under this harness: the scaffold around the model, with its version."),
]
Model = Annotated[str | None, typer.Option(help="File the runs under this model.")]
Strict = Annotated[bool, typer.Option("--strict", help="Fail with exit code 2 when anything could not be read.")]
