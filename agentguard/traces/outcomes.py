"""Whether a run's final state passed, where the trace says so. Never inferred from anything else."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from agentguard import semconv

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from agentguard.traces.grouping import Fragment

OURS = "agentguard."
"""Evaluations under this prefix are our own scores, and no outcome."""

_PASSED = frozenset({"true", "pass", "passed", "success", "succeeded", "correct", "yes", "1", "1.0"})
_FAILED = frozenset({"false", "fail", "failed", "failure", "incorrect", "no", "0", "0.0"})


class Told(NamedTuple):
    """An outcome and what to say about it."""

    outcome: bool | None = None
    note: str | None = None


def outcome_of(fragment: Fragment, attribute: str | None) -> Told:
    """Return the outcome: from the attribute that the user named, else ours, else the evaluations recorded."""
    for key in (attribute, semconv.RUN_OUTCOME):
        value = _attribute(fragment, key) if key is not None else None
        if value is not None:
            outcome = as_outcome(value)
            return Told(outcome, None if outcome is not None else f"{key}={value!r} is neither pass nor fail")
    return _agreed(list(_evaluations(fragment)))


def as_outcome(value: Any) -> bool | None:
    """Return what a recorded value says: pass, fail, or None for neither."""
    if isinstance(value, bool):
        return value
    word = str(value).strip().lower()
    return True if word in _PASSED else False if word in _FAILED else None


def _attribute(fragment: Fragment, key: str) -> Any:
    for reading in fragment.members:
        value = reading.span.attributes.get(key)
        if value is not None:
            return value
    return fragment.members[0].span.resource.get(key) if fragment.members else None


def _evaluations(fragment: Fragment) -> Iterator[Mapping[str, Any]]:
    for reading in fragment.members:
        for name, _, attributes in reading.span.events:
            evaluation = str(attributes.get(semconv.EVALUATION_NAME) or "")
            if name == semconv.EVALUATION_RESULT and not evaluation.startswith(OURS):
                yield attributes


def _agreed(evaluations: list[Mapping[str, Any]]) -> Told:
    verdicts = {_verdict(each) for each in evaluations} - {None}
    if len(verdicts) == 1:
        return Told(verdicts.pop())
    if not evaluations:
        return Told()
    names = ", ".join(sorted({str(each.get(semconv.EVALUATION_NAME)) for each in evaluations}))
    return Told(
        None, f"evaluations do not agree on an outcome: {names}" if verdicts else f"no pass or fail in: {names}"
    )


def _verdict(evaluation: Mapping[str, Any]) -> bool | None:
    label = evaluation.get(semconv.EVALUATION_LABEL)
    outcome = as_outcome(label) if label is not None else None
    return outcome if outcome is not None else as_outcome(evaluation.get(semconv.EVALUATION_SCORE))
