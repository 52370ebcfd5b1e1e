"""The text that stands as the result of a refused call, for the model to act on."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Final, cast

import msgspec
import orjson

from agentguard.call import ToolCall
from agentguard.decision import Verdict

_EARLIER_CHARS: Final = 200
_QUOTED_CHARS: Final = 60
_NAME_CHARS: Final = 100
_SEEN_CHARS: Final = 10_000
"""What is looked at for secrets before it is cut, so that no half of one stays."""
_MOST_PROBLEMS: Final = 20
_MOST_TOOLS: Final = 30


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
        verdicts: The strongest first; the first one is spoken of. One with a code that is not known here, from a check
            of somebody else's, is told by its reason.
        call: The call that was refused.
        tools: Names of the declared tools.
        earlier: The result that the identical call gave before, "!" in front of an error. None when it is not known.
        redact: Applied to everything that is quoted from names, arguments or results, before it is cut.
    """
    verdict = verdicts[0]
    tell = _TELLERS.get(verdict.code) or (_budget if verdict.code.startswith("budget.") else _other)
    return tell(_Refused(verdict, call, tools, earlier, redact))


class _Refused(msgspec.Struct, frozen=True):
    """A refused call and what can be said about it."""

    verdict: Verdict
    call: ToolCall
    tools: Collection[str]
    earlier: str | None
    redact: Callable[[str], str]

    @property
    def name(self) -> str:
        return self.quoted(self.call.name, _NAME_CHARS)

    @property
    def reason(self) -> str:
        return self.verdict.reason

    @property
    def times(self) -> str:
        count = self.verdict.data.get("identical", 1)
        return "once" if count == 1 else "twice" if count == 2 else f"{count} times"

    def quoted(self, text: str, longest: int) -> str:
        """Return a text without secrets, then without what is too long."""
        clean = self.redact(text[:_SEEN_CHARS])
        return clean if len(clean) <= longest else clean[:longest] + "..."

    def quoted_value(self, name: str, text: str) -> str:
        """Return the JSON text of an argument as `quoted` does; its name may say that it is a secret."""
        before = f'"{name}": '
        clean = self.redact(before + text[:_SEEN_CHARS])
        return self.quoted(clean.removeprefix(before) if clean.startswith(before) else clean, _QUOTED_CHARS)


# ---------------------------------------------------------------- names and arguments


def _unknown(refused: _Refused) -> str:
    near = cast("Sequence[str]", refused.verdict.data.get("nearest") or [])
    meant = f" Did you mean {' or '.join(near)}?" if near else ""
    names = sorted(refused.tools)
    more = f" and {len(names) - _MOST_TOOLS} more" if len(names) > _MOST_TOOLS else ""
    return f"There is no tool {refused.name!r}; nothing was run.{meant} Tools: {', '.join(names[:_MOST_TOOLS])}{more}."


def _invalid(refused: _Refused) -> str:
    problems = cast("Sequence[Mapping[str, Any]]", refused.verdict.data.get("problems") or [])
    lines = [_problem(refused, problem) for problem in problems[:_MOST_PROBLEMS]]
    if len(problems) > _MOST_PROBLEMS:
        lines.append(f"- and {len(problems) - _MOST_PROBLEMS} more")
    told = f"The arguments of {refused.name} are not valid; nothing was run."
    return "\n".join([told, *lines, "Call it again with all of this mended."])


def _problem(refused: _Refused, problem: Mapping[str, Any]) -> str:
    name = str(problem["path"]).rpartition(".")[2].strip('$[]"')
    found, near = problem.get("found"), problem.get("nearest")
    got = f"; got {refused.quoted_value(name, found)}" if found else ""
    meant = f"; did you mean {refused.quoted_value(name, near)}?" if near else ""
    return f"- {problem['path']}: {problem['message']}{got}{meant}"


def _malformed(refused: _Refused) -> str:
    why = _cause(refused, refused.call.raw_arguments or "")
    told = f"The arguments of {refused.name} are not a JSON object; nothing was run: {why}."
    return f"{told} Send one complete JSON object, such as {{}}."


def _cause(refused: _Refused, text: str) -> str:
    if not text.strip():
        return "there is no text"
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        return _place(refused, text, error)
    return f"{next((words for kind, words in _KINDS.items() if isinstance(value, kind)), 'a number')} was given"


_KINDS: Final = {
    dict: "an object that cannot be used",
    list: "an array",
    str: "a string, which may hold JSON but is none,",
    bool: "a boolean",
    type(None): "null",
}


