"""Reading OTLP/JSON lines against a bare simdjson parse of the same file: `python -m benchmarks.bench_reading`.

Rates are ratios of CPU time, each measurement between two of the reference. Memory is that of a fresh process which
reads runs and keeps none. `--spans 1000000` for the figures in the docs.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import simdjson

from agentguard.traces import read
from agentguard.traces.containers.otlp_json import read_line
from agentguard.traces.partitions import Group
from agentguard.traces.sharing import Share, read_share, shares
from benchmarks import make_spans

READING, RUNS, MEGABYTES, TWO = 0.25, 0.04, 250, 1.7
_ROUNDS = 5
_PEAK = """
import resource, sys
from agentguard.traces import read
runs = sum(1 for _ in read(sys.argv[1]))
print(runs, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)
"""


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--spans", type=int, default=100_000, help="spans in the file")
    parser.add_argument("--json", action="store_true", help="write JSON")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "spans.jsonl"
        spans = make_spans.write(path, arguments.spans)
        found = measured(path, spans)
    print(json.dumps(found) if arguments.json else told(found))


def measured(path: Path, spans: int) -> dict[str, float]:
    """Return the ratios, the cost of a span in each stage, and the peak of memory in MB."""
    runs, peak = peak_of(path)
    return {
        "spans": spans,
        "runs": runs,
        "megabytes": path.stat().st_size / 1e6,
        "to spans": ratio(lambda: to_spans(path), lambda: parse(path)),
        "to runs": ratio(lambda: to_runs(path), lambda: parse(path)),
        "two processes": two_processes(path),
        "us a span, parse": clocked(lambda: parse(path)) / spans * 1e6,
        "peak MB": peak,
    }


def ratio(work: Callable[[], object], reference: Callable[[], object]) -> float:
    """Return how fast the work is against the reference: the median over rounds, each between two references."""
    ratios: list[float] = []
    before = clocked(reference)
    for _ in range(_ROUNDS):
        cost = clocked(work)
        after = clocked(reference)
        ratios.append((before + after) / 2 / cost)
        before = after
    return statistics.median(ratios)


def clocked(work: Callable[[], object]) -> float:
    """Return the CPU seconds of this process that some work takes."""
    start = time.process_time()
    work()
    return time.process_time() - start


def parse(path: Path) -> None:
    """Parse every line, and look at nothing."""
    parser = simdjson.Parser()
    with path.open("rb") as file:
        for line in file:
            parser.parse(line)


def to_spans(path: Path) -> int:
    """Read every line into spans."""
    with path.open("rb") as file:
        return sum(len(read_line(line, "")) for line in file)


def to_runs(path: Path) -> int:
    """Read the file into trajectories."""
    return sum(1 for _ in read(str(path)))


def two_processes(path: Path) -> float:
    """Return how much sooner two processes are done than one, by the CPU time of planning and of the slower one."""
    one = clocked(lambda: to_runs(path))
    parts: list[Share] = []
    planning = clocked(lambda: parts.extend(shares(str(path), 2)))
    with ProcessPoolExecutor(2) as pool:
        return one / (planning + max(pool.map(clocked_share, parts)))


def clocked_share(share: Share) -> float:
    """Return the CPU seconds of this process that reading a part takes."""
    left: list[Group] = []
    return clocked(lambda: sum(1 for _ in read_share(share, left=left)))


def peak_of(path: Path) -> tuple[int, int]:
    """Return the number of runs, and the peak of resident memory in MB, of a fresh process that reads the file."""
    command = [sys.executable, "-c", _PEAK, str(path)]
    done = subprocess.run(command, check=True, capture_output=True, text=True, cwd=Path(__file__).resolve().parents[1])
    runs, peak = map(int, done.stdout.split())
    return runs, peak


def told(found: dict[str, float]) -> str:
    """Return the figures as lines."""
    return "\n".join(
        [
            f"{found['spans']:,.0f} spans, {found['runs']:,.0f} runs, {found['megabytes']:,.0f} MB",
            f"to spans   {found['to spans']:.3f} of a simdjson parse (target {READING})",
            f"to runs    {found['to runs']:.3f} of a simdjson parse (target {RUNS})",
            f"peak       {found['peak MB']:.0f} MB (target {MEGABYTES})",
            f"processes  two are {found['two processes']:.2f} times as fast as one (target {TWO})",
            f"the parse  {found['us a span, parse']:.2f} us a span",
        ]
    )


if __name__ == "__main__":
    main()
