"""Steps against the budget, by the definition of the live budget (docs/budgets.md)."""

from __future__ import annotations

from agentguard.metrics.score import Reason, Score
from agentguard.metrics.subject import Subject


def steps(subject: Subject) -> Score:
    """Count the calls that reached a tool: executed calls, and those of which nobody knows.

    With a budget a run over it has a reason. A record with gaps tells a number of steps that is at least right.
    """
    reached = [index for index, step in enumerate(subject.trajectory.steps) if step.executed is not False]
    count, budget = len(reached), subject.step_budget
    data = {"attempted": len(subject.trajectory.steps), "budget": budget}
    if budget is not None and count > budget:
        reason = Reason("budget.steps", f"{count} steps against a budget of {budget}", tuple(reached[budget:]))
        return Score("steps", float(count), (reason,), reason.steps, data=data)
    gaps = subject.trajectory.complete is False
    return Score("steps", float(count), unscored="the record has gaps: steps are missing" if gaps else None, data=data)
