"""Writing references, so that one taken from a run can be kept, read and changed."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Final

from agentguard.errors import ReferencesError
from agentguard.matching import (
    ANYTHING,
    EXACTLY,
    MISSING,
    Arguments,
    Attempts,
    Call,
    Contains,
    Equal,
    Folded,
    Ignored,
    OneOf,
    Regex,
    Tolerance,
    ValueRule,
)
from agentguard.reference.reading import References
from agentguard.reference.record import Reference

Written = dict[str, Any]


def to_lines(references: References) -> str:
    """Return references as JSON lines, which `parse_references` reads back as they were.

    Raises ReferencesError for what no file can hold: a rule that is a function, a call whose arguments were not
    recorded, an argument that is no JSON.
    """
    lines = [_line({"task": name}, name, one) for name, one in references.tasks.items()]
    lines += [_line({"run": name}, name, one) for name, one in references.runs.items()]
    return "".join(lines)


def _line(about: Written, name: str, reference: Reference) -> str:
    # An alternative is written in full: what it left out it would take over from the reference it stands in.
    settings = {key: value for key, value in _settings(reference, name).items() if value not in _DEFAULTS}
    try:
        return json.dumps({**about, "match": reference.match, "calls": [], **settings}, allow_nan=False) + "\n"
    except (TypeError, ValueError) as fault:
        raise ReferencesError(name, "", f"an argument is no JSON: {fault}") from fault


_DEFAULTS: Final[tuple[Any, ...]] = ({}, [], None, Attempts.COUNT, "equal")


def _settings(reference: Reference, place: str) -> Written:
    return {
        "match": reference.match,
        "calls": [_call(call, f"{place}: call {number}") for number, call in enumerate(reference.calls, 1)],
        "arguments": _arguments(reference.rules.default, place),
        "tools": {tool: _arguments(rule, f"{place}: {tool}") for tool, rule in reference.rules.tools.items()},
        "order": [list(pair) for pair in reference.order],
        "forbidden": list(reference.forbidden),
        "step_budget": reference.step_budget,
        "failed_calls": reference.failed_calls,
        "refused_calls": reference.refused_calls,
        "alternatives": [_settings(one, f"{place}: alternative") for one in reference.alternatives],
    }


def _call(call: Call, place: str) -> str | Written:
    if call.arguments is None and call.rule != ANYTHING:
        raise ReferencesError(place, "", f"{call.absence}; give {call.tool} arguments, or a rule that ignores them")
    rule = None if call.rule is None or call.arguments is None else _arguments(call.rule, place)
    settings = {"arguments": call.arguments, "turn": call.turn, "id": call.id, "compare": rule}
    written = {name: value for name, value in settings.items() if value is not None}
    return {"tool": call.tool, **written} if written else call.tool


def _arguments(rule: Arguments, place: str) -> str | Written:
    if rule in (EXACTLY, ANYTHING):
        return "equal" if rule == EXACTLY else "ignore"
    settings = {
        "values": _value(rule.values, place),
        "at": {path: _value(one, f"{place}: {path}") for path, one in rule.at.items()},
        "ignore": list(rule.ignore),
        "allow_extra": rule.allow_extra,
        "allow_missing": rule.allow_missing,
    }
    written = {name: value for name, value in settings.items() if value and value != "equal"}
    return written if rule.only is None else {**written, "only": list(rule.only)}


def _value(rule: ValueRule, place: str) -> str | Written:
    kind = type(rule)
    if kind not in _WRITERS:
        raise ReferencesError(place, "", f"{kind.__name__} is a function, which no file can hold")
    return _WRITERS[kind](rule)


_WRITERS: Final[Mapping[type, Callable[[Any], str | Written]]] = {
    Equal: lambda rule: "equal",
    Folded: lambda rule: "folded",
    Ignored: lambda rule: "ignore",
    Contains: lambda rule: "contains" if rule.part is MISSING else {"contains": rule.part},
    OneOf: lambda rule: "one_of" if rule.accepted is None else {"one_of": list(rule.accepted)},
    Regex: lambda rule: "regex" if rule.pattern is None else {"regex": rule.pattern},
    Tolerance: lambda rule: {"tolerance": {"absolute": rule.absolute, "relative": rule.relative}},
}
