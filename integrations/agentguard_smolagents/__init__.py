"""The guard on the agents of smolagents.

agent = guard_agent(ToolCallingAgent(tools=[search], model=model))
with guard.run(model="gpt-5", harness="my agent 1.4"):
    agent.run("why does the test fail?")
"""

# smolagents has no types of its own.
# pyright: reportMissingTypeStubs=false
# mypy: disable-error-code="import-untyped"

from __future__ import annotations

import contextvars
import itertools
import threading
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from agentguard import AgentGuardError, Run, ToolCall, Usage, current_run
from agentguard.wrapping import Feedback, to_call

try:
    from smolagents import ActionStep, CodeAgent, MultiStepAgent, PlanningStep, ToolCallingAgent
    from smolagents.local_python_executor import PythonExecutor
    from smolagents.remote_executors import RemotePythonExecutor
    from smolagents.utils import AgentError
except ImportError as error:
    from agentguard import IntegrationMissing

    raise IntegrationMissing("smolagents", "smolagents") from error

if TYPE_CHECKING:
    from smolagents import ChatMessage

__all__ = ["CallRefused", "guard_agent"]

A = TypeVar("A", bound=MultiStepAgent)

_FINAL_ANSWER = "final_answer"
"""The loop's own tool, which is not judged: what it gives back ends the run, and would if that were a refusal."""
_MARK = "_agentguard"
"""The attribute of a guarded agent."""


class CallRefused(AgentGuardError):
    """What a refused call raises in the code of a `CodeAgent`; its text is the feedback.

    A text in place of the result would go on as if it were one, into the next call of the code or the final answer.
    """


def guard_agent(agent: A, run: Run | None = None) -> A:
    """Return the agent with every tool call judged, its own and its managed agents', and charge what its model uses.

    Guards by `run`; None means the run whose `with` block the agent is run in. Guarding an agent again replaces the
    run. A refused call gives the model the feedback: as the observation of a `ToolCallingAgent`, as the error of the
    code of a `CodeAgent`. A halt leaves the agent as `RunHalted`. Calls of one model message are one parallel turn; a
    managed agent has its name as its lane. AgentGuardError where the code of a `CodeAgent` runs in another process.
    """
    managed: dict[str, Any] = vars(agent)["managed_agents"]
    for other in managed.values():
        guard_agent(other, run)
    guarded: _Guarded | None = vars(agent).get(_MARK)
    if guarded is None:
        vars(agent)[_MARK] = _Guarded(agent, run)
    else:
        guarded.given = run
    return agent


