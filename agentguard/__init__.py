"""Checks every tool call of an agent as it happens, and scores whole trajectories afterwards.

This is the live half; the scorer is `agentguard.scoring`, the readers are in `agentguard.traces`.
"""

__version__ = "0.1.0"

from agentguard.call import ToolCall, ToolResult, Usage
from agentguard.decision import Action, Decision, Verdict
from agentguard.errors import (
    AgentGuardError,
    IntegrationMissing,
    LedgerError,
    PolicyError,
    RunHalted,
    SchemaError,
    TraceError,
)
from agentguard.guard import Guard
from agentguard.ledger import Budget
from agentguard.policy import Mode, Policy
from agentguard.recorder import record
from agentguard.run import Run, current_run
from agentguard.spans import Content
from agentguard.tools import Poll, Tool
from agentguard.trajectory import Ending, RunKey, Step, Trajectory
from agentguard.wrapping import Feedback

__all__ = [
    "Action",
    "AgentGuardError",
    "Budget",
    "Content",
    "Decision",
    "Ending",
    "Feedback",
    "Guard",
    "IntegrationMissing",
    "LedgerError",
    "Mode",
    "Policy",
    "PolicyError",
    "Poll",
    "Run",
    "RunHalted",
    "RunKey",
    "SchemaError",
    "Step",
    "Tool",
    "ToolCall",
    "ToolResult",
    "TraceError",
    "Trajectory",
    "Usage",
    "Verdict",
    "current_run",
    "record",
]
