"""Inspect AI evaluation logs in JSON; each sample is a run. The `.eval` archives are in `inspect_eval`.

Calls are read from the events where a sample has them, else from its messages: an agent's `submit` is in no message.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from agentguard.call import Usage
from agentguard.traces.container import Container, FaultyRecord, Items
from agentguard.traces.convention import Answered, Asked
from agentguard.traces.conversation import Conversation, total, usage_of
from agentguard.traces.shapes import is_list, is_object
from agentguard.traces.tools import Tools, tools_in
from agentguard.traces.values import listed, mapped, moment, string
from agentguard.trajectory import MAIN_LANE, UNKNOWN, Ending, RunKey, Trajectory

_ATTACHMENT: Final = "attachment://"
_SOURCE: Final = "model event"


def accepts(record: Any) -> bool:
    """Whether a record is a log with its samples, or one sample."""
    if not is_object(record):
        return False
    if is_object(record.get("eval")) and "status" in record:
        return True
    return all(key in record for key in ("epoch", "messages", "output", "target"))


def read_record(record: Mapping[str, Any], where: str) -> Items:
    """Yield a run for each sample."""
    if "eval" not in record:
        yield run_of(record, {}, where)
        return
    samples = record.get("samples")
    if not samples:
        yield FaultyRecord("no samples", "the log holds no samples; was it written with log_samples=False?")
    for sample in listed(samples):
        if is_object(sample):
            yield run_of(sample, about(record), where)
        else:
            yield FaultyRecord("not a sample", "a sample is an object; the others were read")


def about(log: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what a log, or the header of one, says of the evaluation."""
    solvers = [string(mapped(step).get("solver")) for step in listed(mapped(log.get("plan")).get("steps"))]
    return {"solver": " ".join(each for each in solvers if each), **mapped(log.get("eval"))}


def run_of(sample: Mapping[str, Any], told: Mapping[str, Any], where: str) -> Trajectory:
    """Return the run that a sample is; `told` is what the log says of the evaluation."""
    attachments = mapped(sample.get("attachments"))
    events = [mapped(event) for event in listed(sample.get("events"))]
    conversation = _from_events(events, attachments) if any(_is_call(event) for event in events) else None
    if conversation is None:
        conversation = _from_messages(sample, events, attachments)
    ending, note = _ending(sample, conversation)
    passed, why = _outcome(sample)
    return Trajectory(
        run_id=_run_id(sample, told, where),
        key=RunKey(_models(sample, told), _harness(told)),
        steps=conversation.steps(),
        ending=ending,
        outcome=passed,
        usage=total([each for use in mapped(sample.get("model_usage")).values() if (each := _usage(use)) is not None]),
        task=_task(sample, told),
        started_at=moment(sample.get("started_at")),
        ended_at=moment(sample.get("completed_at")),
        tools={name: schema for name, schema in conversation.tools.items() if schema} or None,
        notes=tuple(each for each in (note, why) if each is not None),
        meta=mapped(sample.get("metadata")),
    )


def _is_call(event: Mapping[str, Any]) -> bool:
    return event.get("event") == "tool"


def _from_messages(
    sample: Mapping[str, Any], events: list[Mapping[str, Any]], attachments: Mapping[str, Any]
) -> Conversation:
    conversation = Conversation(_tools(events))
    for message in listed(sample.get("messages")):
        conversation.tell(_resolved(message, attachments))
    return conversation


def _from_events(events: list[Mapping[str, Any]], attachments: Mapping[str, Any]) -> Conversation:
    conversation = Conversation(_tools(events))
    lanes = _Lanes(events)
    for event in events:
        lane = lanes.of(event)
        if event.get("event") == "model" and lane is not None:
            _tell_request(conversation, event, lane, attachments)
        elif _is_call(event) and lane is not None:
            _tell_call(conversation, event, lane, attachments)
    return conversation


def _tell_request(
    conversation: Conversation, event: Mapping[str, Any], lane: str, attachments: Mapping[str, Any]
) -> None:
    if event.get("error"):
        return  # asked again by the framework
    choice = mapped(next(iter(listed(mapped(event.get("output")).get("choices"))), None))
    message = mapped(_resolved(choice.get("message"), attachments))
    calls = [_asked(mapped(call)) for call in listed(message.get("tool_calls"))]
    if calls:
        conversation.ask(calls, at=moment(event.get("timestamp")), lane=lane, request=string(event.get("uuid")) or None)
    elif message:
        conversation.close(lane=lane)


def _asked(call: Mapping[str, Any]) -> Asked:
    return Asked(string(call.get("id")) or None, string(call.get("function")), call.get("arguments"), _SOURCE)


