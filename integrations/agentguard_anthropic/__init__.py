"""The guard in a tool loop on the Anthropic SDK.

messages.append({"role": "assistant", "content": response.content})
messages += run_tools(run, response, {"search": search})
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from agentguard import Run, ToolCall, Usage
from agentguard.toolloop import Answer, OnError, Tools, run_calls, run_calls_async

try:
    from anthropic.types import ToolUseBlock
except ImportError as error:
    from agentguard import IntegrationMissing

    raise IntegrationMissing("anthropic", "anthropic") from error

if TYPE_CHECKING:
    from anthropic.types import Message

__all__ = ["run_tools", "run_tools_async"]


def run_tools(run: Run, response: Message, tools: Tools, *, on_error: OnError | None = None) -> list[dict[str, Any]]:
    """Charge a response, judge its calls as one turn and run them; return the messages to append.

    One message with a result for each call; none means that the model asked for nothing. Pass each response once. A
    refused call is answered with the feedback and `is_error`, a halt raises `RunHalted`. What a tool raises is raised,
    or told to the model as `on_error` says.
    """
    _charge(run, response)
    return _message(run_calls(run, _calls(response), tools, on_error=on_error))


async def run_tools_async(
    run: Run, response: Message, tools: Tools, *, on_error: OnError | None = None
) -> list[dict[str, Any]]:
    """As `run_tools`, the calls side by side; tools may be asynchronous."""
    _charge(run, response)
    return _message(await run_calls_async(run, _calls(response), tools, on_error=on_error))


def _calls(response: Message) -> list[ToolCall]:
    return [_call(block) for block in response.content if isinstance(block, ToolUseBlock)]


def _call(block: ToolUseBlock) -> ToolCall:
    arguments: Any = block.input  # an `object` before it was a dict, and unchecked: the SDK builds without validating
    if isinstance(arguments, dict):
        return ToolCall(block.name, arguments, block.id)
    return ToolCall(block.name, None, block.id, raw_arguments=str(arguments))


def _message(answers: Sequence[Answer]) -> list[dict[str, Any]]:
    return [{"role": "user", "content": [_block(answer) for answer in answers]}] if answers else []


def _block(answer: Answer) -> dict[str, Any]:
    return {
        "type": "tool_result",
        "tool_use_id": answer.call.id,
        "content": answer.text,
        "is_error": answer.is_error,
    }


def _charge(run: Run, response: Message) -> None:
    used = response.usage
    cached = getattr(used, "cache_read_input_tokens", None)  # none of the two before prompt caching, 0.31
    written = getattr(used, "cache_creation_input_tokens", None)
    # Anthropic counts what went through the cache beside input_tokens, not in it.
    run.charge(
        Usage(used.input_tokens + (cached or 0) + (written or 0), used.output_tokens, cached), model=response.model
    )
