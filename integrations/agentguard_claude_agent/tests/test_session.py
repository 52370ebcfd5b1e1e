"""What the contract does not ask: the CLI's own tools, sub-agents, going on after a halt, permissions, counts."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import agentguard_claude_agent.turns
import claude_agent_sdk as sdk
import pytest
from agentguard_claude_agent import GuardedClient, declared, query
from agentguard_claude_agent.session import Session, recorded
from agentguard_claude_agent.turns import Turns
from agentguard_claude_agent.usage import Meter
from scripted import as_tool, configured, served

from agentguard import Action, AgentGuardError, Budget, Guard, Policy, Run, RunHalted, ToolCall, Usage
from agentguard.testing.contract import Asked, Played, Reply, asking
from agentguard.tools import Tool

# 0.1.52 leaves the streams between its own tasks open.
pytestmark = pytest.mark.filterwarnings("ignore:Unclosed <MemoryObject:ResourceWarning")


def search(query: str) -> str:
    """Search the documentation."""
    return f"no hits for {query}"


def opened(policy: Policy | None = None, **guard: Any) -> Run:
    return Guard(policy, quiet=True, **guard).run(model="scripted", harness="test")


@contextmanager
def scripted(
    replies: Sequence[Reply], agents: Mapping[str, Sequence[Reply]] | None = None, /, **settings: Any
) -> Iterator[tuple[Played, Any]]:
    """Give what is played and options for it."""
    played = Played()
    with served(replies, played, agents) as url, configured(url, {"search": search}, **settings) as options:
        yield played, options


async def all_of(messages: Any) -> list[Any]:
    return [message async for message in messages]


async def outcome(messages: Any) -> BaseException | None:
    try:
        await all_of(messages)
    except (Exception, RunHalted) as error:
        return error
    return None


async def asked(client: GuardedClient, prompt: str) -> list[Any]:
    await client.query(prompt)
    return await all_of(client.receive_response())


def calling(name: str, call: str, **arguments: Any) -> Reply:
    return Reply((Asked(name, arguments, call),))


# --- runs --------------------------------------------------------------------------------------------------


def test_the_run_whose_block_it_is_iterated_in_judges():
    with scripted(asking("a")) as (_, options), opened() as run:
        asyncio.run(all_of(query(prompt="go", options=options)))
    assert [(step.call.name, step.call.arguments) for step in run.trajectory.steps] == [("search", {"query": "a"})]


def test_outside_every_run_nothing_is_started():
    with scripted(asking("a")) as (played, options):
        with pytest.raises(AgentGuardError, match="no run is active"):
            asyncio.run(all_of(query(prompt="go", options=options)))
        assert played.requests == []


def test_a_client_that_lives_on_is_judged_by_the_run_that_it_is_asked_in():
    async def main(options: Any) -> tuple[Run, Run]:
        with opened() as first:
            client = GuardedClient(options)
            await client.connect()
            await asked(client, "go")
        with opened() as second:
            await asked(client, "again")
            await client.disconnect()
        return first, second

    with scripted([*asking("a"), *asking("b", first=1)]) as (_, options):
        first, second = asyncio.run(main(options))
    assert [[step.call.id for step in run.trajectory.steps] for run in (first, second)] == [["call-0"], ["call-1"]]
    assert [run.ledger.tokens for run in (first, second)] == [30, 30]


def test_a_client_can_connect_again():
    async def main(options: Any) -> list[Any]:
        client = GuardedClient(options)
        for prompt in ("go", "again"):
            await client.connect()
            await asked(client, prompt)
            await client.disconnect()
        with pytest.raises(sdk.CLIConnectionError):
            await all_of(client.receive_messages())
        with pytest.raises(sdk.CLIConnectionError):
            await client.query("more")

    with scripted([*asking("a"), *asking("b", first=1)]) as (_, options), opened() as run:
        asyncio.run(main(options))
    assert run.ledger.tokens == 4 * 15


# --- the way out -------------------------------------------------------------------------------------------


def test_a_conversation_goes_on_well_formed_after_a_halt():
    async def main(options: Any, run: Run) -> list[Any]:
        async with GuardedClient(options, run=run) as client:
            with pytest.raises(RunHalted):
                await asked(client, "go")
            with pytest.raises(RunHalted):
                await client.query("more")
            run.resume()
            return await asked(client, "other")

    replies = [*asking(*"aaaaa")[:-1], *asking("b", first=5)]
    with scripted(replies) as (played, options), opened() as run:
        messages = asyncio.run(main(options, run))
    assert messages[-1].result == "done"
    assert len(played.requests) == 7
    assert [sorted(call for kind, call in played.requests[-1] if kind == which) for which in ("call", "answer")] == [
        [f"call-{at}" for at in range(6)]
    ] * 2


def test_a_halt_lets_no_tool_of_the_cli_run_any_more(tmp_path: Path):
    touched = [calling("Bash", f"call-{at}", command=f"touch {tmp_path}/{at}") for at in range(6)]
    settings = {"tools": ["Bash"], "allowed_tools": ["Bash"], "cwd": str(tmp_path)}
    policy = Policy(budget=Budget(steps=2))
    with scripted([*touched, Reply(text="done")], **settings) as (_, options), opened(policy):
        error = asyncio.run(outcome(query(prompt="go", options=options)))
    assert isinstance(error, RunHalted)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["0", "1"]


def test_a_halt_stands_where_the_cli_does_not_answer():
    async def deaf() -> None:
        raise RuntimeError("no answer")

    async def unknown() -> Any:
        for call in map(str, range(6)):
            yield answer(call, key=call)
            yield sdk.UserMessage([sdk.ToolResultBlock(call, "No such tool", True)])

    async def main(session: Session) -> None:
        await session.pump(unknown())
        session.is_busy = True
        with pytest.raises(RunHalted) as caught:
            await all_of(session.messages(deaf))
        assert str(caught.value.__cause__) == "no answer"

    with opened() as run:
        asyncio.run(main(Session(sdk.ClaudeAgentOptions(), run)))


def test_leaving_in_the_middle_of_a_turn_ends_the_turn():
    async def main(options: Any) -> None:
        async with GuardedClient(options) as client:
            await client.query("go")
            async for message in client.receive_messages():
                if isinstance(message, sdk.AssistantMessage):
                    break

    with scripted(asking(*"abcdefgh")) as (played, options), opened():
        asyncio.run(main(options))
        assert len(played.requests) < 9


# --- the CLI's own tools, and what it answers itself -------------------------------------------------------


def test_a_tool_of_the_cli_is_judged_and_its_result_recorded():
    again = [calling("Bash", f"call-{at}", command="echo hello") for at in range(3)]
    settings = {"tools": ["Bash"], "allowed_tools": ["Bash"]}
    with scripted([*again, Reply(text="done")], **settings) as (played, options), opened() as run:
        asyncio.run(all_of(query(prompt="go", options=options)))
    assert [step.executed for step in run.trajectory.steps] == [True, True, False]
    assert "hello" in str(run.trajectory.steps[0].result)
    assert "was not run again" in played.answers["call-2"]


def test_a_tool_that_the_cli_does_not_know_is_recorded_and_a_loop_of_it_halts():
    again = [calling("serch", f"call-{at}", query="a") for at in range(6)]
    with scripted([*again, Reply(text="done")]) as (played, options), opened() as run, pytest.raises(RunHalted):
        asyncio.run(all_of(query(prompt="go", options=options)))
    assert "No such tool" in played.answers["call-0"]
    first = run.trajectory.steps[0]
    assert (first.call.name, first.result and first.result.is_error) == ("serch", True)


def test_a_call_that_is_not_permitted_holds_nothing():
    async def refuse(name: str, arguments: Any, context: Any) -> Any:
        return sdk.PermissionResultDeny(message="not today")

    async def main(options: Any) -> None:
        async with GuardedClient(options) as client:
            await asked(client, "go")

    settings = {"allowed_tools": [], "can_use_tool": refuse}
    with scripted(asking("a"), **settings) as (played, options), opened() as run:
        asyncio.run(main(options))
    assert "not today" in played.answers["call-0"]
    assert run.ledger.steps == 0


def test_hooks_and_stream_events_stay_the_callers_own():
    names: list[str] = []

    async def tell(given: Any, call: str | None, context: Any) -> Any:
        names.append(given["tool_name"])
        return {}

    settings = {"hooks": {"PreToolUse": [sdk.HookMatcher(hooks=[tell])]}}
    with scripted(asking("a"), **settings) as (_, options), opened():
        messages = asyncio.run(all_of(query(prompt="go", options=options)))
    assert names == ["mcp__tools__search"]
    assert "StreamEvent" not in {type(message).__name__ for message in messages}


# --- users and sub-agents ----------------------------------------------------------------------------------


def test_what_the_user_asks_for_again_is_no_repeat():
    async def main(options: Any) -> None:
        async with GuardedClient(options) as client:
            for _ in range(3):
                await asked(client, "go")

    replies = [reply for at in range(3) for reply in asking("a", first=at)]
    with scripted(replies) as (_, options), opened() as run:
        asyncio.run(main(options))
    assert [step.decision and step.decision.action for step in run.trajectory.steps] == [Action.ALLOW] * 3
    assert [step.user_turn for step in run.trajectory.steps] == [True] * 3


START = calling("Agent", "call-0", description="d", prompt="find it", subagent_type="finder")
FOUND = Reply(text="found", usage=Usage(2_000, 200))
WITH_AGENT = {
    "agents": {"finder": sdk.AgentDefinition(description="finds", prompt="FINDER")},
    "tools": ["Agent", "Task"],
    "allowed_tools": ["Agent", "Task", "mcp__tools__search"],
}


def with_agent(run: Run, *replies: Reply) -> list[Any]:
    """Play a sub-agent with these replies, and `FOUND` after them; return the messages.

    The latest CLI runs it in the background, and asks the main model once more when it is done.
    """

    async def main(options: Any) -> list[Any]:
        messages: list[Any] = []
        async with GuardedClient(options, run=run) as client:
            await client.query("go")
            async for message in client.receive_messages():
                messages.append(message)
                if isinstance(message, sdk.ResultMessage) and any(map(is_over, messages)):
                    break
        return messages

    script = [START, Reply(text="done"), Reply(text="done")]
    with scripted(script, {"FINDER": [*replies, FOUND]}, **WITH_AGENT) as (_, options):
        return asyncio.run(main(options))


def is_over(message: Any) -> bool:
    return type(message).__name__ == "TaskNotificationMessage"


def test_calls_of_a_sub_agent_are_in_a_lane_of_its_own():
    with opened() as run:
        with_agent(run, calling("search", "sub-0", query="a"), calling("search", "sub-1", query="b"))
    main, *others = run.trajectory.steps
    assert (main.lane, main.call.name) == ("main", "Agent")
    assert [step.call.name for step in others] == ["search", "search"]
    (lane,) = {step.lane for step in others}
    assert lane.startswith("finder:")


def test_what_a_sub_agent_used_is_charged_once():
    with opened() as run:
        *_, result = with_agent(run, calling("search", "sub-0", query="a"))
    counted = result.model_usage["scripted"]
    assert run.ledger.tokens == counted["inputTokens"] + counted["outputTokens"]
    assert run.ledger.tokens > 2_200


def test_a_refused_call_of_a_sub_agent_gets_the_feedback():
    with opened() as run:
        messages = with_agent(run, *(calling("search", f"sub-{at}", query="a") for at in range(3)))
    assert [step.executed for step in run.trajectory.steps if step.lane != "main"] == [True, True, False]
    assert "was not run again" in str(messages)


def test_what_the_sdk_raises_reaches_the_caller():
    async def broken() -> Any:
        yield answer("a")
        raise sdk.CLIConnectionError("gone")

    async def main(session: Session) -> None:
        await session.pump(broken())
        with pytest.raises(sdk.CLIConnectionError, match="gone"):
            await all_of(session.messages(asyncio.Event().wait))

    with opened() as run:
        asyncio.run(main(Session(sdk.ClaudeAgentOptions(), run)))


def test_a_halt_in_a_sub_agent_ends_the_run():
    with opened() as run, pytest.raises(RunHalted) as caught:
        with_agent(run, *(calling("search", f"sub-{at}", query="a") for at in range(9)))
    assert [step.executed for step in caught.value.trajectory.steps] == [True, True, True, False, False, False]


def test_a_session_that_goes_on_is_charged_for_what_it_uses_now():
    def played(options: Any) -> tuple[Run, str]:
        with opened() as run:
            messages = asyncio.run(all_of(query(prompt="go", options=options)))
        return run, messages[-1].session_id

    with scripted([*asking("a", "b"), *asking("c", first=2)]) as (_, options):
        first, session = played(options)
        options.resume = session
        second, _ = played(options)
    assert [run.ledger.tokens for run in (first, second)] == [3 * 15, 2 * 15]


# --- turns and counts, piece by piece ----------------------------------------------------------------------


def answer(*calls: str, key: str = "msg-0", inside: str | None = None, **used: int) -> sdk.AssistantMessage:
    blocks: list[Any] = [sdk.ToolUseBlock(call, "search", {}) for call in calls]
    return sdk.AssistantMessage(blocks, "scripted", inside, usage=used, message_id=key)


def test_a_message_that_is_not_streamed_is_a_turn_as_it_comes():
    async def main() -> Any:
        turns = Turns()
        turns.note(answer("a", "b"), {call: (ToolCall("search", {}, call), None) for call in "ab"})
        return await turns.of("a")

    turn = asyncio.run(main())
    assert (turn.key, [call.id for call in turn.calls]) == ("msg-0", ["a", "b"])


def test_a_call_that_no_message_tells_of_is_judged_by_itself(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(agentguard_claude_agent.turns, "_PATIENCE", 0.01)

    async def main() -> Any:
        return await Turns().of("a")

    assert asyncio.run(main()) is None


def test_nobody_waits_for_messages_when_none_come_any_more():
    async def main() -> Any:
        turns = Turns()
        waiting = asyncio.create_task(turns.of("a"))
        await asyncio.sleep(0)
        turns.end()
        return await waiting, await turns.of("b")

    assert asyncio.run(main()) == (None, None)


def test_a_message_that_comes_in_parts_is_charged_once():
    meter = Meter(fresh=True)
    with opened() as run:
        for call in "ab":
            meter.note(answer(call, inside="call-0", input_tokens=7, cache_read_input_tokens=3, output_tokens=1), run)
    used = run.trajectory.usage
    assert used is not None
    assert (used.input_tokens, used.output_tokens, used.cached_tokens) == (10, 1, 3)


def result(cost: float | None, **counts: Any) -> sdk.ResultMessage:
    made = sdk.ResultMessage("success", 0, 0, False, 1, "session", total_cost_usd=cost)
    made.model_usage = {"scripted": {"inputTokens": 10, "outputTokens": 5, **counts}}  # type: ignore[typeddict-item]
    return made


def test_the_clis_price_is_charged_where_no_other_is_known():
    meter = Meter(fresh=True)
    with opened() as run:
        meter.note(result(0.25), run)
        meter.note(result(0.25), run)
    used = run.trajectory.usage
    assert used is not None
    assert (used.input_tokens, used.output_tokens, str(used.cost_usd)) == (10, 5, "0.25")


def test_a_price_that_the_cli_guessed_is_not_known():
    with opened() as run:
        Meter(fresh=True).note(result(0.25, costBasis="unknown"), run)
    assert run.trajectory.usage is not None
    assert run.trajectory.usage.cost_usd is None


# --- hooks, one by one -------------------------------------------------------------------------------------


def told(session: Session, event: str, call: str | None = None, **given: Any) -> Any:
    """Call the guard's hook of an event as the SDK does."""
    hook = session.options.hooks[event][0].hooks[0]  # type: ignore[index]
    return asyncio.run(hook({"hook_event_name": event, **given}, call, {"signal": None}))  # type: ignore[arg-type]


