"""ATIF, the Agent Trajectory Interchange Format of Harbor (versions 1.0 to 1.7): one trajectory a file.

https://www.harborframework.com/docs/agents/trajectory-format
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from agentguard.call import Usage
from agentguard.traces.container import Container, Items
from agentguard.traces.convention import Answered, Asked
from agentguard.traces.conversation import Conversation, total, usage_of
from agentguard.traces.shapes import is_object
from agentguard.traces.tools import tools_in
from agentguard.traces.values import listed, mapped, moment, string
from agentguard.trajectory import UNKNOWN, RunKey, Trajectory

_SOURCE: Final = "tool_calls"


def accepts(record: Any) -> bool:
    """Whether a record is a trajectory of this format."""
    if not is_object(record) or "steps" not in record:
        return False
    return string(record.get("schema_version")).startswith("ATIF") or is_object(record.get("agent"))


def read_record(record: Mapping[str, Any], where: str) -> Items:
    """Yield the run that a record is, and those of sub-agents that it holds."""
    agent = mapped(record.get("agent"))
    told = [mapped(step) for step in listed(record.get("steps"))]
    conversation = Conversation(tools_in(agent.get("tool_definitions")))
    for number, step in enumerate(told):
        _tell(conversation, step, number)
    ending, note = conversation.ending()
    times = [time for step in told if (time := moment(step.get("timestamp"))) is not None]
    yield Trajectory(
        run_id=string(record.get("session_id")) or string(record.get("trajectory_id")) or where,
        key=RunKey(_model(agent, told), _harness(agent)),
        steps=conversation.steps(),
        ending=ending,
        usage=_usage(record, told),
        started_at=min(times, default=None),
        ended_at=max(times, default=None),
        tools={name: schema for name, schema in conversation.tools.items() if schema} or None,
        notes=(note,) if note is not None else (),
        meta=mapped(record.get("extra")),
    )
    for inner in listed(record.get("subagent_trajectories")):
        if accepts(inner):
            yield from read_record(inner, where)


def _tell(conversation: Conversation, step: Mapping[str, Any], number: int) -> None:
    if step.get("is_copied_context"):
        return
    at, source = moment(step.get("timestamp")), step.get("source")
    if source == "user":
        conversation.user()
    calls = list(_calls(step)) if source == "agent" else []
    if calls:
        conversation.ask(calls, at=at, request=str(number))
    for result in listed(mapped(step.get("observation")).get("results")):
        told = mapped(result)
        answered = Answered(told.get("content"), is_error=mapped(told.get("extra")).get("is_error") is True)
        conversation.answer(string(told.get("source_call_id")) or None, answered)
    if source == "agent" and not calls and string(step.get("message")):
        conversation.close()


def _calls(step: Mapping[str, Any]) -> Iterator[Asked]:
    for call in listed(step.get("tool_calls")):
        told = mapped(call)
        name = string(told.get("function_name"))
        if name:
            yield Asked(string(told.get("tool_call_id")) or None, name, told.get("arguments"), _SOURCE)


def _model(agent: Mapping[str, Any], told: list[Mapping[str, Any]]) -> str:
    names = {name for step in told if (name := string(step.get("model_name")))}
    return " + ".join(sorted(names)) or string(agent.get("model_name")) or UNKNOWN


def _harness(agent: Mapping[str, Any]) -> str:
    return " ".join(part for part in (string(agent.get("name")), string(agent.get("version"))) if part) or UNKNOWN


def _usage(record: Mapping[str, Any], told: list[Mapping[str, Any]]) -> Usage | None:
    final = mapped(record.get("final_metrics"))
    whole = usage_of(
        final.get("total_prompt_tokens"),
        final.get("total_completion_tokens"),
        final.get("total_cached_tokens"),
        final.get("total_cost_usd"),
    )
    return whole or total([each for step in told if (each := _metrics(step)) is not None])


def _metrics(step: Mapping[str, Any]) -> Usage | None:
    metrics = mapped(step.get("metrics"))
    keys = ("prompt_tokens", "completion_tokens", "cached_tokens", "cost_usd")
    return usage_of(*(metrics.get(key) for key in keys))


ATIF: Final = Container(name="atif", accepts=accepts, items=read_record)
