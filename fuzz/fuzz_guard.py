"""Coverage-guided: bytes become tool calls, results and tool behaviours; nothing of the guard's own may be raised.

python fuzz/fuzz_guard.py -runs=20000
"""

from __future__ import annotations

import contextlib
import sys
from typing import Any

import atheris

with atheris.instrument_imports(include=["agentguard"]):
    from agentguard import Content, Feedback, Guard, Policy, RunHalted
    from agentguard.testing import captured_spans

SCHEMA = {
    "type": "object",
    "properties": {"x": {"type": "integer"}, "y": {"oneOf": [{"const": "a"}, {"type": "array"}]}},
    "additionalProperties": False,
}
POLICY = Policy.from_dict({"tools": {"a": {"schema": SCHEMA}}, "budget": {"steps": 50, "warn_at": 0.5}})


class OfTheToolError(Exception):
    """The only error that may come out."""


def value(data: atheris.FuzzedDataProvider, depth: int = 0) -> Any:
    """Return a value made of the bytes: JSON, and what is no JSON."""
    kind = data.ConsumeIntInRange(0, 9 if depth < 4 else 6)
    if kind == 0:
        return None
    if kind == 1:
        return data.ConsumeBool()
    if kind == 2:
        return data.ConsumeInt(12)
    if kind == 3:
        return data.ConsumeFloat()
    if kind == 4:
        return data.ConsumeUnicode(12)
    if kind == 5:
        return data.ConsumeBytes(8)
    if kind == 6:
        return object()
    items = [value(data, depth + 1) for _ in range(data.ConsumeIntInRange(0, 3))]
    if kind == 7:
        return items
    if kind == 8:
        return tuple(items)
    return {data.ConsumeUnicode(6): item for item in items}


def one_input(raw: bytes) -> None:
    """Run a script of calls."""
    data = atheris.FuzzedDataProvider(raw)
    with captured_spans() as spans:
        guard = Guard(POLICY, tracer_provider=spans.provider, content=Content(capture=data.ConsumeBool()), quiet=True)
        with guard.run(model="m", harness="h") as run:
            for _ in range(data.ConsumeIntInRange(1, 8)):
                one_call(run, data)


def one_call(run: Any, data: atheris.FuzzedDataProvider) -> None:
    """Make one call, and check that the caller gets the tool's own."""
    fails, given = data.ConsumeBool(), value(data)

    def tool(name: Any, arguments: Any) -> Any:
        if fails:
            raise OfTheToolError
        return given

    asked = data.ConsumeUnicode(12) if data.ConsumeBool() else value(data)
    name = data.PickValueInList(["a", "b", "é", "", "a" * 99])
    with contextlib.suppress(OfTheToolError, RunHalted):
        got = run.wrap(tool)(name, asked)
        if got is not given and not isinstance(got, Feedback):
            raise AssertionError(f"the caller got {got!r}")


if __name__ == "__main__":
    atheris.Setup(sys.argv, one_input)
    atheris.Fuzz()
