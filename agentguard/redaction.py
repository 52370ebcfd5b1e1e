"""Taking secrets out of values before they leave the process, and cutting what is too long."""

from __future__ import annotations

import dataclasses
import enum
import functools
import math
import re
from collections.abc import Iterator, Mapping, Set
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from pathlib import PurePath
from typing import Any, Final, cast
from uuid import UUID

import msgspec
import orjson

from agentguard.errors import PolicyError

REDACTED: Final = "[redacted]"

KEYS: Final = (
    r"pass(?:word|wd|phrase|code)?s?",
    r"pwd",
    r"secrets?",
    r"(?<!page[-_ ])(?<!next[-_ ])(?<!sync[-_ ])(?<!continuation[-_ ])token",  # those say where to go on reading
    r"(?:api|private|signing|encryption|access|secret)[-_ ]?key",
    r"auth(?:orization)?",
    r"(?:set-)?cookies?",
    r"credentials?",
    r"connection[-_ ]?string",
    r"otp",
)
"""Names of keys whose values are secrets, each a pattern for the whole name or for its last part."""

_STEMS: Final = ("pass", "pwd", "secret", "token", "key", "auth", "cookie", "credential", "connection", "otp")
"""In lower case: a text without any of them has none of `KEYS`."""

_SHAPES: Final = {
    r"[Bb]earer\s+[A-Za-z0-9._~+/=-]{8,}": "earer",
    r"sk-(?<![A-Za-z0-9]sk-)[A-Za-z0-9_-]{16,}": "sk-",
    r"gh[pousr]_[A-Za-z0-9]{20,}": "gh",
    r"github_pat_[A-Za-z0-9_]{20,}": "github_pat_",
    r"glpat-[A-Za-z0-9_-]{20,}": "glpat-",
    r"xox[abprs]-[A-Za-z0-9-]{10,}": "xox",
    r"[sr]k_live_[A-Za-z0-9]{16,}": "k_live_",
    r"AKIA[A-Z0-9]{16}": "AKIA",
    r"ASIA[A-Z0-9]{16}": "ASIA",
    r"AIza[A-Za-z0-9_-]{30,}": "AIza",
    r"eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}": "eyJ",
    r"(?<=://)[^/\s:@]{1,64}:[^/\s@]{1,256}(?=@)": "://",
    r"-----BEGIN [A-Z ]{0,32}PRIVATE KEY-----.{0,8192}?(?:-----END [A-Z ]{0,32}PRIVATE KEY-----|\Z)": "-----BEGIN",
}
# To each the letters it cannot do without: most texts hold none of them, and looking for letters costs a tenth.

PATTERNS: Final = tuple(_SHAPES)
"""Shapes of secrets in texts: bearer headers, passwords in addresses, and the keys of common providers."""

EMAILS: Final = r"\b[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,8}\b"
"""A shape that is not looked for unless asked: `Redaction(patterns=(*PATTERNS, EMAILS))`."""

_DEEPEST: Final = 60
_MOST_ITEMS: Final = 1_000
_LONGEST_KEY: Final = 256
_SHORT: Final = 80
_MARGIN: Final = 8_400
"""No shape needs more characters than this to be known as one."""
_ITEM_CHARS: Final = 4
"""What a value that is no text counts against the total."""


class Redacted(msgspec.Struct, frozen=True):
    """A value that may leave the process."""

    value: Any
    """JSON data only: dicts with texts as keys, lists, texts, finite numbers, True, False and None."""
    secrets: bool
    """Whether a secret was taken out."""
    cut: bool
    """Whether something was left out for its size, depth or kind."""

    @property
    def json(self) -> str:
        """The value as JSON text, keys sorted."""
        try:
            return orjson.dumps(self.value, option=orjson.OPT_SORT_KEYS).decode()
        except TypeError:  # an integer of more than 64 bits
            import json

            return json.dumps(self.value, sort_keys=True, ensure_ascii=False, separators=(",", ":"))


