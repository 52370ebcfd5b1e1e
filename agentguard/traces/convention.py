"""What one tracing convention says: its markers, and under which attributes it keeps what."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from agentguard.call import Usage
    from agentguard.traces.span import LogRecord, Span


class Role(enum.IntEnum):
    """What a span stands for in a run."""

    OTHER = 0
    """Known to its convention, and of no weight for a trajectory."""
    CHAIN = 1
    """A container: a run when nothing encloses it."""
    WORKFLOW = 2
    """A run of one or several agents."""
    AGENT = 3
    """One agent at work."""
    MODEL = 4
    """One request to a model."""
    TOOL = 5
    """One tool call."""
    SETUP = 6
    """An agent being made; no run."""
    STARTED = 7
    """The note that a run began, written before anything else."""
    INSIDE = 8
    """A part of the tool call around it, which may know more of how that went."""


class Asked(NamedTuple):
    """One call in a model's output."""

    id: str | None
    """The provider's tool-call id."""
    name: str
    arguments: Any
    """As recorded: text or an object. None means not recorded."""
    attribute: str
    """Where it stood."""


class Answered(NamedTuple):
    """What a tool gave back, as a later message tells it."""

    content: Any
    is_error: bool
    """The message itself says so."""


AskedReader = Callable[["Span"], "list[Asked] | None"]
"""Calls in a model span's output, in order. None means the span carries no output."""


@dataclass(frozen=True, kw_only=True)
class Convention:
    """Attribute names of one convention. Where several apply to one span, the earlier in `BUILT_IN` is read first."""

    name: str
    markers: frozenset[str]
    """Attributes whose presence says that this convention applies to the span."""
    roles: Mapping[str, Mapping[Any, Role]] = field(default_factory=dict[str, Mapping[Any, Role]])
    """Marker to role by value."""
    present: Mapping[str, Role] = field(default_factory=dict[str, Role])
    """Attribute to the role that its mere presence gives; asked before `roles`."""
    tool_name: tuple[str, ...] = ()
    call_id: tuple[str, ...] = ()
    arguments: tuple[str, ...] = ()
    result: tuple[str, ...] = ()
    schema: tuple[str, ...] = ()
    """JSON Schema of the arguments of the tool that the span is about."""
    tools: tuple[str, ...] = ()
    """Declarations of the tools that a model or an agent was given."""
    failed: Mapping[str, frozenset[Any]] = field(default_factory=dict[str, frozenset[Any]])
    """Attribute to the values that mean failure. An empty set: its presence does."""
    refused: Mapping[str, frozenset[Any]] = field(default_factory=dict[str, frozenset[Any]])
    """Attribute to the values that mean that the call never reached the tool."""
    asked: AskedReader | None = None
    history: Callable[[Span], Iterable[tuple[str, Answered]]] | None = None
    """Tool results by call id that a model span's input repeats."""
    answer: tuple[str, ...] = ()
    """What a run, agent or model gave back in the end; may be a conversation."""
    usage: Callable[[Span], Usage | None] | None = None
    """Tokens that stand in no attribute of their own."""
    finish: tuple[str, ...] = ()
    """Why a model stopped."""
    model: tuple[str, ...] = ()
    model_inside: Callable[[Span], str | None] | None = None
    """The model's name where it stands in no attribute of its own."""
    agent: tuple[str, ...] = ()
    conversation: tuple[str, ...] = ()
    input_tokens: tuple[str, ...] = ()
    output_tokens: tuple[str, ...] = ()
    cached_tokens: tuple[str, ...] = ()
    input_besides: tuple[str, ...] = ()
    """Counts that are input as well and that the input count leaves out."""
    cost: tuple[str, ...] = ()
    """US dollars."""
    from_log: Callable[[LogRecord], Span | None] | None = None
    """A span for a log record that stands for one."""
