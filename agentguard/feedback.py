"""The text that stands as the result of a refused call, for the model to act on."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Final

from agentguard.call import ToolCall
from agentguard.decision import Verdict
from agentguard.schema import parse_error

_EARLIER_CHARS: Final = 200
_MOST_PROBLEMS: Final = 10


def feedback(
    verdicts: Sequence[Verdict],
    *,
    call: ToolCall,
    tools: Collection[str],
    earlier: str | None,
    redact: Callable[[str], str],
) -> str:
    """Return what a refused call gives back: what was refused, why, and what to do instead.

    Args:
        verdicts: The strongest first; the first one is spoken of.
        call: The call that was refused.
        tools: Names of the declared tools.
        earlier: The result that the identical call gave before, when it is known.
        redact: Applied to everything that is quoted from arguments or results.
    """
    verdict = verdicts[0]
    tell = _TELLERS.get(verdict.code) or (_budget if verdict.code.startswith("budget.") else _other)
    return redact(tell(verdict, call, tools, earlier))


def _unknown(verdict: Verdict, call: ToolCall, tools: Collection[str], earlier: str | None) -> str:
    near = verdict.data.get("nearest") or []
    meant = f" Did you mean {' or '.join(near)}?" if near else ""
    known = ", ".join(sorted(tools)[:30])
    return f"There is no tool {call.name[:100]!r}; nothing was run.{meant} Tools: {known}."


def _invalid(verdict: Verdict, call: ToolCall, tools: Collection[str], earlier: str | None) -> str:
    problems: Sequence[Mapping[str, Any]] = verdict.data.get("problems") or []
    lines = [_problem(problem) for problem in problems[:_MOST_PROBLEMS]]
    if len(problems) > _MOST_PROBLEMS:
        lines.append(f"- and {len(problems) - _MOST_PROBLEMS} more")
    return "\n".join([f"The arguments of {call.name} are not valid; nothing was run.", *lines])


def _problem(problem: Mapping[str, Any]) -> str:
    near = f"; did you mean {problem['nearest']}?" if problem.get("nearest") else ""
    return f"- {problem['path']}: {problem['message']}{near}"


def _malformed(verdict: Verdict, call: ToolCall, tools: Collection[str], earlier: str | None) -> str:
    why = parse_error(call.raw_arguments or "")
    return f"The arguments of {call.name} are not a JSON object; nothing was run: {why}. Send one complete JSON object."


def _repeat(verdict: Verdict, call: ToolCall, tools: Collection[str], earlier: str | None) -> str:
    times = verdict.data.get("identical", 1)
    told = f"{call.name} was called with exactly these arguments {_times(times)} just before; it was not run again."
    return f"{told}{_quoted(earlier)} Use that result, change the arguments, or do something else."


def _write(verdict: Verdict, call: ToolCall, tools: Collection[str], earlier: str | None) -> str:
    told = f"{call.name} was just called with exactly these arguments and changes something; it was not run again."
    return f"{told}{_quoted(earlier)} If a second time is really meant, ask the user."


def _turn(verdict: Verdict, call: ToolCall, tools: Collection[str], earlier: str | None) -> str:
    times = verdict.data.get("identical", 1)
    return (
        f"The same set of calls was made {_times(times)} just before with the same results; {call.name} was not run "
        "again. Use those results or do something else."
    )


def _ceiling(verdict: Verdict, call: ToolCall, tools: Collection[str], earlier: str | None) -> str:
    times = verdict.data.get("identical", 1)
    return (
        f"{call.name} was called with exactly these arguments {_times(times)} in a row, which is the most that is "
        "allowed; it was not run again. Do something else."
    )


def _poll(verdict: Verdict, call: ToolCall, tools: Collection[str], earlier: str | None) -> str:
    return f"{call.name} was not run: {verdict.reason}.{_quoted(earlier)} Do something else or wait."


def _failures(verdict: Verdict, call: ToolCall, tools: Collection[str], earlier: str | None) -> str:
    return f"{call.name} was not run: {verdict.reason}. Another call of it is not going to help."


def _budget(verdict: Verdict, call: ToolCall, tools: Collection[str], earlier: str | None) -> str:
    kind = str(verdict.data.get("kind", verdict.code.partition(".")[2]))
    told = f"{call.name} was not run: the call {verdict.reason}."
    return (
        f"{told} Other tools can still be used." if kind == "calls_per_tool" else f"{told} Finish with what you have."
    )


def _order(verdict: Verdict, call: ToolCall, tools: Collection[str], earlier: str | None) -> str:
    return f"{call.name} was not run: it {verdict.reason}. Make that call first."


def _deadline(verdict: Verdict, call: ToolCall, tools: Collection[str], earlier: str | None) -> str:
    return f"{call.name} gave no result: {verdict.reason}. Ask for less, or use another tool."


def _halted(verdict: Verdict, call: ToolCall, tools: Collection[str], earlier: str | None) -> str:
    return f"{call.name} was not run: {verdict.reason}."


def _other(verdict: Verdict, call: ToolCall, tools: Collection[str], earlier: str | None) -> str:
    return f"{call.name} was not run: {verdict.reason}."


def _times(count: int) -> str:
    return "once" if count == 1 else "twice" if count == 2 else f"{count} times"


def _quoted(earlier: str | None) -> str:
    if earlier is None:
        return ""
    failed, text = earlier.startswith("!"), earlier.removeprefix("!")
    cut = text if len(text) <= _EARLIER_CHARS else text[:_EARLIER_CHARS] + "..."
    return f" It {'failed with' if failed else 'gave'}: {cut}" + ("" if cut.endswith((".", "...")) else ".")


_TELLERS: Final[Mapping[str, Callable[[Verdict, ToolCall, Collection[str], str | None], str]]] = {
    "tool.unknown": _unknown,
    "arguments.invalid": _invalid,
    "arguments.malformed": _malformed,
    "repeat.identical": _repeat,
    "repeat.write": _write,
    "repeat.turn": _turn,
    "repeat.ceiling": _ceiling,
    "repeat.poll": _poll,
    "repeat.poll_interval": _poll,
    "failures.tool": _failures,
    "failures.error": _failures,
    "order.missing": _order,
    "deadline": _deadline,
    "run.halted": _halted,
}
