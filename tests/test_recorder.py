"""What the recorder writes, and that it loses nothing."""

from __future__ import annotations

import multiprocessing
import os
import random
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path
from typing import Any

import orjson
import pytest
import structlog
import zstandard
from opentelemetry import trace
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF, ParentBased, TraceIdRatioBased
from opentelemetry.trace import Link, SpanKind, Status, StatusCode
from structlog.testing import capture_logs

from agentguard import record
from agentguard.recorder import files as files_module
from agentguard.recorder import otlp_json, processor
from agentguard.recorder.files import Files, pack
from agentguard.redaction import Redaction


def lines(folder: Path) -> list[dict[str, Any]]:
    """Return every line of every file in the folder, in the order of the files' names."""
    found: list[dict[str, Any]] = []
    for path in sorted(folder.iterdir()):
        data = path.read_bytes()
        if path.suffix == ".zst":
            data = zstandard.ZstdDecompressor().stream_reader(data).read()
        found += [orjson.loads(line) for line in data.splitlines()]
    return found


def spans(folder: Path) -> list[dict[str, Any]]:
    return [
        span
        for line in lines(folder)
        for resource in line["resourceSpans"]
        for scope in resource["scopeSpans"]
        for span in scope["spans"]
    ]


def written(tmp_path: Path, make: Any, **settings: Any) -> dict[str, Any]:
    """Return the one span that `make` makes of a tracer."""
    provider = TracerProvider()
    with record(tmp_path, tracer_provider=provider, **settings):
        make(provider.get_tracer("test"))
    (span,) = spans(tmp_path)
    return span


def attributes(span: dict[str, Any]) -> dict[str, Any]:
    return {each["key"]: each["value"] for each in span["attributes"]}


# ---------------------------------------------------------------- form


def test_a_line_is_what_the_collector_writes(tmp_path: Path):
    provider = TracerProvider(resource=Resource({"service.name": "svc"}, schema_url="https://example.org/1"))
    with record(tmp_path, tracer_provider=provider):
        root = provider.get_tracer("a", "1.0").start_span("root", start_time=1)
        child = provider.get_tracer("b").start_span(
            "child", trace.set_span_in_context(root), SpanKind.CLIENT, {"k": "v"}, start_time=2
        )
        child.set_status(Status(StatusCode.ERROR, "broke"))
        child.end(3)
        root.end(4)

    (line,) = lines(tmp_path)
    ids = {name: span.get_span_context() for name, span in (("root", root), ("child", child))}
    assert line == {
        "resourceSpans": [
            {
                "resource": {"attributes": [{"key": "service.name", "value": {"stringValue": "svc"}}]},
                "scopeSpans": [
                    {
                        "scope": {"name": "b"},
                        "spans": [
                            {
                                "traceId": f"{ids['root'].trace_id:032x}",
                                "spanId": f"{ids['child'].span_id:016x}",
                                "parentSpanId": f"{ids['root'].span_id:016x}",
                                "flags": int(ids["child"].trace_flags) | 0x100,
                                "name": "child",
                                "kind": 3,
                                "startTimeUnixNano": "2",
                                "endTimeUnixNano": "3",
                                "attributes": [{"key": "k", "value": {"stringValue": "v"}}],
                                "status": {"message": "broke", "code": 2},
                            }
                        ],
                    },
                    {
                        "scope": {"name": "a", "version": "1.0"},
                        "spans": [
                            {
                                "traceId": f"{ids['root'].trace_id:032x}",
                                "spanId": f"{ids['root'].span_id:016x}",
                                "parentSpanId": "",
                                "flags": int(ids["root"].trace_flags) | 0x100,
                                "name": "root",
                                "kind": 1,
                                "startTimeUnixNano": "1",
                                "endTimeUnixNano": "4",
                                "attributes": [],
                                "status": {},
                            }
                        ],
                    },
                ],
                "schemaUrl": "https://example.org/1",
            }
        ]
    }


