"""What a guarded call cannot do without, as a share of one bare SDK span with ten attributes.

python -m benchmarks.bench_floor    the parts alone, then two of them one after the other
"""

from __future__ import annotations

import threading
from contextlib import ExitStack

import orjson
from opentelemetry import context, trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.trace import NoOpTracerProvider, Status, StatusCode

from agentguard import Guard
from benchmarks.bench_live import POLICY, TOOLS, calls, small, wrapped
from benchmarks.paired import ATTRIBUTES, Case, Work, bare_span, main, null_provider

SIX = dict(list(ATTRIBUTES.items())[:6])
FIVE = dict(list(ATTRIBUTES.items())[:5])
RESULT = "0123456789abcdef0123456789abcdef"


def locks() -> Work:
    """Return one uncontended lock to judge and one to record."""
    lock = threading.RLock()

    def work() -> None:
        with lock:
            pass
        with lock:
            pass

    return work


def checked() -> Work:
    """Return the two calls into compiled code that every call needs: its canonical bytes and its schema."""
    following, is_valid = calls("small", small), TOOLS[0].validator.is_valid

    def work() -> None:
        arguments = following().arguments
        orjson.dumps(arguments, option=orjson.OPT_SORT_KEYS)
        is_valid(arguments)

    return work


def sdk_call(provider: TracerProvider) -> Work:
    """Return the writes of one guarded call made on the SDK directly: six attributes, current, one more, end."""
    tracer = provider.get_tracer("benchmarks")

    def work() -> None:
        span = tracer.start_span("execute_tool read_file", attributes=SIX)
        token = context.attach(trace.set_span_in_context(span))
        context.detach(token)
        span.set_attribute("agentguard.result.fingerprint", RESULT)
        span.end()

    return work


def sdk_refusal(provider: TracerProvider) -> Work:
    """Return the writes of one refused call made on the SDK directly: eight attributes, an event, a status, end."""
    tracer = provider.get_tracer("benchmarks")
    eight = dict(list(ATTRIBUTES.items())[:8])

    def work() -> None:
        span = tracer.start_span("execute_tool read_file", attributes=eight)
        span.add_event("agentguard.verdict", FIVE)
        span.set_status(Status(StatusCode.ERROR, "refused"))
        span.end()

    return work


def after_another(one: Work, other: Work) -> Work:
    def work() -> None:
        one()
        other()

    return work


def cases(stack: ExitStack) -> list[Case]:
    provider, drain = stack.enter_context(null_provider())
    span = bare_span(provider)
    silent = Guard(POLICY, tools=TOOLS, tracer_provider=NoOpTracerProvider(), quiet=True)
    judged = wrapped(silent.run(model="m", harness="h"), "small", small)

    def case(name: str, work: Work) -> Case:
        return Case(name=name, work=work, reference=span, between=drain)

    return [
        case("two uncontended locks", locks()),
        case("canonical bytes and schema", checked()),
        case("the SDK's part of a call", sdk_call(provider)),
        case("the SDK's part of a refusal", sdk_refusal(provider)),
        case("wrapped call without span", judged),
        case("both of a call, one after the other", after_another(sdk_call(provider), judged)),
    ]


if __name__ == "__main__":
    with ExitStack() as everything:
        main(cases(everything))
