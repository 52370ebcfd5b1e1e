"""Why a verdict is what it is: faults for a mode, and the alignment as text."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec

from agentguard.fingerprint import canonical
from agentguard.matching.alignment import Entry, Kind
from agentguard.matching.assignment import maximum
from agentguard.matching.calls import Call, Match, bits, turns
from agentguard.matching.comparison import Comparison
from agentguard.matching.rules import MISSING, Difference


class Fault(msgspec.Struct, frozen=True):
    """One thing that keeps a run from being what a reference asks for."""

    code: str
    """Stable and machine-readable, e.g. "match.missing"."""
    text: str
    """One phrase for people; holds no argument values."""
    reference: int | None = None
    """Index of the reference's call. None when it is about none."""
    actual: int | None = None
    """Index of the run's call. None when it is about what is not there."""


COUNTED: Final[Mapping[Match, frozenset[Kind]]] = {
    Match.EXACT: frozenset({Kind.MISSING, Kind.WRONG_ARGUMENTS, Kind.EXTRA, Kind.OUT_OF_ORDER}),
    Match.EXACT_TURNS: frozenset({Kind.MISSING, Kind.WRONG_ARGUMENTS, Kind.EXTRA}),
    Match.IN_ORDER: frozenset({Kind.MISSING, Kind.WRONG_ARGUMENTS, Kind.OUT_OF_ORDER}),
    Match.ANY_ORDER: frozenset({Kind.MISSING, Kind.WRONG_ARGUMENTS, Kind.EXTRA}),
    Match.SUPERSET: frozenset({Kind.MISSING, Kind.WRONG_ARGUMENTS}),
    Match.SUBSET: frozenset({Kind.WRONG_ARGUMENTS, Kind.EXTRA}),
}
"""The lines of an alignment that are faults, by mode."""


def faults(both: Comparison, mode: Match) -> list[Fault]:
    """Return what fails the run by `mode`: what is missing first. Empty when it passes or nobody can say."""
    if both.passes(mode) is not False:
        return []
    entries = [entry for kind in _WORST_FIRST for entry in both.alignment.of(kind) if kind in COUNTED[mode]]
    found = [_fault(both, entry) for entry in entries]
    return found or [Fault("match.turns", _turns_text(both), None, _first_in_other_turn(both))]


_WORST_FIRST: Final = (Kind.MISSING, Kind.WRONG_ARGUMENTS, Kind.OUT_OF_ORDER, Kind.EXTRA)


def _fault(both: Comparison, entry: Entry) -> Fault:
    code = "match.arguments" if entry.kind is Kind.WRONG_ARGUMENTS else f"match.{entry.kind}"
    return Fault(code, _TEXTS[entry.kind](both, entry), entry.reference, entry.actual)


def _missing(both: Comparison, entry: Entry) -> str:
    tool = _wanted(both, entry).tool
    wanted = sum(call.tool == tool for call in both.reference)
    made = sum(call.tool == tool for call in both.actual)
    if wanted == 1:
        return f"expected {_name(tool)}, not called"
    return f"expected {_name(tool)} {wanted} times, called {made} times"


def _wrong_arguments(both: Comparison, entry: Entry) -> str:
    paths = dict.fromkeys(_name(difference.path) or "as a whole" for difference in entry.differences)
    return f"{_name(_wanted(both, entry).tool)}: arguments differ from those expected: {', '.join(paths) or 'all'}"


def _out_of_order(both: Comparison, entry: Entry) -> str:
    tool = _name(_wanted(both, entry).tool)
    return f"{tool}: expected as call {(entry.reference or 0) + 1} of the reference, out of order"


def _extra(both: Comparison, entry: Entry) -> str:
    return f"{_name(both.actual[entry.actual or 0].tool)}: not expected"


_TEXTS: Final = {
    Kind.MISSING: _missing,
    Kind.WRONG_ARGUMENTS: _wrong_arguments,
    Kind.OUT_OF_ORDER: _out_of_order,
    Kind.EXTRA: _extra,
}


