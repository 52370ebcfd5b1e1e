"""Hostile trace files: nothing is raised, nothing hangs, nothing readable is lost, everything skipped is counted."""

from __future__ import annotations

import contextlib
import gzip
import io
import json
import lzma
import os
import random
import resource
import time
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import zstandard

from agentguard.errors import TraceError
from agentguard.traces import ReadReport, read
from agentguard.trajectory import Trajectory

SAMPLES = Path(__file__).parents[1] / "traces" / "containers"
NAMES = sorted(path.name for path in SAMPLES.iterdir())
TEXTS = [name for name in NAMES if not name.endswith((".pb", ".eval"))]
SMALL = [name for name in NAMES if (SAMPLES / name).stat().st_size < 8_000]
TIMES = int(os.environ.get("AGENTGUARD_FUZZ", "1"))
"""How many times longer than usual to go on."""
OUR_FAULT = "reader failed"
"""The reason under which a reader that stumbled is counted; data alone must never get there."""
WRONG: list[Any] = [None, True, -1, 2**70, 1.5, "", "\0", "\ud800", [], {}, [[]], {"": None}, ["x"], {"key": "x"}]

each_text = pytest.mark.parametrize("name", TEXTS)
each_small = pytest.mark.parametrize("name", SMALL)


@each_small
def test_cut_off_at_every_byte(name, tmp_path):
    data = (SAMPLES / name).read_bytes()
    for end in range(0, len(data), 1 + len(data) // (1_500 * TIMES)):
        survives(data[:end], tmp_path)


@pytest.mark.parametrize("name", NAMES)
def test_bytes_flipped_at_random(name, tmp_path):
    draw = random.Random(name)
    data = (SAMPLES / name).read_bytes()
    for _ in range(150 * TIMES):
        flipped = bytearray(data)
        for _ in range(draw.choice((1, 1, 4, 40))):
            flipped[draw.randrange(len(flipped))] = draw.randrange(256)
        survives(bytes(flipped), tmp_path)


@each_text
def test_a_wrong_type_at_every_position(name, tmp_path):
    draw = random.Random(name)
    records = parsed(name)
    places = [place for place in positions(records) if place]
    draw.shuffle(places)
    for place in places[: 250 * TIMES]:
        survives(lines(with_value(records, place, draw.choice(WRONG))), tmp_path)


@each_text
def test_a_key_missing_at_every_position(name, tmp_path):
    records = parsed(name)
    places = [place for place in positions(records) if place and isinstance(place[-1], str)]
    random.Random(name).shuffle(places)
    for place in places[: 150 * TIMES]:
        survives(lines(without(records, place)), tmp_path)


@each_text
def test_whole_records_of_the_wrong_type(name, tmp_path):
    for wrong in WRONG:
        survives(lines([*parsed(name), wrong, {"data": wrong}, {"messages": [wrong]}, {"spans": [wrong]}]), tmp_path)


def test_a_torn_last_line_loses_itself_only(tmp_path):
    whole = otlp([span(at) for at in range(3)])
    report, runs = survives(whole + b"\n" + whole[: len(whole) // 2], tmp_path)
    assert len(runs) == 1
    assert dict(report.reasons) == {"torn line": 1}
    (skipped,) = report.examples
    assert skipped.line == 2


def test_a_torn_first_line_loses_itself_only(tmp_path):
    whole = otlp([span(at) for at in range(3)])
    report, runs = survives(whole[len(whole) // 2 :] + b"\n" + whole, tmp_path)
    assert len(runs) == 1
    assert dict(report.reasons) == {"torn line": 1}


def test_an_empty_file_is_told(tmp_path):
    for empty in (b"", b"\n", b" \n\n", gzip.compress(b"")):
        report, runs = survives(empty, tmp_path)
        assert (runs, dict(report.reasons)) == ([], {"empty file": 1})


@pytest.mark.parametrize(
    "junk", [b"hello world\n", b"\0" * 5_000, b"\xff\xfe{}", b"%PDF-1.7\n", b"id,name\n1,2\n", b"{" * 9]
)
def test_another_file_altogether_is_told(junk, tmp_path):
    report, runs = survives(junk, tmp_path)
    assert runs == []
    assert report.skipped >= 1


def test_a_span_without_a_tool_name_is_a_step_of_an_unknown_tool_or_none(tmp_path):
    nameless = span(1, attributes={"gen_ai.operation.name": "execute_tool"}, name="")
    _, runs = survives(otlp([span(0), nameless, span(2)]), tmp_path)
    assert [len(run.steps) >= 2 for run in runs] == [True]


@pytest.mark.parametrize(
    "arguments", ["{", "", "null", "[1, 2", "{'a': }", "\0", "{" * 3_000, "[" * 100_000, '{"a": NaN}']
)
def test_arguments_that_are_no_json_stay_raw(arguments, tmp_path):
    _, runs = survives(otlp([span(0, attributes={"gen_ai.tool.call.arguments": arguments})]), tmp_path)
    (step,) = runs[0].steps
    assert step.call.arguments is None or step.call.arguments == {"a": None}


@pytest.mark.parametrize("depth", [300, 1_000, 100_000])
def test_nesting_is_read_or_told_and_never_raised(depth, tmp_path):
    deep = "[" * depth + "]" * depth
    nested = '{"arrayValue": {"values": [' * depth + "]}}" * depth
    whole = otlp([span(0)]).decode()
    for text in (deep, nested, '{"resourceSpans": ' + deep + "}", '{"messages": ' + deep + "}", '{"data":' * depth):
        _, runs = survives((whole + "\n" + text + "\n" + whole).encode(), tmp_path)
        assert len(runs) == 1


def test_a_value_nested_300_levels_deep_does_not_take_its_span_with_it(tmp_path):
    value: dict[str, Any] = {"stringValue": "x"}
    for _ in range(300):
        value = {"arrayValue": {"values": [value]}}
    record = span(0)
    record["attributes"].append({"key": "deep", "value": value})
    report, runs = survives(otlp([record, span(1)]), tmp_path)
    assert [len(run.steps) for run in runs] == [2], dict(report.reasons)


def test_nul_bytes_are_data_or_told(tmp_path):
    whole = otlp([span(0)])
    report, runs = survives(b"\0\0\0\n" + whole + b"\n" + b"\0" * 100 + b"\n" + whole + b"\0", tmp_path)
    assert len(runs) == 1
    assert report.reasons["torn line"] >= 2


def test_duplicate_span_ids_are_counted_once(tmp_path):
    _, runs = survives(otlp([span(0), span(0), span(0)]), tmp_path)
    assert [len(run.steps) for run in runs] == [1]


@pytest.mark.parametrize("length", [1, 2, 3, 500])
def test_parents_that_go_round_in_a_circle(length, tmp_path):
    spans = [span(at, parent=(at + 1) % length) for at in range(length)]
    _, runs = survives(otlp(spans), tmp_path)
    assert sum(len(run.steps) for run in runs) >= 1


def test_orphans_are_read(tmp_path):
    _, runs = survives(otlp([span(at, parent=at + 1_000) for at in range(5)]), tmp_path)
    assert sum(len(run.steps) for run in runs) == 5


def test_a_chain_of_ten_thousand_parents(tmp_path):
    spans = [span(at, parent=at + 1, attributes={"gen_ai.operation.name": "invoke_agent"}) for at in range(10_000)]
    survives(otlp([*spans, span(10_001, parent=0)]), tmp_path)


def test_clocks_that_run_backwards(tmp_path):
    spans = [span(at, start=10**18 - at * 10**9, end=10**18 - at * 10**9 - 5) for at in range(5)]
    _, runs = survives(otlp(spans), tmp_path)
    assert [len(run.steps) for run in runs] == [5]


@pytest.mark.parametrize("time_ns", ["", "x", -5, 10**30, 1.5e300, "9" * 5_000, None, True, [], {}])
def test_times_of_any_kind(time_ns, tmp_path):
    record = span(0) | {"startTimeUnixNano": time_ns, "endTimeUnixNano": time_ns}
    _, runs = survives(otlp([record, span(1)]), tmp_path)
    assert sum(len(run.steps) for run in runs) == 2


def test_a_million_attributes_on_one_span(tmp_path):
    record = span(0)
    record["attributes"] += [{"key": f"k{at}", "value": {"intValue": str(at)}} for at in range(1_000_000)]
    _, runs = survives(otlp([record]), tmp_path, seconds=30)
    assert [len(run.steps) for run in runs] == [1]


def test_a_line_of_100_megabytes(tmp_path):
    _, runs = survives(otlp([span(0, attributes={"gen_ai.tool.call.result": "x" * 100_000_000})]), tmp_path, seconds=30)
    assert [len(run.steps) for run in runs] == [1]


def test_a_line_without_an_end_is_told_and_the_next_one_read(tmp_path, monkeypatch):
    monkeypatch.setattr("agentguard.traces.files.LONGEST_LINE", 1_000_000)
    whole = otlp([span(0)])
    report, runs = survives(whole + b"\n" + b"x" * 5_000_000 + b"\n" + otlp([root(2), span(1, trace=2)]), tmp_path)
    assert len(runs) == 2
    assert dict(report.reasons) == {"line too long": 1}


PACKERS = {
    "gzip": lambda data: gzip.compress(data, 1),
    "xz": lambda data: lzma.compress(data, preset=0),
    "zstd": lambda data: zstandard.compress(data, 1),
}
each_packer = pytest.mark.parametrize("pack", PACKERS.values(), ids=PACKERS.keys())


@each_packer
def test_bombs_of_zeros_stop_at_the_limit_of_a_line(pack, tmp_path, monkeypatch):
    monkeypatch.setattr("agentguard.traces.files.LONGEST_LINE", 2**22)
    bomb = pack(b"\0" * 2**28)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    report, runs = survives(bomb, tmp_path, seconds=30)
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    assert (runs, dict(report.reasons)) == ([], {"line too long": 1})
    assert grown < 300


@each_packer
def test_bombs_of_one_document_stop_at_its_limit(pack, tmp_path, monkeypatch):
    monkeypatch.setattr("agentguard.traces.reader.LONGEST_DOCUMENT", 2**20)
    report, runs = survives(pack(b"[\n" + b" 0,\n" * 2**21), tmp_path)
    assert (runs, dict(report.reasons)) == ([], {"document too long": 1})


@each_packer
def test_packed_files_cut_off_give_what_came_before(pack, tmp_path):
    draw = random.Random(3)
    lines_ = [
        otlp([root(at), span(0, trace=at, attributes={"noise": draw.randbytes(400).hex()})]) for at in range(2_000)
    ]
    packed = pack(b"\n".join(lines_))
    report, runs = survives(packed[: len(packed) * 3 // 4], tmp_path)
    assert len(runs) > 100
    assert report.reasons["torn archive"] == 1


@each_packer
def test_packed_files_with_flipped_bytes(pack, tmp_path):
    draw = random.Random(5)
    packed = pack(otlp([span(at) for at in range(200)]))
    for _ in range(100):
        flipped = bytearray(packed)
        flipped[draw.randrange(len(flipped))] = draw.randrange(256)
        survives(bytes(flipped), tmp_path)


def test_a_zip_bomb_is_told(tmp_path, monkeypatch):
    monkeypatch.setattr("agentguard.traces.containers.inspect_eval._LARGEST", 2**20)
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("samples/a_epoch_1.json", b"[" + b"0," * 2**24)
        archive.writestr("samples/b_epoch_1.json", json.dumps({"id": "b", "messages": [], "epoch": 1}))
    report, runs = survives(buffer.getvalue(), tmp_path)
    assert dict(report.reasons) == {"torn sample": 1}
    assert len(runs) == 1


def test_zip_archives_of_something_else_are_told(tmp_path):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("readme.txt", "hello")
    report, runs = survives(buffer.getvalue(), tmp_path)
    assert (runs, dict(report.reasons)) == ([], {"no samples": 1})


def test_zip_members_that_are_torn_do_not_stop_the_reader(tmp_path):
    data = (SAMPLES / "inspect.eval").read_bytes()
    torn = data.replace(data[200:230], zlib.compress(b"x" * 50)[:30].ljust(30, b"\0"))
    survives(torn, tmp_path)


def test_twenty_thousand_traces(tmp_path):
    data = b"\n".join(otlp([root(at), span(0, trace=at)]) for at in range(20_000))
    _, runs = survives(data, tmp_path, seconds=60)
    assert len(runs) == 20_000


def survives(data: bytes, folder: Path, *, seconds: float = 20) -> tuple[ReadReport, list[Trajectory]]:
    """Read some bytes; fail when anything but a TraceError is raised, when it takes long, or when a reader stumbles."""
    path = folder / "trace"
    path.write_bytes(data)
    report, runs = ReadReport(), list[Trajectory]()
    started = time.monotonic()
    with contextlib.suppress(TraceError):
        runs += read(str(path), report=report)
    assert time.monotonic() - started < seconds
    assert report.reasons[OUR_FAULT] == 0, [each for each in report.examples if each.reason == OUR_FAULT]
    return report, runs


def parsed(name: str) -> list[Any]:
    text = (SAMPLES / name).read_text()
    decoder, at, records = json.JSONDecoder(), 0, list[Any]()
    while at < len(text):
        record, end = decoder.raw_decode(text, at)
        records.append(record)
        at = end + len(text[end:]) - len(text[end:].lstrip())
    return records


def positions(value: Any, place: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    yield place
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, each in inner:
        yield from positions(each, (*place, key))


def with_value(value: Any, place: tuple[str | int, ...], new: Any) -> Any:
    if not place:
        return new
    copy = value.copy()
    copy[place[0]] = with_value(value[place[0]], place[1:], new)
    return copy


def without(value: Any, place: tuple[str | int, ...]) -> Any:
    copy = value.copy()
    if len(place) == 1:
        del copy[place[0]]
    else:
        copy[place[0]] = without(value[place[0]], place[1:])
    return copy


def lines(records: list[Any]) -> bytes:
    return "\n".join(json.dumps(record) for record in records).encode("utf-8", "surrogatepass")


def otlp(spans: list[dict[str, Any]]) -> bytes:
    return json.dumps({"resourceSpans": [{"resource": {}, "scopeSpans": [{"spans": spans}]}]}).encode()


def root(trace: int) -> dict[str, Any]:
    return span(9, trace=trace, name="invoke_agent", attributes={"gen_ai.operation.name": "invoke_agent"})


def span(
    at: int,
    *,
    trace: int = 1,
    parent: int | None = None,
    name: str = "execute_tool search",
    start: int = 0,
    end: int = 0,
    attributes: dict[str, Any] | None = None,
) -> dict[str, Any]:
    told = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "search", "gen_ai.tool.call.id": f"call_{at}"}
    told = told | {"gen_ai.tool.call.arguments": f'{{"n": {at}}}'} | (attributes or {})
    if name == "":
        told = attributes or {}
    return {
        "traceId": f"{trace:032x}",
        "spanId": f"{at + 1:016x}",
        "parentSpanId": "" if parent is None else f"{parent + 1:016x}",
        "name": name,
        "kind": 1,
        "startTimeUnixNano": str(start or 10**18 + at * 10**9),
        "endTimeUnixNano": str(end or 10**18 + at * 10**9 + 10**8),
        "attributes": [{"key": key, "value": {"stringValue": value}} for key, value in told.items()],
        "status": {},
    }
