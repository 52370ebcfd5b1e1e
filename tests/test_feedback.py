"""What a model reads in place of a result."""

from __future__ import annotations

from typing import Any

import pytest

from agentguard import Action, ToolCall, Verdict
from agentguard.feedback import feedback

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


def test_every_problem_of_the_arguments_is_listed() -> None:
    problems = [
        {"path": "$.days", "message": "days is 0; it must be at least 1", "nearest": None},
        {"path": "$.unit", "message": 'unit is "c"; allowed: C, F', "nearest": "C"},
    ]
    assert text("arguments.invalid", problems=problems) == (
        "The arguments of search are not valid; nothing was run.\n"
        "- $.days: days is 0; it must be at least 1\n"
        '- $.unit: unit is "c"; allowed: C, F; did you mean C?'
    )


def test_many_problems_are_cut_and_counted() -> None:
    problems = [{"path": f"$.p{i}", "message": "m"} for i in range(13)]
    assert text("arguments.invalid", problems=problems).endswith("- $.p9: m\n- and 3 more")


def test_malformed_arguments_are_told_where_they_break() -> None:
    call = ToolCall("search", None, raw_arguments='{"q": "x"')
    assert text("arguments.malformed", call=call) == (
        "The arguments of search are not a JSON object; nothing was run: unexpected end of data: line 1 column 10 "
        "(char 9). Send one complete JSON object."
    )


@pytest.mark.parametrize(
    ("earlier", "quoted"),
    [
        (None, ""),
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
        ("run.halted", {}, "search was not run: why."),
        ("somebody.else", {}, "search was not run: why."),
    ],
)
def test_each_kind_of_refusal_says_what_to_do_instead(code: str, data: dict[str, Any], said: str) -> None:
    assert text(code, **data) == said


def test_everything_that_is_quoted_is_redacted() -> None:
    verdict = Verdict("repeats", "repeat.identical", Action.BLOCK, "why", {"identical": 1})
    said = feedback([verdict], call=CALL, tools=(), earlier="key k-1", redact=lambda text: text.replace("k-1", "***"))
    assert "key ***" in said
