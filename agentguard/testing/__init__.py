"""Help for the tests of people who use a guard: a clock to set, scripted tool calls, captured spans."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import ReadableSpan, TracerProvider


class FakeClock:
    """A clock for `Guard(clock=...)` that moves only when told to.

    >>> clock = FakeClock()
    >>> clock.advance(2.5)
    >>> clock()
    2.5
    """

    def __init__(self, seconds: float = 0.0) -> None:
        self._seconds = seconds

    def __call__(self) -> float:
        """Return the seconds that it shows."""
        return self._seconds

    def advance(self, seconds: float) -> None:
        """Move on by so many seconds."""
        self._seconds += seconds

    def at(self, seconds: float) -> None:
        """Show this many seconds."""
        self._seconds = seconds


def script(calls: Iterable[tuple[str, Mapping[str, Any]]], dispatch: Callable[..., Any]) -> list[Any]:
    """Make calls one after another, as an agent would; return what each gave back.

    An exception of a tool stands in the list as itself, and the script goes on; a halt ends it by `RunHalted`.

    >>> script([("add", {"a": 1, "b": 2})], lambda name, arguments: arguments["a"] + arguments["b"])
    [3]
    """
    results: list[Any] = []
    for name, arguments in calls:
        try:
            results.append(dispatch(name, dict(arguments)))
        except Exception as error:
            results.append(error)
    return results


class CapturedSpans:
    """The spans that ended so far, in the order in which they did."""

    def __init__(self, provider: TracerProvider, ended: Callable[[], Sequence[ReadableSpan]]) -> None:
        self.provider = provider
        """Hand it to `Guard(tracer_provider=...)`."""
        self._ended = ended

    def __call__(self, name: str | None = None) -> list[ReadableSpan]:
        """Return the ended spans whose name begins with `name`; None means all."""
        return [span for span in self._ended() if name is None or span.name.startswith(name)]


@contextlib.contextmanager
def captured_spans() -> Generator[CapturedSpans]:
    """Give a tracer provider that keeps its spans in memory.

    >>> from agentguard import Guard
    >>> with captured_spans() as spans, Guard(tracer_provider=spans.provider).run(model="m", harness="h") as run:
    ...     run.tool(lambda: 1, name="one")()
    1
    >>> [span.name for span in spans("execute_tool")]
    ['execute_tool one']
    """
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    try:
        yield CapturedSpans(provider, exporter.get_finished_spans)
    finally:
        provider.shutdown()
