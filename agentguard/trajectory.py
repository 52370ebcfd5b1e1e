"""A run as a sequence of tool calls and observations: the unit of judgement."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import Any

import msgspec

from agentguard.call import ToolCall, ToolResult, Usage
from agentguard.decision import Decision

MAIN_LANE = "main"
"""The lane of calls that no sub-agent made."""

UNKNOWN = "unknown"
"""Stands for a model or a harness that nobody named."""


class Ending(enum.StrEnum):
    """How a run ended. Whether its final state was right is another question (`Trajectory.outcome`)."""

    FINISHED = "finished"
    """The agent stopped by itself."""
    HALTED = "halted"
    """A guard or a limit stopped it."""
    FAILED = "failed"
    """It ended with an error."""
    UNFINISHED = "unfinished"
    """No end was seen: killed, still running, or not recorded."""


class RunKey(msgspec.Struct, frozen=True, order=True):
    """What scores are filed under. The same model under two harnesses is two keys."""

    model: str = UNKNOWN
    """The model's name as the provider gives it."""
    harness: str = UNKNOWN
    """The scaffold around the model, with its version."""
    digest: str | None = None
    """Digest over tool definitions, system prompt, limits and policy. None when not recorded."""


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """One call of a trajectory."""

    call: ToolCall
    result: ToolResult | None = None
    """What came back, also when it was a refusal's feedback. None means not recorded."""
    decision: Decision | None = None
    """What a guard decided. None when no guard judged this call."""
    executed: bool | None = True
    """Whether the call reached the tool. False for refused or unknown tools; None when not known."""
    started_at: int | None = None
    """Nanoseconds since the epoch. None when not recorded."""
    ended_at: int | None = None
    turn: int | None = None
    """Calls of one parallel model turn share a number. None when turns are not known: each call is then its own."""
    lane: str = MAIN_LANE
    """The sub-agent that made the call."""
    seq: int | None = None
    """Order of arrival at the guard, from 0. None when no guard numbered it."""
    attempt: int = 1
    """Counts retries of one asked-for call, from 1."""
    call_key: str | None = None
    """Digest of the canonical call, comparable within its run only. None when not recorded."""
    result_key: str | None = None
    """Digest of the normalised result, comparable within its run only. None when not recorded."""
    user_turn: bool = False
    """A message of the real user, announced as such, came just before."""
    origin: Mapping[str, str] | None = None
    """Where each field was read: field name to "span <id> <attribute>". None when not read from a trace."""
    missing: tuple[str, ...] = ()
    """Fields that the trace does not carry, e.g. ("arguments",)."""


class Trajectory(msgspec.Struct, frozen=True, kw_only=True):
    """Every tool call of a run, in order."""

    run_id: str
    key: RunKey = RunKey()
    steps: tuple[Step, ...] = ()
    """In the order asked: by turn, within a turn in the model's order."""
    ending: Ending = Ending.UNFINISHED
    outcome: bool | None = None
    """Did the final state pass. Told by the user or the trace, never by us; None means nobody said."""
    usage: Usage | None = None
    """Summed over model calls. None when not recorded."""
    complete: bool | None = None
    """Are all steps here. False when a gap is known; None when nothing says so."""
    task: str | None = None
    """What the run was asked to do, as an identifier shared by runs of the same task."""
    started_at: int | None = None
    """Nanoseconds since the epoch."""
    ended_at: int | None = None
    source: str | None = None
    """Where it was read from: the path, or the name of the data set."""
    tools: Mapping[str, Mapping[str, Any]] | None = None
    """JSON Schemas of the tools' arguments by name, where the trace carries them."""
    notes: tuple[str, ...] = ()
    """What the reader wants a person to know: what was joined, guessed at by rule, or left out."""
    meta: Mapping[str, Any] = {}
    """Whatever else the source said; kept for the way back out."""
