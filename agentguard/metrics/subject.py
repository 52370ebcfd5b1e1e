"""A run under judgement: its trajectory, what it is held against, and what several metrics need of it."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Mapping
from functools import cached_property, lru_cache
from itertools import groupby, pairwise
from typing import Any

import msgspec
import orjson

from agentguard.errors import SchemaError
from agentguard.fingerprint import canonical
from agentguard.loops import Place
from agentguard.matching import Call
from agentguard.matching.assignment import maximum
from agentguard.reference import Judgement, Reference, calls_of, judge
from agentguard.replay import places, was_refused
from agentguard.schema import Validator
from agentguard.tools import Tool
from agentguard.trajectory import Trajectory


class Subject:
    """A trajectory with everything that metrics share, each worked out once and only when asked for."""

    def __init__(
        self,
        trajectory: Trajectory,
        *,
        reference: Reference | None = None,
        step_budget: int | None = None,
        tools: Mapping[str, Tool] | None = None,
    ) -> None:
        self.trajectory = trajectory
        self.reference = reference
        """What the run is held against. None when there is nothing to hold it against."""
        self._step_budget = step_budget
        self.tools: Mapping[str, Tool] = tools or {}
        """What is declared about tools, by name. A schema that the trace carries stands in for one that is not."""

    @property
    def step_budget(self) -> int | None:
        """Calls that may reach a tool: as the reference says, or else as was said for all runs. None: no ceiling."""
        told = None if self.judgement is None else self.judgement.reference.step_budget
        return self._step_budget if told is None else told

    @cached_property
    def judgement(self) -> Judgement | None:
        """What came of holding the run against its reference; None without one."""
        return None if self.reference is None else judge(self.reference, self._calls())

    @cached_property
    def goal(self) -> int | None:
        """Index of the step by which every call of the reference had been made; None without one, or if never."""
        if self.judgement is None:
            return None
        rows = self.judgement.comparison.relation.sure
        if self.judgement.comparison.hits != len(rows):
            return None
        made = range(len(self.judgement.positions) + 1)
        first = bisect_left(
            made, True, key=lambda count: len(maximum([row & (1 << count) - 1 for row in rows])) == len(rows)
        )
        return self.judgement.positions[first - 1] if 0 < first < len(made) else None

    @cached_property
    def places(self) -> list[Place]:
        """Where each call stood in its lane, as a live guard would have seen it."""
        return places(self.trajectory)

    @cached_property
    def blind(self) -> frozenset[int]:
        """Indices of the calls that cannot be compared: neither arguments nor fingerprints were recorded."""
        steps = self.trajectory.steps
        if self._has_digests:
            return frozenset()
        return frozenset(
            index for index, step in enumerate(steps) if step.call.arguments is None and step.call.raw_arguments is None
        )

    @cached_property
    def _has_digests(self) -> bool:
        return all(step.call_key is not None for step in self.trajectory.steps)

    @cached_property
    def undecided(self) -> str | None:
        """Why nobody can say whether calls of this run stood back to back; None when it can be said.

        A call that cannot be compared leaves it open only where calls of the same tools stand beside it.
        """
        if self.trajectory.complete is False:
            return "the record has gaps: what stood back to back is not known"
        if not self.blind or not any(self._is_open(*pair) for units in self._units for pair in pairwise(units)):
            return None
        return "neither arguments nor fingerprints of neighbouring calls were recorded"

    @cached_property
    def lanes(self) -> Mapping[str, list[int]]:
        """Indices of the steps of each lane, in order."""
        lanes: dict[str, list[int]] = defaultdict(list)
        for index, step in enumerate(self.trajectory.steps):
            lanes[step.lane].append(index)
        return lanes

    def before(self, index: int, count: int) -> tuple[int, ...]:
        """Return the indices of up to `count` steps that stand just before in the same lane."""
        lane = self.lanes[self.trajectory.steps[index].lane]
        at = lane.index(index)
        return tuple(lane[max(at - count, 0) : at])

    def failed(self, index: int) -> bool:
        """Whether the call ran and failed."""
        step = self.trajectory.steps[index]
        return step.executed is not False and step.result is not None and step.result.is_error

    def invalid(self, index: int) -> bool | None:
        """Whether the arguments were malformed or against the tool's schema; None where that is not known."""
        call = self.trajectory.steps[index].call
        if call.raw_arguments is not None:
            return True
        validator = self.validators.get(call.name)
        if validator is None or call.arguments is None:
            return None
        return not validator.is_valid(call.arguments) and bool(validator.problems(call.arguments))

    @cached_property
    def repeats(self) -> tuple[int, ...]:
        """Indices of the calls whose identical call, or turn, stands just before; without those declared normal."""
        return tuple(index for index, place in enumerate(self.places) if place.identical and not self._is_normal(place))

    @cached_property
    def loops(self) -> tuple[int, ...]:
        """Indices of the calls that went round with nothing new: repeats that gave no other result, and cycles.

        A call that a guard refused is among them: the model asked for it.
        """
        stale = {index for index in self.repeats if self.places[index].stale is not False}
        return tuple(index for index, place in enumerate(self.places) if index in stale or place.period)

    @cached_property
    def troubles(self) -> Mapping[int, str]:
        """Kind of trouble by step, the first that fits: "loop" (unless refused), "failure" or "invalid" (arguments)."""
        found = dict.fromkeys((i for i in range(len(self.trajectory.steps)) if self.invalid(i)), "invalid")
        found |= dict.fromkeys((i for i in range(len(self.trajectory.steps)) if self.failed(i)), "failure")
        return found | dict.fromkeys((i for i in self.loops if not self.refused(i)), "loop")

    def refused(self, index: int) -> bool:
        """Whether a guard refused the call."""
        return was_refused(self.trajectory.steps[index])

    @cached_property
    def validators(self) -> Mapping[str, Validator | None]:
        """Compiled schemas of the tools that were called, by name; None where a schema cannot be used."""
        names = {step.call.name for step in self.trajectory.steps}
        told = self.trajectory.tools or {}
        found = {name: self.tools[name].validator for name in names if name in self.tools}
        rest = {name: _validator(name, told[name]) for name in names if found.get(name) is None and name in told}
        return found | rest

    @cached_property
    def _units(self) -> list[list[tuple[int, ...]]]:
        """Parallel turns and single calls of each lane, in order."""
        steps = self.trajectory.steps

        def unit(index: int) -> tuple[int | None, int | None]:
            turn = steps[index].turn
            return turn, index if turn is None else None

        return [[tuple(group) for _, group in groupby(lane, unit)] for lane in self.lanes.values()]

    def _calls(self) -> list[Call]:
        """Return the calls to match, with the keys that loops were found by: each is worked out once."""
        calls = calls_of(self.trajectory.steps)
        if self._has_digests:
            return calls
        return [
            call if call.arguments is None else msgspec.structs.replace(call, key=place.key)
            for call, place in zip(calls, self.places, strict=True)
        ]

    def _is_normal(self, place: Place) -> bool:
        tool = self.tools.get(place.tool)
        return tool is not None and (tool.repeatable or (tool.poll is not None and place.identical < tool.poll.max))

    def _is_open(self, one: tuple[int, ...], other: tuple[int, ...]) -> bool:
        steps = self.trajectory.steps
        if steps[other[0]].user_turn or self.blind.isdisjoint((*one, *other)):
            return False
        return sorted(steps[index].call.name for index in one) == sorted(steps[index].call.name for index in other)


def _validator(name: str, schema: Mapping[str, Any]) -> Validator | None:
    try:
        return _compiled(name, canonical(schema))
    except (SchemaError, ValueError):  # a trace may carry anything; an unusable schema is no schema
        return None


@lru_cache(maxsize=1_024)
def _compiled(name: str, schema: bytes) -> Validator:
    return Validator(name, orjson.loads(schema))
