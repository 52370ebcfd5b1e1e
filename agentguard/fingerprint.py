"""Canonical bytes of any Python value: what 'the same arguments' and 'the same result' mean.

Two values are the same when they mean the same JSON, and where JSON has no word for them, when they have the same
type and the same contents:

- the order of keys never matters, at any depth; the order of a list does; a tuple is a list; any mapping is a dict
- numbers are equal by value: 1, 1.0 and Decimal("1.00") are the same, and -0.0 is 0; big integers are exact;
  True is no number, and no text is a number
- NaN and the infinities are null, which is what they become on the wire
- a subclass of str, int, float, list, tuple or dict counts as its base, an enum member as its value, a UUID as its
  text, an array (numpy and whatever else has `dtype` and `tolist`) as the list of its items
- the key 1 is not the key "1"
- bytes, bytearray and memoryview are equal by contents and are no text; a set has no order and is no list;
  datetime, date and time are equal by their ISO text, paths by theirs, and neither is a text
- dataclasses, attrs classes, msgspec structs (by fields), pydantic models (by `model_dump`) and other objects (by
  what pickle and copy would keep) are equal by type and contents, and are never a dict
- iterators, generators, functions, modules, locks and whatever cannot be looked into without changing it are equal to
  themselves only, in one process

No value makes these functions raise, however it misbehaves, and nothing lazy is consumed.

Two limits. orjson 3.12.0 and 3.13.0 (not 3.11.4) count the depth of lists and dicts but not of tuples, and crash on
ten thousand tuples directly inside one another. And a value that holds the same list twice at every level is written
out in full, as by any JSON encoder, so it grows with two to the depth. Neither can come from JSON.
"""

from __future__ import annotations

import copyreg
import dataclasses
import itertools
import json
import re
import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime, time
from decimal import Decimal
from enum import Enum
from hashlib import blake2b
from pathlib import PurePosixPath, PureWindowsPath
from typing import Any, Final, cast
from uuid import UUID

import orjson
import xxhash

SHORT: Final = 128
"""Canonical bytes up to this length are their own fingerprint."""

OBJECTS: Final = 10_000
"""Plain objects that one object may hold before the rest are told apart by identity, so that an argument which drags
a whole application behind it costs milliseconds."""

_dumps = orjson.dumps
_digest = xxhash.xxh3_128_digest
_LOOSE: Final = orjson.OPT_SORT_KEYS | orjson.OPT_PASSTHROUGH_DATACLASS | orjson.OPT_PASSTHROUGH_DATETIME
# Strict: integers from 2**53 up raise, so that those equal to a float get the float's text in `_loose`.
_STRICT: Final = _LOOSE | orjson.OPT_STRICT_INTEGER
_POINT: Final = ord(".")
_QUOTE: Final = ord('"')
_whole_float = re.compile(rb"\.0(?:[,\]}]|\Z)").search


def canonical(value: Any) -> bytes:
    """Return the canonical bytes of `value`: equal for two values iff they are the same (see the module's text).

    They are JSON with sorted keys wherever JSON can say it, and never raise.

    >>> canonical({"b": (1.0, None), "a": "x"})
    b'{"a":"x","b":[1,null]}'
    >>> canonical({1: b"x"})
    b'{1:#"bytes""78"}'
    """
    try:
        data = _dumps(value, _hook, _STRICT)
    except Exception:
        return _loose(value)
    return _settled(value, data) if _POINT in data else data


def fingerprint(value: Any) -> bytes:
    """Return `canonical(value)`, or a zero byte and its 16-byte digest where it is longer than `SHORT`.

    >>> fingerprint({"page": 1, "q": "cats"}) == fingerprint({"q": "cats", "page": 1.0})
    True
    >>> fingerprint(1) == fingerprint(True) or fingerprint(1) == fingerprint("1")
    False
    >>> len(fingerprint("x" * 1000))
    17
    """
    # `canonical` is repeated here: calling it costs a third of what orjson takes for small arguments.
    try:
        data = _dumps(value, _hook, _STRICT)
    except Exception:
        return _compact(_loose(value))
    if len(data) > SHORT:
        return _compact(_settled(value, data) if _POINT in data else data)
    return _whole(data) if _POINT in data and _whole_float(data) else data


