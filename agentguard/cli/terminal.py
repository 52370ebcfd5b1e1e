"""What every command prints to, and how it shows that it is busy."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Generator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

WIDTH = 100
"""Columns where nobody says how many there are."""


def stdout() -> Console:
    """Return the console for results. NO_COLOR, FORCE_COLOR and COLUMNS are honoured."""
    return _console(to_stderr=False)


def stderr() -> Console:
    """Return the console for progress and warnings."""
    return _console(to_stderr=True)


def write(data: bytes) -> None:
    """Write machine-readable output, untouched by any console."""
    sys.stdout.buffer.write(data)
    if not data.endswith(b"\n"):
        sys.stdout.buffer.write(b"\n")
    sys.stdout.buffer.flush()


@contextlib.contextmanager
def reading() -> Generator[Callable[[int], None]]:
    """Show how much was read, on standard error and only where a person looks at it; give what is told about bytes."""
    console = stderr()
    if not console.is_terminal:
        yield lambda size: None
        return
    from rich.progress import DownloadColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("reading and scoring"), DownloadColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("read", total=None)
        yield lambda size: progress.advance(task, size)


def _console(*, to_stderr: bool) -> Console:
    from rich.console import Console

    console = Console(stderr=to_stderr, highlight=False, emoji=False, markup=False)
    if not console.is_terminal and console.width < WIDTH:
        console.width = WIDTH
    return console
