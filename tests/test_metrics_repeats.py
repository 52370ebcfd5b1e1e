"""Repeats, repeated turns and cycles of recorded runs."""

from __future__ import annotations

from typing import Any

import pytest

from agentguard.call import ToolCall, ToolResult
from agentguard.decision import Action, Decision, Verdict
from agentguard.loops import Outcome
from agentguard.metrics import BUILT_IN, Score, Subject
from agentguard.tools import Poll, Tool
from agentguard.trajectory import Step, Trajectory

BLOCKED = Decision(Action.BLOCK, (Verdict("repeats", "repeat.identical", Action.BLOCK, "again"),), "not run")


def step(tool: str, arguments: dict[str, Any] | None = None, result: Any = "ok", **fields: Any) -> Step:
    told = None if result is Outcome.UNKNOWN else ToolResult(result)
    return Step(call=ToolCall(tool, {} if arguments is None else arguments), result=told, **fields)


def blind(tool: str, **fields: Any) -> Step:
    return Step(call=ToolCall(tool), result=ToolResult("ok"), missing=("arguments",), **fields)


def scored(metric: str, *steps: Step, tools: dict[str, Tool] | None = None, complete: bool | None = None) -> Score:
    return BUILT_IN[metric](Subject(Trajectory(run_id="r", steps=steps, complete=complete), tools=tools))


def texts(score: Score) -> list[str]:
    return [reason.text for reason in score.reasons]


def test_a_call_right_after_an_identical_one_is_a_repeat():
    score = scored("repeats", step("search", {"q": "a"}), step("search", {"q": "a"}))
    assert (score.value, score.steps, texts(score)) == (1.0, (1,), ["repeated identical call search"])
    assert score.reasons[0].steps == (0, 1)


def test_every_further_call_of_a_streak_counts_and_the_streak_is_one_reason():
    score = scored("repeats", *[step("search")] * 4)
    assert (score.value, texts(score)) == (3.0, ["repeated identical call search, 4 times in a row"])
    assert score.data == {"stale": 3, "changing": 0, "unknown": 0, "refused": 0}


def test_a_call_in_between_ends_the_streak():
    score = scored("repeats", step("run_tests"), step("edit"), step("run_tests"))
    assert score == Score("repeats", 0.0)


def test_other_arguments_are_another_call():
    assert scored("repeats", step("page", {"n": 1}), step("page", {"n": 2}), step("page", {"n": True})).value == 0.0


def test_key_order_and_number_form_make_no_other_call():
    assert scored("repeats", step("page", {"n": 1, "m": 2}), step("page", {"m": 2.0, "n": 1})).value == 1.0


def test_a_streak_whose_results_change_is_counted_and_is_no_reason():
    score = scored("repeats", *[step("next_page", result=f"page {word}") for word in ("one", "two", "three")])
    assert (score.value, score.reasons) == (2.0, ())
    assert score.data["changing"] == 2


def test_a_streak_that_turns_stale_is_a_reason():
    score = scored("repeats", *[step("poll", result=result) for result in ("a", "b", "b")])
    assert (score.data["changing"], score.data["stale"], len(score.reasons)) == (1, 1, 1)


def test_unknown_results_do_not_excuse_a_repeat():
    score = scored("repeats", step("search", result=Outcome.UNKNOWN), step("search", result=Outcome.UNKNOWN))
    assert (score.data["unknown"], len(score.reasons)) == (1, 1)


def test_a_refused_repeat_is_counted_and_is_no_reason():
    score = scored("repeats", step("search"), step("search", decision=BLOCKED, executed=False))
    assert (score.value, score.data["refused"], score.reasons) == (1.0, 1, ())


def test_a_message_of_the_user_ends_the_streak():
    assert scored("repeats", step("search"), step("search", user_turn=True)).value == 0.0


def test_lanes_are_streaks_of_their_own():
    first, second = step("search", lane="one"), step("search", lane="two")
    assert scored("repeats", first, second).value == 0.0
    score = scored("repeats", first, second, first)
    assert (score.value, score.reasons[0].steps) == (1.0, (0, 2))


def test_a_tool_declared_repeatable_is_never_spoken_of():
    tools = {"wait": Tool(name="wait", repeatable=True)}
    assert scored("repeats", *[step("wait")] * 5, tools=tools) == Score("repeats", 0.0)