def _place(refused: _Refused, text: str, error: orjson.JSONDecodeError) -> str:
    told = f"{_hint(text, error)} at line {error.lineno}, column {error.colno}"
    before = text[max(error.pos - _QUOTED_CHARS // 2, 0) : error.pos]
    around = text[max(error.pos - 10 * _QUOTED_CHARS, 0) : error.pos + _QUOTED_CHARS]
    # A part of a secret is not known as one, so nothing is quoted from near one.
    is_clean = refused.redact(around) == around
    return f"{told}, after {' '.join(before.split())}" if before.strip() and is_clean else told


def _hint(text: str, error: orjson.JSONDecodeError) -> str:
    rest = text[error.pos :]
    if not rest.strip():
        return "the text ends too early"
    found = next((hint for start, hint in _HINTS.items() if rest.startswith(start)), None)
    return f"{error.msg}: {found}" if found else error.msg


_HINTS: Final = {
    "'": "JSON takes double quotes",
    "```": "leave the code fence out",
    "True": "JSON writes true",
    "False": "JSON writes false",
    "None": "JSON writes null",
    "NaN": "JSON has no NaN",
    "Infinity": "JSON has no Infinity",
    "\n": "JSON writes a line break in a text as \\n",
}


# ---------------------------------------------------------------- repeats


def _repeat(refused: _Refused) -> str:
    told = f"{refused.name} was called with exactly these arguments {refused.times} just before; it was not run again."
    return f"{told}{_gave(refused)} Use that result, change the arguments, or do something else."


def _write(refused: _Refused) -> str:
    told = f"{refused.name} was just called with exactly these arguments and changes something; it was not run again."
    return f"{told}{_gave(refused)} If a second time is really meant, ask the user."


def _turn(refused: _Refused) -> str:
    told = f"The same set of calls was made {refused.times} just before with the same results"
    return f"{told}; {refused.name} was not run again. Use those results or do something else."


def _ceiling(refused: _Refused) -> str:
    told = f"{refused.name} was called with exactly these arguments {refused.times} in a row"
    return f"{told}, which is the most that is allowed; it was not run again. Do something else."


def _duplicate(refused: _Refused) -> str:
    return f"{refused.name} was not run: {refused.reason}. Use the result of that call."


def _poll(refused: _Refused) -> str:
    return f"{refused.name} was not run: {refused.reason}.{_gave(refused)} Do something else or wait."


def _gave(refused: _Refused) -> str:
    """Return a sentence about the earlier result; empty when it is not known."""
    if refused.earlier is None:
        return ""
    verb = "failed with" if refused.earlier.startswith("!") else "gave"
    text = refused.quoted(refused.earlier.removeprefix("!"), _EARLIER_CHARS)
    if not text.strip():
        return f" It {verb} nothing."
    return f" It {verb}: {text}" + ("" if text.endswith(".") else ".")


# ---------------------------------------------------------------- the rest


def _failures(refused: _Refused) -> str:
    return f"{refused.name} was not run: {refused.reason}. Another call of it is not going to help."


def _cycle(refused: _Refused) -> str:
    return f"{refused.name} was not run: {refused.reason}. Use what they gave, or do something else."


def _budget(refused: _Refused) -> str:
    told = f"{refused.name} was not run: the call {refused.reason}."
    kind = str(refused.verdict.data.get("kind", refused.verdict.code.partition(".")[2]))
    return (
        f"{told} Other tools can still be used." if kind == "calls_per_tool" else f"{told} Finish with what you have."
    )


def _order(refused: _Refused) -> str:
    return f"{refused.name} was not run: it {refused.reason}. Make that call first."


def _deadline(refused: _Refused) -> str:
    return f"{refused.name} gave no result: {refused.reason}. Ask for less, or use another tool."


def _halted(refused: _Refused) -> str:
    return f"{refused.name} was not run: {refused.reason}. Make no more calls."


def _other(refused: _Refused) -> str:
    return f"{refused.name} was not run: {refused.reason}."


_TELLERS: Final[Mapping[str, Callable[[_Refused], str]]] = {
    "tool.unknown": _unknown,
    "arguments.invalid": _invalid,
    "arguments.malformed": _malformed,
    "repeat.identical": _repeat,
    "repeat.write": _write,
    "repeat.turn": _turn,
    "repeat.ceiling": _ceiling,
    "repeat.duplicate": _duplicate,
    "repeat.poll": _poll,
    "repeat.poll_interval": _poll,
    "failures.tool": _failures,
    "failures.error": _failures,
    "cycle": _cycle,
    "order.missing": _order,
    "deadline": _deadline,
    "run.halted": _halted,
}
