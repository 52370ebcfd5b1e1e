"""What a run remembers for checks that look further back than one lane."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Collection, Mapping
from typing import Any

from agentguard.fingerprint import fingerprint

_MOST = 100_000
"""Oldest facts are forgotten beyond this; what is forgotten counts as not done, so the guard errs to refusing."""


class RunPast:
    """Successes that order rules ask for, overruns, and when polled tools last answered. Bounded."""

    def __init__(
        self,
        clock: Callable[[], float],
        *,
        known: Collection[str],
        needed: Mapping[str, frozenset[tuple[str, ...]]],
    ) -> None:
        self.known = known
        self._clock = clock
        self._needed = needed
        self._done: OrderedDict[tuple[str, tuple[str, ...], tuple[bytes, ...]], None] = OrderedDict()
        self._overruns: dict[str, float] = {}
        self._answered: OrderedDict[str, float] = OrderedDict()

    def succeeded(self, tool: str, values: tuple[bytes, ...], names: tuple[str, ...]) -> bool:
        """Whether an earlier call of `tool` succeeded whose arguments `names` had these canonical values."""
        return (tool, names, values) in self._done

    def overran(self, tool: str) -> float | None:
        """Seconds that the last call of `tool` took when it passed its deadline uncut; None when it did not."""
        return self._overruns.get(tool)

    def waited(self, lane: str) -> float | None:
        """Seconds since a call of a polled tool last came back in this lane; None when none did."""
        answered = self._answered.get(lane)
        return None if answered is None else self._clock() - answered

    def add_success(self, tool: str, arguments: Mapping[str, Any]) -> None:
        """Remember a success that some order rule may ask for."""
        for names in self._needed.get(tool, ()):
            values = tuple(fingerprint(arguments.get(name)) for name in names)
            _remember(self._done, (tool, names, values), None)

    def add_answer(self, lane: str) -> None:
        """Remember that a polled tool answered now."""
        _remember(self._answered, lane, self._clock())

    def set_overrun(self, tool: str, seconds: float | None) -> None:
        """Remember an overrun, or forget it with None."""
        if seconds is None:
            self._overruns.pop(tool, None)
        else:
            self._overruns[tool] = seconds


def _remember(store: OrderedDict[Any, Any], key: Any, value: Any) -> None:
    store[key] = value
    store.move_to_end(key)
    if len(store) > _MOST:
        store.popitem(last=False)
