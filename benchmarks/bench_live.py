"""What the guard costs per call, as a share of one bare SDK span with ten attributes.

The targets are those of docs/decisions/005; `bench_floor` prints what lies beneath them.

python -m benchmarks.bench_live            the ratios
python -m benchmarks.bench_live --memory   growth over a million calls of one run
"""

from __future__ import annotations

import itertools
import sys
import tracemalloc
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import jsonschema_rs
from opentelemetry.trace import NoOpTracerProvider

from agentguard import Guard, Policy, Run, Tool, ToolCall
from benchmarks.paired import Case, Work, bare_span, main, null_provider

SMALL_SCHEMA = {
    "type": "object",
    "properties": {"path": {"type": "string"}, "line": {"type": "integer", "minimum": 0}},
    "required": ["path"],
    "additionalProperties": False,
}
MEDIUM_SCHEMA = {
    "type": "object",
    "properties": {
        "query": {"type": "string", "minLength": 1},
        "filters": {
            "type": "object",
            "properties": {"lang": {"enum": ["en", "de", "fr"]}, "since": {"type": "string"}},
            "required": ["lang"],
        },
        "limit": {"type": "integer", "minimum": 1, "maximum": 100},
        "tags": {"type": "array", "items": {"type": "string"}, "maxItems": 10},
        "options": {"type": "object", "additionalProperties": {"type": "boolean"}},
    },
    "required": ["query", "filters"],
    "additionalProperties": False,
}
POLICY = Policy.from_dict({
    "budget": {"steps": 10**12, "calls_per_tool": {"small": 10**12, "medium": 10**12}},
})  # fmt: skip
TOOLS = [Tool(name="small", schema=SMALL_SCHEMA), Tool(name="medium", schema=MEDIUM_SCHEMA)]


def small(i: int) -> dict[str, Any]:
    return {"path": f"src/module_{i}.py", "line": i}


def medium(i: int) -> dict[str, Any]:
    return {
        "query": f"how to rotate the logs of service {i}",
        "filters": {"lang": "en", "since": "2026-01-01"},
        "limit": 25,
        "tags": ["logs", "rotation", "ops", f"team-{i % 7}"],
        "options": {"fuzzy": True, "highlight": False, "explain": True},
    }


def calls(name: str, build: Callable[[int], dict[str, Any]]) -> Callable[[], ToolCall]:
    return itertools.cycle([ToolCall(name, build(i)) for i in range(500)]).__next__


def judge_and_record(run: Run, name: str, build: Callable[[int], dict[str, Any]]) -> Work:
    following, judge, record = calls(name, build), run.judge, run.record

    def work() -> None:
        call = following()
        judge(call)
        record(call, "ok")

    return work


def wrapped(run: Run, name: str, build: Callable[[int], dict[str, Any]]) -> Work:
    def dispatch(name: str, arguments: dict[str, Any]) -> str:
        return "ok"

    following, guarded = calls(name, build), run.wrap(dispatch)
    return lambda: guarded(name, following().arguments)


def blocked(guard: Guard) -> Work:
    """Return calls of a tool whose ceiling is used up: blocked one by one, without an end."""
    return wrapped(guard.run(model="m", harness="h"), "small", small)


def schema_step(name: str, schema: dict[str, Any], build: Callable[[int], dict[str, Any]]) -> tuple[Work, Work]:
    following = calls(name, build)
    ours = next(tool for tool in TOOLS if tool.name == name).validator.is_valid
    bare = jsonschema_rs.validator_for(schema, validate_formats=True).is_valid
    return lambda: ours(following().arguments), lambda: bare(following().arguments)


def cases(stack: ExitStack) -> list[Case]:
    provider, drain = stack.enter_context(null_provider())
    span = bare_span(provider)
    silent = Guard(POLICY, tools=TOOLS, tracer_provider=NoOpTracerProvider(), quiet=True)
    spanning = Guard(POLICY, tools=TOOLS, tracer_provider=provider, quiet=True)

    none_left = Policy.from_dict({"budget": {"calls_per_tool": {"small": 0}}})
    blocking = Guard(none_left, tools=TOOLS, tracer_provider=provider, quiet=True)

    def run(guard: Guard) -> Run:
        return guard.run(model="m", harness="h")

    with_span = wrapped(run(spanning), "small", small)
    ours, bare = schema_step("medium", MEDIUM_SCHEMA, medium)

    def case(name: str, work: Work, target: float, reference: Work = span) -> Case:
        return Case(name=name, work=work, reference=reference, target=target, between=drain)

    return [
        case("judge and record, small", judge_and_record(run(silent), "small", small), 0.21),
        case("judge and record, medium", judge_and_record(run(silent), "medium", medium), 0.18),
        case("wrapped call without span, small", wrapped(run(silent), "small", small), 0.21),
        case("wrapped call with span, small", with_span, 1.65),
        case("wrapped call with span, medium", wrapped(run(spanning), "medium", medium), 1.65),
        case("blocked call, of an allowed one", blocked(blocking), 1.9, with_span),
        case("schema step, of is_valid", ours, 1.2, bare),
    ]


def memory(count: int = 1_000_000) -> None:
    """Print what one run holds after ten thousand calls and after a million."""
    with Guard(POLICY, tools=TOOLS, tracer_provider=NoOpTracerProvider(), quiet=True).run(
        model="m", harness="h"
    ) as run:
        dispatch = run.wrap(lambda name, arguments: "ok")
        tracemalloc.start()
        for i in range(count):
            dispatch("small", {"path": str(i), "line": i})
            if i + 1 in (10_000, 100_000, count):
                print(f"{i + 1:>9,} calls: {tracemalloc.get_traced_memory()[0] / 2**20:6.2f} MiB")


if __name__ == "__main__":
    if "--memory" in sys.argv:
        memory()
    else:
        with ExitStack() as everything:
            main(cases(everything))
