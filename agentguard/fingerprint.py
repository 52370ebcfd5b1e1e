"""Canonical bytes of any Python value: equal bytes mean equal JSON meaning."""

from __future__ import annotations

from typing import Any

import orjson
import xxhash


def canonical(value: Any) -> bytes:
    """Return the canonical JSON bytes of `value`."""
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)


def fingerprint(value: Any) -> bytes:
    """Return canonical bytes, or their 16-byte digest where they are long."""
    data = canonical(value)
    return data if len(data) <= 64 else xxhash.xxh3_128_digest(data)
