"""Taking secrets out of values before they leave the process, and cutting what is too long."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec

from agentguard.fingerprint import canonical

REDACTED: Final = "[redacted]"

KEYS: Final = (
    r"pass(word|wd|phrase)?",
    r"secret",
    r"(access|auth|refresh|id|api|bearer|session)?[-_ ]?token",
    r"api[-_ ]?key",
    r"(private|signing|encryption|access)[-_ ]?key",
    r"authorization",
    r"cookie|set-cookie",
    r"credentials?",
    r"client[-_ ]?secret",
)
"""Names of keys whose values are secrets, each as a pattern for the whole name or its last part."""

PATTERNS: Final = (
    r"\bBearer\s+[A-Za-z0-9._~+/=-]{8,}",
    r"\bsk-[A-Za-z0-9_-]{16,}",
    r"\bgh[pousr]_[A-Za-z0-9]{20,}",
    r"\bgithub_pat_[A-Za-z0-9_]{20,}",
    r"\bxox[abprs]-[A-Za-z0-9-]{10,}",
    r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b",
    r"\bAIza[A-Za-z0-9_-]{30,}",
    r"\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}",
    r"-----BEGIN [A-Z ]*PRIVATE KEY-----.{0,8192}?-----END [A-Z ]*PRIVATE KEY-----",
)
"""Shapes of secrets in texts: bearer headers and the keys of common providers."""

_DEEPEST = 60
_MOST_ITEMS = 1_000


class Redaction(msgspec.Struct, frozen=True, kw_only=True):
    """What is taken out, and how long a text may be.

    >>> Redaction().value({"user": "ann", "api_key": "k-123", "note": "Authorization: Bearer abcdefgh12"})
    {'user': 'ann', 'api_key': '[redacted]', 'note': 'Authorization: [redacted]'}
    """

    keys: tuple[str, ...] = KEYS
    """Patterns for names of keys, whatever their case."""
    patterns: tuple[str, ...] = PATTERNS
    """Patterns for parts of texts."""
    max_chars: int = 4_096
    """Longer texts are cut inside the value, so that what is left is still JSON, and say how much is missing."""

    def value(self, value: Any) -> Any:
        """Return a copy of JSON-like data without secrets; what is too deep, too many or no JSON becomes text."""
        return self._of(value, 0)

    def text(self, text: str) -> str:
        """Return a text without secrets and not too long."""
        return self._cut(_compiled(self.patterns, 0).sub(REDACTED, text) if self.patterns else text)

    def is_secret(self, key: str) -> bool:
        """Whether the value under this key is a secret by its name."""
        return bool(self.keys) and _compiled_keys(self.keys).search(key) is not None

    def _of(self, value: Any, depth: int) -> Any:
        if value is None or isinstance(value, (bool, int, float)):
            return value
        if isinstance(value, str):
            return self.text(value)
        if depth >= _DEEPEST:
            return "[too deep]"
        if isinstance(value, Mapping):
            return self._of_mapping(value, depth)
        if isinstance(value, (list, tuple)):
            return self._of_items(value, depth)
        return self.text(canonical(value).decode("utf-8", "replace"))

    def _of_mapping(self, value: Mapping[Any, Any], depth: int) -> dict[str, Any]:
        redacted: dict[str, Any] = {}
        for index, (key, item) in enumerate(value.items()):
            if index == _MOST_ITEMS:
                redacted["..."] = f"[{len(value) - index} more]"
                break
            name = str(key)
            redacted[name] = REDACTED if self.is_secret(name) else self._of(item, depth + 1)
        return redacted

    def _of_items(self, value: list[Any] | tuple[Any, ...], depth: int) -> list[Any]:
        kept = [self._of(item, depth + 1) for item in value[:_MOST_ITEMS]]
        return kept if len(value) <= _MOST_ITEMS else [*kept, f"[{len(value) - _MOST_ITEMS} more]"]

    def _cut(self, text: str) -> str:
        missing = len(text) - self.max_chars
        return text if missing <= 0 else f"{text[: self.max_chars]}[... {missing} characters more]"


_cache: dict[tuple[Any, ...], re.Pattern[str]] = {}


def _compiled(patterns: Iterable[str], flags: int) -> re.Pattern[str]:
    key = (*patterns, flags)
    if key not in _cache:
        _cache[key] = re.compile("|".join(f"(?:{pattern})" for pattern in patterns), flags | re.DOTALL)
    return _cache[key]


def _compiled_keys(keys: tuple[str, ...]) -> re.Pattern[str]:
    key = ("keys", *keys)
    if key not in _cache:
        whole = "|".join(f"(?:{pattern})" for pattern in keys)
        _cache[key] = re.compile(rf"(?:^|[-_. ])(?:{whole})$", re.IGNORECASE)
    return _cache[key]