def _compact(data: bytes) -> bytes:
    # No canonical bytes begin with a zero byte, so the two forms never meet.
    return data if len(data) <= SHORT else b"\0" + _digest(data)


def digest(data: bytes, *, key: bytes) -> str:
    """Return 32 hex digits that tell fingerprints apart and cannot be guessed back without `key` (up to 64 bytes).

    >>> digest(fingerprint({"q": "cats"}), key=b"run 1") == digest(fingerprint({"q": "cats"}), key=b"run 2")
    False
    """
    return digester(key)(data)


def digester(key: bytes) -> Callable[[bytes], str]:
    """Return `digest` with this key; keying the hash once halves what a digest costs."""
    keyed = blake2b(key=key, digest_size=16)

    def digest_of(data: bytes) -> str:
        hashed = keyed.copy()
        hashed.update(data)
        return hashed.hexdigest()

    return digest_of


# ---------------------------------------------------------------- results

_ANSI: Final = re.compile(r"\x1b(?:\[[0-?]*+[ -/]*+[@-~]|\][^\x07\x1b]*+(?:\x07|\x1b\\)|[ -/]*+[0-~])")
_UNIT: Final = (
    r"(?:[nuµμm]s|s|m?secs?|(?:nano|micro|milli)?seconds?|mins?|minutes?|hrs?|hours?)(?!\w)"
    # One letter for minutes or hours counts only before a smaller unit: "5m rows" is no duration.
    r"|h ?\d{1,2}m(?!\w)(?: ?\d{1,2}(?:\.\d++)?s(?!\w))?|h ?\d{1,2}m ?\d{1,2}(?:\.\d++)?s(?!\w)"
    r"|m ?\d{1,2}(?:\.\d++)?s(?!\w)"
)
_CLOCK: Final = re.compile(
    # A digit first, and only then a look behind it: the search runs from digit to digit.
    r"[0-9](?<![\w.:][0-9])(?:"
    r"\d{3}[-/]\d\d[-/]\d\d(?:[Tt_]| {1,2})\d\d:\d\d(?::\d\d(?:[.,]\d++)?)?"
    r"(?: ?(?:Z|z|UTC|GMT|[+-]\d\d(?::?\d\d)?)(?!\w))?"
    r"|\d{7}[Tt]\d{4}(?:\d\d(?:[.,]\d++)?)?(?:[Zz]|[+-]\d{4})?(?!\w)"
    r"|\d:[0-5]\d:[0-5]\d(?:[.,]\d++)?(?:Z|z|[+-]\d\d:\d\d)?(?![\w:])"
    # "the 1990s" are no duration.
    rf"|(?!(?<=1)[89]\d0s|(?<=2)0\d0s)\d*+(?:\.\d++)? ?(?:{_UNIT})"
    r")"
)
_has_digit = re.compile(r"[0-9]").search
_STRING: Final = re.compile(rb'"(?:[^"\\]|\\.)*+"')
_may_hold_time = re.compile(rb"[0-9] ?[hmnsu\xc2\xce]|[0-9]:[0-9]|[0-9][Tt][0-9]|\\u001b").search


def normalised(text: str) -> str:
    """Return `text` without what differs between two equal results: ANSI codes, times and durations.

    A time is an ISO 8601 date with a time, or a time with seconds; a duration is a number with a unit from
    nanoseconds to hours. All other digits stay: counters, dates, percentages, sizes.

    >>> normalised("\\x1b[32m3 passed\\x1b[0m in 0.03s at 2026-12-01T10:00:00Z")
    '3 passed in  at '
    """
    if "\x1b" in text:
        text = _ANSI.sub("", text)
    return _CLOCK.sub("", text) if _has_digit(text) else text


