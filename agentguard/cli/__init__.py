"""The command `agentguard`: one file a command. What a command needs is imported when it runs."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from agentguard import __version__
from agentguard.cli.backtest import backtest
from agentguard.cli.compare import compare
from agentguard.cli.demo import demo
from agentguard.cli.lint import lint
from agentguard.cli.policy import policy
from agentguard.cli.score import score
from agentguard.cli.show import show
from agentguard.errors import AgentGuardError

BAD_INPUT = 2
"""Exit code for input that cannot be used."""

app = typer.Typer(
    name="agentguard",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
)
for command in (demo, score, show, compare, lint, backtest):
    app.command()(command)
app.add_typer(policy, name="policy")


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"agentguard {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Score the trajectories of agents, and show what a guard would have done about them."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line; ends by SystemExit: 0 fine, 1 a verdict failed, 2 bad input, 3 not enough data."""
    try:
        app(args=arguments, prog_name="agentguard")
    except AgentGuardError as error:
        print(f"error: {error}", file=sys.stderr)
        raise SystemExit(BAD_INPUT) from None
    except OSError as error:
        print(f"error: {error.filename}: {error.strerror}", file=sys.stderr)
        raise SystemExit(BAD_INPUT) from None
