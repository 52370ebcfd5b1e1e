"""`agentguard demo`: the worked example, observed and scored, then the same agent with the guard enforcing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agentguard.cli.options import Json

if TYPE_CHECKING:
    from rich.console import Console

    from agentguard.policy import Mode
    from agentguard.scoring import RunScore
    from agentguard.trajectory import Step, Trajectory


def demo(as_json: Json = False) -> None:
    """Show a run that passes and should not, then the same agent under a guard.

    Everything is real but the model: tools, guard, spans, recorder, reader and scorer.

    Example: `agentguard demo`
    """
    import orjson

    from agentguard.cli import terminal
    from agentguard.policy import Mode

    observed, observed_score = _recorded(Mode.OBSERVE)
    enforced, enforced_score = _recorded(Mode.ENFORCE)
    if as_json:
        told = {"observed": _told(observed, observed_score), "enforced": _told(enforced, enforced_score)}
        terminal.write(orjson.dumps(told | {"saved": _saved(observed, enforced)}, option=orjson.OPT_INDENT_2))
        return
    console = terminal.stdout()
    console.print("1. An agent mends a failing test. The guard only watches.\n")
    _show(console, observed, observed_score)
    console.print("\n2. The same agent, the guard enforcing: no identical call back to back, five steps.\n")
    _show(console, enforced, enforced_score)
    saved = _saved(observed, enforced)
    console.print(
        f"\nSaved: {saved['calls']} of {saved['of']} calls did not run ({saved['blocked']} blocked, "
        f"{saved['calls'] - saved['blocked']} not asked for any more), with the same final state."
    )


def _recorded(mode: Mode) -> tuple[Trajectory, RunScore]:
    """Run the example, and score what its spans say."""
    import tempfile
    from pathlib import Path

    from agentguard.cli import worked_example
    from agentguard.scoring import score
    from agentguard.traces import read

    with tempfile.TemporaryDirectory() as folder:
        worked_example.run(Path(folder), mode)
        (trajectory,) = read(folder)
    (scored,) = score([trajectory], references=worked_example.REFERENCE)
    return trajectory, scored


def _ran(trajectory: Trajectory) -> int:
    return sum(step.executed is not False for step in trajectory.steps)


def _blocked(trajectory: Trajectory) -> int:
    return sum(step.decision is not None and not step.decision.allowed for step in trajectory.steps)


def _saved(observed: Trajectory, enforced: Trajectory) -> dict[str, int]:
    ran = _ran(observed)
    return {"calls": ran - _ran(enforced), "of": ran, "blocked": _blocked(enforced)}


def _told(trajectory: Trajectory, scored: RunScore) -> dict[str, Any]:
    from agentguard.report.as_json import run_as_dict

    return run_as_dict(scored) | {"steps": [_step(step) for step in trajectory.steps]}


def _step(step: Step) -> dict[str, Any]:
    verdict = step.decision.verdicts[0] if step.decision is not None and step.decision.verdicts else None
    return {
        "tool": step.call.name,
        "args": step.call.arguments,
        "executed": step.executed,
        "asked_for": verdict.action.word if verdict else "allow",
        "code": verdict.code if verdict else None,
    }


def _show(console: Console, trajectory: Trajectory, scored: RunScore) -> None:
    from rich.table import Table
    from rich.text import Text

    from agentguard.report.terminal import WORDS, show_run

    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="bold")
    for heading in ("", "call", "ran", "the guard"):
        table.add_column(heading)
    for number, step in enumerate(trajectory.steps, 1):
        table.add_row(str(number), _call(step), "yes" if step.executed else "no", _guard(step))
    console.print(table)
    console.print()
    console.print(Text.assemble("judged by its final state: ", WORDS[scored.response]))
    console.print(Text("judged by its trajectory:"))
    show_run(scored, console)


def _call(step: Step) -> str:
    arguments = ", ".join(f"{name}={value!r}" for name, value in (step.call.arguments or {}).items())
    return f"{step.call.name}({arguments})"


def _guard(step: Step) -> str:
    if step.decision is None or not step.decision.verdicts:
        return ""
    verdict = step.decision.verdicts[0]
    return f"{'' if not step.decision.allowed else 'would '}{verdict.action.word}: {verdict.code}"
