"""The lanes of one run: which agent of it a call belongs to, and what is kept for each."""

from __future__ import annotations

import contextlib
import contextvars
from collections.abc import Callable, Generator, Sequence
from typing import Final

from agentguard.ledger import Budget, Ledger
from agentguard.loops import Lane
from agentguard.trajectory import MAIN_LANE

_LANE: Final = contextvars.ContextVar("agentguard_lane", default=MAIN_LANE)
_MOST_LANES: Final = 1_024

current_lane: Final[Callable[[], str]] = _LANE.get
"""Return the name of the lane that this code is in."""


@contextlib.contextmanager
def in_lane(name: str) -> Generator[None]:
    """Make `name` the lane of the code inside the block."""
    token = _LANE.set(name)
    try:
        yield
    finally:
        _LANE.reset(token)


class LaneState:
    """What a run keeps per lane."""

    __slots__ = ("eventful", "lane", "ledger", "turn", "turn_key", "user_turn")

    def __init__(self, ledger: Ledger) -> None:
        self.lane = Lane()
        self.ledger = ledger
        self.turn: int | None = None
        """Number of the declared turn that is open; None when none is."""
        self.turn_key: str | None = None
        """What the open turn was declared by; None where a block stands around it."""
        self.user_turn = False
        """Whether a message of the user came since the last call."""
        self.eventful = False
        """Whether the next call belongs to a declared turn or follows a message of the user."""


class Lanes:
    """The lanes of one run. The caller holds the run's lock."""

    def __init__(self, ledger: Ledger, *, per_lane: Budget | None, clock: Callable[[], float]) -> None:
        """Keep lanes that draw on `ledger`. `per_lane` caps each of them; None means that nothing does."""
        self.states: dict[str, LaneState] = {}
        """By name; a lane that was not seen yet is made by `state`."""
        self._ledger = ledger
        self._per_lane = per_lane
        self._clock = clock
        self._turns = 0

    def state(self, name: str) -> LaneState:
        """Return what is kept of a lane. Beyond the first thousand the oldest is forgotten."""
        state = self.states.get(name)
        if state is None:
            state = self.states[name] = LaneState(self._ledger_of_one())
            if len(self.states) > _MOST_LANES:
                del self.states[next(old for old in self.states if old != MAIN_LANE)]
        return state

    def is_open(self, key: str) -> bool:
        """Whether the turn that was declared by `key` is the open one of the current lane."""
        state = self.states.get(current_lane())
        return state is not None and state.turn_key == key

    def open_turn(self, keys: Sequence[bytes], declared_by: str | None) -> LaneState:
        """Declare the calls of a turn in the current lane, unless it was declared by the same key already."""
        state = self.state(current_lane())
        if declared_by is None or state.turn_key != declared_by:
            state.lane.open_turn(keys)
            state.turn, state.turn_key, state.eventful = self._turns, declared_by, True
            self._turns += 1
        return state

    @staticmethod
    def close_turn(state: LaneState) -> None:
        """End a turn that was declared by a block."""
        state.lane.close_turn()
        state.turn = None
        state.eventful = state.user_turn

    def user_turn(self) -> None:
        """Take in that a message of the user came in the current lane."""
        state = self.state(current_lane())
        state.lane.user_turn()
        state.user_turn = state.eventful = True

    def end_streaks(self) -> None:
        """Forget what stood back to back in every lane."""
        for state in self.states.values():
            state.lane.user_turn()

    def _ledger_of_one(self) -> Ledger:
        if self._per_lane is None:
            return self._ledger
        return Ledger(self._per_lane, parent=self._ledger, clock=self._clock)
