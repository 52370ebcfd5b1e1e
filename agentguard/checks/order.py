"""Calls that need an earlier successful call of another tool."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import ClassVar

import msgspec

from agentguard.attempt import Attempt
from agentguard.decision import Action, Verdict
from agentguard.fingerprint import fingerprint
from agentguard.tools import Tool


class OrderRule(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`tool` needs an earlier successful call of `needs`."""

    tool: str
    needs: str
    same: tuple[str, ...] = ()
    """Arguments that must have had the same values in that call."""


class Order(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Use it only where order is load-bearing: back up before migrating, authorise before charging."""

    name: ClassVar[str] = "order"

    rules: tuple[OrderRule, ...] = ()

    def applies(self, tool: Tool, known: Collection[str]) -> bool:
        """Whether any rule is about this tool."""
        return any(rule.tool == tool.name for rule in self.rules)

    def before(self, attempt: Attempt) -> Iterator[Verdict]:
        """Block a call whose precondition no earlier call of the run meets."""
        for rule in self.rules:
            if rule.tool == attempt.call.name and not self._met(rule, attempt):
                same = f" with the same {', '.join(rule.same)}" if rule.same else ""
                reason = f"needs an earlier successful call of {rule.needs}{same}"
                yield Verdict(self.name, "order.missing", Action.BLOCK, reason, msgspec.structs.asdict(rule))

    @staticmethod
    def _met(rule: OrderRule, attempt: Attempt) -> bool:
        arguments = attempt.call.arguments or {}
        values = tuple(fingerprint(arguments.get(name)) for name in rule.same)
        return attempt.past.succeeded(rule.needs, values, rule.same)
