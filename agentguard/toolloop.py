"""The tool step of a loop written by hand: the calls of one model answer, judged as one turn and run."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from agentguard.attempt import Attempt
from agentguard.call import ToolCall, ToolResult
from agentguard.run import Run
from agentguard.wrapping import to_call

Tools = Mapping[str, Callable[..., Any]]
OnError = Callable[[Exception], str]


@dataclass(frozen=True)
class Answer:
    """What the model is told about one of its calls."""

    call: ToolCall
    text: str
    """The result; JSON where it is no text."""
    is_error: bool
    """Whether the call was refused or failed."""


def asked(name: str, text: str, id: str) -> ToolCall:
    """Return the call that a model wrote with arguments as JSON text; text that is no JSON object is kept as it is."""
    return to_call(name, text, id)


def run_calls(run: Run, calls: Sequence[ToolCall], tools: Tools, *, on_error: OnError | None) -> list[Answer]:
    """Run the calls one after another; one answer for each, in order.

    Raises RunHalted, and what a tool raised unless `on_error` gives its text.
    """
    with run.turn(calls):
        return [_run(run, call, tools, on_error) for call in calls]


async def run_calls_async(
    run: Run, calls: Sequence[ToolCall], tools: Tools, *, on_error: OnError | None
) -> list[Answer]:
    """As `run_calls`, side by side. When one raises, the others are cancelled."""
    with run.turn(calls):
        return await _side_by_side([_run_async(run, call, tools, on_error) for call in calls])


def _run(run: Run, call: ToolCall, tools: Tools, on_error: OnError | None) -> Answer:
    attempt = run.begin(call)
    refused = _refused(run, attempt, tools)
    if refused is not None:
        return refused
    try:
        value = _plain(call.name, tools[call.name](**(call.arguments or {})))
    except BaseException as error:
        return _failed(run, attempt, error, on_error)
    return Answer(call, _text(run.returned(attempt, value)), False)


async def _run_async(run: Run, call: ToolCall, tools: Tools, on_error: OnError | None) -> Answer:
    attempt = await run.begin_async(call)
    refused = _refused(run, attempt, tools)
    if refused is not None:
        return refused
    try:
        value = tools[call.name](**(call.arguments or {}))
        value = await value if inspect.isawaitable(value) else value
    except BaseException as error:
        return _failed(run, attempt, error, on_error)
    return Answer(call, _text(run.returned(attempt, value)), False)


def _refused(run: Run, attempt: Attempt, tools: Tools) -> Answer | None:
    """Return the answer to a call that does not run: the guard refused it, or there is nothing to run."""
    call = attempt.call
    if attempt.feedback is not None:
        return Answer(call, str(attempt.feedback), True)
    text = None
    if call.name not in tools:
        text = f"there is no tool {call.name}; known: {', '.join(sorted(tools))}"
    elif call.arguments is None:
        text = f"the arguments of {call.name} are not a JSON object"
    if text is None:
        return None
    run.returned(attempt, ToolResult(text, True))
    return Answer(call, text, True)


def _failed(run: Run, attempt: Attempt, error: BaseException, on_error: OnError | None) -> Answer:
    run.raised(attempt, error)
    if on_error is None or not isinstance(error, Exception):
        raise error
    return Answer(attempt.call, on_error(error), True)


def _plain(name: str, value: Any) -> Any:
    if not inspect.isawaitable(value):
        return value
    if inspect.iscoroutine(value):
        value.close()
    raise TypeError(f"tool {name!r} is asynchronous; use run_tools_async")


async def _side_by_side(running: Sequence[Coroutine[Any, Any, Answer]]) -> list[Answer]:
    tasks = [asyncio.ensure_future(one) for one in running]
    try:
        return await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else orjson.dumps(value, default=str).decode()
