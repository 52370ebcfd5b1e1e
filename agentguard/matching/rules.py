"""How one value is compared with what a reference has in its place; every loosening of JSON equality has a name."""

from __future__ import annotations

import enum
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any, Final, Protocol, cast

import msgspec

from agentguard.fingerprint import fingerprint


class Missing(enum.Enum):
    """Stands for an argument that is not there; null is an argument that is."""

    MISSING = "missing"

    def __repr__(self) -> str:
        return "MISSING"


MISSING: Final = Missing.MISSING
OPTIONAL: Final = "$optional"
"""Among accepted values: the argument may also be left out."""


class Difference(msgspec.Struct, frozen=True):
    """One place where arguments are not what the reference wants."""

    path: str
    """Names and list positions joined by dots; empty for the arguments as a whole."""
    wanted: Any
    """MISSING when the reference has nothing there."""
    given: Any
    """MISSING when the call has nothing there."""


class ValueRule(Protocol):
    """Compares one value with what the reference has in its place.

    Either side may be MISSING. A rule that raises makes the comparison unknown, with the exception as the reason.
    """

    def fits(self, wanted: Any, given: Any, /) -> bool: ...


# ---------------------------------------------------------------- rules for the leaves of a value


class Leafwise(msgspec.Struct, frozen=True):
    """A rule that looks at text, numbers, booleans and nulls, wherever in the value they stand."""

    def same(self, wanted: Any, given: Any) -> bool:
        """Whether two leaves, or two values of different shapes, fit."""
        return _equal(wanted, given)

    def fits(self, wanted: Any, given: Any) -> bool:
        if wanted is MISSING or given is MISSING:
            return wanted is given
        return _equal(wanted, given) or next(self.differences("", wanted, given), None) is None

    def differences(self, path: str, wanted: Any, given: Any) -> Iterator[Difference]:
        """Yield the leaves that do not fit. Depth costs no recursion, and cycles end."""
        seen: dict[tuple[int, int], tuple[Any, Any]] = {}  # holds the values, lest their ids become others'
        stack = [(path, wanted, given)]
        while stack:
            path, wanted, given = stack.pop()
            pairs = _children(wanted, given)
            if pairs is None:
                if not self._same(wanted, given):
                    yield Difference(path, wanted, given)
            elif (id(wanted), id(given)) not in seen:
                seen[id(wanted), id(given)] = wanted, given
                stack += [(f"{path}.{name}" if path else name, one, other) for name, one, other in reversed(pairs)]

    def _same(self, wanted: Any, given: Any) -> bool:
        return wanted is given if wanted is MISSING or given is MISSING else self.same(wanted, given)


class Equal(Leafwise, frozen=True):
    """JSON equality: numbers by value, true is not 1, key order is free, list order is not, text is never cleaned."""

    def fits(self, wanted: Any, given: Any) -> bool:
        if wanted is MISSING or given is MISSING:
            return wanted is given
        return _equal(wanted, given)


class Folded(Leafwise, frozen=True):
    """Text is compared without regard to case, runs of white space and white space at the ends; the rest is equal."""

    def same(self, wanted: Any, given: Any) -> bool:
        if isinstance(wanted, str) and isinstance(given, str):
            return _fold(wanted) == _fold(given)
        return _equal(wanted, given)


class Tolerance(Leafwise, frozen=True, kw_only=True):
    """Numbers may differ by the larger of the two bounds, as their decimals are written; the rest is equal."""

    absolute: float = 1e-6
    relative: float = 0.0
    """As a share of the reference's number."""

    def same(self, wanted: Any, given: Any) -> bool:
        want, have = _number(wanted), _number(given)
        if want is None or have is None:
            return _equal(wanted, given)
        return abs(want - have) <= max(_decimal(self.absolute), _decimal(self.relative) * abs(want))


class Regex(Leafwise, frozen=True):
    """Text must match a regular expression from end to end; the rest is equal."""

    pattern: str | None = None
    """None: the reference's own text is the expression."""

    def fits(self, wanted: Any, given: Any) -> bool:
        if self.pattern is None:
            # Not by the shortcut of the other rules: an expression need not match itself.
            return next(self.differences("", wanted, given), None) is None
        return isinstance(given, str) and re.fullmatch(self.pattern, given) is not None

    def same(self, wanted: Any, given: Any) -> bool:
        if isinstance(wanted, str) and isinstance(given, str):
            return re.fullmatch(wanted, given) is not None
        return _equal(wanted, given)


# ---------------------------------------------------------------- rules for a value as a whole


class Ignored(msgspec.Struct, frozen=True):
    """Anything fits, and so does nothing."""

    def fits(self, wanted: Any, given: Any) -> bool:
        return True


_OPTIONAL_KEY: Final = fingerprint(OPTIONAL)


