"""Spans in OTLP/JSON lines, any number of them: `python -m benchmarks.make_spans 1000000 spans.jsonl`.

Traces of one run each: an agent span over 20 tool spans of 10 attributes. Eight traces are interleaved, 100 spans stand
on a line in the order they ended, as the OpenTelemetry Collector's file exporter writes them.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson

CALLS = 20
INTERLEAVED = 8
A_LINE = 100
_START = 1_780_000_000_000_000_000
_TOOLS = ("search_docs", "read_file", "list_dir", "edit_file", "run_tests", "fetch_page", "query_db", "send_mail")
_MODELS = ("gpt-5.2", "claude-sonnet-5", "gemini-3-pro")
_RESOURCE = {
    "attributes": [
        {"key": "service.name", "value": {"stringValue": "coding-agent"}},
        {"key": "service.instance.id", "value": {"stringValue": "6f1c1a9e-0000-4000-8000-000000000001"}},
    ]
}
_SCOPE = {"name": "benchmarks.make_spans", "version": "1.0"}


def main() -> None:
    """Write the file that the arguments ask for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("spans", type=int, help="how many, at least")
    parser.add_argument("path", type=Path)
    arguments = parser.parse_args()
    write(arguments.path, arguments.spans)


def write(path: Path, spans: int) -> int:
    """Write at least this many spans, in whole traces; return how many."""
    written = 0
    with path.open("wb") as file:
        for batch in batches(spans):
            written += len(batch)
            scopes = [{"scope": _SCOPE, "spans": batch}]
            file.write(orjson.dumps({"resourceSpans": [{"resource": _RESOURCE, "scopeSpans": scopes}]}) + b"\n")
    return written


def batches(spans: int) -> Iterator[list[dict[str, Any]]]:
    """Yield the spans of each line."""
    draw = random.Random(11)
    batch: list[dict[str, Any]] = []
    for first in range(0, spans, INTERLEAVED * (CALLS + 1)):
        open_traces = [trace(first + at, draw) for at in range(INTERLEAVED)]
        for row in zip(*open_traces, strict=True):
            for span in row:
                batch.append(span)
                if len(batch) == A_LINE:
                    yield batch
                    batch = []
    if batch:
        yield batch


def trace(number: int, draw: random.Random) -> list[dict[str, Any]]:
    """Return the spans of one run in the order they end: its calls, then the agent."""
    trace_id, root_id = f"{draw.getrandbits(128):032x}", f"{draw.getrandbits(64):016x}"
    model, start = draw.choice(_MODELS), _START + number * 1_000_000_000
    calls = [_call(trace_id, root_id, at, start, model, draw) for at in range(CALLS)]
    attributes = {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": "coder",
        "gen_ai.request.model": model,
        "agentguard.harness.name": "bench 1.0",
        "gen_ai.usage.input_tokens": draw.randrange(1_000, 60_000),
        "gen_ai.usage.output_tokens": draw.randrange(100, 4_000),
    }
    end = start + (CALLS + 1) * 40_000_000
    return [*calls, _span(trace_id, root_id, "", "invoke_agent coder", start, end, attributes)]


def _call(trace_id: str, parent: str, at: int, start: int, model: str, draw: random.Random) -> dict[str, Any]:
    tool = draw.choice(_TOOLS)
    arguments = {"path": f"src/module_{draw.randrange(40)}.py", "query": "failing test", "limit": draw.randrange(5)}
    attributes = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": tool,
        "gen_ai.tool.type": "function",
        "gen_ai.tool.call.id": f"call_{draw.getrandbits(48):012x}",
        "gen_ai.tool.call.arguments": orjson.dumps(arguments).decode(),
        "gen_ai.tool.call.result": "def area(self): return self.width * self.height  # " + "x" * draw.randrange(80),
        "gen_ai.request.model": model,
        "gen_ai.agent.name": "coder",
        "server.port": 443,
        "retry.count": draw.randrange(3),
    }
    began = start + at * 40_000_000
    span_id = f"{draw.getrandbits(64):016x}"
    return _span(trace_id, span_id, parent, f"execute_tool {tool}", began, began + 30_000_000, attributes)


def _span(
    trace_id: str, span_id: str, parent: str, name: str, start: int, end: int, attributes: dict[str, Any]
) -> dict[str, Any]:
    return {
        "traceId": trace_id,
        "spanId": span_id,
        "parentSpanId": parent,
        "name": name,
        "kind": 1,
        "startTimeUnixNano": str(start),
        "endTimeUnixNano": str(end),
        "attributes": [{"key": key, "value": _value(value)} for key, value in attributes.items()],
        "status": {},
    }


def _value(value: str | int) -> dict[str, str]:
    return {"stringValue": value} if isinstance(value, str) else {"intValue": str(value)}


if __name__ == "__main__":
    main()
