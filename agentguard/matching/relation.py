"""Which calls of a run fit which of a reference, for sure and perhaps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from agentguard.matching.arguments import PLAIN, Arguments, Rules
from agentguard.matching.calls import Call, bits


class Relation(msgspec.Struct, frozen=True):
    """What fits what, as rows of bits (see `agentguard.matching.assignment`)."""

    sure: list[int]
    possible: list[int]
    """`sure`, and what could not be decided. The same list when everything could."""
    doubts: dict[tuple[int, int], str]
    """Why a pair (reference, run) could not be decided."""


def relate(reference: Sequence[Call], actual: Sequence[Call], rules: Rules) -> Relation:
    """Compare every call of a reference with every call of a run."""
    plain = rules == PLAIN and not any(call.rule for call in reference)
    rows = _by_identity(reference, actual) if plain else None
    return _Builder(actual, rules).relation(reference) if rows is None else Relation(rows, rows, {})


def _by_identity(reference: Sequence[Call], actual: Sequence[Call]) -> list[int] | None:
    """Compare by keys alone; None when a call has no arguments to make a key of."""
    masks: dict[bytes, int] = {}
    for index, call in enumerate(actual):
        if call.arguments is None:
            return None
        key = call.key or call.identity
        masks[key] = masks.get(key, 0) | 1 << index
    rows: list[int] = []
    for call in reference:
        if call.arguments is None:
            return None
        rows.append(masks.get(call.key or call.identity, 0))
    return rows


class _Builder:
    """Relates calls tool by tool and rule by rule; keys are made once for each rule and tool."""

    def __init__(self, actual: Sequence[Call], rules: Rules) -> None:
        self.actual = actual
        self.rules = rules
        self.by_tool: dict[str, int] = {}
        self.unrecorded = 0
        for index, call in enumerate(actual):
            self.by_tool[call.tool] = self.by_tool.get(call.tool, 0) | 1 << index
            if call.arguments is None:
                self.unrecorded |= 1 << index
        self.tables: dict[tuple[int, str], dict[bytes, int]] = {}
        self.doubts: dict[tuple[int, int], str] = {}

    def relation(self, reference: Sequence[Call]) -> Relation:
        sure = [self.row(index, call) for index, call in enumerate(reference)]
        if not self.doubts:
            return Relation(sure, sure, {})
        possible = list(sure)
        for i, j in self.doubts:
            possible[i] |= 1 << j
        return Relation(sure, possible, self.doubts)

    def row(self, index: int, call: Call) -> int:
        rule = call.rule or self.rules.of(call.tool)
        candidates = self.by_tool.get(call.tool, 0)
        if not candidates or not rule.needs_arguments:
            return candidates
        if call.arguments is None:
            self.doubts.update(((index, j), f"{call.absence} in the reference") for j in bits(candidates))
            return 0
        self.doubts.update(((index, j), self.actual[j].absence) for j in bits(candidates & self.unrecorded))
        known = candidates & ~self.unrecorded
        if rule.is_equivalence:
            return self.table(rule, call.tool, known).get(_key(rule, call), 0)
        return self.pairwise(index, call.arguments, rule, known)

    def table(self, rule: Arguments, tool: str, known: int) -> dict[bytes, int]:
        table = self.tables.get((id(rule), tool))
        if table is None:
            table = self.tables[id(rule), tool] = {}
            for j in bits(known):
                key = _key(rule, self.actual[j])
                if key:
                    table[key] = table.get(key, 0) | 1 << j
        return table

    def pairwise(self, index: int, wanted: Any, rule: Arguments, known: int) -> int:
        row = 0
        for j in bits(known):
            try:
                row |= rule.fits(wanted, self.actual[j].arguments or {}) << j
            except Exception as fault:  # a rule of the user's; its fault must not end a batch, nor pass for a verdict
                self.doubts[index, j] = f"rule failed: {type(fault).__name__}: {fault}"
        return row


def _key(rule: Arguments, call: Call) -> bytes:
    if rule.is_equality:
        return call.key or call.identity
    return rule.key(call.arguments or {}) or b""