def begun(run: Run) -> Session:
    """Return a session in which a sub-agent's call is under way."""
    session = Session(sdk.ClaudeAgentOptions(), run)
    agent = {"agent_id": "a1", "agent_type": "finder"}
    told(session, "SubagentStart", **agent)
    assert told(session, "PreToolUse", "sub-0", tool_name="Bash", tool_input={}, **agent) == {}
    assert run.ledger.steps == 1
    return session


def test_an_interrupted_call_holds_nothing():
    with opened() as run:
        told(begun(run), "PostToolUseFailure", "sub-0", error="interrupted", is_interrupt=True)
        assert run.ledger.steps == 0


def test_what_a_sub_agent_left_open_holds_nothing():
    with opened() as run:
        told(begun(run), "SubagentStop", agent_id="a1", agent_type="finder")
        assert run.ledger.steps == 0
    assert run.trajectory.steps[0].lane == "finder:a1"


def test_after_a_halt_no_prompt_reaches_the_model():
    with opened() as run:
        session = Session(sdk.ClaudeAgentOptions(), run)
        assert told(session, "UserPromptSubmit", prompt="go") == {}
        with scripted(asking(*"aaaaaaaa")) as (_, options):
            assert isinstance(asyncio.run(outcome(query(prompt="go", options=options))), RunHalted)
        assert told(session, "UserPromptSubmit", prompt="go on")["continue_"] is False