class _Guarded:
    """An agent and the methods that it had."""

    def __init__(self, agent: Any, run: Run | None) -> None:
        self.given = run
        self._agent = agent
        self._charged: object = None
        """The step whose usage was charged last."""
        self._context: contextvars.Context | None = None
        """What the open step stands in; tools may run on threads that know nothing of it."""
        self._waiting: list[ToolCall] = []
        """Calls of the open step that did not begin."""
        self._lock = threading.Lock()
        self._turns = itertools.count()
        if isinstance(agent, CodeAgent):
            self._take_code(agent)
        if isinstance(agent, ToolCallingAgent):
            self._take_calls(agent)
        callbacks: Any = agent.step_callbacks
        for kind in (ActionStep, PlanningStep):
            callbacks.register(kind, self.charge)

    @property
    def run(self) -> Run:
        run = self.given or current_run()
        if run is None:
            raise AgentGuardError("no run is active; run the agent inside `with guard.run(...)`, or pass run=")
        return run

    def charge(self, step: Any) -> None:
        """Charge what the model used for a step, once."""
        used = step.token_usage
        if used is None or step is self._charged:
            return
        self._charged = step
        model = getattr(self._agent.model, "model_id", None)
        self.run.charge(Usage(used.input_tokens, used.output_tokens), model=model)

    # --- calls of a model message --------------------------------------------------------------------------

    def _take_calls(self, agent: Any) -> None:
        self._process, self._execute = agent.process_tool_calls, agent.execute_tool_call
        agent.process_tool_calls, agent.execute_tool_call = self.process_tool_calls, self.execute_tool_call

    def process_tool_calls(self, chat_message: ChatMessage, memory_step: ActionStep) -> Generator[Any]:
        """Charge and declare a model message, then make its calls."""
        self.charge(memory_step)
        asked = [one for one in chat_message.tool_calls or () if one.function.name != _FINAL_ANSWER]
        self._waiting = [to_call(one.function.name, one.function.arguments, one.id) for one in asked]
        if self._waiting:
            self.run.declare_turn(self._waiting, key=f"{id(self)} {next(self._turns)}")
        self._context = contextvars.copy_context()
        try:
            yield from self._process(chat_message, memory_step)
        finally:
            self._context = None

    def execute_tool_call(self, tool_name: str, arguments: dict[str, Any] | str) -> Any:
        """Judge the call; make it, or answer it with the feedback."""
        make = partial(self._execute, tool_name, arguments)
        return make() if tool_name == _FINAL_ANSWER else self._judged(self._waited(tool_name, arguments), make)

    def _waited(self, name: str, arguments: dict[str, Any] | str) -> ToolCall:
        """Return the call with its id, which is not passed on to where it is made."""
        call = to_call(name, arguments)
        with self._lock:
            for at, waiting in enumerate(self._waiting):
                if msgspec.structs.replace(waiting, id=None) == call:
                    return self._waiting.pop(at)
        return call

    # --- calls in code -------------------------------------------------------------------------------------

    def _take_code(self, agent: Any) -> None:
        if isinstance(agent.python_executor, RemotePythonExecutor):
            kind = type(agent.python_executor).__name__
            raise AgentGuardError(f"{kind}: its tools run in another process, where no guard reaches; use a local one")
        agent.python_executor = _GuardedExecutor(agent.python_executor, self)

    def in_code(self, name: str, tool: Callable[..., Any]) -> Callable[..., Any]:
        """Return the function that code calls the tool by."""
        if name == _FINAL_ANSWER:
            return tool

        def call(*args: Any, **named: Any) -> Any:
            result = self._judged(ToolCall(name, _named(tool, args, named)), partial(tool, *args, **named))
            if isinstance(result, Feedback):
                raise CallRefused(result)
            return result

        return call

    def run_code(self, execute: Callable[[str], Any], code: str) -> Any:
        """Run the code of one step."""
        self._context = contextvars.copy_context()
        try:
            return execute(code)
        finally:
            self._context = None

    # --- both ----------------------------------------------------------------------------------------------

    def _judged(self, call: ToolCall, make: Callable[[], Any]) -> Any:
        context = self._context or contextvars.copy_context()
        return context.copy().run(self._judged_here, call, make)

    def _judged_here(self, call: ToolCall, make: Callable[[], Any]) -> Any:
        run = self.run
        attempt = run.begin(call)
        if attempt.feedback is not None:
            return attempt.feedback
        try:
            with self._in_lane(run, call.name):
                result = make()
        except BaseException as error:
            run.raised(attempt, _origin(error))
            raise
        return run.returned(attempt, result)

    def _in_lane(self, run: Run, name: str) -> AbstractContextManager[None]:
        return run.lane(name) if name in self._agent.managed_agents else nullcontext()


class _GuardedExecutor(PythonExecutor):  # type: ignore[misc, unused-ignore] # Any, where it has no types
    """An executor whose code calls guarded tools."""

    def __init__(self, executor: Any, guarded: _Guarded) -> None:
        self._executor = executor
        self._guarded = guarded

    def __getattr__(self, name: str) -> Any:
        """Return what else the executor has, e.g. its state."""
        return getattr(self._executor, name)

    def __call__(self, code_action: str) -> Any:
        """Run the code of one step."""
        return self._guarded.run_code(self._executor, code_action)

    def send_variables(self, variables: dict[str, Any]) -> None:
        """Make the variables known to the code."""
        self._executor.send_variables(variables)

    def send_tools(self, tools: dict[str, Any]) -> None:
        """Make the tools known to the code, each behind the guard."""
        _ = self._guarded.run  # where there is none, say so now: the error of a call in code is the model's to read
        self._executor.send_tools({name: self._guarded.in_code(name, tool) for name, tool in tools.items()})


def _named(tool: Any, args: tuple[Any, ...], named: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments of a call in code by name; positional ones too many are under "*"."""
    names = list(tool.inputs)
    extra = {"*": list(args[len(names) :])} if len(args) > len(names) else {}
    return {**dict(zip(names, args, strict=False)), **named, **extra}


def _origin(error: BaseException) -> BaseException:
    """Return what a tool raised, where the framework put an error of its own around it."""
    return error.__cause__ or error if isinstance(error, AgentError) else error
