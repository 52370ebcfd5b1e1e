"""The plain form of a run, one JSON object a line: what `agentguard show --json` writes and recorded runs are kept in.

A run: `run_id`, `source`, `model`, `harness`, `task`, `success` (true, false or null), `steps`, `meta`. A step:
`tool`, `args`, `result` (may be cut), `rsha` (a digest of the whole result), `error`, `turn`, `user`. Written runs
also carry, where they are known: `ending`, `complete`, `usage`, and per step `id`, `lane`, `executed`, `action`,
`code`, `started_at`, `ended_at`, `call_key`, `result_key`, `user_turn`, `raw_arguments`, `missing`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, cast

import msgspec
import orjson

from agentguard.call import ToolCall, ToolResult, Usage
from agentguard.decision import Action, Decision, Verdict
from agentguard.traces.container import Container, FaultyRecord, Item
from agentguard.traces.shapes import is_object
from agentguard.trajectory import MAIN_LANE, UNKNOWN, Ending, RunKey, Step, Trajectory

_CUT_CHARS: Final = 2_000
"""A result this long may have been cut: it is compared by the digest of the whole."""
_ACTIONS: Final = {action.word: action for action in Action}


class _Verdict(msgspec.Struct):
    check: str = ""
    code: str = ""
    action: str = ""
    reason: str = ""


class _Step(msgspec.Struct):
    tool: str
    args: dict[str, Any] | None = None
    result: Any = msgspec.UNSET
    rsha: str | None = None
    error: bool = False
    turn: int | None = None
    user: bool = False
    id: str | None = None
    lane: str = MAIN_LANE
    executed: bool | None = True
    action: str | None = None
    verdicts: list[_Verdict] = []
    started_at: int | None = None
    ended_at: int | None = None
    call_key: str | None = None
    result_key: str | None = None
    user_turn: bool = False
    raw_arguments: str | None = None
    missing: tuple[str, ...] = ()
    seq: int | None = None
    attempt: int = 1


class _Run(msgspec.Struct):
    run_id: str
    steps: list[_Step]
    source: str | None = None
    model: str | None = None
    harness: str | None = None
    harness_digest: str | None = None
    task: str | None = None
    success: bool | None = None
    meta: dict[str, Any] = {}
    ending: Ending | None = None
    complete: bool | None = None
    usage: Usage | None = None
    started_at: int | None = None
    ended_at: int | None = None
    notes: tuple[str, ...] = ()


_decoder = msgspec.json.Decoder(_Run)


def is_plain(record: Any) -> bool:
    """Whether a JSON value is a run of this form."""
    return is_object(record) and "run_id" in record and isinstance(cast("Mapping[str, Any]", record).get("steps"), list)


def read_line(line: bytes, where: str) -> Iterator[Item | FaultyRecord]:
    """Yield the run on one line; a line of another shape raises FaultyRecord."""
    try:
        run = _decoder.decode(line)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise FaultyRecord("not a run", str(error)) from error
    return iter((_trajectory(run),))


def read_record(record: Any, where: str) -> Iterator[Item | FaultyRecord]:
    """Yield the run that a parsed record is, or what is wrong with it."""
    try:
        yield _trajectory(msgspec.convert(record, _Run))
    except (ValueError, RecursionError) as error:
        yield FaultyRecord("not a run", str(error))


def _trajectory(run: _Run) -> Trajectory:
    return Trajectory(
        run_id=run.run_id,
        key=RunKey(run.model or UNKNOWN, run.harness or UNKNOWN, run.harness_digest),
        steps=tuple(_step(step) for step in run.steps),
        ending=run.ending or _ending(run),
        outcome=run.success,
        usage=run.usage,
        complete=run.complete,
        task=run.task,
        started_at=run.started_at,
        ended_at=run.ended_at,
        source=run.source,
        notes=run.notes,
        meta=run.meta,
    )


def _ending(run: _Run) -> Ending:
    """A run is written down when it is over; one that used every turn it had without success was stopped."""
    most = run.meta.get("max_turns")
    turns = {step.turn for step in run.steps if step.turn is not None}
    if isinstance(most, int) and len(turns) >= most and run.success is not True:
        return Ending.HALTED
    return Ending.FINISHED


def _step(step: _Step) -> Step:
    cut = step.result_key is None and isinstance(step.result, str) and len(step.result) >= _CUT_CHARS
    known = step.result is not msgspec.UNSET
    return Step(
        call=ToolCall(step.tool, step.args, step.id, step.raw_arguments),
        result=ToolResult(step.result if known else None, step.error) if known or step.error else None,
        decision=_decision(step),
        executed=step.executed,
        started_at=step.started_at,
        ended_at=step.ended_at,
        turn=step.turn,
        lane=step.lane,
        seq=step.seq,
        attempt=step.attempt,
        call_key=step.call_key,
        result_key=step.rsha if cut else step.result_key,
        user_turn=step.user_turn,
        missing=step.missing,
    )


def _decision(step: _Step) -> Decision | None:
    if step.action is None:
        return None
    verdicts = tuple(
        Verdict(each.check, each.code, _ACTIONS.get(each.action, Action.ALLOW), each.reason) for each in step.verdicts
    )
    return Decision(_ACTIONS.get(step.action, Action.ALLOW), verdicts)


def to_line(trajectory: Trajectory) -> bytes:
    """Return a run as one line of this form, without the line's end."""
    record: dict[str, Any] = {
        "run_id": trajectory.run_id,
        "source": trajectory.source,
        "model": trajectory.key.model,
        "harness": trajectory.key.harness,
        "task": trajectory.task,
        "success": trajectory.outcome,
        "steps": [_written_step(step) for step in trajectory.steps],
        "meta": trajectory.meta,
        "ending": str(trajectory.ending),
    }
    more = {
        "harness_digest": trajectory.key.digest,
        "complete": trajectory.complete,
        "usage": None if trajectory.usage is None else _written_usage(trajectory.usage),
        "started_at": trajectory.started_at,
        "ended_at": trajectory.ended_at,
        "notes": list(trajectory.notes) or None,
    }
    record.update({name: value for name, value in more.items() if value is not None})
    return orjson.dumps(record, default=_as_text)


