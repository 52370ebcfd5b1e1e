"""What spans cost a call as a share of one bare SDK span with ten attributes, and what the recorder keeps up with.

python -m benchmarks.bench_spans               the ratios
python -m benchmarks.bench_spans --recorder    spans a second into files, until the last is on disk
"""

from __future__ import annotations

import sys
import tempfile
import time
from contextlib import ExitStack
from typing import Any

from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.trace import NoOpTracerProvider

from agentguard import Content, Guard, Policy, Run, ToolCall, record
from benchmarks.bench_live import POLICY, TOOLS, small, wrapped
from benchmarks.paired import ATTRIBUTES, Case, Work, bare_span, main, null_provider

REPEATED = Policy.from_dict({"repeats": {"halt": 10**9, "block": 1}, "budget": {"steps": 10**12}})


def answered(run: Run, **arguments: Any) -> Work:
    guarded = run.wrap(lambda name, arguments: "ok")
    return lambda: guarded("small", arguments)


def cases(stack: ExitStack) -> list[Case]:
    provider, drain = stack.enter_context(null_provider())
    span = bare_span(provider)

    def guard(policy: Policy = POLICY, **settings: Any) -> Guard:
        return Guard(policy, tools=TOOLS, quiet=True, **{"tracer_provider": provider, **settings})

    def run(guard: Guard) -> Run:
        return guard.run(model="m", harness="h")  # not entered: inside one another they would be parent and child

    def case(name: str, work: Work, target: float | None, reference: Work = span) -> Case:
        return Case(name=name, work=work, reference=reference, target=target, between=drain)

    allowed, repeating = run(guard()), run(guard(REPEATED))
    repeated = answered(repeating, path="a", line=1)
    repeated()
    quiet, loud = (run._weigh(ToolCall("small", {"path": "a", "line": 1})) for run in (allowed, repeating))

    def opened_and_ended() -> None:
        span = allowed._span.call(quiet)
        assert span is not None
        span.end("ok", "ok", None)

    return [
        case("call with span, small", wrapped(allowed, "small", small), 1.65),
        case("refused call with span, of an allowed one", repeated, 2.5, wrapped(allowed, "small", small)),
        case("span of a call", opened_and_ended, 1.10),
        case("span of a refusal, of a call's", lambda: repeating._span.refused(loud), 1.4, opened_and_ended),
        case("call with a provider that records nothing", wrapped(
            run(guard(tracer_provider=NoOpTracerProvider())), "small", small), 0.20),
        case("call with span and content", wrapped(run(guard(content=Content(capture=True))), "small", small), None),
    ]  # fmt: skip


def recorder(count: int = 100_000) -> None:
    """Print spans a second, of ten attributes each, ended by one thread and written until the last is on disk."""
    for scope in ("agentguard", "another instrumentation"):
        with tempfile.TemporaryDirectory() as folder:
            provider = TracerProvider()
            with record(folder, tracer_provider=provider) as kept:
                tracer = provider.get_tracer(scope)
                began = time.perf_counter()
                for i in range(count):
                    tracer.start_span("execute_tool read_file", attributes={**ATTRIBUTES, "app.sequence": i}).end()
                kept.flush()
                seconds = time.perf_counter() - began
            print(f"{scope:<24} {count / seconds:>10,.0f} spans a second, {kept.lost} lost")


if __name__ == "__main__":
    if "--recorder" in sys.argv:
        recorder()
    else:
        with ExitStack() as everything:
            main(cases(everything))
