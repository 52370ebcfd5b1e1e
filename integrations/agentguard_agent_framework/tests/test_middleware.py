"""What the middleware does beyond the contract."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from agent_framework import (
    Agent,
    AgentSession,
    Content,
    FunctionInvocationContext,
    Message,
    MiddlewareTermination,
    function_middleware,
    tool,
)
from agent_framework.exceptions import UserInputRequiredException
from agentguard_agent_framework import guard_middleware
from test_contract import ScriptedClient, agent_for, plainly, streamed

from agentguard import Action, AgentGuardError, Guard, Policy, Run, RunHalted
from agentguard.testing.contract import Asked, Played, Reply, asking


def search(query: str) -> str:
    """Search the documentation."""
    return f"no hits for {query}"


def open_run(policy: Policy | None = None, **guard: Any) -> Run:
    return Guard(policy, quiet=True, **guard).run(model="scripted", harness="middleware")


def test_the_run_whose_block_the_agent_is_in_judges() -> None:
    agent = Agent(ScriptedClient(asking("a"), Played()), tools=[search], middleware=guard_middleware())
    with open_run() as run:
        asyncio.run(plainly(agent))
    assert [step.call.arguments for step in run.trajectory.steps] == [{"query": "a"}]


def test_an_agent_outside_every_run_says_what_to_do() -> None:
    agent = Agent(ScriptedClient(asking("a"), Played()), tools=[search], middleware=guard_middleware())
    with pytest.raises(AgentGuardError, match="no run is active"):
        asyncio.run(plainly(agent))


def test_a_chat_client_without_an_agent_is_guarded_too() -> None:
    seen = Played()
    run = open_run()
    client = ScriptedClient(asking("a", "a", "a"), seen, middleware=guard_middleware(run))

    async def main() -> None:
        await client.get_response([Message(role="user", contents=["go"])], options={"tools": [tool(search)]})

    with run:
        asyncio.run(main())
    assert [step.executed for step in run.trajectory.steps] == [True, True, False]
    assert "was not run again" in seen.answers["call-2"]


def outer_and_inner(run: Run, inner_script: list[Reply], outer_script: list[Reply]) -> Agent[Any]:
    inner = Agent(
        ScriptedClient(inner_script, Played()), name="research", tools=[search], middleware=guard_middleware(run)
    )
    tools = [inner.as_tool(arg_name="topic"), search]
    return Agent(ScriptedClient(outer_script, Played()), tools=tools, middleware=guard_middleware(run))


def test_a_sub_agent_is_a_lane_of_its_own() -> None:
    run = open_run()
    script = [Reply((Asked("research", {"topic": "t"}, "call-0"),)), *asking("a", first=1)]
    with run:
        asyncio.run(plainly(outer_and_inner(run, asking("a"), script)))
    told = [(step.lane, step.call.name, step.decision and step.decision.action) for step in run.trajectory.steps]
    assert told == [
        ("main", "research", Action.ALLOW),
        ("research", "search", Action.ALLOW),
        ("main", "search", Action.ALLOW),
    ]
    assert run.ledger.tokens == 5 * 15


def test_a_halt_in_a_sub_agent_ends_the_outer_one() -> None:
    run = open_run()
    script = [Reply((Asked("research", {"topic": "t"}, "call-0"),)), Reply(text="done")]
    with run, pytest.raises(RunHalted):
        asyncio.run(plainly(outer_and_inner(run, asking(*"aaaaaaaa"), script)))
    ran = [(step.lane, step.call.name) for step in run.trajectory.steps if step.executed]
    assert ran == [("main", "research"), ("research", "search"), ("research", "search")]


def test_a_halt_leaves_a_stream_as_itself() -> None:
    run = open_run()
    agent, seen = agent_for(asking(*"aaaaaaaa"), {"search": search}, run)
    with run, pytest.raises(RunHalted):
        asyncio.run(streamed(agent))
    assert len(seen.requests) == 5


def test_usage_of_a_stream_is_charged_once_for_each_model_call() -> None:
    run = open_run()
    agent, _ = agent_for(asking("a", "b"), {"search": search}, run)
    with run:
        asyncio.run(streamed(agent))
    assert run.ledger.tokens == 3 * 15


def test_an_unknown_tool_that_no_guard_knows_of_is_the_frameworks_to_answer() -> None:
    run = open_run()
    agent, seen = agent_for(
        [Reply((Asked("serch", {"query": "a"}, "call-0"),)), *asking("b", first=1)], {"search": search}, run
    )
    with run:
        asyncio.run(plainly(agent))
    assert "not found" in seen.answers["call-0"]
    results = [step.result for step in run.trajectory.steps]
    assert [result is not None and result.is_error for result in results] == [True, False]


def test_what_the_guard_said_of_an_unknown_tool_stays_in_the_session() -> None:
    run = open_run(tools=[search])
    script = [Reply((Asked("serch", {"query": "a"}, "call-0"),)), Reply(text="done"), Reply(text="again")]
    agent, seen = agent_for(script, {"search": search}, run)

    async def main() -> None:
        session = AgentSession()
        await agent.run("go", session=session)
        await agent.run("on", session=session)

    with run:
        asyncio.run(main())
    assert seen.requests[2] == [("call", "call-0"), ("answer", "call-0")]
    assert "Did you mean search?" in seen.answers["call-0"]


def test_a_call_that_waits_for_approval_is_judged_when_it_is_to_run() -> None:
    ran: list[int] = []

    def charge(amount: int) -> str:
        ran.append(amount)
        return "charged"

    run = open_run()
    seen = Played()
    client = ScriptedClient([Reply((Asked("charge", {"amount": 3}, "call-0"),)), Reply(text="done")], seen)
    agent: Agent[Any] = Agent(
        client, tools=[tool(charge, approval_mode="always_require")], middleware=guard_middleware(run)
    )

    async def main() -> tuple[int, str]:
        session = AgentSession()
        first = await agent.run("go", session=session)
        held = run.ledger.steps
        answers = [Message(role="user", contents=[one.to_function_approval_response(True)]) for one in asked(first)]
        return held, (await agent.run(answers, session=session)).text

    with run:
        assert asyncio.run(main()) == (0, "done")
    assert (ran, run.ledger.steps) == ([3], 1)


def asked(response: Any) -> list[Content]:
    return [one for message in response.messages for one in message.contents if one.type == "function_approval_request"]


def test_a_call_that_other_middleware_ends_the_run_at_is_recorded_with_its_result() -> None:
    @function_middleware
    async def enough(context: FunctionInvocationContext, call_next: Any) -> None:
        context.result = "enough"
        raise MiddlewareTermination

    run = open_run()
    middleware = [*guard_middleware(run), enough]
    agent = Agent(ScriptedClient(asking("a"), Played()), tools=[search], middleware=middleware)
    with run:
        asyncio.run(plainly(agent))
    assert [step.result and step.result.content for step in run.trajectory.steps] == ["enough"]


def test_a_tool_that_needs_its_user_first_holds_nothing() -> None:
    def ask(question: str) -> str:
        raise UserInputRequiredException(contents=[Content.from_text("who are you?")])

    run = open_run()
    script = [Reply((Asked("ask", {"question": "?"}, "call-0"),)), Reply(text="done")]
    agent, _ = agent_for(script, {"ask": ask}, run)
    with run:
        asyncio.run(plainly(agent))
    assert run.ledger.steps == 0


def test_a_result_of_several_contents_is_recorded_whole() -> None:
    def look(path: str) -> list[Content]:
        return [Content.from_text("seen"), Content.from_uri("https://example.org/a.png", media_type="image/png")]

    run = open_run()
    agent, _ = agent_for([Reply((Asked("look", {"path": "a"}, "call-0"),)), Reply(text="done")], {"look": look}, run)
    with run:
        asyncio.run(plainly(agent))
    result = run.trajectory.steps[0].result
    assert result is not None
    assert [part if isinstance(part, str) else part["uri"] for part in result.content] == [
        "seen",
        "https://example.org/a.png",
    ]


def test_two_runs_of_one_agent_side_by_side_are_judged_apart() -> None:
    first, second = open_run(), open_run()
    replies = [reply for pair in zip(asking("a", "b"), asking("a", "b"), strict=True) for reply in pair]
    agent = Agent(ScriptedClient(replies, Played()), tools=[search], middleware=guard_middleware())

    async def inside(run: Run) -> None:
        with run:
            await agent.run("go")

    async def main() -> None:
        await asyncio.gather(inside(first), inside(second))

    asyncio.run(main())
    assert (first.ledger.steps, second.ledger.steps) == (2, 2)


def test_a_session_goes_on_whole_after_a_halt() -> None:
    run = open_run()
    agent, seen = agent_for([*asking(*"aaaaa")[:-1], Reply(text="later")], {"search": search}, run)

    async def main() -> str:
        session = AgentSession()
        with pytest.raises(RunHalted):
            await agent.run("go", session=session)
        run.resume()
        return str((await agent.run("go on", session=session)).text)

    with run:
        assert asyncio.run(main()) == "later"
    assert seen.requests[-1] == []  # the framework keeps a run's messages when it has ended, and this one was left
