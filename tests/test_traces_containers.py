"""Every file format: found by its contents, read to the same story, packed or not, and from standard input."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import shutil
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
import zstandard

from agentguard.errors import TraceError
from agentguard.traces import ReadReport, containers, files, read
from agentguard.traces.container import Binary, Container
from agentguard.traces.containers.plain import read_line, to_line
from agentguard.traces.read import format_named
from agentguard.trajectory import Trajectory

SAMPLES = Path(__file__).parent / "traces" / "containers"
WEATHER = ("get_weather", {"city": "Zürich"})
SOLD_OUT = ("book_flight", {"flight_id": "X9", "seats": 2})
BOOKED = ("book_flight", {"flight_id": "F1", "seats": 2})
STORY = [WEATHER, SOLD_OUT]
INSPECTED = [
    WEATHER,
    ("get_weather", {"city": "Bern"}),
    ("book_flight", {"flight_id": "F1", "seats": "two"}),
    ("cancel_flight", {"flight_id": "F1"}),
    SOLD_OUT,
    BOOKED,
    ("submit", {"answer": "Booked F1"}),
]

FORMATS = {
    "atif.json": ("atif", STORY),
    "chat_anthropic.json": ("chat", STORY),
    "chat_gemini.json": ("chat", STORY),
    "chat_lines.jsonl": ("chat", STORY),
    "chat_openai.json": ("chat", STORY),
    "chat_responses.json": ("chat", STORY),
    "claude_code.jsonl": ("claude-code", STORY),
    "inspect.eval": ("inspect-eval", INSPECTED),
    "inspect.json": ("inspect", INSPECTED),
    "jaeger.json": ("jaeger", STORY),
    "langfuse.json": ("langfuse", STORY),
    "langfuse_observations.jsonl": ("langfuse", STORY),
    "langsmith.jsonl": ("langsmith", STORY),
    "mlflow.json": ("mlflow", STORY),
    "openai_agents.jsonl": ("openai-agents", [SOLD_OUT, BOOKED]),
    "otel_console.txt": ("otel-console", STORY),
    "otlp.pb": ("otlp-proto", STORY),
    "otlp_2021.jsonl": ("otlp-json", STORY),
    "otlp_collector.pb": ("otlp-proto", STORY),
    "otlp_pretty.json": ("otlp-json", STORY),
    "phoenix.json": ("phoenix", [SOLD_OUT, BOOKED]),
    "phoenix_otlpv1.json": ("otlp-json", [SOLD_OUT, BOOKED]),
    "plain.jsonl": ("plain", STORY),
    "tempo.json": ("otlp-json", STORY),
}
each_format = pytest.mark.parametrize("name", sorted(FORMATS))


@each_format
def test_the_calls_are_read_in_their_order(name):
    assert calls(one(SAMPLES / name)) == FORMATS[name][1]


@each_format
def test_nothing_is_skipped(name):
    report = ReadReport()
    list(read(str(SAMPLES / name), report=report))
    assert (report.files, report.runs, dict(report.reasons)) == (1, 1, {})


@each_format
def test_a_format_is_known_by_its_contents_alone(name, tmp_path):
    anonymous = tmp_path / "file"
    shutil.copy(SAMPLES / name, anonymous)
    assert calls(one(anonymous)) == FORMATS[name][1]


@each_format
def test_a_forced_format_reads_the_same(name):
    forced, expected = FORMATS[name]
    (found,) = read(str(SAMPLES / name), format=forced)
    assert calls(found) == expected


@each_format
@pytest.mark.parametrize("pack", [gzip.compress, lzma.compress, zstandard.compress])
def test_packed_files_are_read_whatever_they_are_called(name, pack, tmp_path):
    packed = tmp_path / "packed.json"
    packed.write_bytes(pack((SAMPLES / name).read_bytes()))
    assert calls(one(packed)) == FORMATS[name][1]


@each_format
def test_standard_input_is_read(name, monkeypatch):
    class Stdin:
        buffer = io.BytesIO((SAMPLES / name).read_bytes())

    monkeypatch.setattr("sys.stdin", Stdin)
    assert [calls(run) for run in read("-")] == [FORMATS[name][1]]


@each_format
def test_an_address_is_read(name):
    fsspec = pytest.importorskip("fsspec")
    with fsspec.open(f"memory://{name}", "wb") as file:
        file.write((SAMPLES / name).read_bytes())
    assert [calls(run) for run in read(f"memory://{name}")] == [FORMATS[name][1]]


def test_a_folder_is_all_its_trace_files(tmp_path):
    for name in ("atif.json", "mlflow.json"):
        shutil.copy(SAMPLES / name, tmp_path)
    (tmp_path / "deeper").mkdir()
    (tmp_path / "deeper" / "chat.json.gz").write_bytes(gzip.compress((SAMPLES / "chat_openai.json").read_bytes()))
    (tmp_path / "notes.md").write_text("no trace")
    assert len(list(read(str(tmp_path)))) == 3


def test_a_pattern_is_all_files_that_fit_it(tmp_path):
    shutil.copy(SAMPLES / "atif.json", tmp_path / "a.json")
    shutil.copy(SAMPLES / "chat_openai.json", tmp_path / "b.json")
    assert [run.run_id for run in read(str(tmp_path / "a*.json"))] == ["atif-1"]


@pytest.mark.parametrize("path", ["nowhere.jsonl", "no/such/*.jsonl"])
def test_a_path_that_means_no_file_says_so(path):
    with pytest.raises(TraceError, match="no such file, folder or pattern"):
        list(read(path))


def test_a_folder_without_traces_says_what_was_looked_for(tmp_path):
    with pytest.raises(TraceError, match=r"no trace files in this folder; looked for \.json, \.jsonl"):
        list(read(str(tmp_path)))


def test_an_unknown_format_is_told_with_the_known_ones():
    with pytest.raises(TraceError, match="otlp-jsn: unknown format; known: atif, chat, "):
        list(read("x.jsonl", format="otlp-jsn"))


def test_a_file_of_another_format_is_told_with_what_was_seen(tmp_path):
    path = tmp_path / "other.json"
    path.write_text('{"apples": 3, "pears": 4}\n')
    report = ReadReport()
    assert list(read(str(path), report=report)) == []
    (skipped,) = report.examples
    assert str(skipped).startswith(f"{path}:1: unknown format: an object with the keys 'apples', 'pears'; known: otlp-")


def test_packing_that_is_not_known_is_no_text(tmp_path):
    path = tmp_path / "runs.jsonl.bz2"
    path.write_bytes(bz2.compress(b"{}"))
    report = ReadReport()
    assert list(read(str(path), report=report)) == []
    assert report.skipped > 0


def test_formats_of_one_file_may_differ_by_line(tmp_path):
    path = tmp_path / "mixed.jsonl"
    lines = [(SAMPLES / name).read_text() for name in ("otlp_2021.jsonl", "langsmith.jsonl")]
    path.write_text("".join(lines))
    assert sorted(len(run.steps) for run in read(str(path))) == [2, 2]


def test_the_readers_word_on_model_and_harness_counts_for_whole_runs_too():
    from agentguard.traces import Naming

    (found,) = read(str(SAMPLES / "atif.json"), naming=Naming(model="m", harness="h"))
    assert (found.key.model, found.key.harness) == ("m", "h")


def test_every_file_with_a_format_is_in_the_table():
    folder = Path(containers.__file__).parent
    listed = {type(one).__name__: one for one in containers.BUILT_IN.values()}
    assert listed.keys() <= {"Container", "Session", "Binary"}
    modules = {one.items.__module__.rpartition(".")[2] for one in containers.BUILT_IN.values()}
    forgotten = {path.stem for path in folder.glob("*.py")} - modules - {"__init__"}
    assert not forgotten, f"no line in containers/__init__.py: BUILT_IN for {', '.join(sorted(forgotten))}"


@pytest.mark.parametrize("name", sorted(containers.BUILT_IN))
def test_a_format_is_listed_under_its_own_name(name):
    assert format_named(name).name == name


def test_every_format_has_a_sample():
    with_parquet = {forced for forced, _ in FORMATS.values()} | {"phoenix-parquet"}
    assert with_parquet == set(containers.BUILT_IN)


def test_outsiders_are_asked_only_for_names_that_are_not_built_in(monkeypatch):
    class Point:
        name = "mine"

        def load(self) -> Container:
            return Container(name="mine", accepts=lambda record: True, items=lambda record, where: iter(()))

    asked: list[str] = []

    def entry_points(*, group: str) -> list[Point]:
        asked.append(group)
        return [Point()]

    monkeypatch.setattr("importlib.metadata.entry_points", entry_points)
    assert format_named("plain").name == "plain"
    assert asked == []
    assert format_named("mine").name == "mine"
    assert asked == ["agentguard.traces"]


def test_an_outsider_that_offers_no_format_is_told(monkeypatch):
    class Point:
        name = "mine"

        def load(self) -> object:
            return object()

    monkeypatch.setattr("importlib.metadata.entry_points", lambda group: [Point()])
    with pytest.raises(TraceError, match="mine: the installed package gives no format under this name"):
        format_named("mine")


def test_a_binary_format_can_be_forced_on_a_text(tmp_path):
    assert isinstance(format_named("otlp-proto"), Binary)
    path = tmp_path / "text"
    path.write_text("no protobuf at all")
    report = ReadReport()
    assert list(read(str(path), format="otlp-proto", report=report)) == []
    assert dict(report.reasons) == {"torn message": 1}


def test_progress_is_told_in_bytes():
    path = SAMPLES / "claude_code.jsonl"
    told: list[int] = []
    list(read(str(path), progress=told.append))
    assert 0 < sum(told) <= path.stat().st_size


def test_remote_files_that_cannot_be_opened_are_told():
    pytest.importorskip("fsspec")
    with pytest.raises(TraceError, match="cannot be opened"):
        list(read("nosuchprotocol://x"))


def test_lines_are_numbered_from_one_and_empty_ones_left_out():
    assert list(files.lines(io.BytesIO(b"a\n\n b \nc"))) == [(1, b"a"), (3, b"b"), (4, b"c")]


def test_an_outsider_that_raises_loses_its_record_only(monkeypatch, tmp_path):
    class Point:
        name = "mine"

        def load(self) -> Container:
            def items(record: dict[str, int], where: str) -> Iterator[Trajectory]:
                yield Trajectory(run_id=str(1 // record["n"]))

            return Container(name="mine", accepts=lambda record: "n" in record, items=items)

    monkeypatch.setattr("importlib.metadata.entry_points", lambda group: [Point()])
    path = tmp_path / "mine.jsonl"
    path.write_text('{"n": 1}\n{"n": 0}\n{"n": 1}\n')
    report = ReadReport()
    assert [run.run_id for run in read(str(path), format="mine", report=report)] == ["1", "1"]
    (skipped,) = report.examples
    assert (skipped.line, skipped.reason) == (2, "reader failed")


def test_an_array_of_runs_in_the_plain_form_is_read(tmp_path):
    record = json.loads((SAMPLES / "plain.jsonl").read_text())
    path = tmp_path / "runs.json"
    path.write_text(json.dumps([record, record | {"steps": 3}, record | {"run_id": "plain-2", "steps": []}], indent=1))
    report = ReadReport()
    assert [run.run_id for run in read(str(path), report=report)] == ["plain-1", "plain-2"]
    assert dict(report.reasons) == {"unknown format": 1}


def test_runs_are_written_as_they_were_read():
    for name in sorted(FORMATS):
        run = one(SAMPLES / name)
        (back,) = read_line(to_line(run), "")
        assert isinstance(back, Trajectory)
        assert msgspec.structs.replace(back, tools=run.tools) == run


def test_a_result_that_was_cut_is_compared_by_the_digest_of_the_whole(tmp_path):
    record = json.loads((SAMPLES / "plain.jsonl").read_text())
    record["steps"][1]["result"] = "x" * 2_000
    path = tmp_path / "runs.jsonl"
    path.write_text(json.dumps(record))
    assert [step.result_key for step in one(path).steps] == [None, "0b"]


def test_a_packed_binary_file_that_is_too_long_is_told(monkeypatch, tmp_path):
    monkeypatch.setattr("agentguard.traces.reader.LONGEST_DOCUMENT", 100)
    path = tmp_path / "packed"
    path.write_bytes(gzip.compress((SAMPLES / "otlp.pb").read_bytes()))
    report = ReadReport()
    assert list(read(str(path), report=report)) == []
    assert dict(report.reasons) == {"document too long": 1}


def one(path: Path) -> Trajectory:
    (found,) = read(str(path))
    return found


def calls(run: Trajectory) -> list[tuple[str, object]]:
    return [(step.call.name, step.call.arguments) for step in run.steps]