def _tell_call(conversation: Conversation, event: Mapping[str, Any], lane: str, attachments: Mapping[str, Any]) -> None:
    error = mapped(event.get("error"))
    content = error.get("message") if error else _resolved(event.get("result"), attachments)
    call_id = string(event.get("id")) or None
    if call_id is not None and not conversation.knows(call_id):
        # a tool that the solver itself called, without a model
        alone = Asked(call_id, string(event.get("function")), event.get("arguments"), "tool event")
        conversation.ask([alone], lane=lane)
    conversation.answer(
        call_id,
        Answered(content, is_error=bool(error)),
        started=moment(event.get("timestamp")),
        at=moment(event.get("completed")),
        executed=False if error.get("type") in ("parsing", "approval") else None,
    )


class _Lanes:
    """Which agent an event belongs to: that of the nearest agent span around it."""

    def __init__(self, events: list[Mapping[str, Any]]) -> None:
        self._spans = {string(each.get("id")): each for each in events if each.get("event") == "span_begin"}
        self._known: dict[str, str | None] = {}

    def of(self, event: Mapping[str, Any]) -> str | None:
        """Return the lane of an event; None inside a scorer, which is no part of the run."""
        span_id = string(event.get("span_id"))
        if span_id not in self._known:
            self._known[span_id] = self._find(span_id)
        return self._known[span_id]

    def _find(self, span_id: str) -> str | None:
        agents: list[Mapping[str, Any]] = []
        seen: set[str] = set()
        while span_id in self._spans and span_id not in seen:
            seen.add(span_id)
            span = self._spans[span_id]
            if span.get("type") in ("scorer", "scorers"):
                return None
            if span.get("type") == "agent":
                agents.append(span)
            span_id = string(span.get("parent_id"))
        return MAIN_LANE if len(agents) < 2 else string(agents[0].get("name")) or "sub-agent"


def _tools(events: list[Mapping[str, Any]]) -> Tools:
    declared = [event["tools"] for event in events if event.get("tools")]
    return tools_in(declared[0]) if declared else {}


def _resolved(value: Any, attachments: Mapping[str, Any]) -> Any:
    """Return a value with the long texts put back that the log keeps apart."""
    if isinstance(value, str):
        return attachments.get(value.removeprefix(_ATTACHMENT), value) if value.startswith(_ATTACHMENT) else value
    if not attachments:
        return value
    if is_object(value):
        return {key: _resolved(each, attachments) for key, each in value.items()}
    return [_resolved(each, attachments) for each in value] if is_list(value) else value


def _ending(sample: Mapping[str, Any], conversation: Conversation) -> tuple[Ending, str | None]:
    limit, error = mapped(sample.get("limit")), mapped(sample.get("error"))
    if limit:
        return Ending.HALTED, f"stopped at a limit: {limit.get('type')} of {limit.get('limit')}"
    if error:
        return Ending.FAILED, f"ended with an error: {string(error.get('message'))[:200]}"
    return conversation.ending()


_PASSED: Final[Mapping[Any, bool]] = {"C": True, "I": False, True: True, False: False}


def _outcome(sample: Mapping[str, Any]) -> tuple[bool | None, str | None]:
    """Return what the scorers say, where all say the same: correct or incorrect, 1 or 0."""
    values = [mapped(score).get("value") for score in mapped(sample.get("scores")).values()]
    known = [_PASSED.get(value) if isinstance(value, (str, bool, int, float)) else None for value in values]
    if known and None not in known and len(set(known)) == 1:
        return known[0], None
    return None, "scores that are neither all correct nor all incorrect say no outcome" if values else None


def _run_id(sample: Mapping[str, Any], told: Mapping[str, Any], where: str) -> str:
    run = string(told.get("run_id")) or where
    return string(sample.get("uuid")) or f"{run}/{sample.get('id')}/{sample.get('epoch')}"


def _task(sample: Mapping[str, Any], told: Mapping[str, Any]) -> str | None:
    parts = [string(told.get("task")), str(sample.get("id") or "")]
    return "/".join(part for part in parts if part) or None


def _harness(told: Mapping[str, Any]) -> str:
    version, solver = string(mapped(told.get("packages")).get("inspect_ai")), string(told.get("solver"))
    return " ".join(part for part in ("inspect_ai", version, solver) if part) if version or solver else UNKNOWN


def _models(sample: Mapping[str, Any], told: Mapping[str, Any]) -> str:
    used = sorted(mapped(sample.get("model_usage")))
    return string(told.get("model")) or " + ".join(used) or UNKNOWN


def _usage(use: Any) -> Usage | None:
    told = mapped(use)
    read, made = told.get("input_tokens_cache_read"), told.get("input_tokens_cache_write")
    cost = told.get("total_cost")
    return usage_of(told.get("input_tokens"), told.get("output_tokens"), read, cost, besides=(read, made))


INSPECT: Final = Container(name="inspect", accepts=accepts, items=read_record)
