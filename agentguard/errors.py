"""The error tree, drawn once.

AgentGuardError                 something the user can mend
|-- PolicyError                 a setting of a policy: carries `key`
|-- TraceError                  a trace file: carries `path` and `line`
|-- ReferencesError             a file of references: carries `place` and `key`
|-- SchemaError                 the declaration of a tool: carries `tool`
|-- LedgerError                 a shared budget store that cannot answer
`-- IntegrationMissing          an optional package: carries `package` and `extra`
RunHalted (BaseException)       no error: the guard ended the run
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agentguard.decision import Decision
    from agentguard.trajectory import Trajectory


class AgentGuardError(Exception):
    """Base of everything agentguard raises on purpose and a caller may want to catch."""


class PolicyError(AgentGuardError):
    """A policy that cannot be used. `key` is the dotted path of the setting, e.g. "budget.steps"."""

    def __init__(self, key: str, fault: str) -> None:
        super().__init__(f"{key}: {fault}" if key else fault)
        self.key = key
        self.fault = fault


class TraceError(AgentGuardError):
    """A trace file that cannot be read. `line` counts from 1; None when the fault is the file's as a whole."""

    def __init__(self, path: str, line: int | None, fault: str) -> None:
        super().__init__(f"{path}:{line}: {fault}" if line is not None else f"{path}: {fault}")
        self.path = path
        self.line = line
        self.fault = fault


class ReferencesError(AgentGuardError):
    """References that cannot be used. `place` is the file with its line, if it has one; `key` the dotted path in it."""

    def __init__(self, place: str, key: str, fault: str) -> None:
        super().__init__(": ".join(part for part in (place, key, fault) if part))
        self.place = place
        self.key = key
        self.fault = fault


class SchemaError(AgentGuardError):
    """The declaration of a tool that cannot be used. `tool` is the tool's name."""

    def __init__(self, tool: str, fault: str) -> None:
        super().__init__(f"tool {tool!r}: {fault}")
        self.tool = tool
        self.fault = fault


class LedgerError(AgentGuardError):
    """A shared budget store that did not answer, or answered what it never should."""


class IntegrationMissing(AgentGuardError, ImportError):
    """A package that an optional part needs. The message holds the exact install command."""

    def __init__(self, package: str, extra: str) -> None:
        super().__init__(f"{package} is not installed; run: pip install 'agentguard-otel[{extra}]'")
        self.package = package
        self.extra = extra


class RunHalted(BaseException):
    """The guard ended the run. Control flow, not an error.

    It derives from BaseException because several frameworks turn any Exception of a tool into text for the model
    and go on (openai-agents 0.24 and smolagents 1.26 were seen to). What that costs: `except Exception` does not
    see it, `asyncio.TaskGroup` wraps it in a BaseExceptionGroup, and `asyncio.gather(return_exceptions=True)`
    returns it. A run that was halted stays halted: every later call is refused, whoever swallowed this.

    `decision` is what ended the run, `trajectory` the work done so far (its last steps, see `Run.trajectory`).
    """

    def __init__(self, decision: Decision, trajectory: Trajectory) -> None:
        super().__init__(decision.reason)
        self.decision = decision
        self.trajectory = trajectory
