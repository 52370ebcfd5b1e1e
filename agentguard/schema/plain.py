"""The JSON that a Python value means, and the places where JSON has no word for it."""

from __future__ import annotations

import enum
import math
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, time
from decimal import Decimal
from pathlib import PurePath
from typing import Any, Final, cast

import msgspec

DEEPEST: Final = 100
"""Levels of nesting that are looked into: a model means no more, and every level costs stack."""

MOST_VALUES: Final = 500_000
"""Values of one set of arguments that are looked at."""

_MOST_DIGITS: Final = 1_000
"""Decimal digits of a number: a few characters may mean millions, and writing those out takes minutes."""
_TOO_LONG: Final = f"is a number of more than {_MOST_DIGITS} digits"

Place = tuple[str | int, ...]
"""Keys and indices from the arguments down to a value."""


class Lost(msgspec.Struct, frozen=True):
    """A value that JSON has no word for."""

    place: Place
    fault: str
    """What is wrong, in words that hold no value."""


class Plain(msgspec.Struct, frozen=True):
    """A value as JSON."""

    value: Any
    lost: list[Lost]
    """What JSON has no word for."""
    is_cut: bool
    """Whether something was left out for its depth or number, or because it holds itself."""
    depth: int
    """Levels of lists and objects inside one another; 0 for a text or number."""


def plain_json(value: Any, *, instead: Callable[[Any], Any], instead_of_key: str | None = None) -> Plain:
    """Return the JSON that `value` means; `instead` gives what stands for a lost value.

    What has a lost key is left out, unless `instead_of_key` stands for the key.

    Nothing is lost by a subclass of str, int, float, list or dict, a tuple, any other mapping, an enum member, and what
    msgspec writes as JSON: UUIDs, dates (as ISO text), sets, dataclasses, structs; nor by paths, pydantic models and
    arrays. Bytes are lost. Never raises.

    >>> plain_json({"pair": (1, 2.0), "x": float("inf")}, instead=lambda value: None).value
    {'pair': [1, 2.0], 'x': None}
    """
    one = _Pass(instead, instead_of_key)
    return Plain(one.of(value, ()), one.lost, one.is_cut, one.depth)


