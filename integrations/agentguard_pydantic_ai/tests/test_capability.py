"""What the capability does beyond the contract."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from agentguard_pydantic_ai import GuardCapability
from pydantic_ai import Agent, ApprovalRequired, DeferredToolRequests, DeferredToolResults, RunContext, Tool
from pydantic_ai.messages import ModelResponse, ToolCallPart, ToolReturn
from pydantic_ai.models.function import FunctionModel
from test_contract import agent_for, plainly, scripted

from agentguard import Action, AgentGuardError, Guard, Policy, Run, RunHalted
from agentguard.testing.contract import Asked, Played, Reply, asking


def search(query: str) -> str:
    """Search the documentation."""
    return f"no hits for {query}"


def open_run(policy: Policy | None = None, **guard: Any) -> Run:
    return Guard(policy, quiet=True, **guard).run(model="scripted", harness="capability")


def played(agent: Agent[Any, Any]) -> Any:
    return asyncio.run(plainly(agent))


def test_the_run_whose_block_the_agent_is_in_judges() -> None:
    agent = Agent(scripted(asking("a"), Played()), tools=[search], capabilities=[GuardCapability()])
    with open_run() as run:
        played(agent)
    assert [step.call.arguments for step in run.trajectory.steps] == [{"query": "a"}]


def test_an_agent_outside_every_run_says_what_to_do() -> None:
    agent = Agent(scripted(asking("a"), Played()), tools=[search], capabilities=[GuardCapability()])
    with pytest.raises(AgentGuardError, match="no run is active"):
        played(agent)


def test_an_agent_inside_a_tool_has_the_tools_lane() -> None:
    run = open_run()
    inner = Agent(scripted(asking("a", first=10), Played()), tools=[search], capabilities=[GuardCapability(run)])

    async def research(topic: str) -> str:
        return (await inner.run(topic)).output

    script = [Reply((Asked("research", {"topic": "t"}, "call-0"),)), *asking("a", first=1)]
    outer = Agent(scripted(script, Played()), tools=[research, search], capabilities=[GuardCapability(run)])
    with run:
        played(outer)
    told = [(step.lane, step.call.name, step.decision and step.decision.action) for step in run.trajectory.steps]
    assert told == [
        ("main", "research", Action.ALLOW),
        ("research", "search", Action.ALLOW),
        ("main", "search", Action.ALLOW),
    ]


def test_invalid_arguments_that_no_guard_knows_of_are_the_frameworks_to_answer() -> None:
    wrong = Reply((Asked("search", {"query": "a", "limit": 3}, "call-0"),))
    run = open_run()
    agent, seen = agent_for([wrong, *asking("b", first=1)], {"search": search}, run)
    with run:
        assert played(agent) == "done"
    assert "limit" in seen.answers["call-0"]
    first = run.trajectory.steps[0]
    assert (first.executed, first.result and first.result.is_error) == (True, True)


def test_a_refused_argument_costs_no_retry_and_the_guard_halts() -> None:
    wrong = [Reply((Asked("search", {"query": "a", "limit": at}, f"call-{at}"),)) for at in range(9)]
    run = open_run(tools=[search])
    agent, seen = agent_for(wrong, {"search": search}, run)
    with run, pytest.raises(RunHalted):
        played(agent)
    assert len(seen.requests) == len(run.trajectory.steps) > 2


def test_an_unknown_tool_that_no_guard_knows_of_is_the_frameworks_to_answer() -> None:
    run = open_run()
    agent, seen = agent_for(
        [Reply((Asked("serch", {"query": "a"}, "call-0"),)), *asking("b", first=1)], {"search": search}, run
    )
    with run:
        assert played(agent) == "done"
    assert "Unknown tool name" in seen.answers["call-0"]
    result = run.trajectory.steps[0].result
    assert result is not None
    assert (result.is_error, "Unknown tool name" in str(result.content)) == (True, True)


def test_output_tools_are_no_calls() -> None:
    def answer(messages: Any, info: Any) -> ModelResponse:
        return ModelResponse(parts=[ToolCallPart(info.output_tools[0].name, {"response": 3}, tool_call_id="call-0")])

    run = open_run(tools=[search])
    agent = Agent(FunctionModel(answer), output_type=int, tools=[search], capabilities=[GuardCapability(run)])
    with run:
        assert played(agent) == 3
    assert run.trajectory.steps == ()


def test_an_unknown_tool_beside_the_final_output_is_recorded() -> None:
    def answer(messages: Any, info: Any) -> ModelResponse:
        final = ToolCallPart(info.output_tools[0].name, {"response": 3}, tool_call_id="call-0")
        return ModelResponse(parts=[final, ToolCallPart("serch", {}, tool_call_id="call-1")])

    run = open_run()
    agent = Agent(FunctionModel(answer), output_type=int, capabilities=[GuardCapability(run)])
    with run:
        assert played(agent) == 3
    assert [step.result is not None and step.result.is_error for step in run.trajectory.steps] == [True]


def test_a_call_that_waits_for_approval_holds_nothing_and_runs_later() -> None:
    def charge(ctx: RunContext[None], amount: int) -> str:
        if not ctx.tool_call_approved:
            raise ApprovalRequired
        return "charged"

    run = open_run()
    script = scripted([Reply((Asked("charge", {"amount": 3}, "call-0"),)), Reply(text="done")], Played())
    agent = Agent(
        script,
        output_type=[str, DeferredToolRequests],
        tools=[Tool(charge, takes_ctx=True)],
        capabilities=[GuardCapability(run)],
    )

    async def main() -> tuple[int, Any]:
        first = await agent.run("go")
        held, asked = run.ledger.steps, first.output
        assert isinstance(asked, DeferredToolRequests)
        approved = DeferredToolResults(approvals={"call-0": True})
        second = await agent.run(message_history=first.all_messages(), deferred_tool_results=approved)
        return held, second.output

    with run:
        assert asyncio.run(main()) == (0, "done")
    assert run.ledger.steps == 1


def test_invalid_arguments_of_a_call_for_approval_are_the_frameworks_to_answer() -> None:
    def charge(amount: int) -> str:
        return "charged"

    run = open_run()
    seen = Played()
    script = scripted([Reply((Asked("charge", {"amount": "much"}, "call-0"),)), Reply(text="done")], seen)
    agent = Agent(
        script,
        output_type=[str, DeferredToolRequests],
        tools=[Tool(charge, requires_approval=True)],
        capabilities=[GuardCapability(run)],
    )
    with run:
        assert played(agent) == "done"
    assert run.trajectory.steps == ()


def test_what_a_tool_returns_beside_its_value_stays_whole() -> None:
    def look(path: str) -> ToolReturn:
        return ToolReturn(return_value="seen", content=["more"], metadata={"bytes": 3})

    run = open_run()
    agent, seen = agent_for([Reply((Asked("look", {"path": "a"}, "call-0"),)), Reply(text="done")], {"look": look}, run)
    with run:
        assert played(agent) == "done"
    assert seen.answers["call-0"] == "seen"
    assert [step.result and step.result.content for step in run.trajectory.steps] == ["seen"]
