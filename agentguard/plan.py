"""What is to be done for the calls of one tool, worked out once."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any

from agentguard.attempt import Attempt, Past
from agentguard.call import ToolCall
from agentguard.checks import Check
from agentguard.decision import Action, Verdict
from agentguard.fingerprint import fingerprint
from agentguard.ledger import Charge, Ledger
from agentguard.loops import Place
from agentguard.tools import Tool

_Offer = Callable[[Tool], "Callable[[Any], bool] | None"]


class Plan:
    """A tool with the checks that can speak of it."""

    __slots__ = ("_always", "_restless", "budget", "charge", "checks", "passes", "prefix", "tool", "watched", "whole")

    def __init__(self, tool: Tool, checks: Iterable[Check], known: Collection[str], *, watched: bool = False) -> None:
        """Plan for one tool. `watched` says that every result is to be looked at closely, whatever the tool's."""
        self.tool = tool
        self.charge = Charge(tool.name, tool.cost_usd)
        self.checks = tuple(check for check in checks if getattr(check, "applies", _always)(tool, known))
        self.budget = next((check for check in self.checks if check.name == "budget"), None)
        """None when the budget is not checked: it is charged all the same."""
        loud = [check for check in self.checks if not _quiet_when_calm(check)]
        self._always = tuple(check.before for check in loud)
        self.passes = _quick_test(loud, tool)
        """True for arguments of a calm call that no check has anything to say about; False where only asking tells."""
        self._restless = tuple(check.before for check in self.checks if _quiet_when_calm(check))
        self.prefix = tool.name.encode("utf-8", "surrogatepass") + b"\0"
        """What the fingerprint of each of its calls begins with."""

        self.whole = not tool.ignore
        """Whether all arguments count in the fingerprint."""
        self.watched = watched or bool(tool.normalize or tool.empty_is_error or tool.poll or tool.deadline is not None)
        """Whether a result needs a closer look than remembering it."""

    def key(self, call: ToolCall) -> bytes:
        """Return the call's fingerprint without the arguments that the tool ignores."""
        arguments: Any = call.arguments
        if call.raw_arguments is not None:
            arguments = call.raw_arguments
        elif self.tool.ignore and arguments:
            arguments = {name: value for name, value in arguments.items() if name not in self.tool.ignore}
        return self.prefix + fingerprint(arguments)

    def verdicts(self, attempt: Attempt) -> list[Verdict]:
        """Return what the checks find, in any order."""
        found: list[Verdict] = []
        for before in self._always:
            said = before(attempt)
            if said is not None:
                add_verdicts(found, said)
        if not attempt.place.calm or (found and any(verdict.action >= Action.BLOCK for verdict in found)):
            for before in self._restless:
                add_verdicts(found, before(attempt))
        return found

    def outside(self, call: ToolCall, key: bytes, lane: str, ledger: Ledger, past: Past) -> Attempt:
        """Return an attempt outside every lane, for a call that no check looks at."""
        return Attempt(call, self.tool, Place(key, self.tool.name, -1), lane, None, -1, ledger, past, watched=True)


def add_verdicts(found: list[Verdict], said: Verdict | Iterable[Verdict] | None) -> None:
    """Add what a check said to what was found."""
    if isinstance(said, Verdict):
        found.append(said)
    elif said is not None:
        found.extend(said)


def _quick_test(checks: Sequence[Check], tool: Tool) -> Callable[[Any], bool]:
    offers: list[_Offer] = [getattr(check, "passes", _no_test) for check in checks]
    offered = [offer(tool) for offer in offers]
    tests = [test for test in offered if test is not None]
    return _ever if not tests else tests[0] if len(tests) == 1 else lambda arguments: all(t(arguments) for t in tests)


def _no_test(tool: Tool) -> Callable[[Any], bool] | None:
    return _never


def _never(arguments: Any) -> bool:
    return False


def _ever(arguments: Any) -> bool:
    return True


def _always(tool: Tool, known: Collection[str]) -> bool:
    return True


def _quiet_when_calm(check: Check) -> bool:
    return bool(getattr(check, "quiet_when_calm", False))
