"""What a metric says about one run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec


class Reason(msgspec.Struct, frozen=True):
    """One thing that is wrong with a run."""

    code: str
    """Stable and machine-readable, e.g. "repeat.identical"."""
    text: str
    """One phrase for people; holds no argument values."""
    steps: tuple[int, ...] = ()
    """Indices of the steps that it is about. Empty when it is about what is not there."""


class Score(msgspec.Struct, frozen=True):
    """What one metric says about one run: a value, or that it does not apply, or that it could not be scored."""

    metric: str
    """The metric's name in the table."""
    value: float | None = None
    """Range and unit stand in docs/metrics.md. None when it does not apply or could not be scored; never NaN."""
    reasons: tuple[Reason, ...] = ()
    """What is wrong, in the order of the steps. Empty when nothing is."""
    steps: tuple[int, ...] = ()
    """Indices of the steps that were counted."""
    unscored: str | None = None
    """Why the metric applies but could not be scored, or only in part. None when it was scored or does not apply."""
    data: Mapping[str, Any] = {}
    """Figures behind the value, by metric; JSON values only."""