def test_each_type_of_value_has_its_form(tmp_path: Path):
    values: dict[str, Any] = {
        "text": 'a "quoted" line\nand é',
        "yes": True,
        "no": False,
        "whole": 2**62,
        "half": 0.5,
        "nan": float("nan"),
        "more": float("inf"),
        "less": float("-inf"),
        "list": ["a", "b"],
        "numbers": [1, 2],
        "raw": b"\x00\xff",
        "within": {"a": {"b": 1}},
        "empty": None,
        "surrogate": "\ud800",
    }
    span = written(tmp_path, lambda tracer: tracer.start_span("s", attributes=values).end())
    assert attributes(span) == {
        "text": {"stringValue": 'a "quoted" line\nand é'},
        "yes": {"boolValue": True},
        "no": {"boolValue": False},
        "whole": {"intValue": "4611686018427387904"},
        "half": {"doubleValue": 0.5},
        "nan": {"doubleValue": "NaN"},
        "more": {"doubleValue": "Infinity"},
        "less": {"doubleValue": "-Infinity"},
        "list": {"arrayValue": {"values": [{"stringValue": "a"}, {"stringValue": "b"}]}},
        "numbers": {"arrayValue": {"values": [{"intValue": "1"}, {"intValue": "2"}]}},
        "raw": {"bytesValue": "AP8="},
        "within": {"kvlistValue": {"values": [{"key": "a", "value": {"kvlistValue": {"values": [
            {"key": "b", "value": {"intValue": "1"}}]}}}]}},
        "empty": {},
        "surrogate": {"stringValue": "?"},
    }  # fmt: skip


def test_events_and_links_are_written(tmp_path: Path):
    other = trace.SpanContext(7, 8, is_remote=True, trace_flags=trace.TraceFlags(1))

    def make(tracer: trace.Tracer) -> None:
        span = tracer.start_span("s", links=[Link(other, {"why": "again"})])
        span.add_event("happened", {"n": 1}, timestamp=5)
        span.end()

    span = written(tmp_path, make)
    assert span["events"] == [
        {"timeUnixNano": "5", "name": "happened", "attributes": [{"key": "n", "value": {"intValue": "1"}}]}
    ]
    assert span["links"] == [
        {
            "traceId": "00000000000000000000000000000007",
            "spanId": "0000000000000008",
            "attributes": [{"key": "why", "value": {"stringValue": "again"}}],
        }
    ]


def test_a_remote_parent_and_its_trace_state_are_told(tmp_path: Path):
    state = trace.TraceState([("vendor", "x")])
    remote = trace.SpanContext(7, 8, is_remote=True, trace_flags=trace.TraceFlags(1), trace_state=state)
    context = trace.set_span_in_context(trace.NonRecordingSpan(remote))
    span = written(tmp_path, lambda tracer: tracer.start_span("s", context).end())
    assert (span["parentSpanId"], span["flags"], span["traceState"]) == ("0000000000000008", 0x301, "vendor=x")


def test_what_the_sdk_dropped_is_counted(tmp_path: Path):
    def make(tracer: trace.Tracer) -> None:
        span = tracer.start_span("s")
        for i in range(130):
            span.add_event(str(i))
        span.end()

    span = written(tmp_path, make)
    assert (len(span["events"]), span["droppedEventsCount"]) == (128, 2)


# ---------------------------------------------------------------- what is recorded


def test_spans_that_are_not_sampled_are_not_recorded(tmp_path: Path):
    provider = TracerProvider(sampler=ParentBased(TraceIdRatioBased(0.0)))
    with record(tmp_path, tracer_provider=provider):
        provider.get_tracer("test").start_span("s").end()
    assert list(tmp_path.iterdir()) == []


def test_nothing_is_made_before_the_first_span(tmp_path: Path):
    folder = tmp_path / "runs" / "today"
    with record(folder, tracer_provider=TracerProvider(sampler=ALWAYS_OFF)) as recorder:
        assert recorder.flush()
    assert (folder.exists(), recorder.path) == (False, None)


def test_spans_after_closing_are_not_recorded(tmp_path: Path):
    provider = TracerProvider()
    recorder = record(tmp_path, tracer_provider=provider)
    provider.get_tracer("test").start_span("before").end()
    recorder.close()
    provider.get_tracer("test").start_span("after").end()
    recorder.close()
    assert [span["name"] for span in spans(tmp_path)] == ["before"]