class Redaction(msgspec.Struct, frozen=True, kw_only=True):
    """What is taken out, and how much may stay. A pattern that does not compile is a PolicyError.

    >>> Redaction().value({"user": "ann", "api_key": "k-123", "note": "curl -H 'Authorization: Basic YW5uOng='"})
    {'user': 'ann', 'api_key': '[redacted]', 'note': "curl -H 'Authorization: [redacted]'"}
    """

    keys: tuple[str, ...] = KEYS
    """Patterns for names of keys, whatever their case; also where a text says `name=value` or `"name": "value"`."""
    patterns: tuple[str, ...] = PATTERNS
    """Patterns for parts of texts."""
    max_chars: int = 4_096
    """Longer texts are cut inside the value, so that what is left is still JSON, and say how much is missing."""
    max_total_chars: int = 65_536
    """All texts of one value together."""

    def __post_init__(self) -> None:
        for name, patterns in (("keys", self.keys), ("patterns", self.patterns)):
            for pattern in patterns:
                _check(f"redaction.{name}", pattern)

    def apply(self, value: Any) -> Redacted:
        """Return a copy of any value without secrets, and what was done to it. Never raises."""
        one = _Pass(self)
        return Redacted(one.of(value, 0), one.secrets, one.cut)

    def value(self, value: Any) -> Any:
        """Return a copy of any value without secrets, as JSON data. Never raises."""
        return self.apply(value).value

    def text(self, text: str) -> str:
        """Return a text without secrets and not too long."""
        return _Pass(self).text(text)

    def is_secret(self, key: str) -> bool:
        """Whether the value under this key is a secret by its name."""
        return _is_secret(self.keys, key[-_LONGEST_KEY:])


class _Pass:
    """One value on its way out."""

    __slots__ = ("cut", "left", "rules", "secrets")

    def __init__(self, rules: Redaction) -> None:
        self.rules = rules
        self.left = rules.max_total_chars
        self.secrets = False
        self.cut = False

    def of(self, value: Any, depth: int) -> Any:
        try:
            return self._of(value, depth)
        except Exception:  # the value's own code: its class, its iteration, its text
            return self._left_out("unreadable")

    def text(self, text: str) -> str:
        """Clean, then cut. What a shape might begin in is never all of what is kept, so no half of a secret stays."""
        longest = min(self.rules.max_chars, max(self.left, 0))
        clean = self._cleaned(text[: longest + _MARGIN])
        if len(text) > longest + _MARGIN:
            clean = clean[: max(len(clean) - _MARGIN, 0)]
        kept = clean[:longest]
        self.left -= len(kept)
        missing = len(clean) - len(kept) + max(len(text) - longest - _MARGIN, 0)
        if not missing and len(text) <= longest + _MARGIN:
            return kept
        self.cut = True
        return f"{kept}[... {max(missing, 1)} characters more]"

    def _cleaned(self, text: str) -> str:
        rules = self.rules
        clean = (_clean_short if len(text) <= _SHORT else _clean)(rules.keys, rules.patterns, text)
        self.secrets = self.secrets or clean != text
        return clean

    def _of(self, value: Any, depth: int) -> Any:
        if value is None or value is True or value is False:
            return value
        if isinstance(value, str):
            return self.text(str.__str__(value))
        self.left -= _ITEM_CHARS
        if self.left < 0 or depth > _DEEPEST:
            return self._left_out("more")
        if isinstance(value, (int, float)):
            return self._number(value)
        return self._container(value, depth + 1)

    def _number(self, value: float) -> Any:
        if isinstance(value, float):
            return float.__float__(value) if math.isfinite(value) else None
        number = int.__int__(value)
        return number if number.bit_length() <= 128 else self._left_out(f"integer of {number.bit_length()} bits")

    def _container(self, value: Any, depth: int) -> Any:
        kind = cast("Any", type(value))
        if issubclass(kind, Mapping):
            return self._pairs(value.items(), depth)
        names: Any = getattr(kind, "_fields", None)
        if names is not None and issubclass(kind, tuple):
            return list(self._pairs(zip(names, value, strict=True), depth).values())
        if issubclass(kind, (list, tuple, Set)):
            return self._items(value, depth)
        if issubclass(kind, enum.Enum):
            return self.of(value.value, depth)
        if issubclass(kind, _AS_TEXT):
            return self.text(str(value))
        names = _field_names(kind)
        if names is not None:
            return self._pairs(((name, getattr(value, name)) for name in names), depth)
        return self._left_out(f"{len(value)} bytes" if issubclass(kind, _BYTES) else _type_name(kind))

    def _pairs(self, pairs: Any, depth: int) -> dict[str, Any]:
        kept: dict[str, Any] = {}
        for index, (key, item) in enumerate(pairs):
            if index == _MOST_ITEMS or self.left < 0:
                kept["..."] = self._left_out("more")
                break
            name = self._cleaned(str(key)[:_LONGEST_KEY])
            self.left -= len(name)
            kept[name] = self._secret() if self.rules.is_secret(name) else self.of(item, depth)
        return kept

    def _items(self, items: Any, depth: int) -> list[Any]:
        kept: list[Any] = []
        for index, item in enumerate(items):
            if index == _MOST_ITEMS or self.left < 0:
                kept.append(self._left_out(f"{len(items) - index} more"))
                break
            kept.append(self.of(item, depth))
        return kept

    def _secret(self) -> str:
        self.secrets = True
        return REDACTED

    def _left_out(self, what: str) -> str:
        self.cut = True
        return f"[{what}]"