def _wanted(both: Comparison, entry: Entry) -> Call:
    return both.reference[entry.reference or 0]


def _name(name: str) -> str:
    return name if name.isprintable() else _shown(name)


def _turns_text(both: Comparison) -> str:
    wanted, made = (_sizes(calls) for calls in (both.reference, both.actual))
    if wanted == made:
        return "the calls are those expected, but made in other turns"
    return f"the calls are those expected, their parallel turns are not: expected {wanted}, got {made}"


def _first_in_other_turn(both: Comparison) -> int | None:
    """Return the first call of the first turn that does not hold what its like in the reference does."""
    pairs = zip(turns(both.reference), turns(both.actual), strict=False)
    return next((bits(made)[0] for wanted, made in pairs if not _alike(both, wanted, made)), None)


def _alike(both: Comparison, wanted: int, made: int) -> bool:
    rows = [both.relation.possible[index] & made for index in bits(wanted)]
    return len(maximum(rows)) == len(rows) == made.bit_count()


def _sizes(calls: Sequence[Call]) -> str:
    return "+".join(str(turn.bit_count()) for turn in turns(calls))


def doubts(both: Comparison, positions: Sequence[int] | None = None) -> list[str]:
    """Return why calls could not be compared, one sentence for each cause, with the run's calls counted from 1.

    `positions` holds the index to be told for each of them. None: where they stand.
    """
    causes: dict[str, set[int]] = {}
    for (_, j), cause in sorted(both.relation.doubts.items()):
        causes.setdefault(cause, set()).add((j if positions is None else positions[j]) + 1)
    return [f"{cause} (call {', '.join(map(str, sorted(calls)))})" for cause, calls in causes.items()]


# ---------------------------------------------------------------- as text

_SIGNS: Final = {
    Kind.MATCHED: "=",
    Kind.OUT_OF_ORDER: ">",
    Kind.WRONG_ARGUMENTS: "~",
    Kind.UNKNOWN: "?",
    Kind.MISSING: "-",
    Kind.EXTRA: "+",
}


def diff(both: Comparison, *, width: int = 100) -> str:
    """Return the alignment as lines: `=` matched, `>` out of order, `~` wrong arguments, `?` unknown, `-` missing,
    `+` extra. Lines are cut at `width` characters.

    >>> from agentguard.matching import compare
    >>> print(diff(compare([Call("a", {}), Call("b", {"n": 1})], [Call("b", {"n": 2}), Call("c", {})])))
    - a {}
    ~ b {"n":2}
        n: expected 1, got 2
    + c {}
    """
    return "\n".join(_cut(line, width) for entry in both.alignment.entries for line in _lines(both, entry))


def _lines(both: Comparison, entry: Entry) -> Iterator[str]:
    call = _wanted(both, entry) if entry.actual is None else both.actual[entry.actual]
    arguments = "..." if call.arguments is None else _shown(call.arguments)
    yield f"{_SIGNS[entry.kind]} {_name(call.tool)} {arguments}{_remark(entry)}"
    for difference in entry.differences:
        yield f"    {_difference(difference)}"


def _remark(entry: Entry) -> str:
    if entry.kind is Kind.OUT_OF_ORDER:
        return f"  (expected as call {(entry.reference or 0) + 1}, made as call {(entry.actual or 0) + 1})"
    return f"  ({_printable(entry.reason)})" if entry.reason else ""


def _difference(found: Difference) -> str:
    return f"{_name(found.path) or 'arguments'}: expected {_shown(found.wanted)}, got {_shown(found.given)}"


def _shown(value: Any) -> str:
    if value is MISSING:
        return "nothing"
    if value is None:
        return "null"
    return _printable(canonical(value).decode("utf-8", "replace"))


def _printable(text: str) -> str:
    """Return `text` with what a terminal would obey, or show in another place, as escapes."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else json.dumps(char)[1:-1] for char in text)


def _cut(line: str, width: int) -> str:
    return line if len(line) <= width else line[: width - 3] + "..."