def test_news_of_the_background_are_no_message_of_the_user():
    with opened() as run:
        session = Session(sdk.ClaudeAgentOptions(), run)
        told(session, "UserPromptSubmit", prompt="<task-notification>done</task-notification>")
        run.returned(run.begin(ToolCall("search", {})), "no hits")
    assert run.trajectory.steps[0].user_turn is False


# --- declaring ---------------------------------------------------------------------------------------------


def test_tools_of_the_sdk_are_declared_by_types_or_by_schema():
    schema = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}

    @sdk.tool("read", "Read a file.", schema)
    async def read(arguments: Any) -> Any:
        return {"content": []}

    by_types, by_schema = declared([as_tool("search", search), read])
    assert by_types.schema == {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]}
    assert (by_schema.name, by_schema.description, by_schema.schema) == ("read", "Read a file.", schema)


def test_a_tool_of_another_server_keeps_its_whole_name_unless_its_own_is_declared():
    with opened(tools=[Tool(name="look")]) as run:
        session = Session(sdk.ClaudeAgentOptions(), run)
        names = [session.name_of(name) for name in ("mcp__web__look", "mcp__web__find", "Bash")]
    assert names == ["look", "mcp__web__find", "Bash"]


def test_how_long_a_tool_took_is_no_part_of_its_result():
    assert recorded({"filenames": ["a"], "durationMs": 3}) == {"filenames": ["a"]}
    assert recorded([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]) == "a\nb"
    assert recorded([{"type": "image"}]) == [{"type": "image"}]
