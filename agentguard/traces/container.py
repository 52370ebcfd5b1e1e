"""What a container (a file format) is: how it is known by its contents, and how it is read."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import IO, Any

from agentguard.traces.span import LogRecord, Span
from agentguard.trajectory import Trajectory

Item = Span | LogRecord | Trajectory


class FaultyRecord(Exception):
    """A record, or a part of one, that cannot be read. `reason` is short; `fault` says what was found."""

    def __init__(self, reason: str, fault: str) -> None:
        super().__init__(fault)
        self.reason = reason
        self.fault = fault


Items = Iterable[Item | FaultyRecord]
"""What was read; a part that cannot be read is yielded as its fault, in its place."""


@dataclass(frozen=True, kw_only=True)
class Container:
    """A file format of JSON records, each read for itself: one a line, several in an array, or one a file."""

    name: str
    """As in `--format`."""
    accepts: Callable[[Any], bool]
    """Whether a parsed JSON record is of this format; looks at its keys only."""
    items: Callable[[Any, str], Items]
    """Yield what a parsed record holds, given where it stands."""
    line: Callable[[bytes, str], Items] | None = None
    """The same from the bytes of a line, where that is faster. Raises FaultyRecord where it cannot."""


@dataclass(frozen=True, kw_only=True)
class Session:
    """A file format of JSON records that tell a run only together, as the messages of a conversation do."""

    name: str
    """As in `--format`."""
    accepts: Callable[[Any], bool]
    """Whether a parsed JSON record is of this format; looks at its keys only."""
    items: Callable[[Iterable[tuple[Any, str]], str], Items]
    """Yield what all records of a file hold, each given with where it stands; last comes the file's name."""


@dataclass(frozen=True, kw_only=True)
class Binary:
    """A file format that is no text."""

    name: str
    """As in `--format`."""
    magic: Callable[[bytes], bool]
    """Whether a file of this format can begin with these bytes."""
    items: Callable[[IO[bytes], str], Items]
    """Yield what a file holds, given its name. Raises FaultyRecord when it is of another format after all."""


Format = Container | Session | Binary
