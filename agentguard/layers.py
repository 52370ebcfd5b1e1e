"""Guards around the same call one inside another, as where dispatcher and tools are both guarded: it counts once."""

from __future__ import annotations

import contextlib
import contextvars
from collections.abc import Collection, Generator
from typing import Final

from agentguard.attempt import Attempt

_INSIDE: Final = contextvars.ContextVar[tuple[str, bytes] | None]("agentguard_inside", default=None)
"""Run and fingerprint of the guarded call whose code this is."""
_ELSEWHERE: Final = contextvars.ContextVar[Collection[tuple[str, bytes]]]("agentguard_elsewhere", default=())
"""The same of guarded calls whose code runs in other tasks than those that judge them."""


def is_inside(run_id: str, key: bytes) -> bool:
    """Whether this code is that of a call which a layer above judged already."""
    return _INSIDE.get() == (run_id, key) or (run_id, key) in _ELSEWHERE.get()


@contextlib.contextmanager
def elsewhere(calls: Collection[tuple[str, bytes]]) -> Generator[None]:
    """Say that tasks which start in the block run the code of these calls: run and fingerprint, kept by who judges."""
    token = _ELSEWHERE.set(calls)
    try:
        yield
    finally:
        _ELSEWHERE.reset(token)


def go_inside(attempt: Attempt, run_id: str) -> None:
    """Say that what follows is the code of this call."""
    attempt.outer, attempt.layered, attempt.watched = _INSIDE.get(), True, True
    _INSIDE.set((run_id, attempt.place.key))


def come_out(attempt: Attempt) -> None:
    """Say that the call's code is over."""
    if attempt.layered:
        _INSIDE.set(attempt.outer)