def result_token(content: Any, is_error: bool = False) -> bytes:
    """Return the fingerprint of a result, blind to times, durations and ANSI codes in any text inside it.

    An error and a success with the same content differ.

    >>> result_token([{"type": "text", "text": "ok (12 ms)"}]) == result_token([{"type": "text", "text": "ok (9 ms)"}])
    True
    >>> result_token("no such file", True) == result_token("no such file", False)
    False
    """
    return (b"!" if is_error else b"=") + _blind_fingerprint(content)


def _blind_fingerprint(content: Any) -> bytes:
    if type(content) is str:
        return fingerprint(normalised(content))
    data = canonical(content)
    if _may_hold_time(data):
        data = _STRING.sub(_normalised_string, data)
    return _compact(data)


def _normalised_string(match: re.Match[bytes]) -> bytes:
    raw = match[0]
    if not _may_hold_time(raw):
        return raw
    return _text(normalised(json.loads(raw.decode(*_UTF8))))


# ---------------------------------------------------------------- the fast path: what orjson wrote, numbers settled


def _hook(value: Any) -> Any:
    """Give orjson the items of an array, and the canonical bytes of whatever else it cannot write."""
    items = _array_items(value)
    return items if items is not None else orjson.Fragment(_Slow().encode(value))


def _loose(value: Any) -> bytes:
    """Return the canonical bytes of a value that the strict fast path refused."""
    try:
        data = _dumps(value, _hook, _LOOSE)
    except Exception:
        return _Slow().encode(value)
    return _outside_strings(_LONG, _settled(value, data), lambda match: _integer(int(match[0])))


