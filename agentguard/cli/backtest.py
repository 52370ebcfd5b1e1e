"""`agentguard backtest`: what a policy would have done to runs that are already recorded."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from agentguard.cli.options import Format, Json, Strict, Traces

if TYPE_CHECKING:
    from rich.console import Console

    from agentguard.backtest import Backtest, Summary


def backtest(
    traces: Traces,
    policy: Annotated[
        Path | None, typer.Option(help="A policy file; without one, the defaults.", show_default=False)
    ] = None,
    as_json: Json = False,
    limit: Annotated[int, typer.Option(min=0, help="How many halted successes to show; 0 shows all.")] = 10,
    format: Format = None,
    strict: Strict = False,
) -> None:
    """Replay recorded runs through a policy: what it would have blocked and halted, and what that had saved.

    Example: `agentguard backtest runs/ --policy agentguard.toml`
    """
    import orjson

    from agentguard.backtest import backtest as replayed
    from agentguard.backtest import summary
    from agentguard.cli import terminal
    from agentguard.cli.runs import read_runs, refuse_skipped
    from agentguard.policy import Policy
    from agentguard.traces import ReadReport

    loaded = Policy.load(policy) if policy is not None else Policy()
    told = ReadReport()
    with terminal.reading() as progress:
        tested = list(replayed(read_runs(traces, told=told, format=format, progress=progress), loaded))
    if strict:
        refuse_skipped(told)
    if as_json:
        runs = [_as_dict(one) for one in tested if one.blocks or one.first_halt is not None]
        terminal.write(orjson.dumps({"summary": _totals(summary(tested)), "runs": runs, "skipped": told.reasons}))
        return
    _show(terminal.stdout(), summary(tested), tested, limit)
    for reason, count in told.reasons.items():
        terminal.stderr().print(f"skipped {count:,} x {reason}")


def _totals(found: Summary) -> dict[str, Any]:
    import msgspec

    return msgspec.structs.asdict(found)


def _as_dict(one: Backtest) -> dict[str, Any]:
    halt = None if one.first_halt is None else one.decisions[one.first_halt]
    return {
        "run_id": one.run_id,
        "model": one.key.model,
        "harness": one.key.harness,
        "outcome": one.outcome,
        "blocked": one.blocks,
        "halted_at": one.first_halt,
        "code": None if halt is None else halt.code,
        "reason": None if halt is None else halt.reason,
    }


def _show(console: Console, found: Summary, tested: list[Backtest], limit: int) -> None:
    from agentguard.report.terminal import clean, counted, share

    calls = sum(len(one.decisions) for one in tested)
    console.print(f"{counted(found.runs, 'run')}, {counted(calls, 'call')}")
    console.print(f"halted:  {counted(found.halted, 'run')} ({share(found.halted / found.runs)})")
    for word, halted, of in (
        ("successes", found.halted_successes, found.successes),
        ("failures", found.halted_failures, found.failures),
    ):
        console.print(f"  of the {of:,} {word}: {halted:,} ({share(halted / of if of else None)})")
    for code, count in found.codes.items():
        console.print(f"  by {code}: {count:,}")
    console.print(f"blocked: {counted(found.blocked_calls, 'call')}")
    saved = counted(found.saved_calls, "call")
    console.print(f"saved:   {saved} would not have run ({share(found.saved_calls / calls)})")
    alarms = [one for one in tested if one.first_halt is not None and one.outcome is True]
    for one in alarms[: limit or None]:
        at = one.first_halt or 0
        console.print(
            f"halted success {clean(one.run_id)}, call {at + 1}: {clean(one.decisions[at].reason)}", soft_wrap=True
        )
    if limit and len(alarms) > limit:
        console.print(f"{len(alarms) - limit:,} more halted successes; --limit 0 shows all")
