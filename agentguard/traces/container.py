"""What a container (a file format) is: how its records are known, and what they hold."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from agentguard.traces.span import LogRecord, Span
from agentguard.trajectory import Trajectory

Item = Span | LogRecord | Trajectory


class FaultyRecord(Exception):
    """A record, or a part of one, that cannot be read. `reason` is short; `fault` says what was found."""

    def __init__(self, reason: str, fault: str) -> None:
        super().__init__(fault)
        self.reason = reason
        self.fault = fault


@dataclass(frozen=True, kw_only=True)
class Container:
    """One file format of JSON records, one a line or one a file."""

    name: str
    """As in `--format`."""
    accepts: Callable[[Any], bool]
    """Whether a parsed JSON record is of this format; looks at its keys only."""
    items: Callable[[Any, str], Iterator[Item | FaultyRecord]]
    """Yield what a parsed record holds, given where it stands; a part that cannot be read is yielded as its fault."""
    line: Callable[[bytes, str], Iterator[Item | FaultyRecord]] | None = None
    """The same from the bytes of a line, where that is faster. Raises FaultyRecord where it cannot."""
