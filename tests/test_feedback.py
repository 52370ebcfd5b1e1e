"""What a model reads in place of a result."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from agentguard import Action, ToolCall, Verdict
from agentguard.feedback import feedback
from agentguard.redaction import Redaction
from agentguard.schema import Validator

CALL = ToolCall("search", {"q": "x"})


def text(code: str, reason: str = "why", call: ToolCall = CALL, earlier: str | None = None, **data: Any) -> str:
    verdict = Verdict("check", code, Action.BLOCK, reason, data)
    return feedback([verdict], call=call, tools={"search", "read"}, earlier=earlier, redact=lambda text: text)


def test_an_unknown_tool_is_offered_near_names_and_never_another_tool() -> None:
    assert text("tool.unknown", call=ToolCall("serch", {}), nearest=["search"]) == (
        "There is no tool 'serch'; nothing was run. Did you mean search? Tools: read, search."
    )


def test_a_name_that_is_near_to_none_is_told_the_tools() -> None:
    assert text("tool.unknown", call=ToolCall("zzz", {})) == (
        "There is no tool 'zzz'; nothing was run. Tools: read, search."
    )


WEATHER = {
    "properties": {
        "city": {},
        "days": {"type": "integer", "minimum": 1},
        "unit": {"enum": ["C", "F"]},
        "api_key": {"maxLength": 3},
    },
    "required": ["city"],
    "additionalProperties": False,
}


def told_problems(arguments: dict[str, Any]) -> list[dict[str, Any]]:
    return [msgspec.structs.asdict(problem) for problem in Validator("weather", WEATHER).problems(arguments)]


def test_every_problem_of_the_arguments_is_listed() -> None:
    assert text("arguments.invalid", problems=told_problems({"days": "3", "unit": "c", "dayz": 1})) == (
        "The arguments of search are not valid; nothing was run.\n"
        '- $.days: must be integer, not string; got "3"; did you mean 3?\n'
        '- $.unit: must be one of "C", "F"; got "c"; did you mean "C"?\n'
        "- $.dayz: is not a known property; known: city, days, unit, api_key\n"
        "- $.city: is required and missing\n"
        "Call it again with all of this mended."
    )


def test_the_nearest_name_is_offered_for_an_unknown_property() -> None:
    assert "- $.unitt: is not a known property; known: city, days, unit, api_key; did you mean unit?" in text(
        "arguments.invalid", problems=told_problems({"city": 1, "unitt": "C"})
    )


def test_many_problems_are_cut_and_counted() -> None:
    problems = [{"path": f"$.p{i}", "message": "m"} for i in range(23)]
    assert text("arguments.invalid", problems=problems).splitlines()[-3:] == [
        "- $.p19: m",
        "- and 3 more",
        "Call it again with all of this mended.",
    ]


def test_the_value_of_a_secret_argument_is_not_quoted() -> None:
    problems = told_problems({"city": "Oslo", "api_key": "hunter2", "days": "sk-0123456789abcdef0123456789"})
    verdict = Verdict("arguments", "arguments.invalid", Action.BLOCK, "why", {"problems": problems})
    assert feedback([verdict], call=CALL, tools=(), earlier=None, redact=Redaction().text) == (
        "The arguments of search are not valid; nothing was run.\n"
        '- $.api_key: must have at most 3 characters, not 7; got "[redacted]"\n'
        '- $.days: must be integer, not string; got "[redacted]"\n'
        "Call it again with all of this mended."
    )


def test_a_secret_that_a_cut_would_halve_is_taken_out_first() -> None:
    problems = told_problems({"days": "x" * 50 + " sk-0123456789abcdef0123456789"})
    verdict = Verdict("arguments", "arguments.invalid", Action.BLOCK, "why", {"problems": problems})
    said = feedback([verdict], call=CALL, tools=(), earlier=None, redact=Redaction().text)
    assert "[redac" in said
    assert "sk-" not in said


@pytest.mark.parametrize(
    ("raw", "why"),
    [
        ('{"q": "x"', 'the text ends too early at line 1, column 10, after {"q": "x"'),
        ('{"q": "x",}', 'trailing comma is not allowed at line 1, column 10, after {"q": "x"'),
        ("{'q': 'x'}", "unexpected character, expected a string key: JSON takes double quotes at line 1, column 2, "
                       "after {"),
        ('{"q":\n True}', 'unexpected character, expected a JSON value: JSON writes true at line 2, column 2, '
                          'after {"q":'),
        ('```json\n{}\n```', "unexpected character, expected a JSON value: leave the code fence out at line 1, "
                             "column 1"),
        ('{"q": "a\nb"}', 'unexpected control character in string: JSON writes a line break in a text as \\n '
                          'at line 1, column 9, after {"q": "a'),
        ("  ", "there is no text"),
        (None, "there is no text"),
        ("[1]", "an array was given"),
        ('"{}"', "a string, which may hold JSON but is none, was given"),
        ("null", "null was given"),
        ("true", "a boolean was given"),
        ("3", "a number was given"),
        ("{}", "an object that cannot be used was given"),
    ],
)  # fmt: skip
def test_malformed_arguments_are_told_where_they_break_and_why(raw: str | None, why: str) -> None:
    assert text("arguments.malformed", call=ToolCall("search", None, raw_arguments=raw)) == (
        f"The arguments of search are not a JSON object; nothing was run: {why}. Send one complete JSON object, such "
        "as {}."
    )


def test_nothing_is_quoted_of_malformed_arguments_beside_a_secret() -> None:
    call = ToolCall("search", None, raw_arguments='{"password": "hunter2", "q": x}')
    verdict = Verdict("arguments", "arguments.malformed", Action.BLOCK, "why")
    assert feedback([verdict], call=call, tools=(), earlier=None, redact=Redaction().text) == (
        "The arguments of search are not a JSON object; nothing was run: unexpected character, expected a JSON value "
        "at line 1, column 30. Send one complete JSON object, such as {}."
    )


@pytest.mark.parametrize(
    ("earlier", "quoted"),
    [
        (None, ""),
        ("", " It gave nothing."),
        ("no hits", " It gave: no hits."),
        ("No hits.", " It gave: No hits."),
        ("!ValueError: bad", " It failed with: ValueError: bad."),
        ("x" * 300, " It gave: " + "x" * 200 + "..."),
    ],
)
def test_a_repeat_quotes_the_result_it_had(earlier: str | None, quoted: str) -> None:
    assert text("repeat.identical", earlier=earlier, identical=2) == (
        f"search was called with exactly these arguments twice just before; it was not run again.{quoted} Use that "
        "result, change the arguments, or do something else."
    )


@pytest.mark.parametrize(
    ("code", "data", "said"),
    [
        (
            "repeat.write",
            {"identical": 1},
            "search was just called with exactly these arguments and changes something; it was not run again. If a "
            "second time is really meant, ask the user.",
        ),
        (
            "repeat.turn",
            {"identical": 3},
            "The same set of calls was made 3 times just before with the same results; search was not run again. Use "
            "those results or do something else.",
        ),
        (
            "repeat.ceiling",
            {"identical": 20},
            "search was called with exactly these arguments 20 times in a row, which is the most that is allowed; it "
            "was not run again. Do something else.",
        ),
        ("repeat.poll", {}, "search was not run: why. Do something else or wait."),
        ("repeat.poll_interval", {}, "search was not run: why. Do something else or wait."),
        ("failures.tool", {}, "search was not run: why. Another call of it is not going to help."),
        ("failures.error", {}, "search was not run: why. Another call of it is not going to help."),
        ("budget.steps", {"kind": "steps"}, "search was not run: the call why. Finish with what you have."),
        (
            "budget.calls_per_tool",
            {"kind": "calls_per_tool"},
            "search was not run: the call why. Other tools can still be used.",
        ),
        ("order.missing", {}, "search was not run: it why. Make that call first."),
        ("deadline", {}, "search gave no result: why. Ask for less, or use another tool."),
        (
            "repeat.duplicate",
            {},
            "search was not run: why. Use the result of that call.",
        ),
        ("cycle", {}, "search was not run: why. Use what they gave, or do something else."),
        ("budget.seconds", {}, "search was not run: the call why. Finish with what you have."),
        ("run.halted", {}, "search was not run: why. Make no more calls."),
        ("somebody.else", {}, "search was not run: why."),
    ],
)
def test_each_kind_of_refusal_says_what_to_do_instead(code: str, data: dict[str, Any], said: str) -> None:
    assert text(code, **data) == said


def test_everything_that_is_quoted_is_redacted() -> None:
    verdict = Verdict("repeats", "repeat.identical", Action.BLOCK, "why", {"identical": 1})
    call = ToolCall("search-k-1", {})
    said = feedback([verdict], call=call, tools=(), earlier="key k-1", redact=lambda text: text.replace("k-1", "***"))
    assert said == (
        "search-*** was called with exactly these arguments once just before; it was not run again. It gave: key ***. "
        "Use that result, change the arguments, or do something else."
    )


def test_many_tools_are_cut_and_counted() -> None:
    verdict = Verdict("unknown_tool", "tool.unknown", Action.BLOCK, "why")
    tools = [f"tool_{i:02}" for i in range(33)]
    said = feedback([verdict], call=ToolCall("x" * 200, {}), tools=tools, earlier=None, redact=str)
    assert said.startswith(f"There is no tool '{'x' * 100}...'; nothing was run. Tools: tool_00, tool_01,")
    assert said.endswith(", tool_29 and 3 more.")


def test_the_strongest_verdict_is_spoken_of() -> None:
    verdicts = [
        Verdict("order", "order.missing", Action.BLOCK, "needs an earlier successful call of authorise"),
        Verdict("cycles", "cycle", Action.WARN, "why"),
    ]
    assert feedback(verdicts, call=ToolCall("charge", {}), tools=(), earlier=None, redact=str) == (
        "charge was not run: it needs an earlier successful call of authorise. Make that call first."
    )
