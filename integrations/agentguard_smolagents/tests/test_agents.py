"""What guarded agents do beyond the contract."""

# mypy: disable-error-code="import-untyped"

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest
from agentguard_smolagents import guard_agent
from smolagents import ChatMessage, CodeAgent, LogLevel, MessageRole, Model, MultiStepAgent, ToolCallingAgent
from smolagents.monitoring import TokenUsage
from smolagents.remote_executors import RemotePythonExecutor
from test_contract import ScriptedModel, as_tool, last

from agentguard import Action, AgentGuardError, Guard, Policy, Run, RunHalted
from agentguard.testing.contract import Asked, Played, Reply, asking


class WritingModel(Model):  # type: ignore[misc, unused-ignore]
    """Writes the given code, and keeps the last message of each request."""

    def __init__(self, code: list[str]) -> None:
        super().__init__()
        self.code = iter(code)
        self.seen: list[str] = []

    def generate(self, messages: list[ChatMessage], *args: Any, **kwargs: Any) -> ChatMessage:
        self.seen.append(str(messages[-1].content))
        code = f"<code>\n{next(self.code)}\n</code>"
        return ChatMessage(role=MessageRole.ASSISTANT, content=code, token_usage=TokenUsage(10, 5))


def search(query: str) -> str:
    return f"no hits for {query}"


def open_run(policy: Policy | None = None, **guard: Any) -> Run:
    return Guard(policy, quiet=True, **guard).run(model="scripted", harness="agents")


def calling(replies: list[Reply], seen: Played | None = None, **settings: Any) -> ToolCallingAgent:
    model = ScriptedModel(replies, seen or Played())
    return ToolCallingAgent(tools=[as_tool("search", search)], model=model, verbosity_level=LogLevel.OFF, **settings)


def coding(*code: str, tool: Callable[..., Any] = search, **settings: Any) -> CodeAgent:
    tools = [as_tool(tool.__name__, tool)]
    return CodeAgent(tools=tools, model=WritingModel(list(code)), verbosity_level=LogLevel.OFF, **settings)


def told(run: Run) -> list[tuple[str, str, Any]]:
    return [(step.lane, step.call.name, step.decision and step.decision.action) for step in run.trajectory.steps]


TASK: dict[str, Any] = {"task": "t", "additional_args": {}}  # 1.20 to 1.22 want them all
ASKS_FOR_RESEARCH = Reply((Asked("research", TASK, "call-0"),))
RESEARCH: dict[str, Any] = {"name": "research", "description": "Looks things up."}


# --- the run ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("agent", [calling(asking("a")), coding("print(search(query='a'))", "final_answer('done')")])
def test_the_run_whose_block_the_agent_is_in_judges(agent: MultiStepAgent) -> None:
    with open_run() as run:
        assert guard_agent(agent).run("go") == "done"
    assert [step.call.arguments for step in run.trajectory.steps] == [{"query": "a"}]


@pytest.mark.parametrize("agent", [calling(asking("a")), coding("print(search(query='a'))")])
def test_an_agent_outside_every_run_says_what_to_do(agent: MultiStepAgent) -> None:
    with pytest.raises(AgentGuardError, match="no run is active"):
        guard_agent(agent).run("go")


def test_guarding_an_agent_again_replaces_its_run() -> None:
    first, second = open_run(), open_run()
    agent = guard_agent(guard_agent(calling(asking("a")), first), second)
    with second:
        agent.run("go")
    assert (first.ledger.steps, second.ledger.steps, second.ledger.tokens) == (0, 1, 2 * 15)


def test_a_halt_leaves_a_stream_as_itself() -> None:
    run = open_run()
    agent = guard_agent(calling(asking(*"aaaaaaaa")), run)
    with run, pytest.raises(RunHalted):
        last(agent.run("go", stream=True))


# --- managed agents --------------------------------------------------------------------------------------------


def test_a_managed_agent_is_a_lane_of_its_own() -> None:
    run = open_run()
    inner = calling(asking("a"), **RESEARCH)
    outer = guard_agent(calling([ASKS_FOR_RESEARCH, *asking("a", first=1)], managed_agents=[inner]), run)
    with run:
        assert outer.run("go") == "done"
    assert told(run) == [
        ("main", "research", Action.ALLOW),
        ("research", "search", Action.ALLOW),
        ("main", "search", Action.ALLOW),
    ]
    assert run.ledger.tokens == 5 * 15


def test_managed_agents_side_by_side_have_their_run_and_lanes_on_every_thread() -> None:
    turn = Reply((Asked("research", TASK, "call-0"), Asked("review", TASK, "call-1")))
    inner = [calling(asking("a"), **RESEARCH), calling(asking("a"), name="review", description="Reads again.")]
    outer = guard_agent(calling([turn, Reply(text="done")], managed_agents=inner))
    with open_run() as run:
        assert outer.run("go") == "done"
    assert sorted((lane, name) for lane, name, _ in told(run)) == [
        ("main", "research"),
        ("main", "review"),
        ("research", "search"),
        ("review", "search"),
    ]


def test_a_managed_agent_that_code_asks_is_a_lane_too() -> None:
    run = open_run()
    inner = calling(asking("a"), **RESEARCH)
    outer = guard_agent(coding("print(research('t'))", "final_answer('done')", managed_agents=[inner]), run)
    with run:
        assert outer.run("go") == "done"
    assert told(run) == [("main", "research", Action.ALLOW), ("research", "search", Action.ALLOW)]


