"""What is looked at before a call runs; one file per check, one line each in `BUILT_IN`.

A check is a frozen record of its settings with a `name` and one method `before(attempt)`. It gives no verdict (None)
when it has nothing to say; it never changes anything and keeps no state. Three things may spare it calls:
`quiet_when_calm = True` says that it has nothing to say where `attempt.place.calm`; `applies(tool, known)`, whether it
can ever speak of that tool, `known` being the names of the declared ones; `passes(tool)` gives a quick test of
arguments (or None) that is true where it has nothing to say about a call with these, and may raise.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import ClassVar, Final, Protocol, runtime_checkable

from agentguard.attempt import Attempt
from agentguard.checks.arguments import Arguments
from agentguard.checks.budget import BudgetCheck
from agentguard.checks.cycles import Cycles
from agentguard.checks.deadline import Deadline
from agentguard.checks.failures import Failures
from agentguard.checks.order import Order
from agentguard.checks.repeats import Repeats
from agentguard.checks.unknown_tool import UnknownTool
from agentguard.decision import Verdict


@runtime_checkable
class Check(Protocol):
    """What a check must be."""

    name: ClassVar[str]
    """Its name in policies and verdicts."""

    def before(self, attempt: Attempt) -> Verdict | Iterable[Verdict] | None:
        """Return what was found about a call that has not run yet."""
        ...


BUILT_IN: Final[Mapping[str, type[Check]]] = {
    "unknown_tool": UnknownTool,
    "arguments": Arguments,
    "budget": BudgetCheck,
    "order": Order,
    "deadline": Deadline,
    "repeats": Repeats,
    "failures": Failures,
    "cycles": Cycles,
}
"""Every check by its name, in the order in which equally strong verdicts are listed."""
