"""Every case of ../shared/data/cases/live.jsonl gives its expected action at its expected call."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agentguard import Guard, Policy, RunHalted, ToolCall, ToolResult
from agentguard.testing import FakeClock
from agentguard.wrapping import to_call

CASES = Path(__file__).resolve().parents[2] / "shared" / "data" / "cases" / "live.jsonl"


def cases() -> list[dict[str, Any]]:
    return [json.loads(line) for line in CASES.read_text().splitlines()] if CASES.exists() else []


def guard_of(case: dict[str, Any], clock: FakeClock) -> Guard:
    policy = {key: case[key] for key in ("tools", "budget", "order", "mode") if key in case}
    return Guard(Policy.from_dict(policy), clock=clock)


def turns(case: dict[str, Any]) -> Iterator[list[tuple[int, dict[str, Any]]]]:
    numbered = list(enumerate(case["calls"]))
    for _, group in itertools.groupby(numbered, lambda pair: pair[1].get("turn", f"single {pair[0]}")):
        yield list(group)


def call_of(asked: dict[str, Any]) -> ToolCall:
    return to_call(asked["tool"], asked.get("raw_arguments", asked.get("args")))


def expected_of(case: dict[str, Any]) -> list[tuple[int, str, str]]:
    return [(entry["call"], entry["action"], entry["code"]) for entry in case["expected"]]


def judged_by_hand(case: dict[str, Any]) -> list[tuple[int, str, str]]:
    clock = FakeClock()
    seen: list[tuple[int, str, str]] = []
    with guard_of(case, clock).run(model="m", harness="h") as run:
        for group in turns(case):
            calls = [call_of(asked) for _, asked in group]
            lane = run.lane(group[0][1]["lane"]) if "lane" in group[0][1] else contextlib.nullcontext()
            with lane:
                if group[0][1].get("user_turn"):
                    run.user_turn()
                with run.turn(calls):
                    for (index, asked), call in zip(group, calls, strict=True):
                        clock.at(asked.get("t", clock()))
                        decision = run.judge(call)
                        if decision.verdicts:
                            seen.append((index, decision.verdicts[0].action.word, decision.verdicts[0].code))
                        if decision.allowed:
                            run.record(call, ToolResult(asked.get("error", asked.get("result")), "error" in asked))
    return seen


class ToolFailedError(Exception):
    pass


async def judged_by_wrapper(case: dict[str, Any]) -> list[tuple[int, str, str]]:
    clock = FakeClock()
    asked_now: dict[str, Any] = {}

    async def dispatch(name: str, arguments: Any) -> Any:
        if "error" in asked_now:
            raise ToolFailedError(asked_now["error"])
        return asked_now.get("result")

    async with guard_of(case, clock).run(model="m", harness="h") as run:
        guarded = run.wrap(dispatch)
        for group in turns(case):
            lane = run.lane(group[0][1]["lane"]) if "lane" in group[0][1] else contextlib.nullcontext()
            with lane:
                if group[0][1].get("user_turn"):
                    run.user_turn()
                with run.turn([call_of(asked) for _, asked in group]):
                    for _, asked in group:
                        clock.at(asked.get("t", clock()))
                        asked_now = asked
                        with contextlib.suppress(RunHalted, ToolFailedError):
                            await guarded(asked["tool"], asked.get("raw_arguments", asked.get("args")))
    return [
        (index, step.decision.verdicts[0].action.word, step.decision.verdicts[0].code)
        for index, step in enumerate(run.trajectory.steps)
        if step.decision is not None and step.decision.verdicts
    ]


def test_the_cases_are_read(shared_data: Path) -> None:
    assert len(cases()) == len((shared_data / "cases" / "live.jsonl").read_text().splitlines())


@pytest.mark.shared
@pytest.mark.parametrize("case", cases(), ids=lambda case: case["id"])
def test_judging_by_hand_gives_the_expected_action(case: dict[str, Any]) -> None:
    assert judged_by_hand(case) == expected_of(case)


@pytest.mark.shared
@pytest.mark.parametrize("case", cases(), ids=lambda case: case["id"])
def test_the_asynchronous_wrapper_gives_the_expected_action(case: dict[str, Any]) -> None:
    assert asyncio.run(judged_by_wrapper(case)) == judged_by_hand(case)
