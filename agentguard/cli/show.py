"""`agentguard show`: the trajectories as they were read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from agentguard.cli.options import Format, Harness, Json, Model, Strict, Traces

if TYPE_CHECKING:
    from rich.console import Console

    from agentguard.trajectory import Step, Trajectory


def show(
    traces: Traces,
    as_json: Json = False,
    why: Annotated[bool, typer.Option("--why", help="Say where each field was read from.")] = False,
    format: Format = None,
    model: Model = None,
    harness: Harness = None,
    strict: Strict = False,
) -> None:
    """Show the runs in trace files, call by call.

    Example: `agentguard show runs/ --why`
    """
    from agentguard.cli import terminal
    from agentguard.cli.runs import read_runs, refuse_skipped
    from agentguard.traces.containers.plain import to_line
    from agentguard.traces.report import ReadReport

    told = ReadReport()
    console = terminal.stdout()
    for run in read_runs(traces, told=told, format=format, model=model, harness=harness, why=why):
        if as_json:
            terminal.write(to_line(run))
        else:
            _show(run, console, why=why)
    for example in told.examples:
        terminal.stderr().print(f"skipped {example}", soft_wrap=True)
    if told.skipped > len(told.examples):
        terminal.stderr().print(f"skipped {told.skipped - len(told.examples):,} more")
    if strict:
        refuse_skipped(told)


def _show(run: Trajectory, console: Console, *, why: bool) -> None:
    from rich.text import Text

    from agentguard.report.terminal import clean, counted

    outcome = {True: "passed", False: "failed", None: "outcome not told"}[run.outcome]
    console.print(Text(clean(run.run_id), "bold"), soft_wrap=True)
    calls = counted(len(run.steps), "call")
    console.print(f"  {clean(run.key.model)} + {clean(run.key.harness)}; {run.ending}, {outcome}; {calls}")
    for note in run.notes:
        console.print(f"  note: {clean(note)}")
    for number, step in enumerate(run.steps, 1):
        console.print(f"  {number:>3}. {clean(_call(step))}", overflow="ellipsis", no_wrap=True)
        console.print(f"       {clean(_result(step))}", overflow="ellipsis", no_wrap=True)
        if why:
            for field, origin in (step.origin or {}).items():
                console.print(f"       {field}: {clean(origin)}", soft_wrap=True)


def _call(step: Step) -> str:
    from agentguard.fingerprint import canonical

    call = step.call
    if call.raw_arguments is not None:
        arguments = f" {call.raw_arguments!r} (not a JSON object)"
    elif call.arguments is None:
        arguments = " (arguments not recorded)"
    else:
        arguments = " " + canonical(call.arguments).decode("utf-8", "replace")
    turn = "" if step.turn is None else f" [turn {step.turn}]"
    lane = "" if step.lane == "main" else f" [lane {step.lane}]"
    return f"{call.name}{arguments}{turn}{lane}"


def _result(step: Step) -> str:
    if step.decision is not None and not step.decision.allowed:
        return f"refused: {step.decision.reason}"
    if step.executed is False:
        return "did not run"
    if step.result is None:
        return "(result not recorded)"
    text = " ".join(str(step.result.content).split())
    return f"{'error: ' if step.result.is_error else '-> '}{text}"
