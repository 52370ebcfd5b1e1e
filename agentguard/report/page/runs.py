"""What the page is told about each run, cut to what a person reads there."""

from __future__ import annotations

from typing import Any, Final

from agentguard.fingerprint import canonical
from agentguard.matching.explain import diff
from agentguard.scoring import RunScore
from agentguard.trajectory import Step

_SHOWN: Final = 160
"""Characters of arguments and of results."""


def run_data(run: RunScore) -> dict[str, Any]:
    """Return the run as the page's script reads it."""
    return {
        "id": run.run_id,
        "key": f"{run.key.model} + {run.key.harness}",
        "task": run.task or "",
        "verdict": str(run.grade),
        "response": str(run.response),
        "calls": run.calls,
        "reasons": [{"text": reason.text, "steps": reason.steps} for reason in run.reasons],
        "unscored": run.unscored,
        "steps": None if run.trajectory is None else [_step(step) for step in run.trajectory.steps],
        "diff": "" if run.judgement is None else diff(run.judgement.comparison),
    }


def _step(step: Step) -> list[str]:
    call = step.call
    arguments = call.raw_arguments if call.raw_arguments is not None else None
    if arguments is None and call.arguments is not None:
        arguments = canonical(call.arguments).decode("utf-8", "replace")
    return [call.name, _cut("(not recorded)" if arguments is None else arguments), _cut(_result(step)), _state(step)]


def _state(step: Step) -> str:
    if step.decision is not None and not step.decision.allowed:
        return "refused"
    if step.executed is False:
        return "not run"
    return "error" if step.result is not None and step.result.is_error else ""


def _result(step: Step) -> str:
    if step.result is None:
        return "(not recorded)"
    content = step.result.content
    return content if isinstance(content, str) else canonical(content).decode("utf-8", "replace")


def _cut(text: str) -> str:
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"
