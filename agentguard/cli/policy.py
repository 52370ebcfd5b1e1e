"""`agentguard policy`: write a policy file, check one, describe them for editors."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

policy = typer.Typer(
    help="Write a policy file, check one, or print the schema that editors complete by.", no_args_is_help=True
)

DEFAULTS = """\
# A policy of agentguard with every default. Leave out what you do not change; an unknown key is refused by name.
name = "default"        # shown in spans and reports
mode = "enforce"        # or "observe": every call runs, what would have been done is recorded
on_fault = "allow"      # or "halt": what happens to a call when the guard itself fails on it
advise = false          # append the advice of warnings to results that are text
disabled = []           # names of checks to leave out

[budget]                # no ceilings by default; what is charged and when: docs/budgets.md
# steps = 40
# calls_per_tool = { search = 5 }
# tokens = 200000
# cost_usd = "1.00"
# seconds = 600
# failures = 10
# warn_at = 0.8

[repeats]               # equal results of the identical calls just before from which the next one is ...
block = 2
halt = 4
writes_block = 1        # the same for tools declared to write
writes_halt = 2
ceiling = 20            # identical calls just before, whatever their results, from which the next one is blocked

[failures]              # failures of one tool in a row from which the next call is warned about, or the run halted
warn = 3
halt = 5
same_error_warn = 3     # the same for one error text
same_error_halt = 4

[unknown_tool]
nearest = 3             # how many near names are offered

# [tools.charge]        # what a tool is: any of these
# writes = true
# repeatable = true
# poll = { max = 30, min_interval = 2.0 }
# ignore = ["request_id"]
# empty_is_error = true
# cost_usd = "0.01"
# deadline = 30.0
# schema = { type = "object" }

# [[order]]             # charge needs an earlier successful authorise of the same order
# tool = "charge"
# needs = "authorise"
# same = ["order_id"]
"""


@policy.command()
def init(
    path: Annotated[Path, typer.Argument(help="Where to write it; - is standard output.")] = Path("agentguard.toml"),
    force: Annotated[bool, typer.Option("--force", help="Replace a file that is there.")] = False,
) -> None:
    """Write a policy file with every default and what it means.

    Example: `agentguard policy init agentguard.toml`
    """
    from agentguard.errors import PolicyError

    if str(path) == "-":
        typer.echo(DEFAULTS, nl=False)
        return
    if path.exists() and not force:
        raise PolicyError("", f"{path}: is there already; --force replaces it")
    try:
        path.write_text(DEFAULTS, encoding="utf-8")
    except OSError as error:
        raise PolicyError("", f"{path}: cannot be written: {error.strerror}") from error
    typer.echo(f"wrote {path}")


@policy.command()
def check(path: Annotated[Path, typer.Argument(help="A policy file.", show_default=False)]) -> None:
    """Load a policy file as a guard does; a fault is told by its key, with exit code 2.

    Example: `agentguard policy check agentguard.toml`
    """
    from agentguard.policy import Policy

    loaded = Policy.load(path)
    checks = ", ".join(each.name for each in loaded.checks)
    typer.echo(f"{path}: policy {loaded.name}, {loaded.mode}, digest {loaded.digest}; checks: {checks}")


@policy.command()
def schema() -> None:
    """Print the JSON Schema of a policy file.

    Example: `agentguard policy schema > agentguard.schema.json`
    """
    import orjson

    from agentguard.cli import terminal
    from agentguard.policy import policy_schema

    terminal.write(orjson.dumps(policy_schema(), option=orjson.OPT_INDENT_2))