def _settled(value: Any, data: bytes) -> bytes:
    """Return `data` with its whole floats, if there are any, written as integers."""
    if len(data) >= _LARGE and _has_no_float(value, len(data) // _LARGE + 8):
        return data
    return _whole(data) if _whole_float(data) else data


def _whole(data: bytes) -> bytes:
    if b"-0.0" in data:
        data = _outside_strings(_MINUS_ZERO, data, lambda _: b"0")
    return _outside_strings(_WHOLE, data, lambda _: b"")


_LARGE: Final = 2048
_WHOLE: Final = re.compile(rb"\.0(?=[,\]}]|\Z)")
_MINUS_ZERO: Final = re.compile(rb"-0\.0(?=[,\]}]|\Z)")
_LONG: Final = re.compile(rb"(?<![0-9.])[0-9]{16,20}(?![0-9.e])")


def _has_no_float(value: Any, most: int) -> bool:
    """Look at `most` values at the most: a few long texts are told by this sooner than by reading their bytes."""
    stack = [value]
    for _ in range(most):
        if not stack:
            return True
        item = stack.pop()
        kind = cast("Any", type(item))
        if kind is str:
            continue
        if kind is dict and len(item) <= most:
            stack.extend(item.values())
        elif kind in _LISTS and len(item) <= most:
            stack.extend(item)
        elif kind not in _NO_FLOATS:
            return False
    return not stack


_LISTS: Final = frozenset({list, tuple})
_NO_FLOATS: Final = frozenset({int, bool, type(None)})


def _outside_strings(pattern: re.Pattern[bytes], data: bytes, replacement: Callable[[re.Match[bytes]], bytes]) -> bytes:
    """Replace what `pattern` finds between the strings of canonical bytes."""
    # Raw control bytes never occur in JSON, so they can stand for the escapes that hide where a string ends.
    escaped = b"\\" in data
    if escaped:
        data = data.replace(b"\\\\", b"\0").replace(b'\\"', b"\1")
    out: list[bytes] = []
    quotes = seen = done = 0
    for match in pattern.finditer(data):
        start = match.start()
        quotes += data.count(_QUOTE, seen, start)
        seen = start
        if quotes % 2 == 0:
            out += data[done:start], replacement(match)
            done = match.end()
    out.append(data[done:])
    data = b"".join(out)
    return data.replace(b"\1", b'\\"').replace(b"\0", b"\\\\") if escaped else data


# ---------------------------------------------------------------- scalars

_UTF8: Final = ("utf-8", "surrogatepass")
_escape = json.JSONEncoder(ensure_ascii=False).encode


def _text(value: str) -> bytes:
    return _escape(str.__str__(value)).encode(*_UTF8)


def _tag(kind: type, data: bytes) -> bytes:
    """Mark `data` as the contents of a type that JSON lacks; `#` begins no JSON value."""
    return b"#" + _text(_type_name(kind)) + data


def _type_name(kind: type) -> str:
    module = type.__getattribute__(kind, "__module__")
    name: str = type.__getattribute__(kind, "__qualname__")
    # A class may have a property of that name, which its own look-up finds first.
    return f"{module}.{name}" if type(module) is str and module != "builtins" else name


def _integer(value: int) -> bytes:
    if -(2**53) < value < 2**53:
        return b"%d" % value
    try:
        nearest = float(value)
    except OverflowError:
        return b'#"int""%x"' % value
    if nearest == value:
        return _float(nearest)
    return b"%d" % value if -(2**63) <= value < 2**64 else b'#"int""%x"' % value


def _float(value: float) -> bytes:
    data = _dumps(value)
    if not data.endswith(b".0"):
        return data
    return data[:-2] if value else b"0"


def _decimal(value: Decimal) -> bytes:
    if not value.is_finite():
        return _tag(Decimal, _text(str(value)))
    if value and not -400 < value.adjusted() < 400:
        return _tag(Decimal, _text(_shortest(value)))
    above, below = value.as_integer_ratio()
    if below == 1:
        return _integer(above)
    nearest = above / below
    return _float(nearest) if Decimal(nearest) == value else _tag(Decimal, _text(_shortest(value)))


def _shortest(value: Decimal) -> str:
    """Return digits and exponent without the zeros at the end; `normalize` would round to the context."""
    sign, digits, exponent = value.as_tuple()
    whole = "".join(map(str, digits))
    short = whole.rstrip("0")
    return f"{'-' if sign else ''}{short}e{int(exponent) + len(whole) - len(short)}"


# ---------------------------------------------------------------- identity

_serials = itertools.count(1)
_known: OrderedDict[int, tuple[int, Callable[[], Any]]] = OrderedDict()
_known_lock = threading.Lock()
_KNOWN: Final = 1024


def _identity(value: Any) -> int:
    """Return a number that only this object has; no number is given twice, as an address would be.

    What takes no weak reference is kept alive until `_KNOWN` other objects have passed.
    """
    with _known_lock:
        known = _known.get(id(value))
        if known is not None and known[1]() is value:
            return known[0]
        serial = next(_serials)
        _known[id(value)] = (serial, _reference(value))
        if len(_known) > _KNOWN:
            _known.popitem(last=False)
        return serial


def _reference(value: Any) -> Callable[[], Any]:
    try:
        return weakref.ref(value)
    except TypeError:
        return lambda: value


# ---------------------------------------------------------------- the slow path: every value, without recursion


def _class_of(value: Any) -> Any:
    return cast("Any", type(value))


def _raw(base: Any) -> Any:
    """Name a built-in class whose methods are meant, whatever a subclass makes of them."""
    return base


_Step = tuple[Callable[..., None], Any]


class _Slow:
    """Writes the same bytes as the fast path, value by value from a stack of steps."""

    def __init__(self) -> None:
        self.out: list[bytes] = []
        self.steps: list[_Step] = []
        self.open: dict[int, int] = {}  # the containers around the present value: id -> depth
        self.objects = 0

    def encode(self, value: Any) -> bytes:
        self.steps.append((self.value, value))
        while self.steps:
            step, argument = self.steps.pop()
            step(argument)
        return b"".join(self.out)

    def value(self, value: Any) -> None:
        try:
            _WRITERS.get(_class_of(value), _Slow.other)(self, value)
        except Exception:  # its class misbehaves in a way nothing here foresaw
            self.by_identity(value)

    def other(self, value: Any) -> None:
        kind = _class_of(value)
        writer = next((_WRITERS[base] for base in kind.__mro__ if base in _WRITERS), None)
        if writer is not None:
            writer(self, value)
        elif hasattr(kind, "__next__") or kind is _BUILT_IN_FUNCTION:
            self.by_identity(value)
        elif issubclass(kind, type):
            self.emit(_tag(type, _text(_type_name(value))))
        else:
            self.contents(value)

    def contents(self, value: Any) -> None:
        self.objects += 1
        if self.objects > OBJECTS:
            return self.by_identity(value)
        for look in _LOOKS:
            found = _seen_by(look, value)
            if found is not None:
                return self.found(look, value, found)
        return self.by_identity(value)

    def found(self, look: Callable[[Any], Any], value: Any, found: Any) -> None:
        if look is _mapping_items:
            self.pairs(value, found)
        else:
            self.items(value, b"" if look is _array_items else _tag(_class_of(value), b""), [found])

    def by_identity(self, value: Any) -> None:
        self.emit(_tag(_class_of(value), b"@%d" % _identity(value)))

    # What writers are made of

    def emit(self, data: bytes) -> None:
        self.out.append(data)

    def entered(self, value: Any) -> bool:
        """Open a container; inside itself write, instead, how many levels up it began."""
        depth = self.open.get(id(value))
        if depth is None:
            self.open[id(value)] = len(self.open)
            return True
        self.emit(b'#"cycle"%d' % (len(self.open) - depth))
        return False

    def leave(self, value: Any) -> None:
        del self.open[id(value)]

    def schedule(self, value: Any, steps: list[_Step]) -> None:
        # `value` rides along to stay alive, or its id could be another's.
        steps.append((self.leave, value))
        self.steps += reversed(steps)

    def items(self, value: Any, before: bytes, items: Sequence[Any], after: bytes = b"") -> None:
        if not self.entered(value):
            return
        steps: list[_Step] = [(self.emit, before)]
        for index, item in enumerate(items):
            if index:
                steps.append((self.emit, b","))
            steps.append((self.value, item))
        steps.append((self.emit, after))
        self.schedule(value, steps)

    def pairs(self, value: Any, pairs: list[tuple[Any, Any]]) -> None:
        if all(issubclass(_class_of(key), str) for key, _ in pairs):
            self.named(value, sorted(((str.encode(key, *_UTF8), key, item) for key, item in pairs), key=_first))
        else:
            self.unordered(value, b"{", pairs, b"}")

    def named(self, value: Any, rows: list[tuple[bytes, str, Any]]) -> None:
        if not self.entered(value):
            return
        steps: list[_Step] = [(self.emit, b"{")]
        for index, (_, key, item) in enumerate(rows):
            steps += (self.emit, (b"," if index else b"") + _text(key) + b":"), (self.value, item)
        steps.append((self.emit, b"}"))
        self.schedule(value, steps)

    def unordered(self, value: Any, before: bytes, groups: Sequence[tuple[Any, ...]], after: bytes) -> None:
        """Write groups of values, joined by `:`, in the order of the bytes they come to."""
        if not self.entered(value):
            return
        marks: list[int] = []
        steps: list[_Step] = [(self.emit, before)]
        for group in groups:
            steps.append((self.mark, marks))
            for index, item in enumerate(group):
                if index:
                    steps.append((self.emit, b":"))
                steps.append((self.value, item))
        steps += (self.sort, marks), (self.emit, after)
        self.schedule(value, steps)

    def mark(self, marks: list[int]) -> None:
        marks.append(len(self.out))

    def sort(self, marks: list[int]) -> None:
        if not marks:
            return
        ends = [*marks[1:], len(self.out)]
        pieces = sorted(b"".join(self.out[start:end]) for start, end in zip(marks, ends, strict=True))
        self.out[marks[0] :] = [b",".join(pieces)]


def _first(row: tuple[Any, ...]) -> Any:
    return row[0]


_Writer = Callable[[_Slow, Any], None]
_WRITERS: Final[dict[type, _Writer]] = {
    type(None): lambda slow, value: slow.emit(b"null"),
    bool: lambda slow, value: slow.emit(b"true" if value else b"false"),
    Enum: lambda slow, value: slow.value(value.value),
    str: lambda slow, value: slow.emit(_text(value)),
    int: lambda slow, value: slow.emit(_integer(int.__int__(value))),
    float: lambda slow, value: slow.emit(_float(float.__float__(value))),
    list: lambda slow, value: slow.items(value, b"[", _raw(list).__getitem__(value, slice(None)), b"]"),
    tuple: lambda slow, value: slow.items(value, b"[", _raw(tuple).__getitem__(value, slice(None)), b"]"),
    dict: lambda slow, value: slow.pairs(value, list(_raw(dict).items(value))),
    set: lambda slow, value: slow.unordered(value, b'#"set"[', [(item,) for item in _raw(set).copy(value)], b"]"),
    frozenset: lambda slow, value: slow.unordered(
        value, b'#"set"[', [(item,) for item in _raw(frozenset).copy(value)], b"]"
    ),
    bytes: lambda slow, value: slow.emit(b'#"bytes"' + _text(bytes.hex(value))),
    bytearray: lambda slow, value: slow.emit(b'#"bytes"' + _text(bytearray.hex(value))),
    memoryview: lambda slow, value: slow.emit(b'#"bytes"' + _text(value.tobytes().hex())),
    Decimal: lambda slow, value: slow.emit(_decimal(value)),
    UUID: lambda slow, value: slow.emit(_text(str(value))),
    datetime: lambda slow, value: slow.emit(_tag(datetime, _text(value.isoformat()))),
    date: lambda slow, value: slow.emit(_tag(date, _text(value.isoformat()))),
    time: lambda slow, value: slow.emit(_tag(time, _text(value.isoformat()))),
    # What pickle keeps of a path depends on what it was asked before (seen with Python 3.13).
    PurePosixPath: lambda slow, value: slow.emit(_tag(PurePosixPath, _text(str(value)))),
    PureWindowsPath: lambda slow, value: slow.emit(_tag(PureWindowsPath, _text(str(value)))),
}
_BUILT_IN_FUNCTION: Final = type(len)


# ---------------------------------------------------------------- looking into objects; None means: not of this kind


def _seen_by(look: Callable[[Any], Any], value: Any) -> Any:
    try:
        return look(value)
    except Exception:  # the object's own code; the next look may do without it
        return None


def _mapping_items(value: Any) -> Any:
    return [(key, item) for key, item in value.items()] if issubclass(_class_of(value), Mapping) else None


def _array_items(value: Any) -> Any:
    if not (hasattr(_class_of(value), "dtype") and hasattr(_class_of(value), "tolist")):
        return None
    items = value.tolist()
    # A long double gives itself back.
    return None if type(items) is _class_of(value) else items


def _model_fields(value: Any) -> Any:
    # Without `warnings` pydantic writes to the host's log when a field holds another type than it declares.
    return value.model_dump(warnings=False) if hasattr(_class_of(value), "model_dump") else None


def _declared_fields(value: Any) -> Any:
    kind = _class_of(value)
    if dataclasses.is_dataclass(kind):
        names = [field.name for field in dataclasses.fields(kind)]
    elif hasattr(kind, "__attrs_attrs__"):
        names = [field.name for field in kind.__attrs_attrs__]
    elif hasattr(kind, "__struct_fields__"):
        names = list(kind.__struct_fields__)
    else:
        return None
    return {name: getattr(value, name) for name in names}


def _pickled(value: Any) -> Any:
    reduce = copyreg.dispatch_table.get(_class_of(value))
    parts = reduce(value) if reduce is not None else value.__reduce_ex__(4)
    if isinstance(parts, str):
        return parts
    _, arguments, *rest = parts
    # What pickle hands over as iterators was made for it, so reading them takes nothing from the value.
    state, items, pairs = (*rest[:3], None, None, None)[:3]
    return [arguments, state, list(items or ()), list(pairs or ())]


def _plain_state(value: Any) -> Any:
    """Return the attributes of an object whose class keeps no other state, but will not be pickled."""
    return (
        object.__getattribute__(value, "__dict__") if _class_of(value).__basicsize__ == _Plain.__basicsize__ else None
    )


class _Plain:
    """A class without state of its own, to compare sizes with."""


_LOOKS: Final = (_mapping_items, _array_items, _model_fields, _declared_fields, _pickled, _plain_state)
