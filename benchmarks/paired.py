"""Ratios of CPU time that hold on a busy machine: each slice of a case stands between two slices of a reference.

The clock is the thread's CPU time, so other processes count only through the caches they share. A target is judged by
the lower quartile, and a case that misses it is measured once more in a fresh process; it never fails a test.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace

from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult

SLICE_NS = 5_000_000
"""CPU time of one slice: long against the clock, short against the scheduler."""

Work = Callable[[], object]


@dataclass(frozen=True, kw_only=True)
class Case:
    """One piece of work and what it is measured against."""

    name: str
    work: Work
    reference: Work
    target: float | None = None
    """The highest ratio wanted. None means: told, not judged."""
    between: Work | None = None
    """Done after each slice, outside the clock, e.g. to drain a queue. None means nothing."""


@dataclass(frozen=True, kw_only=True)
class Ratio:
    """What a case cost as a share of its reference."""

    name: str
    median: float
    lower: float
    """First quartile."""
    upper: float
    """Third quartile."""
    reference_ns: float
    """One call of the reference, median; of this machine, not to be compared between runs."""
    target: float | None = None
    retried: bool = False
    """True when measured in a second process because the first missed the target."""

    @property
    def holds(self) -> bool | None:
        """Whether the lower quartile keeps the target; None without a target."""
        return None if self.target is None else self.lower <= self.target


def compare(reference: Work, cases: Mapping[str, Work], *, pairs: int = 11, between: Work | None = None) -> list[Ratio]:
    """Measure each of `cases` against `reference`, `pairs` times each.

    `between` is done after each slice, outside the clock.
    """
    return [measure(Case(name=name, work=work, reference=reference, between=between), pairs=pairs)
            for name, work in cases.items()]  # fmt: skip


def measure(case: Case, *, pairs: int = 11) -> Ratio:
    """Measure one case: each slice is divided by the mean of the reference slices before and after it."""
    between = case.between or _nothing
    of_case, of_reference = _repeats(case.work, between), _repeats(case.reference, between)
    before = _slice(case.reference, of_reference, between)
    ratios: list[float] = []
    references = [before]
    for _ in range(pairs):
        middle = _slice(case.work, of_case, between)
        after = _slice(case.reference, of_reference, between)
        ratios.append(2 * middle / (before + after))
        references.append(after)
        before = after
    lower, median, upper = statistics.quantiles(ratios, n=4, method="inclusive")
    return Ratio(name=case.name, median=median, lower=lower, upper=upper,
                 reference_ns=statistics.median(references), target=case.target)  # fmt: skip


def main(cases: Sequence[Case], argv: Sequence[str] | None = None) -> list[Ratio]:
    """Measure, print a table (`--json`: a list) and return the ratios; `--only NAME` measures one case."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--json", action="store_true", help="print a JSON list instead of a table")
    parser.add_argument("--only", metavar="NAME", help="measure the case of this name alone, without a second try")
    parser.add_argument("--pairs", type=int, default=11, help="slices of each case (default 11)")
    asked = parser.parse_args(argv)
    chosen = [case for case in cases if asked.only in (None, case.name)]
    if not chosen:
        parser.error(f"--only {asked.only}: unknown case; known: {', '.join(case.name for case in cases)}")
    ratios = [measure(case, pairs=asked.pairs) for case in chosen]
    if asked.only is None:
        ratios = [_again(ratio, asked.pairs) if ratio.holds is False else ratio for ratio in ratios]
    print(json.dumps([{**asdict(ratio), "holds": ratio.holds} for ratio in ratios]) if asked.json else table(ratios))
    return ratios


def table(ratios: Sequence[Ratio]) -> str:
    """Return the ratios as aligned text; `*` marks a case that was measured twice."""
    width = max(len(ratio.name) for ratio in ratios) + 1
    head = f"{'case':<{width}}  ratio  quartiles    target  holds  reference"
    return "\n".join([head, *(_row(ratio, width) for ratio in ratios)])


def _row(ratio: Ratio, width: int) -> str:
    name = ratio.name + ("*" if ratio.retried else "")
    target = "" if ratio.target is None else f"{ratio.target:.2f}"
    holds = {True: "yes", False: "no", None: ""}[ratio.holds]
    quartiles = f"{ratio.lower:.2f}-{ratio.upper:.2f}"
    return (
        f"{name:<{width}}  {ratio.median:5.2f}  {quartiles:<11}  {target:>6}  {holds:<5}  {ratio.reference_ns:,.0f} ns"
    )


def _again(ratio: Ratio, pairs: int) -> Ratio:
    """Measure a case in a fresh process: even pairs give an outlier now and then."""
    script = os.path.abspath(sys.argv[0])
    command = [sys.executable, script, "--json", "--only", ratio.name, "--pairs", str(pairs)]
    told = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)[0]
    told.pop("holds")
    return replace(Ratio(**told), retried=True)


def _nothing() -> None:
    return None


def _repeats(work: Work, between: Work) -> int:
    """Return how many calls fill a slice."""
    repeats = 1
    while True:
        spent = _slice(work, repeats, between) * repeats
        if spent >= SLICE_NS / 2:
            return max(1, round(repeats * SLICE_NS / spent))
        repeats *= 2


def _slice(work: Work, repeats: int, between: Work) -> float:
    """Return the CPU nanoseconds of one call."""
    start = time.thread_time_ns()
    for _ in range(repeats):
        work()
    spent = time.thread_time_ns() - start
    between()
    return spent / repeats


class NullExporter(SpanExporter):
    """Takes spans and forgets them."""

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        return SpanExportResult.SUCCESS


@contextmanager
def null_provider() -> Iterator[tuple[TracerProvider, Work]]:
    """Give a provider that batches to nowhere, with a queue that no slice fills, and the work that drains it."""
    provider = TracerProvider()
    provider.add_span_processor(BatchSpanProcessor(NullExporter(), max_queue_size=100_000))
    try:
        yield provider, provider.force_flush
    finally:
        provider.shutdown()


ATTRIBUTES: Mapping[str, str | int | bool] = {
    "gen_ai.operation.name": "execute_tool",
    "gen_ai.tool.name": "read_file",
    "gen_ai.tool.call.id": "call_0123456789",
    "gen_ai.agent.name": "coder",
    "gen_ai.conversation.id": "0123456789abcdef",
    "app.sequence": 7,
    "app.lane": "main",
    "app.turn": 3,
    "app.fingerprint": "0123456789abcdef0123456789abcdef",
    "app.sampled": True,
}
"""The ten attributes of the bare span."""


def bare_span(provider: TracerProvider) -> Work:
    """Return the reference of the live path: one current SDK span with ten attributes at its start."""
    tracer = provider.get_tracer("benchmarks")

    def span() -> None:
        with tracer.start_as_current_span("execute_tool read_file", attributes=ATTRIBUTES):
            pass

    return span
