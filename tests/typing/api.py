"""What type checkers see of the public API; never run, checked by mypy and pyright in strict mode."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Iterator
from decimal import Decimal
from typing import Any, assert_type

from agentguard import (
    Action,
    Decision,
    Ending,
    Guard,
    Mode,
    Policy,
    Run,
    RunHalted,
    RunKey,
    Step,
    ToolCall,
    ToolResult,
    Trajectory,
    Usage,
    Verdict,
    current_run,
)


def dispatch(name: str, arguments: dict[str, Any]) -> str:
    return name


async def dispatch_async(name: str, arguments: dict[str, Any]) -> int:
    return len(name)


def dispatch_later(name: str, arguments: dict[str, Any]) -> Awaitable[float]:
    raise LookupError(name)


def stream(path: str) -> Iterator[bytes]:
    yield path.encode()


async def stream_async(path: str) -> AsyncIterator[bytes]:
    yield path.encode()


policy = Policy.from_dict({"budget": {"steps": 5}})
assert_type(policy, Policy)
assert_type(Policy.load("policy.toml"), Policy)
assert_type(policy.mode, Mode)
guard = Guard(policy, tools=[stream])

with guard.run(model="m", harness="h") as run:
    assert_type(run, Run)
    assert_type(run.key, RunKey)
    assert_type(run.wrap(dispatch)("search", {}), str)
    assert_type(run.wrap(dispatch_later, is_async=True)("search", {}), Awaitable[float])
    assert_type(run.tool(stream)("a"), Iterator[bytes])
    assert_type(run.tool(stream_async)("a"), AsyncIterator[bytes])

    call = ToolCall("search", {"q": "x"})
    assert_type(call.fingerprint, bytes)
    decision = run.judge(call)
    assert_type(decision, Decision)
    assert_type(decision.action, Action)
    assert_type(decision.verdicts, tuple[Verdict, ...])
    run.record(call, ToolResult("found"))
    run.charge(Usage(input_tokens=10, output_tokens=2, cost_usd=Decimal("0.01")), model="m")
    run.finish(outcome=True)

    trajectory = run.trajectory
    assert_type(trajectory, Trajectory)
    assert_type(trajectory.steps, tuple[Step, ...])
    assert_type(trajectory.ending, Ending)
    assert_type(trajectory.outcome, bool | None)
    assert_type(current_run(), Run | None)


async def main() -> None:
    async with guard.run(model="m", harness="h") as inner:
        assert_type(inner, Run)
        wrapped = inner.wrap(dispatch_async)
        assert_type(await wrapped(name="search", arguments={}), int)
        await wrapped("search")  # type: ignore[call-arg]  # the signature stays: arguments are missing


try:
    run.wrap(dispatch)("search", {})
except RunHalted as halt:
    assert_type(halt.decision, Decision)
    assert_type(halt.trajectory, Trajectory)
