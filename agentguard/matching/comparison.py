"""A run beside a reference: a verdict for every mode, figures, and the alignment behind them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import msgspec

from agentguard.matching.alignment import Alignment, Swap, align, confusion
from agentguard.matching.arguments import PLAIN, Rules
from agentguard.matching.assignment import length_in_order, maximum
from agentguard.matching.calls import Call, Match
from agentguard.matching.modes import HOLDS
from agentguard.matching.relation import Relation, relate


class Figures(msgspec.Struct, frozen=True):
    """How much of what was made was wanted, and how much of what was wanted was made."""

    precision: float | None
    """Share of the run's calls that were wanted. None when there were none, though some were wanted."""
    recall: float | None
    """Share of the reference's calls that were made. None when none was wanted, though some were made."""
    f1: float | None
    """Harmonic mean: twice the hits over all calls of both sides. Nothing wanted and nothing made is 1."""


UNDECIDED = Figures(None, None, None)
"""The figures when arguments that were not recorded could change them."""


@dataclass(frozen=True)
class Comparison:
    """What `compare` found; each figure is worked out when it is first asked for."""

    reference: Sequence[Call]
    actual: Sequence[Call]
    rules: Rules
    relation: Relation = field(repr=False)

    def passes(self, mode: Match) -> bool | None:
        """Whether the run is what `mode` asks for. None when arguments that could not be compared decide it."""
        holds = HOLDS[mode]
        if holds(self.reference, self.actual, self.relation.sure, self._sure_hits):
            return True
        if self._is_decided or not holds(self.reference, self.actual, self.relation.possible, self._possible_hits):
            return False
        return None

    @cached_property
    def alignment(self) -> Alignment:
        """The best alignment; one for all modes."""
        return align(self.reference, self.actual, self.rules, self.relation)

    @cached_property
    def confusion(self) -> Mapping[Swap, int]:
        """How often each tool was used where each was needed; None stands for no call."""
        return confusion(self.reference, self.actual, self.alignment)

    @cached_property
    def calls(self) -> Figures:
        """Figures over whole calls: right tool with right arguments. All None when they could not be decided."""
        hits = self.hits
        return UNDECIDED if hits is None else _figures(hits, len(self.reference), len(self.actual))

    @cached_property
    def selection(self) -> Figures:
        """Figures over tools alone, whatever their arguments."""
        return _figures(self.right_tools, len(self.reference), len(self.actual))

    @cached_property
    def arguments(self) -> float | None:
        """Share of the calls with the right tool whose arguments were right, too.

        None when no call had the right tool, or when arguments that were not recorded could change it.
        """
        if self.hits is None or not self.right_tools:
            return None
        return self.hits / self.right_tools

    @cached_property
    def recall_in_order(self) -> float | None:
        """Length of the longest common subsequence over that of the reference; None as for `Figures.recall`."""
        if not self.reference:
            return None if self.actual else 1.0
        sure = length_in_order(self.relation.sure, len(self.actual))
        if self._is_decided or sure == length_in_order(self.relation.possible, len(self.actual)):
            return sure / len(self.reference)
        return None

    @cached_property
    def right_tools(self) -> int:
        """How many calls of the run name a tool that the reference still wanted."""
        made = Counter([call.tool for call in self.actual])
        wanted = Counter([call.tool for call in self.reference])
        return sum(min(count, made[tool]) for tool, count in wanted.items() if tool in made)

    @cached_property
    def hits(self) -> int | None:
        """The size of a maximum matching. None when it could not be decided."""
        return self._sure_hits if self._is_decided or self._sure_hits == self._possible_hits else None

    @cached_property
    def _sure_hits(self) -> int:
        return len(maximum(self.relation.sure))

    @cached_property
    def _possible_hits(self) -> int:
        return len(maximum(self.relation.possible))

    @property
    def _is_decided(self) -> bool:
        return self.relation.possible is self.relation.sure


def _figures(hits: int, wanted: int, made: int) -> Figures:
    if not wanted and not made:
        return Figures(1.0, 1.0, 1.0)
    return Figures(hits / made if made else None, hits / wanted if wanted else None, 2 * hits / (wanted + made))


def compare(reference: Sequence[Call], actual: Sequence[Call], rules: Rules = PLAIN) -> Comparison:
    """Put a run beside a reference. Nothing raises for the sake of the calls' arguments.

    >>> compare([Call("f", {"n": 1})], [Call("f", {"n": 1.0}), Call("g", {})]).passes(Match.SUPERSET)
    True
    """
    return Comparison(reference, actual, rules, relate(reference, actual, rules))