def test_flushing_writes_what_has_ended(tmp_path: Path):
    provider = TracerProvider()
    with record(tmp_path, tracer_provider=provider, flush_seconds=60) as recorder:
        provider.get_tracer("test").start_span("s").end()
        assert provider.force_flush()
        assert [span["name"] for span in spans(tmp_path)] == ["s"]
        assert recorder.path is not None
        assert recorder.path.name.endswith(f"-{os.getpid()}-0000.jsonl")


def test_a_span_is_on_disk_within_a_fifth_of_a_second(tmp_path: Path):
    provider = TracerProvider()
    with record(tmp_path, tracer_provider=provider):
        provider.get_tracer("test").start_span("s").end()
        time.sleep(0.2)
        assert len(spans(tmp_path)) == 1


def test_shutting_the_provider_down_closes_the_file(tmp_path: Path):
    provider = TracerProvider()
    record(tmp_path, tracer_provider=provider)
    provider.get_tracer("test").start_span("s").end()
    provider.shutdown()
    assert [path.suffix for path in tmp_path.iterdir()] == [".zst"]


def test_nothing_is_dropped_under_pressure(tmp_path: Path):
    provider = TracerProvider()
    tracer = provider.get_tracer("agentguard")
    with record(tmp_path, tracer_provider=provider) as recorder:

        def end_many() -> None:
            for _ in range(8_000):
                tracer.start_span("s").end()

        threads = [threading.Thread(target=end_many) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len({span["spanId"] for span in spans(tmp_path)}) == 24_000
    assert recorder.lost == 0


# ---------------------------------------------------------------- secrets


def test_secrets_in_spans_of_others_are_taken_out(tmp_path: Path):
    span = written(
        tmp_path,
        lambda tracer: tracer.start_span(
            "s",
            attributes={
                "http.request.header.authorization": "Basic YW5uOng=",
                "input.value": '{"password": "hunter2", "q": "cats"}',
                "note": "sk-" + "a" * 40,
                "gen_ai.usage.input_tokens": 5,
            },
        ).end(),
    )
    assert attributes(span) == {
        "http.request.header.authorization": {"stringValue": "[redacted]"},
        "input.value": {"stringValue": '{"password": "[redacted]", "q": "cats"}'},
        "note": {"stringValue": "[redacted]"},
        "gen_ai.usage.input_tokens": {"intValue": "5"},
    }


def test_long_texts_of_others_are_not_cut(tmp_path: Path):
    span = written(tmp_path, lambda tracer: tracer.start_span("s", attributes={"t": "x" * 200_000}).end())
    assert len(attributes(span)["t"]["stringValue"]) == 200_000


def test_redaction_can_be_set_and_switched_off(tmp_path: Path):
    def make(tracer: trace.Tracer) -> None:
        tracer.start_span("s", attributes={"password": "hunter2", "card": "4111"}).end()

    own = written(tmp_path / "own", make, redaction=Redaction(keys=("card",)))
    off = written(tmp_path / "off", make, redaction=None)
    assert attributes(own) == {"password": {"stringValue": "hunter2"}, "card": {"stringValue": "[redacted]"}}
    assert attributes(off) == {"password": {"stringValue": "hunter2"}, "card": {"stringValue": "4111"}}


# ---------------------------------------------------------------- files


def test_a_full_file_is_closed_packed_and_followed_by_another(tmp_path: Path):
    provider = TracerProvider()
    with record(tmp_path, tracer_provider=provider, max_bytes=2_000) as recorder:
        for i in range(5):
            provider.get_tracer("test").start_span(f"s{i}", attributes={"t": "x" * 3_000}).end()
            recorder.flush()
    assert [span["name"] for span in spans(tmp_path)] == ["s0", "s1", "s2", "s3", "s4"]
    assert sorted(path.name[-14:] for path in tmp_path.iterdir()) == [f"000{i}.jsonl.zst" for i in range(5)]


def test_packing_can_be_switched_off(tmp_path: Path):
    written(tmp_path, lambda tracer: tracer.start_span("s").end(), compress=False)
    assert [path.suffix for path in tmp_path.iterdir()] == [".jsonl"]


def test_two_recorders_of_one_process_do_not_share_a_file(tmp_path: Path):
    one, other = TracerProvider(), TracerProvider()
    with record(tmp_path, tracer_provider=one), record(tmp_path, tracer_provider=other):
        one.get_tracer("test").start_span("one").end()
        other.get_tracer("test").start_span("other").end()
    assert len(list(tmp_path.iterdir())) == 2
    assert {span["name"] for span in spans(tmp_path)} == {"one", "other"}


def test_a_folder_that_takes_no_file_is_one_loud_line(tmp_path: Path):
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    provider = TracerProvider()
    with capture_logs() as logs, record(blocked / "runs", tracer_provider=provider) as recorder:
        for _ in range(3):
            provider.get_tracer("test").start_span("s").end()
            recorder.flush()
    assert [(entry["event"], entry["log_level"]) for entry in logs] == [("agentguard.recorder_failed", "error")]
    assert recorder.lost == 3


def test_writing_goes_on_when_the_folder_can_be_written_again(tmp_path: Path):
    blocked = tmp_path / "runs"
    blocked.write_text("in the way")
    provider = TracerProvider()
    with capture_logs() as logs, record(blocked, tracer_provider=provider) as recorder:
        provider.get_tracer("test").start_span("lost").end()
        recorder.flush()
        blocked.unlink()
        provider.get_tracer("test").start_span("kept").end()
    assert [(entry["event"], entry.get("lost")) for entry in logs] == [
        ("agentguard.recorder_failed", None),
        ("agentguard.recorder_recovered", 1),
    ]
    assert [span["name"] for span in spans(blocked)] == ["kept"]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_is_one_loud_line_and_no_exception(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    provider = TracerProvider()
    opened = os.open
    monkeypatch.setattr(files_module.os, "open", lambda path, *rest: opened("/dev/full", os.O_WRONLY))
    with capture_logs() as logs, record(tmp_path, tracer_provider=provider, compress=False) as recorder:
        for _ in range(3):
            provider.get_tracer("test").start_span("s").end()
            recorder.flush()
    assert [entry["event"] for entry in logs] == ["agentguard.recorder_failed"]
    assert "No space left on device" in logs[0]["error"]
    assert recorder.lost == 3


def test_the_part_of_a_line_that_a_full_disk_took_is_taken_back(tmp_path: Path):
    limited = textwrap.dedent("""
        import resource, signal, sys
        from pathlib import Path
        from agentguard.recorder.files import Files
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))
        files = Files(Path(sys.argv[1]), max_bytes=10**9, compress=False, complain=print)
        files.append(b"a" * 59 + b"\\n")
        try:
            files.append(b"b" * 59 + b"\\n")
        except OSError as fault:
            print(fault.strerror)
        files.append(b"c" * 9 + b"\\n")
        files.close()
    """)
    ran = subprocess.run([sys.executable, "-c", limited, str(tmp_path)], capture_output=True, text=True, check=True)
    assert ran.stdout == "File too large\n"
    (path,) = tmp_path.iterdir()
    assert path.read_bytes() == b"a" * 59 + b"\n" + b"c" * 9 + b"\n"


def test_a_file_that_cannot_be_packed_stays_and_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    faults: list[Exception] = []
    files = Files(tmp_path, max_bytes=10, compress=True, complain=faults.append)
    files.append(b"{}\n")
    path = files.path
    assert path is not None
    path.with_suffix(".part").mkdir()
    files.append(b"0123456789\n")
    files.close()
    assert path.read_bytes() == b"{}\n0123456789\n"
    assert [type(fault) for fault in faults] == [IsADirectoryError]


def test_packing_replaces_the_plain_file(tmp_path: Path):
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"{}\n" * 1_000)
    packed = pack(path)
    assert list(tmp_path.iterdir()) == [packed]
    assert zstandard.ZstdDecompressor().stream_reader(packed.read_bytes()).read() == b"{}\n" * 1_000


# ---------------------------------------------------------------- providers


def run_apart(code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", textwrap.dedent(code), *arguments],
        capture_output=True, text=True, timeout=60,
    )  # fmt: skip


def test_without_a_provider_one_is_made_and_exit_closes_the_file(tmp_path: Path):
    ran = run_apart(
        """
        import sys, agentguard
        from opentelemetry import trace
        agentguard.record(sys.argv[1])
        trace.get_tracer("test").start_span("s").end()
        """,
        str(tmp_path),
    )
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "", "")
    assert [span["name"] for span in spans(tmp_path)] == ["s"]


