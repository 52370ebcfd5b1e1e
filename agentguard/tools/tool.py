"""What is declared about one tool."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any

import msgspec

from agentguard.schema import Validator


class Poll(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Identical calls back to back are polling, within these limits."""

    max: int
    """Identical calls that may stand just before one more."""
    min_interval: float = 0.0
    """Seconds that are to pass between them."""


class Tool(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """What is declared about one tool."""

    name: str
    """As the model calls it."""
    description: str | None = None
    """What the model is told about it. None when that is not known; the guard does not use it."""
    schema: Mapping[str, Any] | None = None
    """JSON Schema of the arguments. None means that they are not checked."""
    writes: bool = False
    """An identical call back to back does harm: it is blocked at once."""
    repeatable: bool = False
    """Identical calls back to back are normal and never spoken of."""
    poll: Poll | None = None
    """Identical calls back to back are polling. None means that they are not."""
    ignore: tuple[str, ...] = ()
    """Arguments that do not make a call another call, e.g. a request id."""
    normalize: Callable[[str], str] | None = None
    """Applied to the text of a result before it is compared with others. None means the guard's own normalising."""
    empty_is_error: bool = False
    """An empty result counts as a failure."""
    cost_usd: Decimal | None = None
    """Price of one call in US dollars. None means free."""
    deadline: float | None = None
    """Seconds that one call may take. None means no limit."""

    @functools.cached_property
    def validator(self) -> Validator | None:
        """The compiled schema; None without one. A schema that cannot be used is a SchemaError."""
        return None if self.schema is None else Validator(self.name, self.schema)