@pytest.mark.parametrize("outer", [calling, coding])
def test_a_halt_in_a_managed_agent_ends_the_one_that_manages_it(outer: Any) -> None:
    run = open_run()
    script: Any = [[ASKS_FOR_RESEARCH]] if outer is calling else ["research(task='t')"]
    agent = guard_agent(outer(*script, managed_agents=[calling(asking(*"aaaaaaaa"), **RESEARCH)]), run)
    with run, pytest.raises(RunHalted):
        agent.run("go")
    ran = [(step.lane, step.call.name) for step in run.trajectory.steps if step.executed]
    assert ran == [("main", "research"), ("research", "search"), ("research", "search")]


# --- calls -----------------------------------------------------------------------------------------------------


def test_the_final_answer_is_not_judged_even_where_no_more_call_may_run() -> None:
    run = open_run(Policy.from_dict({"budget": {"steps": 1}}), tools=[search])
    with run:
        assert guard_agent(calling(asking("a")), run).run("go") == "done"
    assert [step.call.name for step in run.trajectory.steps] == ["search"]


def test_an_unknown_tool_that_no_guard_knows_of_is_the_frameworks_to_answer() -> None:
    run = open_run()
    agent = guard_agent(calling([Reply((Asked("serch", {"query": "a"}, "call-0"),)), *asking("b", first=1)]), run)
    with run:
        assert agent.run("go") == "done"
    results = [step.result for step in run.trajectory.steps]
    assert [result is not None and result.is_error for result in results] == [True, False]


def test_calls_keep_the_ids_that_the_model_gave_them() -> None:
    run = open_run()
    turn = Reply((Asked("search", {"query": "a"}, "call-0"), Asked("search", {"query": "b"}, "call-1")))
    with run:
        guard_agent(calling([turn, Reply(text="done")]), run).run("go")
    assert sorted(step.call.id or "" for step in run.trajectory.steps) == ["call-0", "call-1"]


def test_a_call_made_by_hand_is_judged_too() -> None:
    with open_run() as run:
        agent = guard_agent(calling([]))
        results = [agent.execute_tool_call("search", {"query": "a"}) for _ in range(3)]
    assert [result.startswith("no hits") for result in results] == [True, True, False]
    assert [step.call.id for step in run.trajectory.steps] == [None, None, None]


# --- code ------------------------------------------------------------------------------------------------------


def test_a_refused_call_ends_the_code_with_the_feedback() -> None:
    run = open_run()
    agent = guard_agent(coding("for i in range(3):\n    found = search('a')\nfinal_answer(found)", "final_answer('b')"))
    with run:
        assert agent.run("go") == "b"
    assert "CallRefused" in agent.model.seen[1]
    assert "was not run again" in agent.model.seen[1]
    assert [step.executed for step in run.trajectory.steps] == [True, True, False]


def test_code_cannot_go_on_after_a_halt() -> None:
    code = "for i in range(9):\n    try:\n        search('a')\n    except:\n        pass\nfinal_answer('done')"
    run = open_run()
    with run, pytest.raises(RunHalted):
        guard_agent(coding(code), run).run("go")
    assert run.ledger.steps == 2


def test_positional_arguments_are_judged_by_name() -> None:
    run = open_run()
    agent = guard_agent(coding("search('a')", "search('a', 'b')", "final_answer('done')"), run)
    with run:
        agent.run("go")
    assert [step.call.arguments for step in run.trajectory.steps] == [{"query": "a"}, {"query": "a", "*": ["b"]}]


def test_code_that_no_process_of_this_one_runs_is_not_guarded_in_silence() -> None:
    class Elsewhere(RemotePythonExecutor):  # type: ignore[misc, unused-ignore]
        def __init__(self) -> None: ...

        def run_code_raise_errors(self, code: str) -> Any: ...

    agent = coding()
    agent.python_executor = Elsewhere()
    with pytest.raises(AgentGuardError, match="Elsewhere: its tools run in another process"):
        guard_agent(agent)


def test_what_else_an_executor_has_stays_reachable() -> None:
    agent = guard_agent(coding("x = 3", "final_answer(x)"))
    with open_run():
        assert agent.run("go") == 3
    assert agent.python_executor.state["x"] == 3


def test_a_tool_is_called_on_whatever_thread_the_code_runs() -> None:
    threads: list[str] = []

    def look(path: str) -> str:
        threads.append(threading.current_thread().name)
        return "seen"

    agent = guard_agent(coding("look('a')", "final_answer('done')", tool=look))
    with open_run() as run:
        agent.run("go")
    assert (len(threads), run.ledger.steps) == (1, 1)


# --- usage -----------------------------------------------------------------------------------------------------


def test_planning_is_charged_too() -> None:
    class Planner(ScriptedModel):
        def generate(self, messages: list[ChatMessage], *args: Any, **kwargs: Any) -> ChatMessage:
            if "tools_to_call_from" in kwargs:
                return super().generate(messages)
            return ChatMessage(role=MessageRole.ASSISTANT, content="a plan", token_usage=TokenUsage(100, 50))

    run = open_run()
    agent = calling([], planning_interval=1)
    agent.model = Planner(asking("a"), Played())
    with run:
        guard_agent(agent, run).run("go")
    assert run.ledger.tokens == 2 * 15 + 2 * 150


def test_usage_that_is_not_known_is_not_charged() -> None:
    class Silent(WritingModel):
        def generate(self, messages: list[ChatMessage], *args: Any, **kwargs: Any) -> ChatMessage:
            answer = super().generate(messages)
            answer.token_usage = None
            return answer

    run = open_run()
    agent = coding()
    agent.model = Silent(["final_answer('done')"])
    with run:
        guard_agent(agent, run).run("go")
    assert run.ledger.tokens == 0


def test_tokens_are_charged_before_the_calls_that_they_bought() -> None:
    run = open_run(Policy.from_dict({"budget": {"tokens": 20}}))
    with run, pytest.raises(RunHalted):
        guard_agent(calling(asking("a", "b")), run).run("go")
    assert run.ledger.steps == 1
