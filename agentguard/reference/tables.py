"""Tables of a file of references, and what they say; whatever is not understood is an error that names its place."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime, time
from itertools import pairwise
from typing import Any, Final, TypeVar, cast

import msgspec

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
    Match,
    OneOf,
    Regex,
    Rules,
    Tolerance,
    ValueRule,
    schema,
)
from agentguard.reference.record import Reference

T = TypeVar("T")


class Table(msgspec.Struct, frozen=True):
    """A table with the way to it."""

    value: Mapping[str, Any]
    place: str
    """The file, with its line where it has lines."""
    key: str
    """The dotted path in it; empty at the top."""

    @classmethod
    def of(cls, value: Any, place: str, key: str) -> Table:
        """Return `value` as a table. Raises ReferencesError when it is none, or has names that are no text."""
        if not isinstance(value, Mapping):
            raise ReferencesError(place, key, f"expected a table, got {_kind(value)}")
        table = cls(cast("Mapping[str, Any]", value), place, key)
        table.refuse_odd_names(table.value)
        return table

    def at(self, name: str) -> str:
        """Return the path of an entry."""
        return f"{self.key}.{name}" if self.key and name else self.key or name

    def error(self, name: str, fault: str) -> ReferencesError:
        """Return the error about an entry."""
        return ReferencesError(self.place, self.at(name), fault)

    def refuse_others(self, known: Iterable[str]) -> None:
        """Raise for the first entry that is not known."""
        names = sorted(known)
        for name in self.value:
            if name not in names:
                raise self.error(str(name), f"unknown setting{_suggestion(str(name), names)}")

    def refuse_odd_names(self, value: Mapping[Any, Any], name: str = "") -> None:
        """Raise for a name that is no text: YAML makes true of an unquoted `on`, and a number of `7`."""
        for odd in value:
            if not isinstance(odd, str):
                raise self.error(name, f"expected text as a name, got {_shown(odd)}; write it in quotes")

    def table(self, name: str) -> Table:
        """Return an entry that is a table; an empty one when it is not there."""
        return Table.of(self.value.get(name, {}), self.place, self.at(name))

    def tables(self, name: str, single: str) -> list[Table]:
        """Return an entry that is a list of tables; text in it stands for a table with `single` alone."""
        items = [{single: item} if isinstance(item, str) else item for item in self.items(name)]
        return [Table.of(item, self.place, f"{self.at(name)}.{index}") for index, item in enumerate(items)]

    def items(self, name: str) -> list[Any]:
        """Return an entry that is a list; an empty one when it is not there."""
        value = self.value.get(name, [])
        if not isinstance(value, list):
            raise self.error(name, f"expected a list, got {_kind(value)}")
        return list(cast("Sequence[Any]", value))

    def texts(self, name: str) -> tuple[str, ...]:
        """Return an entry that is a list of texts."""
        return tuple(self._typed(f"{name}.{index}", item, str, "text") for index, item in enumerate(self.items(name)))

    def text(self, name: str) -> str:
        """Return an entry that is text. Raises ReferencesError when it is not there."""
        if name not in self.value:
            raise self.error("", f"{name} is missing")
        return self._typed(name, self.value[name], str, "text")

    def number(self, name: str) -> float:
        """Return an entry that is a number of 0 or more; 0 when it is not there."""
        value = self.value.get(name, 0)
        if isinstance(value, bool) or not isinstance(value, int | float) or not value >= 0:
            raise self.error(name, f"expected a number of 0 or more, got {_shown(value)}")
        return value

    def count(self, name: str) -> int | None:
        """Return an entry that is a whole number of 0 or more; None when it is not there."""
        value = self.value.get(name)
        if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 0):
            raise self.error(name, f"expected a whole number of 0 or more, got {_shown(value)}")
        return value

    def flag(self, name: str) -> bool:
        """Return an entry that is true or false; False when it is not there."""
        return self._typed(name, self.value.get(name, False), bool, "true or false")

    def one_of(self, name: str, kind: Callable[[str], T], choices: Iterable[str], default: T) -> T:
        """Return an entry that is one of a few words."""
        return self.word(name, kind, choices) if name in self.value else default

    def word(self, name: str, kind: Callable[[str], T], choices: Iterable[str]) -> T:
        """Return an entry that is one of a few words and has to be there."""
        words = list(choices)
        if name not in self.value:
            raise self.error("", f"{name} is missing; one of: {', '.join(words)}")
        value = self.value[name]
        if value not in words:
            raise self.error(name, f"unknown value {_shown(value)}{_suggestion(str(value), words)}")
        return kind(value)

    def _typed(self, name: str, value: Any, kind: type[T], word: str) -> T:
        if not isinstance(value, kind):
            raise self.error(name, f"expected {word}, got {_kind(value)}")
        return value


_KINDS: Final[Mapping[type, str]] = {str: "text", list: "a list", dict: "a table", bool: "true or false"}


def _kind(value: Any) -> str:
    kind = type(cast("object", value))
    return _KINDS.get(kind, kind.__name__)


def _shown(value: Any) -> str:
    return repr(value)[:80]


def _suggestion(name: str, known: Sequence[str]) -> str:
    near = difflib.get_close_matches(name, known, n=1)
    return f"{f'; did you mean {near[0]}?' if near else ';'} known: {', '.join(known)}"


# ---------------------------------------------------------------- a reference

_REFERENCE: Final = (
    "alternatives",
    "arguments",
    "calls",
    "failed_calls",
    "forbidden",
    "match",
    "order",
    "refused_calls",
    "step_budget",
    "tools",
)
_OWN: Final = ("alternatives", "calls", "order")
"""What an alternative does not take over from the reference it stands in."""
_CALL: Final = ("arguments", "compare", "id", "tool", "turn")


def reference_of(table: Table) -> Reference:
    """Return the reference that a table describes. Raises ReferencesError."""
    table.refuse_others(_REFERENCE)
    if "calls" not in table.value:
        raise table.error("", "calls is missing; calls = [] expects that nothing is called")
    shared = {key: value for key, value in table.value.items() if key not in _OWN}
    calls = tuple(_call(item) for item in table.tables("calls", "tool"))
    return Reference(
        calls=calls,
        match=table.word("match", Match, Match),
        rules=_rules(table),
        order=tuple(_pairs(table, calls)),
        forbidden=table.texts("forbidden"),
        step_budget=table.count("step_budget"),
        failed_calls=table.one_of("failed_calls", Attempts, Attempts, Attempts.COUNT),
        refused_calls=table.one_of("refused_calls", Attempts, Attempts, Attempts.COUNT),
        alternatives=tuple(
            reference_of(Table({**shared, **item.value}, item.place, item.key))
            for item in table.tables("alternatives", "calls")
        ),
    )


def _call(table: Table) -> Call:
    table.refuse_others(_CALL)
    name = table.text("id") if "id" in table.value else None
    rule = _arguments(table, "compare") if "compare" in table.value else None
    if "arguments" not in table.value:
        bare: dict[str, Any] = {}
        return Call(table.text("tool"), bare if rule else None, table.count("turn"), rule=rule or ANYTHING, id=name)
    arguments = table.table("arguments")
    _refuse_other_than_json(arguments)
    return Call(table.text("tool"), arguments.value, table.count("turn"), rule=rule, id=name)


def _refuse_other_than_json(table: Table) -> None:
    """Refuse what TOML and YAML know and JSON does not: no argument of a call could ever equal it."""
    stack: list[tuple[str, Any]] = [("", table.value)]
    while stack:
        path, value = stack.pop()
        if isinstance(value, date | datetime | time):
            raise table.error(path, f"a date or time equals no JSON value; write it in quotes: {value.isoformat()!r}")
        if isinstance(value, bytes | set):
            raise table.error(path, f"{type(cast('object', value)).__name__} equal no JSON value; write text or a list")
        if isinstance(value, dict):
            table.refuse_odd_names(cast("Mapping[Any, Any]", value), path)
        stack += ((f"{path}.{name}" if path else name, item) for name, item in _inside(value))


def _inside(value: Any) -> list[tuple[str, Any]]:
    if isinstance(value, dict):
        return [(str(name), item) for name, item in cast("Mapping[Any, Any]", value).items()]
    if isinstance(value, list):
        return [(str(index), item) for index, item in enumerate(cast("Sequence[Any]", value))]
    return []


def _pairs(table: Table, calls: Sequence[Call]) -> Iterator[tuple[str, str]]:
    for index, chain in enumerate(table.items("order")):
        if not isinstance(chain, list) or len(cast("Sequence[Any]", chain)) < 2:
            raise table.error(f"order.{index}", 'expected a list of two or more tools or call ids, e.g. ["a", "b"]')
        names = Table({"": chain}, table.place, table.at(f"order.{index}")).texts("")
        _check_names(names, calls, table)
        yield from pairwise(names)


def _check_names(names: Iterable[str], calls: Sequence[Call], table: Table) -> None:
    known = sorted({call.tool for call in calls} | {call.id for call in calls if call.id is not None})
    for name in names:
        if name not in known:
            raise table.error("order", f"no call has the id or tool {_shown(name)}{_suggestion(name, known)}")


# ---------------------------------------------------------------- how arguments are compared


def _rules(table: Table) -> Rules:
    default = _arguments(table, "arguments") if "arguments" in table.value else EXACTLY
    tools = table.table("tools")
    return Rules(default=default, tools={name: _arguments(tools, name) for name in tools.value})


_WHOLE: Final = {"equal": EXACTLY, "ignore": ANYTHING}
_SETTINGS: Final = ("allow_extra", "allow_missing", "at", "ignore", "only", "values")


def _arguments(table: Table, name: str) -> Arguments:
    if isinstance(table.value[name], str):
        return table.word(name, _WHOLE.__getitem__, _WHOLE)
    settings = table.table(name)
    settings.refuse_others(_SETTINGS)
    at = settings.table("at")
    return Arguments(
        values=_value_rule(settings, "values") if "values" in settings.value else Equal(),
        at={path: _value_rule(at, path) for path in at.value},
        only=settings.texts("only") if "only" in settings.value else None,
        ignore=settings.texts("ignore"),
        allow_extra=settings.flag("allow_extra"),
        allow_missing=settings.flag("allow_missing"),
    )


_WORDS: Final[Mapping[str, ValueRule]] = {
    "contains": Contains(),
    "equal": Equal(),
    "folded": Folded(),
    "ignore": Ignored(),
    "one_of": OneOf(),
    "regex": Regex(),
    "tolerance": Tolerance(),
}


def _value_rule(table: Table, name: str) -> ValueRule:
    if isinstance(table.value[name], str):
        return table.word(name, _WORDS.__getitem__, _WORDS)
    setting = table.table(name)
    setting.refuse_others(_WITH_VALUE)
    if len(setting.value) != 1:
        raise setting.error("", f"expected one of: {', '.join(_WITH_VALUE)}")
    (kind,) = setting.value
    return _WITH_VALUE[kind](setting)


def _regex(table: Table) -> ValueRule:
    import re

    try:
        re.compile(table.text("regex"))
    except re.error as fault:
        raise table.error("regex", f"not a regular expression: {fault}") from fault
    return Regex(table.text("regex"))


def _tolerance(table: Table) -> ValueRule:
    if not isinstance(table.value["tolerance"], Mapping):
        return Tolerance(absolute=table.number("tolerance"))
    bounds = table.table("tolerance")
    bounds.refuse_others(("absolute", "relative"))
    return Tolerance(absolute=bounds.number("absolute"), relative=bounds.number("relative"))


def _schema(table: Table) -> ValueRule:
    try:
        return schema(table.table("schema").value)
    except ValueError as fault:
        raise table.error("schema", f"not a JSON Schema: {str(fault).splitlines()[0]}") from fault


_WITH_VALUE: Final[Mapping[str, Callable[[Table], ValueRule]]] = {
    "contains": lambda table: Contains(table.value.get("contains", MISSING)),
    "equal": lambda table: OneOf((table.value["equal"],)),
    "one_of": lambda table: OneOf(tuple(table.items("one_of"))),
    "regex": _regex,
    "schema": _schema,
    "tolerance": _tolerance,
}
