"""The tool step of a loop written by hand."""

from __future__ import annotations

import asyncio

import pytest

from agentguard import Guard, RunHalted, ToolCall
from agentguard.toolloop import Answer, asked, run_calls, run_calls_async


def run_of(**settings):
    return Guard(quiet=True, **settings).run(model="none", harness="test")


def double(n: int) -> int:
    return 2 * n


async def double_later(n: int) -> dict:
    await asyncio.sleep(0)
    return {"doubled": 2 * n}


def broken(n: int) -> int:
    raise OSError(f"cannot read {n}")


def test_arguments_are_read_from_json_text():
    assert asked("double", '{"n": 1}', "a") == ToolCall("double", {"n": 1}, "a")


def test_no_text_is_no_arguments():
    assert asked("double", "", "a") == ToolCall("double", {}, "a")


@pytest.mark.parametrize("text", ['{"n": ', "[1]", "null"])
def test_text_that_is_no_json_object_is_kept(text: str):
    assert asked("double", text, "a") == ToolCall("double", None, "a", raw_arguments=text)


def test_each_call_has_one_answer_in_order():
    calls = [ToolCall("double", {"n": n}, str(n)) for n in (1, 2)]
    with run_of() as run:
        answers = run_calls(run, calls, {"double": double}, on_error=None)
    assert answers == [Answer(calls[0], "2", False), Answer(calls[1], "4", False)]
    assert [step.turn for step in run.trajectory.steps] == [0, 0]


def test_an_asynchronous_tool_is_awaited_and_its_result_is_json():
    call = ToolCall("double", {"n": 1}, "a")

    async def main() -> list[Answer]:
        with run_of() as run:
            return await run_calls_async(run, [call], {"double": double_later}, on_error=None)

    assert asyncio.run(main()) == [Answer(call, '{"doubled":2}', False)]


def test_an_asynchronous_tool_in_a_synchronous_loop_names_the_way_out():
    with run_of() as run, pytest.raises(TypeError, match="use run_tools_async"):
        run_calls(run, [ToolCall("double", {"n": 1})], {"double": double_later}, on_error=None)


def test_arguments_that_are_no_json_are_answered_and_recorded_as_an_error():
    with run_of() as run:
        (answer,) = run_calls(run, [asked("double", '{"n": ', "a")], {"double": double}, on_error=None)
    assert answer.is_error
    assert "JSON" in answer.text
    assert run.trajectory.steps[0].result.is_error


def test_a_tool_that_is_not_there_is_answered_with_the_known_ones():
    with run_of() as run:
        (answer,) = run_calls(run, [ToolCall("triple", {"n": 1})], {"double": double}, on_error=None)
    assert answer.text == "there is no tool triple; known: double"
    assert answer.is_error


def test_a_tools_exception_is_raised_where_nobody_words_it():
    with run_of() as run, pytest.raises(OSError, match="cannot read 1"):
        run_calls(run, [ToolCall("broken", {"n": 1})], {"broken": broken}, on_error=None)


def test_a_tools_exception_is_worded_for_the_model():
    call = ToolCall("broken", {"n": 1})
    with run_of() as run:
        answers = run_calls(run, [call], {"broken": broken}, on_error=str)
    assert answers == [Answer(call, "cannot read 1", True)]


def test_a_tool_that_raises_cancels_the_others_and_gives_back_what_they_held():
    calls = [ToolCall("wait", {"n": 1}), ToolCall("broken", {"n": 1})]

    async def wait(n: int) -> None:
        await asyncio.sleep(60)

    async def main() -> int:
        with run_of() as run:
            with pytest.raises(OSError, match="cannot read"):
                await run_calls_async(run, calls, {"wait": wait, "broken": broken}, on_error=None)
            return run.ledger.steps

    assert asyncio.run(asyncio.wait_for(main(), 20)) == 1


def test_a_halt_leaves_an_asynchronous_turn_as_itself():
    async def main() -> None:
        with run_of() as run:
            for _ in range(8):
                await run_calls_async(run, [ToolCall("double", {"n": 1})], {"double": double}, on_error=None)

    with pytest.raises(RunHalted):
        asyncio.run(main())
