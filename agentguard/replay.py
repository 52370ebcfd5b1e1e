"""Walking a recorded trajectory through the same lanes as a live run, so that both speak of the same repeats."""

from __future__ import annotations

import enum
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import groupby

import msgspec

from agentguard.call import ToolCall
from agentguard.decision import Action
from agentguard.fingerprint import canonical
from agentguard.loops import REFUSED, UNKNOWN, Lane, Place, Token
from agentguard.trajectory import Step, Trajectory


class What(enum.Enum):
    """What happens in a run, as far as loops are concerned."""

    USER_TURN = enum.auto()
    TURN_OPENS = enum.auto()
    CALL = enum.auto()
    RESULT = enum.auto()
    TURN_CLOSES = enum.auto()


class Event(msgspec.Struct, frozen=True):
    """One thing that happened in a recorded run."""

    what: What
    lane: str
    steps: tuple[int, ...]
    """Indices of the steps that it is about; for TURN_OPENS all of the turn, otherwise one."""


def events(steps: Sequence[Step]) -> Iterator[Event]:
    """Yield what happened in order. Times decide what was in flight; without times a call comes back at once."""
    flying: list[int] = []
    for unit in _units(steps):
        lane, many = steps[unit[0]].lane, len(unit) > 1
        yield from _results(steps, flying, before=steps[unit[0]].started_at)
        if steps[unit[0]].user_turn:
            yield Event(What.USER_TURN, lane, unit[:1])
        if many:
            yield Event(What.TURN_OPENS, lane, unit)
        for index in unit:
            yield from _results(steps, flying, before=steps[index].started_at)
            yield Event(What.CALL, lane, (index,))
            flying.append(index)
        if many:
            yield from _results(steps, [i for i in unit if i in flying], before=None)
            flying = [i for i in flying if i not in unit]
            yield Event(What.TURN_CLOSES, lane, unit[:1])
    yield from _results(steps, flying, before=None)


def places(trajectory: Trajectory) -> list[Place]:
    """Return for every step where it stood in its lane when it was asked for.

    A call whose arguments are neither recorded nor fingerprinted equals no other.
    """
    steps = trajectory.steps
    keys = call_keys(trajectory)
    lanes: dict[str, Lane] = defaultdict(Lane)
    found: dict[int, Place] = {}
    for event in events(steps):
        lane, index = lanes[event.lane], event.steps[0]
        if event.what is What.USER_TURN:
            lane.user_turn()
        elif event.what is What.TURN_OPENS:
            lane.open_turn([keys[i] for i in event.steps])
        elif event.what is What.TURN_CLOSES:
            lane.close_turn()
        elif event.what is What.CALL:
            found[index] = _entered(lane, keys[index], steps[index])
        elif found[index].streak >= 0:
            token = result_token(steps[index])
            lane.leave(found[index], token, error=_error(steps[index], token))
    return [found[index] for index in range(len(steps))]


def call_keys(trajectory: Trajectory) -> list[bytes]:
    """Return what stands for each call when calls are compared, by recorded fingerprint or else by arguments."""
    steps = trajectory.steps
    by_digest = all(step.call_key is not None for step in steps)
    return [_key(step, index, by_digest=by_digest) for index, step in enumerate(steps)]


def is_known(step: Step) -> bool:
    """Whether the call of this step can be compared with others."""
    return not (step.call_key is None and step.call.arguments is None and step.call.raw_arguments is None)


def result_token(step: Step) -> Token:
    """Return what stands for the result of a step when results are compared."""
    if was_refused(step):
        return REFUSED
    if step.result_key is not None:
        return step.result_key.encode()
    if step.result is None or "result" in step.missing:
        return UNKNOWN
    content = step.result.content
    text = content if isinstance(content, str) else canonical(content).decode("utf-8", "replace")
    return "!" + text if step.result.is_error else text


def was_refused(step: Step) -> bool:
    """Whether a guard refused the call."""
    return step.decision is not None and step.decision.action >= Action.BLOCK


def _key(step: Step, index: int, *, by_digest: bool) -> bytes:
    if by_digest and step.call_key is not None:
        return f"{step.call.name}\0{step.call_key}".encode("utf-8", "surrogatepass")
    if step.call.arguments is None and step.call.raw_arguments is None:
        return f"\0unknown {index}".encode()
    return ToolCall(step.call.name, step.call.arguments, None, step.call.raw_arguments).fingerprint


def _entered(lane: Lane, key: bytes, step: Step) -> Place:
    """A call after a halt stands outside its lane, as it did live."""
    halted = step.decision is not None and step.decision.code == "run.halted"
    return Place(key, step.call.name, -1) if halted else lane.enter(key, step.call.name)


def _units(steps: Sequence[Step]) -> Iterator[tuple[int, ...]]:
    """Yield the parallel turns; a step whose turn is not known is one by itself."""

    def unit_of(index: int) -> tuple[str, int | None, int | None]:
        step = steps[index]
        return step.lane, step.turn, index if step.turn is None else None

    for _, group in groupby(range(len(steps)), unit_of):
        yield tuple(group)


def _results(steps: Sequence[Step], flying: list[int], *, before: int | None) -> Iterator[Event]:
    """Yield the results of the calls that had come back by then, and take them out of those in flight."""
    for index in list(flying):
        ended = steps[index].ended_at
        if before is None or ended is None or ended <= before:
            flying.remove(index)
            yield Event(What.RESULT, steps[index].lane, (index,))


def _error(step: Step, token: Token) -> Token | None:
    if token is REFUSED:
        verdicts = step.decision.verdicts if step.decision is not None else ()
        return next((v.reason for v in verdicts if v.code.startswith(("tool.", "arguments."))), None)
    return token if step.result is not None and step.result.is_error else None
