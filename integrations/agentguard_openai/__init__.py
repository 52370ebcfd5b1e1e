"""The guard in a tool loop on the OpenAI SDK, for chat completions and for responses.

messages.append(response.choices[0].message)
messages += run_tools(run, response, {"search": search})
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from agentguard import Run, ToolCall, Usage
from agentguard.toolloop import Answer, OnError, Tools, asked, run_calls, run_calls_async

try:
    from openai.types.responses import Response
except ImportError as error:
    from agentguard import IntegrationMissing

    raise IntegrationMissing("openai", "openai") from error

if TYPE_CHECKING:
    from openai.types.chat import ChatCompletion

__all__ = ["run_tools", "run_tools_async"]


def run_tools(
    run: Run, response: ChatCompletion | Response, tools: Tools, *, on_error: OnError | None = None
) -> list[dict[str, Any]]:
    """Charge a response, judge its calls as one turn and run them; return the messages or items to append.

    One for each call; none means that the model asked for nothing. Pass each response once. A refused call is answered
    with the feedback, a halt raises `RunHalted`. What a tool raises is raised, or told to the model as `on_error` says.
    """
    _charge(run, response)
    return _shown(response, run_calls(run, _calls(response), tools, on_error=on_error))


async def run_tools_async(
    run: Run, response: ChatCompletion | Response, tools: Tools, *, on_error: OnError | None = None
) -> list[dict[str, Any]]:
    """As `run_tools`, the calls side by side; tools may be asynchronous."""
    _charge(run, response)
    return _shown(response, await run_calls_async(run, _calls(response), tools, on_error=on_error))


def _calls(response: ChatCompletion | Response) -> list[ToolCall]:
    if isinstance(response, Response):
        return [_item_call(item) for item in response.output if item.type in ("function_call", "custom_tool_call")]
    return [_message_call(call) for call in response.choices[0].message.tool_calls or ()]


def _item_call(item: Any) -> ToolCall:
    if item.type == "custom_tool_call":
        return ToolCall(item.name, {"input": item.input}, item.call_id)
    return asked(item.name, item.arguments, item.call_id)


def _message_call(call: Any) -> ToolCall:
    if call.type == "custom":
        return ToolCall(call.custom.name, {"input": call.custom.input}, call.id)
    return asked(call.function.name, call.function.arguments, call.id)


def _shown(response: ChatCompletion | Response, answers: Sequence[Answer]) -> list[dict[str, Any]]:
    if not isinstance(response, Response):
        return [{"role": "tool", "tool_call_id": answer.call.id, "content": answer.text} for answer in answers]
    custom = {item.call_id for item in response.output if item.type == "custom_tool_call"}
    return [
        {
            "type": "custom_tool_call_output" if answer.call.id in custom else "function_call_output",
            "call_id": answer.call.id,
            "output": answer.text,
        }
        for answer in answers
    ]


def _charge(run: Run, response: ChatCompletion | Response) -> None:
    used: Any = response.usage
    if used is None:  # a stream of chat completions that was not asked for it: stream_options={"include_usage": True}
        return
    if isinstance(response, Response):
        usage = Usage(used.input_tokens, used.output_tokens, _cached(getattr(used, "input_tokens_details", None)))
    else:
        usage = Usage(used.prompt_tokens, used.completion_tokens, _cached(used.prompt_tokens_details))
    run.charge(usage, model=response.model)


def _cached(details: Any) -> int | None:
    return getattr(details, "cached_tokens", None)  # 1.66.0 had no input_tokens_details
