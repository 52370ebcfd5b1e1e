"""However long the input, and whichever way its spans are kept meanwhile, the runs are the same."""

from __future__ import annotations

import base64
import gzip
import runpy
from pathlib import Path
from typing import Any

import pytest
import zstandard

from agentguard.traces import ReadReport, horizon, partitions, read
from agentguard.trajectory import Trajectory

GENERATOR = runpy.run_path(str(Path(__file__).parents[1] / "benchmarks" / "make_spans.py"))


@pytest.fixture(scope="module")
def spans(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("spans") / "spans.jsonl"
    GENERATOR["write"](path, 3_000)
    return path


@pytest.fixture
def streaming(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every file is long enough to be read twice."""
    monkeypatch.setattr(horizon, "_FROM", 0)


@pytest.fixture
def spilling(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hardly any span is kept in memory."""
    monkeypatch.setattr(partitions, "_IN_MEMORY", 50)


def test_the_generator_makes_whole_runs(spans):
    runs = by_id(str(spans))
    assert len(runs) == 144
    assert {len(run.steps) for run in runs.values()} == {GENERATOR["CALLS"]}


@pytest.mark.usefixtures("streaming")
def test_runs_are_let_go_while_the_file_is_read(spans):
    report = ReadReport()
    first = next(iter(read(str(spans), report=report)))
    assert len(first.steps) == GENERATOR["CALLS"]
    assert report.lines < 10


@pytest.mark.usefixtures("streaming")
def test_streamed_runs_are_those_of_a_file_kept_whole(spans, monkeypatch):
    streamed = by_id(str(spans))
    monkeypatch.setattr(horizon, "_FROM", 2**60)
    assert streamed == by_id(str(spans))


@pytest.mark.usefixtures("spilling")
def test_spilled_runs_are_those_of_a_file_kept_whole(spans, monkeypatch):
    spilled = by_id(str(spans))
    monkeypatch.setattr(partitions, "_IN_MEMORY", 2**60)
    assert spilled == by_id(str(spans))


@pytest.mark.usefixtures("streaming", "spilling")
def test_streamed_and_spilled_runs_are_those_of_a_file_kept_whole(spans, monkeypatch):
    both = by_id(str(spans))
    monkeypatch.setattr(horizon, "_FROM", 2**60)
    monkeypatch.setattr(partitions, "_IN_MEMORY", 2**60)
    assert both == by_id(str(spans))


@pytest.mark.usefixtures("streaming")
@pytest.mark.parametrize("pack", [gzip.compress, zstandard.compress])
def test_packed_files_are_streamed(pack, spans, tmp_path):
    packed = tmp_path / "spans.packed"
    packed.write_bytes(pack(spans.read_bytes()))
    assert without_place(by_id(str(packed))) == without_place(by_id(str(spans)))


@pytest.mark.usefixtures("streaming")
def test_a_trace_may_go_on_in_a_later_file(spans, tmp_path):
    lines = spans.read_bytes().splitlines(keepends=True)
    for number, start in enumerate(range(0, len(lines), 7)):
        (tmp_path / f"{number:02}.jsonl").write_bytes(b"".join(lines[start : start + 7]))
    assert without_place(by_id(str(tmp_path))) == without_place(by_id(str(spans)))


@pytest.mark.usefixtures("streaming")
@pytest.mark.parametrize("beside", [0, 7, 1_000])
def test_traces_on_one_entry_of_the_table_are_told_apart_or_wait(beside, spans, monkeypatch):
    kept = by_id(str(spans))
    monkeypatch.setattr(horizon, "_SLOTS", 4)
    monkeypatch.setattr(horizon, "_BESIDE", beside)
    assert by_id(str(spans)) == kept


@pytest.mark.usefixtures("streaming")
def test_spans_that_are_written_meanwhile_are_left_for_the_next_time(spans, tmp_path):
    lines = spans.read_bytes().splitlines(keepends=True)
    growing, before = tmp_path / "growing.jsonl", tmp_path / "before.jsonl"
    for path in (growing, before):
        path.write_bytes(b"".join(lines[:20]))
    runs = read(str(growing))
    first = next(runs)
    with growing.open("ab") as file:
        file.writelines(lines[20:])
    assert {run.run_id: len(run.steps) for run in (first, *runs)} == {
        run_id: len(run.steps) for run_id, run in by_id(str(before)).items()
    }


@pytest.mark.parametrize(
    "trace_id", ["0" * 31 + "f", "AB" * 16, "no hex at all!", "trace_é", "", "-5", "9b321d76f92134d2"]
)
def test_places_of_any_kind_of_id_are_found_again(trace_id):
    places = horizon.Horizon()
    places.see(trace_id.encode(), 3)
    places.see(trace_id.encode(), 5)
    assert (places.of(trace_id), places.of("1" * 32)) == (5, 0)


def test_places_of_ids_in_base64_are_those_of_hex():
    places = horizon.Horizon()
    places.see(base64.b64encode(bytes.fromhex("ab" * 16)), 3)
    assert places.of("ab" * 16) == 3


def by_id(path: str) -> dict[str, Trajectory]:
    return {run.run_id: run for run in read(path)}


def without_place(runs: dict[str, Trajectory]) -> dict[str, Any]:
    return {run_id: (run.key, run.steps, run.ending) for run_id, run in runs.items()}
