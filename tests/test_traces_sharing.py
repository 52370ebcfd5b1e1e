"""Several readers of one input give the runs that one reader gives."""

from __future__ import annotations

import gzip
import pickle
import runpy
import shutil
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import pytest

from agentguard.traces import ReadReport, partitions, read
from agentguard.traces.partitions import Group
from agentguard.traces.sharing import Share, read_left, read_share, shares
from agentguard.trajectory import Trajectory

SAMPLES = Path(__file__).parent / "traces"
GENERATOR = runpy.run_path(str(Path(__file__).parents[1] / "benchmarks" / "make_spans.py"))
PARTS = [1, 2, 3, 7, 50]

each_count = pytest.mark.parametrize("count", PARTS)


@pytest.fixture(scope="module")
def spans(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("spans") / "spans.jsonl"
    GENERATOR["write"](path, 3_000)
    return path


@each_count
def test_parts_of_a_file_hold_its_runs(spans, count):
    assert told(shared(spans, count)) == told(read(str(spans)))


@each_count
def test_parts_count_what_one_reader_counts(spans, count, tmp_path):
    damaged = tmp_path / "damaged.jsonl"
    lines = spans.read_bytes().splitlines(keepends=True)
    damaged.write_bytes(b"".join([b"{torn\n", *lines[:9], b"\n", b"[1, 2]\n", *lines[9:], b'{"resourceSp']))
    whole, parts = ReadReport(), ReadReport()
    assert told(shared(damaged, count, parts)) == told(read(str(damaged), report=whole))
    assert parts == whole


@each_count
def test_a_packed_file_is_shared(spans, count, tmp_path):
    packed = tmp_path / "spans.gz"
    packed.write_bytes(gzip.compress(spans.read_bytes(), 1))
    assert told(shared(packed, count)) == told(read(str(packed)))


@each_count
@pytest.mark.parametrize("kinds", [(".json", ".jsonl", ".txt"), (".json", ".jsonl", ".txt", ".pb", ".eval")])
def test_files_of_every_format_are_shared(count, kinds, tmp_path):
    for path in (SAMPLES / "containers").iterdir():
        if path.suffix in kinds:
            shutil.copy(path, tmp_path / f"{path.name}.json")
    (tmp_path / "empty.json").write_bytes(b"")
    whole, parts = ReadReport(), ReadReport()
    expected = told(read(str(tmp_path), report=whole))
    assert told(shared(tmp_path, count, parts)) == expected
    assert (parts.files, parts.spans, parts.runs, parts.reasons) == (
        whole.files,
        whole.spans,
        whole.runs,
        whole.reasons,
    )


@pytest.mark.shared
@each_count
def test_runs_of_several_traces_are_read_together(count, shared_data, tmp_path):
    for path in shared_data.glob("traces/*.jsonl"):
        shutil.copy(path, tmp_path)
    assert told(shared(tmp_path, count)) == told(read(str(tmp_path)))


def test_parts_of_nothing_are_nothing(tmp_path):
    (tmp_path / "empty.jsonl").write_bytes(b"")
    whole, parts = ReadReport(), ReadReport()
    list(read(str(tmp_path), report=whole))
    assert shared(tmp_path, 2, parts) == []
    assert parts == whole


def test_parts_that_spill_hold_the_same_runs(spans, monkeypatch):
    monkeypatch.setattr(partitions, "_IN_MEMORY", 100)
    assert told(shared(spans, 3)) == told(read(str(spans)))


def test_two_processes_share_a_file(spans):
    left: list[Group] = []
    runs: list[Trajectory] = []
    with ProcessPoolExecutor(2) as pool:
        for found, rest in pool.map(work, shares(str(spans), 2)):
            runs += found
            left += rest
    assert told([*runs, *read_left(left)]) == told(read(str(spans)))


def work(share: Share) -> tuple[list[Trajectory], list[Group]]:
    left: list[Group] = []
    return list(read_share(share, left=left)), left


def shared(path: Path, count: int, report: ReadReport | None = None) -> list[Trajectory]:
    left: list[Group] = []
    runs: list[Trajectory] = []
    total = report if report is not None else ReadReport()
    for share in shares(str(path), count):
        seen = ReadReport()
        runs += read_share(pickle.loads(pickle.dumps(share)), left=left, report=seen)
        total.add(seen)
    return [*runs, *read_left(left, report=total)]


def told(runs: object) -> list[Trajectory]:
    return sorted(runs, key=lambda run: (run.run_id, str(run.source), len(run.steps)))  # type: ignore[call-overload]