def test_a_global_provider_is_added_to(tmp_path: Path):
    ran = run_apart(
        """
        import sys, agentguard
        from opentelemetry import trace
        from opentelemetry.sdk.trace import TracerProvider
        provider = TracerProvider()
        trace.set_tracer_provider(provider)
        agentguard.record(sys.argv[1])
        assert trace.get_tracer_provider() is provider
        provider.get_tracer("test").start_span("s").end()
        """,
        str(tmp_path),
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    assert [span["name"] for span in spans(tmp_path)] == ["s"]


def test_a_global_provider_that_takes_no_processor_is_said_aloud(tmp_path: Path):
    ran = run_apart(
        """
        import sys, agentguard
        from opentelemetry import trace
        trace.set_tracer_provider(trace.NoOpTracerProvider())
        agentguard.record(sys.argv[1])
        """,
        str(tmp_path),
    )
    assert ran.returncode == 0
    assert "agentguard.recorder_unused" in ran.stdout + ran.stderr


# ---------------------------------------------------------------- processes


FORKING = """
import os, multiprocessing, sys, warnings
from opentelemetry.sdk.trace import TracerProvider
from agentguard import record

warnings.simplefilter("ignore", DeprecationWarning)  # 3.12: forking a process with threads
provider = TracerProvider()
tracer = provider.get_tracer("test")
recorder = record(sys.argv[1], tracer_provider=provider, flush_seconds=float(sys.argv[2]))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_writes_a_file_of_its_own(tmp_path: Path):
    code = FORKING + textwrap.dedent("""
        tracer.start_span("parent before").end()
        child = os.fork()
        if child == 0:
            tracer.start_span("child").end()
            recorder.flush()
            os._exit(0)
        os.waitpid(child, 0)
        tracer.start_span("parent after").end()
    """)
    ran = run_apart(code, str(tmp_path), "0.05")
    assert (ran.returncode, ran.stderr) == (0, "")
    assert sorted(span["name"] for span in spans(tmp_path)) == ["child", "parent after", "parent before"]
    assert len(list(tmp_path.iterdir())) == 2


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="needs fork")
def test_a_child_of_multiprocessing_writes_what_it_ended_last(tmp_path: Path):
    code = FORKING + textwrap.dedent("""
        child = multiprocessing.get_context("fork").Process(target=lambda: tracer.start_span("child").end())
        child.start()
        child.join()
    """)
    ran = run_apart(code, str(tmp_path), "5")
    assert (ran.returncode, ran.stderr) == (0, "")
    assert [span["name"] for span in spans(tmp_path)] == ["child"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_closed_recorder_stays_closed_in_a_forked_child(tmp_path: Path):
    code = FORKING + textwrap.dedent("""
        recorder.close()
        child = os.fork()
        if child == 0:
            tracer.start_span("child").end()
            recorder.flush()
            os._exit(0)
        os.waitpid(child, 0)
    """)
    ran = run_apart(code, str(tmp_path), "0.05")
    assert (ran.returncode, ran.stderr) == (0, "")
    assert list(tmp_path.iterdir()) == []


WRITER = """
import itertools, os, sys, time
from opentelemetry.sdk.trace import TracerProvider
from agentguard import record

folder, told = sys.argv[1:]
provider = TracerProvider()
record(folder, tracer_provider=provider, max_bytes=200_000)
tracer = provider.get_tracer("agentguard")
out = os.open(told, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
for i in itertools.count():
    tracer.start_span("s", attributes={"i": i, "text": "x" * 200}).end()
    os.write(out, b"%d %d\\n" % (i, time.monotonic_ns()))
    time.sleep(0.0005)
"""


def killed(tmp_path: Path, count: int) -> list[tuple[int, int]]:
    """Run writers, kill each at random; return, for each, how many spans it must have kept and how many it has."""
    writers = {}
    for number in range(count):
        folder, told = tmp_path / f"runs{number}", tmp_path / f"told{number}"
        told.touch()
        writers[number] = subprocess.Popen([sys.executable, "-c", WRITER, str(folder), str(told)]), folder, told
    wait_for(lambda: all(told.stat().st_size > 0 for _, _, told in writers.values()))
    kept: list[tuple[int, int]] = []
    for process, folder, told in random.sample(list(writers.values()), count):
        time.sleep(random.uniform(0, 0.3))
        process.send_signal(signal.SIGKILL)
        at = time.monotonic_ns()
        process.wait()
        ended = [line.split() for line in told.read_text().splitlines(keepends=True) if line.endswith("\n")]
        due = {int(i) for i, when in ended if at - int(when) > 200_000_000}
        kept.append((len(due - numbers(folder)), len(due)))
    return kept


def numbers(folder: Path) -> set[int]:
    """Return the numbers of the spans in the files; only the last line of a plain file may be torn."""
    found: set[int] = set()
    for path in sorted(folder.glob("*.jsonl*")):
        data = path.read_bytes()
        if path.suffix == ".zst":
            data = zstandard.ZstdDecompressor().stream_reader(data).read()
        whole, _, torn = data.rpartition(b"\n")
        assert not torn or path.suffix == ".jsonl"
        for line in whole.splitlines():
            (resource,) = orjson.loads(line)["resourceSpans"]
            (scope,) = resource["scopeSpans"]
            found |= {int(attributes(span)["i"]["intValue"]) for span in scope["spans"]}
    return found


def wait_for(condition: Any) -> None:
    until = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.02)


def test_a_killed_process_keeps_what_ended_a_fifth_of_a_second_before(tmp_path: Path):
    kept = killed(tmp_path, 8)
    assert [missing for missing, _ in kept] == [0] * 8


@pytest.mark.kill
@pytest.mark.slow
@pytest.mark.timeout(3_600)
@pytest.mark.parametrize("attempt", range(int(os.environ.get("AGENTGUARD_KILLS", "3"))))
def test_killed_processes_keep_what_ended_over_and_over(tmp_path: Path, attempt: int):
    kept = killed(tmp_path, 8)
    assert [missing for missing, _ in kept] == [0] * 8


def test_a_recorder_that_cannot_start_its_thread_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def refuse(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    provider = TracerProvider()
    with capture_logs() as logs, record(tmp_path, tracer_provider=provider) as recorder:
        with monkeypatch.context() as patch:
            patch.setattr(threading.Thread, "start", refuse)
            provider.get_tracer("test").start_span("s").end()
        assert recorder.lost == 1
        assert recorder.flush()
    assert [entry["event"] for entry in logs] == ["agentguard.recorder_failed"]


def test_a_span_that_cannot_be_encoded_costs_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def encoded(spans: list[ReadableSpan], clean: Any) -> bytes:
        if any(span.name == "bad" for span in spans):
            raise ValueError("no form for this")
        return otlp_json.encoded(spans, clean)

    monkeypatch.setattr(processor, "encoded", encoded)
    provider = TracerProvider()
    with capture_logs() as logs, record(tmp_path, tracer_provider=provider) as recorder:
        for name in ("one", "bad", "two"):
            provider.get_tracer("test").start_span(name).end()
    assert [span["name"] for span in spans(tmp_path)] == ["one", "two"]
    assert recorder.lost == 1
    assert [entry["event"] for entry in logs] == ["agentguard.recorder_failed", "agentguard.recorder_recovered"]


def test_a_log_that_fails_does_not_stop_the_recorder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def refuse() -> Any:
        raise RuntimeError("no log")

    monkeypatch.setattr(processor, "logger", refuse)
    blocked = tmp_path / "runs"
    blocked.write_text("in the way")
    provider = TracerProvider()
    with record(blocked, tracer_provider=provider) as recorder:
        provider.get_tracer("test").start_span("lost").end()
        recorder.flush()
        blocked.unlink()
        provider.get_tracer("test").start_span("kept").end()
    assert [span["name"] for span in spans(blocked)] == ["kept"]


def test_the_log_is_left_as_the_host_set_it():
    before = structlog.get_config()
    import agentguard.recorder.processor  # noqa: F401

    assert structlog.get_config() == before