def test_a_polled_tool_is_spoken_of_beyond_its_limit():
    tools = {"status": Tool(name="status", poll=Poll(max=2))}
    assert scored("repeats", *[step("status")] * 4, tools=tools).steps == (2, 3)


def test_fingerprints_stand_in_for_arguments():
    again = [blind("search", call_key="k1"), blind("search", call_key="k1"), blind("search", call_key="k2")]
    assert scored("repeats", *again).steps == (1,)


@pytest.mark.parametrize("metric", ["repeats", "repeated_turns"])
def test_neighbours_without_arguments_cannot_be_scored(metric: str):
    score = scored(metric, blind("search"), blind("search"))
    assert score.value is None
    assert score.unscored == "neither arguments nor fingerprints of neighbouring calls were recorded"


def test_other_tools_beside_it_decide_it_without_arguments():
    assert scored("repeats", blind("search"), blind("read"), blind("search")) == Score("repeats", 0.0)


def test_a_user_between_them_decides_it_without_arguments():
    assert scored("repeats", blind("search"), blind("search", user_turn=True)).value == 0.0


def test_what_is_certain_is_counted_beside_what_is_not():
    score = scored("repeats", step("read"), step("read"), blind("search"), blind("search"))
    assert (score.value, len(score.reasons), score.unscored is None) == (1.0, 1, False)


@pytest.mark.parametrize("metric", ["repeats", "repeated_turns", "cycles"])
def test_a_record_with_gaps_cannot_be_scored(metric: str):
    score = scored(metric, step("search"), step("search"), complete=False)
    assert (score.value, score.reasons) == (None, ())
    assert score.unscored == "the record has gaps: what stood back to back is not known"


def test_a_turn_repeated_whole_is_a_repeat_in_any_order():
    turn = [step("a", turn=1), step("b", turn=1), step("b", turn=2), step("a", turn=2)]
    score = scored("repeated_turns", *turn)
    assert (score.value, score.steps) == (1.0, (2, 3))
    assert texts(score) == ["repeated identical turn of 2 calls (b, a)"]
    assert scored("repeats", *turn).value == 0.0


def test_a_turn_is_counted_each_time_it_is_repeated():
    turns = [step(tool, turn=turn) for turn in range(3) for tool in ("a", "b")]
    assert scored("repeated_turns", *turns).value == 2.0


def test_a_repeated_turn_with_another_result_is_no_reason():
    score = scored("repeated_turns", *[step(t, result=f"at turn {n * 'i'}", turn=n) for n in (1, 2) for t in "ab"])
    assert (score.value, score.reasons) == (1.0, ())


def test_equal_calls_in_one_turn_are_duplicates_and_no_repeat():
    turn = [step("a", turn=1), step("a", turn=1)]
    assert scored("repeated_turns", *turn).data["duplicates"] == 1
    assert scored("repeats", *turn).value == 0.0


def test_turns_without_arguments_cannot_be_told_apart():
    turns = [blind(tool, turn=turn) for turn in (1, 2) for tool in ("a", "b")]
    assert scored("repeated_turns", *turns).unscored is not None


def test_two_calls_going_round_a_third_time_are_a_cycle():
    score = scored("cycles", *[step("a"), step("b")] * 3)
    assert (score.value, score.steps) == (1.0, (5,))
    assert texts(score) == ["cycle of 2 calls with nothing new (a, b)"]
    assert score.reasons[0].steps == (0, 1, 2, 3, 4, 5)


def test_a_cycle_that_goes_on_is_one_reason():
    score = scored("cycles", *[step("a"), step("b")] * 5)
    assert (score.value, len(score.reasons)) == (5.0, 1)


def test_two_cycles_are_two_reasons():
    score = scored("cycles", *[step("a"), step("b")] * 3, step("x"), *[step("c"), step("d")] * 3)
    assert len(score.reasons) == 2


def test_cycles_of_interleaved_lanes_are_kept_apart():
    steps = [step(tool, lane=lane) for _ in range(4) for tool in ("a", "b") for lane in ("one", "two")]
    score = scored("cycles", *steps)
    assert (score.value, len(score.reasons)) == (6.0, 2)


def test_a_cycle_with_news_is_none():
    news = [step("a", result=f"{'x' * n} left") if n % 2 else step("b") for n in range(8)]
    assert scored("cycles", *news) == Score("cycles", 0.0)