_BYTES: Final = (bytes, bytearray, memoryview)
_AS_TEXT: Final = (Decimal, UUID, datetime, date, time, timedelta, PurePath)


@functools.lru_cache(maxsize=256)
def _field_names(kind: type) -> tuple[str, ...] | None:
    """Return the declared fields of a dataclass, attrs class, msgspec struct or pydantic model; None for others."""
    if dataclasses.is_dataclass(kind):
        return tuple(field.name for field in dataclasses.fields(kind))
    return next((tuple(names) for names in _declared(kind) if names is not None), None)


def _declared(kind: Any) -> Iterator[Any]:
    yield getattr(kind, "__struct_fields__", None)
    attrs = getattr(kind, "__attrs_attrs__", None)
    yield None if attrs is None else [field.name for field in attrs]
    yield getattr(kind, "__pydantic_fields__", None)


def _type_name(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"


# ---------------------------------------------------------------- patterns

_HUMP: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_NAME: Final = re.compile(r"""(?<![\w.-])([\w.-]++)\\*["']?\s{0,3}[:=]\s{0,3}""")
_VALUE: Final = re.compile(
    r"""(?P<mark>")(?:[^"\\]|\\.)*+"?"""
    r"""|(?P<escaped>\\++")[^"]*+"?"""  # JSON inside JSON
    r"""|(?P<single>')[^'\n]*+'?"""
    r"""|(?:(?:Basic|Bearer|Digest|Token)\s{1,3})?[^\s,;&"'}\])]++""",
    re.DOTALL | re.IGNORECASE,
)


def _clean(keys: tuple[str, ...], patterns: tuple[str, ...], text: str) -> str:
    if not text.isascii():
        text = text.encode("utf-8", "replace").decode()
    if keys and (":" in text or "=" in text) and _may_hold(keys, text):
        text = "".join(_without_assigned(keys, text))
    for pattern in patterns:
        if _SHAPES.get(pattern, "") in text:
            text = _compiled(pattern).sub(REDACTED, text)
    return text


def _may_hold(keys: tuple[str, ...], text: str) -> bool:
    if keys is not KEYS:
        return True
    lower = text.lower()
    return any(stem in lower for stem in _STEMS)


_clean_short = functools.lru_cache(maxsize=4_096)(_clean)


def _without_assigned(keys: tuple[str, ...], text: str) -> Iterator[str]:
    """Yield the text without the values of `name=value`, `name: value` and `"name": "value"` that are secrets."""
    done = 0
    for name in _NAME.finditer(text):
        if name.start() < done or not _is_secret(keys, name[1][-_LONGEST_KEY:]):
            continue
        value = _VALUE.match(text, name.end())
        if value is not None:
            mark = value["mark"] or value["escaped"] or value["single"] or ""
            yield text[done : name.end()] + mark + REDACTED + (mark if value[0].endswith(mark) else "")
            done = value.end()
    yield text[done:]


def _check(key: str, pattern: str) -> None:
    try:
        re.compile(pattern)
    except re.error as fault:
        raise PolicyError(key, f"{pattern!r} is no regular expression: {fault}") from None


@functools.lru_cache(maxsize=256)
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.DOTALL)


@functools.lru_cache(maxsize=32)
def _last_part(keys: tuple[str, ...]) -> re.Pattern[str]:
    any_of = "|".join(f"(?:{key})" for key in keys)
    return re.compile(rf"(?:^|[-_. ])(?:{any_of})$", re.IGNORECASE)


@functools.lru_cache(maxsize=4_096)
def _is_secret(keys: tuple[str, ...], name: str) -> bool:
    return bool(keys) and _last_part(keys).search(_HUMP.sub("_", name)) is not None
