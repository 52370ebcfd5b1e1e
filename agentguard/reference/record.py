"""The calls that a run is expected to make, and how closely."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from agentguard.errors import ReferencesError
from agentguard.matching import PLAIN, Attempts, Call, Match, Rules


class Reference(msgspec.Struct, frozen=True, kw_only=True):
    """What a run of one task is held against."""

    calls: tuple[Call, ...]
    """The calls expected. Empty is an expectation, too: no call."""
    match: Match
    """How the run's calls are to match. There is no default: it is chosen deliberately."""
    rules: Rules = PLAIN
    """How arguments are compared."""
    order: tuple[tuple[str, str], ...] = ()
    """Pairs (first, then) of call ids or tools of `calls`: nothing that fits `then` may come before, or in the same
    parallel turn as, the first call that fits `first`. Everything else is as free as `match` leaves it."""
    forbidden: tuple[str, ...] = ()
    """Tools that must not be called, whatever `match` tolerates."""
    step_budget: int | None = None
    """Calls that may be made. None means no ceiling. It is judged apart from the match."""
    failed_calls: Attempts = Attempts.COUNT
    """Whether calls that failed are compared."""
    refused_calls: Attempts = Attempts.COUNT
    """Whether calls that never ran are compared."""
    alternatives: tuple[Reference, ...] = ()
    """Other ways of doing it: the run is held against whichever suits it best."""

    def __post_init__(self) -> None:
        for name in (name for pair in self.order for name in pair):
            if not named(self.calls, name):
                raise ReferencesError("", "order", f"no call has the id or tool {name!r}")

    def candidates(self) -> Iterator[Reference]:
        """Yield this reference and its alternatives, and theirs."""
        yield self
        for alternative in self.alternatives:
            yield from alternative.candidates()


def named(calls: Sequence[Call], name: str) -> tuple[int, ...]:
    """Return the indices of the calls of this id or, when no id is so called, of this tool."""
    ids = tuple(index for index, call in enumerate(calls) if call.id == name)
    return ids or tuple(index for index, call in enumerate(calls) if call.tool == name)
