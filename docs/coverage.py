"""Write docs/coverage.md: what the spans of each framework and instrumentation carry, from recorded runs.

    python docs/coverage.py ../shared/data/traces tests/traces > docs/coverage.md

A folder may hold an `index.json` with the ground truth: calls that no span tells are then counted too.
"""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from agentguard.traces.assemble import assemble
from agentguard.traces.span import Event, Kind, LogRecord, Span, Status
from agentguard.trajectory import Ending, Step, Trajectory

COLUMNS: dict[str, Callable[[Step], bool]] = {
    "arguments": lambda step: "arguments" not in step.missing,
    "result": lambda step: step.result is not None,
    "call id": lambda step: step.call.id is not None,
    "whether it ran": lambda step: step.executed is not None,
}
INTRODUCTION = """# What the spans of each instrumentation carry

Calls read from recorded runs, and how many of them come with each part. What is missing is reported as missing: such a
call still counts where tools and order are compared, and not where arguments are. "Calls asked" is what the model asked
for by the ground truth, where there is one; fewer calls read than asked means that the spans do not tell of the others.
"Ending" counts the runs whose end the spans tell ([how](endings.md)).

Written by `python docs/coverage.py ../shared/data/traces tests/traces`.
"""


def main(folders: Iterable[str]) -> None:
    """Print the page."""
    runs: dict[str, list[Trajectory]] = defaultdict(list)
    asked: dict[str, int] = defaultdict(int)
    for folder in map(Path, folders):
        truth = ground_truth(folder)
        for path in sorted(folder.glob("*__*.jsonl")):
            if not path.name.endswith(".logs.jsonl"):
                pair = " / ".join(path.name.removesuffix(".jsonl").split("__")[:2])
                runs[pair] += read(path)
                asked[pair] += truth.get(path.name, 0)
    sys.stdout.write(page(runs, asked))


def page(runs: dict[str, list[Trajectory]], asked: dict[str, int]) -> str:
    """Return the page for runs by framework and instrumentation."""
    names = ["framework / instrumentation", "runs", "calls asked", "calls read", *COLUMNS, "tokens", "model", "ending"]
    rows = [row(pair, found, asked[pair]) for pair, found in sorted(runs.items())]
    lines = [names, ["---"] * len(names), *rows]
    return INTRODUCTION + "\n" + "".join(f"| {' | '.join(line)} |\n" for line in lines)


def row(pair: str, runs: list[Trajectory], asked: int) -> list[str]:
    """Return the cells of one framework and instrumentation."""
    steps = [step for run in runs for step in run.steps]
    parts = [share(sum(map(has, steps)), len(steps)) for has in COLUMNS.values()]
    whole = [
        sum(run.usage is not None for run in runs),
        sum(run.key.model != "unknown" for run in runs),
        sum(run.ending is not Ending.UNFINISHED for run in runs),
    ]
    return [
        pair,
        str(len(runs)),
        str(asked or ""),
        str(len(steps)),
        *parts,
        *(share(each, len(runs)) for each in whole),
    ]


def share(part: int, whole: int) -> str:
    """Return "all", "none", or how many of how many."""
    return "all" if part == whole else "none" if part == 0 else f"{part} of {whole}"


def ground_truth(folder: Path) -> dict[str, int]:
    """Return how many calls the model asked for, by file."""
    index = folder / "index.json"
    runs = json.loads(index.read_text())["runs"] if index.exists() else ()
    return {run["file"]: len(run["model_calls"]) for run in runs}


def read(path: Path) -> list[Trajectory]:
    """Read a file of OTLP/JSON lines, with the log records beside it."""
    logs = path.with_name(path.name.replace(".jsonl", ".logs.jsonl"))
    records = load(path) + (load(logs) if logs.exists() else [])
    spans = [each for each in records if isinstance(each, Span)]
    return list(assemble(spans, [each for each in records if isinstance(each, LogRecord)]))


def load(path: Path) -> list[Span | LogRecord]:
    """Return the spans and log records of a file."""
    records: list[Span | LogRecord] = []
    for line in path.read_text().splitlines():
        batch = json.loads(line)
        for resource in [*batch.get("resourceSpans", ()), *batch.get("resourceLogs", ())]:
            told = attributes(resource["resource"])
            for scope in [*resource.get("scopeSpans", ()), *resource.get("scopeLogs", ())]:
                records += [span(each, scope, told) for each in scope.get("spans", ())]
                records += [log(each, scope, told) for each in scope.get("logRecords", ())]
    return records


def span(record: dict[str, Any], scope: dict[str, Any], resource: dict[str, Any]) -> Span:
    """Return one span."""
    status = record.get("status", {})
    return Span(
        trace_id=record["traceId"],
        span_id=record["spanId"],
        parent_id=record.get("parentSpanId") or None,
        name=record["name"],
        kind=Kind(record["kind"]),
        start_ns=int(record["startTimeUnixNano"]),
        end_ns=int(record["endTimeUnixNano"]),
        status_code=Status(status.get("code", 0)),
        status_message=status.get("message", ""),
        attributes=attributes(record),
        events=tuple(
            Event(each["name"], int(each["timeUnixNano"]), attributes(each)) for each in record.get("events", ())
        ),
        scope_name=scope["scope"].get("name", ""),
        resource=resource,
    )


def log(record: dict[str, Any], scope: dict[str, Any], resource: dict[str, Any]) -> LogRecord:
    """Return one log record."""
    return LogRecord(
        event_name=record.get("eventName", ""),
        trace_id=record.get("traceId") or None,
        span_id=record.get("spanId") or None,
        time_ns=int(record.get("timeUnixNano") or 0),
        body=value(record.get("body") or {}),
        attributes=attributes(record),
        scope_name=scope["scope"].get("name", ""),
        resource=resource,
    )


def attributes(record: dict[str, Any]) -> dict[str, Any]:
    """Return attributes by name."""
    return {each["key"]: value(each["value"]) for each in record.get("attributes", ())}


def value(tagged: dict[str, Any]) -> Any:
    """Return a tagged value as a plain one."""
    for kind, found in tagged.items():
        if kind == "intValue":
            return int(found)
        if kind == "arrayValue":
            return [value(each) for each in found.get("values", ())]
        if kind == "kvlistValue":
            return {each["key"]: value(each["value"]) for each in found.get("values", ())}
        return found
    return None


if __name__ == "__main__":
    main(sys.argv[1:])
