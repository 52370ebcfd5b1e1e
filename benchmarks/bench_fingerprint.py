"""What a fingerprint costs against a bare `orjson.dumps` with sorted keys: `python -m benchmarks.bench_fingerprint`."""

from __future__ import annotations

import random
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import orjson

from agentguard.fingerprint import fingerprint, result_token
from benchmarks.paired import Case, Work, main

TARGET = 1.5
_SORTED = orjson.OPT_SORT_KEYS
_dumps = orjson.dumps


def _sorted_json(value: Any) -> Work:
    return lambda: _dumps(value, option=_SORTED)


def _fingerprint(value: Any) -> Work:
    return lambda: fingerprint(value)


def _nested(count: int) -> dict[str, Any]:
    filters = [
        {"field": f"field_{i}", "op": "in", "values": [i, i + 1, "open"], "not": i % 2 == 0} for i in range(count)
    ]
    return {"filters": filters, "order": ["created", "id"], "page": {"size": 50, "after": None}}


def _rows(count: int, price: Any) -> dict[str, Any]:
    row = ({"id": i, "name": f"user {i}", "price": price(i), "qty": i % 7, "ok": True, "tags": ["a", "b"]}
           for i in range(count))  # fmt: skip
    return {"rows": list(row)}


def values() -> dict[str, Any]:
    """Return what is fingerprinted, by name."""
    draw = random.Random(7)
    code = 'def area(self):\n    """Return the area. See v2.0, or "notes"."""\n    return 1.0 * self.width\n'
    return {
        "46 B": {"city": "Berlin", "days": 3, "metric": True},
        "46 B with a dot": {"path": "src/main.py", "from": 10, "to": 60},
        "46 B with 1.0": {"city": "Berlin", "days": 3.0, "metric": 1},
        "1.5 kB nested": _nested(22),
        "100 kB prose": {"path": "notes", "text": ("the quick brown fox jumps over the lazy dog\n" * 2300)[:100_000]},
        "100 kB code": {"path": "shapes.py", "text": (code * 1200)[:100_000]},
        "1 MB rows": _rows(12_500, lambda i: i * 3),
        "1 MB rows, fractions": _rows(12_000, lambda _: draw.randrange(10**4) + 0.25),
        "1 MB rows, 1 in 100 whole": _rows(12_000, lambda i: i + (0.25 if i % 100 else 0.0)),
        "1 MB rows, all whole": _rows(12_000, float),
    }


def cases() -> list[Case]:
    """Return fingerprints with the target, and what lies beyond it without."""
    beyond = {"46 B with 1.0", "1 MB rows, 1 in 100 whole", "1 MB rows, all whole"}
    found = [
        Case(
            name=name,
            work=_fingerprint(value),
            reference=_sorted_json(value),
            target=None if name in beyond else TARGET,
        )
        for name, value in values().items()
    ]
    for name, value in {"id of 18 digits": {"user": 123456789012345678}, "bytes": {"data": b"abc", "n": 1}}.items():
        found.append(Case(name=name, work=_fingerprint(value), reference=_sorted_json({"data": "abc", "n": 1})))
    text = "3 passed, 0 failed in 0.03s\n" + "tests/test_a.py ok\n" * 50
    found.append(Case(name="1 kB result text", work=lambda: result_token(text), reference=_sorted_json(text)))
    return found


if __name__ == "__main__":
    main(cases())