class OneOf(msgspec.Struct, frozen=True):
    """The value must equal one of those accepted; with `OPTIONAL` among them it may be left out."""

    accepted: tuple[Any, ...] | None = None
    """None: the reference's own value is the list of accepted ones."""

    def fits(self, wanted: Any, given: Any) -> bool:
        accepted = wanted if self.accepted is None else self.accepted
        if accepted is MISSING:
            return given is MISSING
        values = _list(accepted)
        values = [accepted] if values is None else values
        keys = set(map(fingerprint, values))
        if given is MISSING:
            return _OPTIONAL_KEY in keys
        return fingerprint(given) in keys - {_OPTIONAL_KEY}


class Contains(msgspec.Struct, frozen=True):
    """Text must hold the reference's text, a list its items (or its item), an object its entries; the rest is equal."""

    part: Any = MISSING
    """MISSING: the reference's own value is the part."""

    def fits(self, wanted: Any, given: Any) -> bool:
        part = wanted if self.part is MISSING else self.part
        if part is MISSING or given is MISSING:
            return part is given
        if isinstance(part, str) and isinstance(given, str):
            return part in given
        items = _list(given)
        if items is not None:
            parts = _list(part)
            return Counter(map(fingerprint, [part] if parts is None else parts)) <= Counter(map(fingerprint, items))
        if isinstance(part, Mapping) and isinstance(given, Mapping):
            return _holds(cast("dict[Any, Any]", given), cast("dict[Any, Any]", part))
        return EQUAL.fits(part, given)


class Valid(msgspec.Struct, frozen=True):
    """The value must pass a test of its own, whatever the reference has there."""

    test: Callable[[Any], bool]
    """E.g. `is_valid` of a JSON Schema validator."""

    def fits(self, wanted: Any, given: Any) -> bool:
        return given is not MISSING and self.test(given)


class Custom(msgspec.Struct, frozen=True):
    """A function of the reference's value and the call's; it is not asked when either is missing."""

    function: Callable[[Any, Any], bool]

    def fits(self, wanted: Any, given: Any) -> bool:
        if wanted is MISSING or given is MISSING:
            return wanted is given
        return self.function(wanted, given)


def schema(declaration: Mapping[str, Any] | bool) -> Valid:
    """Return the rule that a value must satisfy a JSON Schema (2020-12 unless it names another draft).

    >>> schema({"type": "integer"}).fits(MISSING, 3)
    True
    """
    import jsonschema_rs

    return Valid(jsonschema_rs.validator_for(cast("Any", declaration)).is_valid)


EQUAL: Final = Equal()


# ---------------------------------------------------------------- values


def _children(wanted: Any, given: Any) -> list[tuple[str, Any, Any]] | None:
    """Return what two containers of one kind hold, side by side; None when they are to be compared as leaves."""
    if isinstance(wanted, Mapping) and isinstance(given, Mapping):
        return _entries(cast("dict[Any, Any]", wanted), cast("dict[Any, Any]", given))
    if isinstance(wanted, list | tuple) and isinstance(given, list | tuple):
        return _items(cast("Sequence[Any]", wanted), cast("Sequence[Any]", given))
    return None


def _entries(wanted: Mapping[Any, Any], given: Mapping[Any, Any]) -> list[tuple[str, Any, Any]] | None:
    names = dict.fromkeys([*wanted, *given])
    if not all(isinstance(name, str) for name in names):
        return None  # 1, True and "1" are three keys, which a look-up would mix
    return [(name, wanted.get(name, MISSING), given.get(name, MISSING)) for name in names]


def _items(wanted: Sequence[Any], given: Sequence[Any]) -> list[tuple[str, Any, Any]]:
    return [
        (str(index), wanted[index] if index < len(wanted) else MISSING, given[index] if index < len(given) else MISSING)
        for index in range(max(len(wanted), len(given)))
    ]


def _list(value: Any) -> list[Any] | None:
    return list(cast("Sequence[Any]", value)) if isinstance(value, list | tuple) else None


def _holds(given: Mapping[Any, Any], part: Mapping[Any, Any]) -> bool:
    return all(EQUAL.fits(value, given.get(name, MISSING)) for name, value in part.items())


def _equal(one: Any, other: Any) -> bool:
    return fingerprint(one) == fingerprint(other)


def _fold(text: str) -> str:
    return " ".join(text.casefold().split())


_WIDEST: Final = 400
"""Decimal places beyond which a Decimal is no number to calculate with."""


def _number(value: Any) -> Fraction | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return Fraction(value)
    if isinstance(value, float):
        return _decimal(value) if value - value == 0 else None
    if isinstance(value, Decimal) and value.is_finite() and abs(value.adjusted()) < _WIDEST:
        return Fraction(value)
    return None


def _decimal(value: float) -> Fraction:
    # 0.100001 and 0.1 are a millionth apart as written; their doubles are a little more.
    return Fraction(repr(float(value)))
