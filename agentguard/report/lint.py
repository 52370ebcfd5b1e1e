"""What is odd about references, before anything is scored by them."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Mapping

import msgspec

from agentguard.errors import SchemaError
from agentguard.matching import Call, Match
from agentguard.reference import Reference, References
from agentguard.schema import Validator
from agentguard.trajectory import Trajectory


class Oddity(msgspec.Struct, frozen=True):
    """One thing that is probably a mistake."""

    where: str
    """The reference, e.g. "task fix"."""
    code: str
    """Stable and machine-readable: "tool.unknown", "tool.unseen", "arguments.invalid", "calls.duplicate",
    "budget.short", "superset.unbounded" or "reference.unused"."""
    text: str
    """What was found, and the way out."""


class Seen:
    """What recorded runs say about tools and tasks; filled run by run."""

    def __init__(self) -> None:
        self.runs: set[str] = set()
        self.tasks: set[str] = set()
        self.called: set[str] = set()
        self.schemas: dict[str, Mapping[str, object]] = {}

    def add(self, run: Trajectory) -> None:
        """Take in a run."""
        self.runs.add(run.run_id)
        if run.task is not None:
            self.tasks.add(run.task)
        self.called.update(step.call.name for step in run.steps)
        self.schemas.update(run.tools or {})


def lint(references: References, seen: Seen | None = None) -> list[Oddity]:
    """Return what is odd about references by themselves, and beside recorded runs where there are any."""
    named = [(f"task {name}", reference) for name, reference in references.tasks.items()]
    named += [(f"run {name}", reference) for name, reference in references.runs.items()]
    found = [oddity for where, reference in named for oddity in _alone(where, reference)]
    if seen is None:
        return found
    found += [oddity for where, reference in named for oddity in _beside(where, reference, seen)]
    return [*found, *_unused(references, seen)]


def _alone(where: str, reference: Reference) -> Iterator[Oddity]:
    for each in reference.candidates():
        yield from _duplicates(where, each)
        if each.match is Match.SUPERSET and each.step_budget is None:
            text = "superset tolerates any number of other calls; give it a step_budget"
            yield Oddity(where, "superset.unbounded", text)
        if each.step_budget is not None and each.step_budget < len(each.calls) and each.match is not Match.SUBSET:
            text = f"a budget of {each.step_budget} steps for {len(each.calls)} calls can never be kept"
            yield Oddity(where, "budget.short", text)
    whole = list(reference.candidates())
    if len({(each.calls, each.match) for each in map(_hashable, whole)}) < len(whole):
        yield Oddity(where, "calls.duplicate", "two alternatives are the same; leave one out")


def _duplicates(where: str, reference: Reference) -> Iterator[Oddity]:
    seen: set[bytes] = set()
    told: set[bytes] = set()
    for call in reference.calls:
        key = call.identity
        if key in seen and key not in told:
            told.add(key)
            text = (
                f"{call.tool} stands there twice with the same arguments: the call must be made twice; is that meant?"
            )
            yield Oddity(where, "calls.duplicate", text)
        seen.add(key)


class _Hashable(msgspec.Struct, frozen=True):
    calls: tuple[bytes, ...]
    match: Match


def _hashable(reference: Reference) -> _Hashable:
    return _Hashable(tuple(call.identity for call in reference.calls), reference.match)


def _beside(where: str, reference: Reference, seen: Seen) -> Iterator[Oddity]:
    calls = [call for each in reference.candidates() for call in each.calls]
    for tool in dict.fromkeys(call.tool for call in calls):
        if tool in seen.called:
            continue
        if seen.schemas and tool not in seen.schemas:
            yield Oddity(where, "tool.unknown", f"{tool}: no tool of the runs has this name{_near(tool, seen)}")
        else:
            yield Oddity(where, "tool.unseen", f"{tool}: never called in any of the runs{_near(tool, seen)}")
    for call in calls:
        yield from _invalid(where, call, seen.schemas.get(call.tool))


def _near(name: str, seen: Seen) -> str:
    near = difflib.get_close_matches(name, sorted({*seen.called, *seen.schemas} - {name}), n=1)
    return f"; did you mean {near[0]}?" if near else ""


def _invalid(where: str, call: Call, schema: Mapping[str, object] | None) -> Iterator[Oddity]:
    if schema is None or call.arguments is None or call.rule is not None:
        return
    try:
        problems = Validator(call.tool, schema).problems(call.arguments)
    except SchemaError:  # the trace's own declaration is at fault, not the reference
        return
    for problem in problems:
        yield Oddity(where, "arguments.invalid", f"{call.tool} {problem.path}: {problem.message}")


def _unused(references: References, seen: Seen) -> Iterator[Oddity]:
    for kind, wanted, present in (("task", references.tasks, seen.tasks), ("run", references.runs, seen.runs)):
        for name in wanted:
            if name not in present:
                yield Oddity(f"{kind} {name}", "reference.unused", f"no run is of this {kind}")


def seen_in(runs: Iterable[Trajectory]) -> Seen:
    """Return what the runs say about tools and tasks."""
    seen = Seen()
    for run in runs:
        seen.add(run)
    return seen