class _Pass:
    def __init__(self, instead: Callable[[Any], Any], instead_of_key: str | None) -> None:
        self.instead = instead
        self.instead_of_key = instead_of_key
        self.lost: list[Lost] = []
        self.left = MOST_VALUES
        self.depth = 0
        self.is_cut = False
        self.around: set[int] = set()  # the containers that the present value stands in

    def of(self, value: Any, place: Place) -> Any:
        try:
            return self._of(value, place)
        except Exception:  # the value's own code: its class, its iteration, its properties
            return self._without(value, place, f"is of type {_type_name(value)} and cannot be read")

    def _of(self, value: Any, place: Place) -> Any:
        if value is None or value is True or value is False:
            return value
        if isinstance(value, enum.Enum):
            return self.of(value.value, place)
        if isinstance(value, str):
            return self._text(str.__str__(value), place)
        if isinstance(value, int):
            return self._integer(int.__int__(value), place)
        if isinstance(value, float):
            return self._number(float.__float__(value), place)
        if isinstance(value, Decimal):  # a validator takes it as the number it is
            return self._number(value, place)
        return self._entered(value, place)

    def _text(self, text: str, place: Place) -> Any:
        if _is_encodable(text):
            return text
        return self._without(text, place, f"holds {_HALF}")

    def _integer(self, number: int, place: Place) -> Any:
        return number if number.bit_length() <= 4 * _MOST_DIGITS else self._without(number, place, _TOO_LONG)

    def _number(self, number: float | Decimal, place: Place) -> Any:
        if isinstance(number, Decimal) and number.is_finite() and abs(number.adjusted()) > _MOST_DIGITS:
            return self._without(number, place, _TOO_LONG)
        if number.is_finite() if isinstance(number, Decimal) else math.isfinite(number):
            return number
        return self._without(number, place, f"is {number}, which is no JSON number")

    def _entered(self, value: Any, place: Place) -> Any:
        if len(place) >= DEEPEST:
            return self._cut(place, f"is nested more than {DEEPEST} levels deep")
        if id(value) in self.around:
            return self._cut(place, "holds itself")
        self.around.add(id(value))
        self.depth = max(self.depth, len(place) + 1)
        try:
            return self._container(value, place)
        finally:
            self.around.discard(id(value))

    def _container(self, value: Any, place: Place) -> Any:
        is_mapping = isinstance(value, Mapping)
        if is_mapping:
            return self._pairs(cast("Mapping[Any, Any]", value), place)
        if isinstance(value, (list, tuple, set, frozenset)):
            return self._items(cast("Iterable[Any]", value), place)
        if isinstance(value, (datetime, time)) and value.tzinfo is None:
            return f"{value.isoformat()}Z"  # a format asks for a zone, and Python values have none by default
        if isinstance(value, PurePath):
            return self._text(str(value), place)
        if isinstance(value, (bytes, bytearray, memoryview)):
            return self._without(cast("Any", value), place, f"is of type {_type_name(value)}, which is no JSON")
        return self._object(cast("Any", value), place)

    def _object(self, value: Any, place: Place) -> Any:
        kind = _class_of(value)
        if hasattr(kind, "model_dump"):
            return self.of(value.model_dump(warnings=False), place)
        if hasattr(kind, "dtype") and hasattr(kind, "tolist"):
            return self.of(value.tolist(), place)
        try:
            plain = msgspec.to_builtins(value, enc_hook=_as_base)
        except TypeError:
            return self._without(value, place, f"is of type {_type_name(value)}, which is no JSON")
        return self.of(plain, place)

    def _pairs(self, pairs: Mapping[Any, Any], place: Place) -> dict[str, Any]:
        plain: dict[str, Any] = {}
        for key, item in pairs.items():
            if self._is_spent(place):
                break
            name = self._name(key, place)
            if name is not None:
                plain[name] = self.of(item, (*place, name))
        return plain

    def _name(self, key: Any, place: Place) -> str | None:
        if isinstance(key, str) and _is_encodable(key):
            return str.__str__(key)
        half = isinstance(key, str)
        fault = f"has a key with {_HALF}" if half else f"has a key of type {_type_name(key)}; keys are texts"
        self.lost.append(Lost(place, fault))
        return self.instead_of_key

    def _items(self, items: Iterable[Any], place: Place) -> list[Any]:
        plain: list[Any] = []
        for index, item in enumerate(items):
            if self._is_spent(place):
                break
            plain.append(self.of(item, (*place, index)))
        return plain

    def _is_spent(self, place: Place) -> bool:
        self.left -= 1
        if self.left == -1:
            self._cut(place, f"holds more than {MOST_VALUES} values in all")
        return self.left < 0

    def _without(self, value: Any, place: Place, fault: str) -> Any:
        self.lost.append(Lost(place, fault))
        return self.instead(value)

    def _cut(self, place: Place, fault: str) -> None:
        # None rather than `instead`: what is cut is what a validator must not walk into.
        self.is_cut = True
        self.lost.append(Lost(place, fault))


_HALF: Final = "half a surrogate pair, which is no character"


def _is_encodable(text: str) -> bool:
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _class_of(value: Any) -> Any:
    return cast("Any", type(value))


def _type_name(value: Any) -> str:
    return str(_class_of(value).__name__)


def _as_base(value: Any) -> Any:
    """Return a subclass of a built-in class as that class, where msgspec meets one inside a dataclass or struct."""
    bases: tuple[Any, ...] = (str, int, float, dict, list)
    for base in bases:
        if isinstance(value, base):
            return base(value)
    raise TypeError
