"""Calls to compare, and references, taken from recorded runs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from agentguard.matching import PLAIN, Attempts, Call, Match, Rules, Status, counted
from agentguard.reference.record import Reference

if TYPE_CHECKING:
    from agentguard.trajectory import Step


def calls_of(steps: Iterable[Step], *, keys: Iterable[bytes] | None = None) -> list[Call]:
    """Return the steps of a run as calls to compare, one for each step.

    `keys` are the steps' `ToolCall.fingerprint`s, where they have been worked out for finding loops; digests that a
    trace recorded are none. None: they are worked out when needed.
    """
    if keys is None:
        return [_call(step) for step in steps]
    return [_call(step, key) for step, key in zip(steps, keys, strict=True)]


def from_steps(
    steps: Iterable[Step],
    *,
    match: Match,
    rules: Rules = PLAIN,
    step_budget: int | None = None,
    failed: Attempts = Attempts.SKIP,
    refused: Attempts = Attempts.SKIP,
) -> Reference:
    """Return the reference that a good run sets; calls that failed or never ran are left out of it by default."""
    calls = counted(calls_of(steps), failed=failed, refused=refused)
    return Reference(calls=tuple(calls), match=match, rules=rules, step_budget=step_budget)


def _call(step: Step, key: bytes | None = None) -> Call:
    call = step.call
    absence = "arguments not recorded" if call.raw_arguments is None else "arguments are no JSON object"
    return Call(call.name, call.arguments, step.turn, _status(step), key, absence=absence)


def _status(step: Step) -> Status:
    if step.executed is False:
        return Status.REFUSED
    return Status.ERROR if step.result is not None and step.result.is_error else Status.OK