def _written_step(step: Step) -> dict[str, Any]:
    record: dict[str, Any] = {"tool": step.call.name, "args": step.call.arguments}
    if step.result is not None:
        record["result"] = step.result.content
    record |= {"error": step.result is not None and step.result.is_error, "turn": step.turn, "executed": step.executed}
    more = {
        "id": step.call.id,
        "raw_arguments": step.call.raw_arguments,
        "lane": None if step.lane == MAIN_LANE else step.lane,
        "seq": step.seq,
        "attempt": None if step.attempt == 1 else step.attempt,
        "action": None if step.decision is None else step.decision.action.word,
        "verdicts": _written_verdicts(step.decision),
        "started_at": step.started_at,
        "ended_at": step.ended_at,
        "call_key": step.call_key,
        "result_key": step.result_key,
        "user_turn": step.user_turn or None,
        "missing": list(step.missing) or None,
    }
    record.update({name: value for name, value in more.items() if value is not None})
    return record


def _written_verdicts(decision: Decision | None) -> list[dict[str, str]] | None:
    if decision is None or not decision.verdicts:
        return None
    return [{"check": v.check, "code": v.code, "action": v.action.word, "reason": v.reason} for v in decision.verdicts]


def _written_usage(usage: Usage) -> dict[str, Any]:
    said = msgspec.structs.asdict(usage)
    said["cost_usd"] = None if usage.cost_usd is None else str(usage.cost_usd)
    return {name: value for name, value in said.items() if value is not None}


def _as_text(value: Any) -> str:
    return str(value)


PLAIN: Final = Container(name="plain", accepts=is_plain, items=read_record, line=read_line)
