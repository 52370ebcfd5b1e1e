"""Particulars of the formats that hold spans."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from agentguard.traces import ReadReport, read
from agentguard.traces.containers import jaeger, langsmith, mlflow, otlp_json, phoenix
from agentguard.traces.span import Kind, Span, Status
from agentguard.traces.values import flattened, hex_id, moment, scaled
from agentguard.trajectory import Trajectory

SAMPLES = Path(__file__).parent / "traces" / "containers"
AT = 1_796_119_200_000_000_000


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        ("2026-12-01T10:00:00Z", AT),
        ("2026-12-01T11:00:00+01:00", AT),
        ("2026-12-01T10:00:00", AT),
        ("2026-12-01 10:00:00.5", AT + 500_000_000),
        ("2026-12-01T10:00:00.123456789Z", AT + 123_456_789),
        (AT, AT),
        (str(AT), AT),
        ("yesterday", None),
        ("9999-99-99T00:00:00Z", None),
        (None, None),
        (True, None),
    ],
)
def test_moments_are_nanoseconds_since_the_epoch(told, expected):
    assert moment(told) == expected


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        ("ABCDEF0123456789", "abcdef0123456789"),
        ("0xabcdef0123456789", "abcdef0123456789"),
        ("q83vASNFZ4k=", "abcdef0123456789"),
        ("no base64!", "no base64!"),
        (7, "7"),
        (None, ""),
        ("", ""),
    ],
)
def test_ids_are_hex_where_they_can_be(told, expected):
    assert hex_id(told, 16) == expected


def test_scaled_counts_of_any_size():
    assert [scaled(each, 1_000) for each in (3, "3", 1.5, None, "x", float("inf"))] == [
        3_000,
        3_000,
        1_500,
        *[None] * 3,
    ]


def test_nested_attributes_are_told_by_dotted_names_and_whole():
    told = {"llm": {"messages": [{"role": "user"}], "model.name": "m"}, "tags": ["a"], "none": None}
    assert flattened(told) == {
        "llm": told["llm"],
        "llm.messages": [{"role": "user"}],
        "llm.messages.0": {"role": "user"},
        "llm.messages.0.role": "user",
        "llm.model.name": "m",
        "tags": ["a"],
    }


@pytest.mark.parametrize("written", [3, "STATUS_CODE_ERROR", "ERROR", "error", 2, 99, None, [], True])
def test_a_status_is_read_from_number_or_name_and_never_guessed(written):
    expected = Status.ERROR if written in ("STATUS_CODE_ERROR", "ERROR", "error", 2) else Status.UNSET
    found = otlp_json.status_code(written)
    assert found is expected or written is True


def test_a_kind_is_read_from_number_or_name():
    assert [otlp_json.span_kind(each) for each in ("SPAN_KIND_CLIENT", "internal", 2, 17, None)] == [
        Kind.CLIENT,
        Kind.INTERNAL,
        Kind.SERVER,
        Kind.UNSPECIFIED,
        Kind.UNSPECIFIED,
    ]


def test_every_kind_of_value_is_a_plain_one():
    values = {
        "stringValue": ("x", "x"),
        "intValue": ("7", 7),
        "boolValue": (True, True),
        "doubleValue": (1.5, 1.5),
        "bytesValue": ("AQI=", b"\x01\x02"),
        "arrayValue": ({"values": [{"intValue": "1"}, {"stringValue": "a"}]}, [1, "a"]),
        "kvlistValue": ({"values": [{"key": "k", "value": {"intValue": 1}}]}, {"k": 1}),
    }
    attributes = [{"key": kind, "value": {kind: value}} for kind, (value, _) in values.items()]
    record = {"traceId": "a" * 32, "spanId": "b" * 16, "name": "n", "startTimeUnixNano": "1", "attributes": attributes}
    expected = {kind: value for kind, (_, value) in values.items()}
    (strict,) = otlp_json.read_line(json.dumps(request(record)).encode(), "")
    (loose,) = otlp_json.read_record(request(record), "")
    (alone,) = otlp_json.read_record(record, "")
    assert [span.attributes for span in (strict, loose, alone) if isinstance(span, Span)] == [expected] * 3


def test_strict_and_loose_reading_agree():
    for path in (SAMPLES.parent).glob("*__*.jsonl"):
        if path.name.endswith(".logs.jsonl"):
            continue
        for line in path.read_bytes().splitlines():
            assert list(otlp_json.read_line(line, "")) == list(otlp_json.read_record(json.loads(line), ""))


def dataframe() -> list[dict[str, Any]]:
    """Return the REST spans as rows of Phoenix's dataframe: attributes as columns, nested by their first dot."""
    rows = []
    for record in json.loads((SAMPLES / "phoenix.json").read_text())["data"]:
        row = {key: record[key] for key in ("name", "span_kind", "parent_id", "status_code", "status_message")}
        row |= {f"context.{key}": value for key, value in record["context"].items()}
        row["start_time"], row["end_time"] = (datetime.fromisoformat(record[at]) for at in ("start_time", "end_time"))
        row["events"] = [{**event} for event in record["events"]]
        for key, value in record["attributes"].items():
            first, _, rest = key.partition(".")
            if rest and first != "tool":
                row.setdefault(f"attributes.{first}", {})[rest] = value
            else:
                row[f"attributes.{key}"] = value
        rows.append(row)
    return rows


def test_a_dataframe_of_phoenix_reads_like_its_spans(tmp_path):
    def milliseconds(value: Any) -> int:
        return int(value.timestamp() * 1000)

    path = tmp_path / "rows.json"
    path.write_text(json.dumps(dataframe(), default=milliseconds))
    assert calls(one(path)) == calls(one(SAMPLES / "phoenix.json"))


def test_a_dataframe_with_its_events_as_text_is_read():
    (span,) = phoenix.read_record(
        {
            "context.trace_id": "t",
            "context.span_id": "s",
            "events": '[{"name": "exception", "timestamp": "2026-12-01T10:00:00Z", "attributes": {"a.b": 1}}, 3]',
            "start_time": datetime(2026, 12, 1, 10, tzinfo=UTC).isoformat(),
        },
        "",
    )
    assert isinstance(span, Span)
    assert [(event.name, event.time_ns) for event in span.events] == [("exception", AT)]
    assert span.start_ns == AT


def test_parquet_of_phoenix_reads_like_its_spans(tmp_path):
    arrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "rows.parquet"
    # Arrow has no type for nested values of different types: Phoenix's own file holds what it can
    rows = [{key: value for key, value in row.items() if key != "events"} for row in dataframe()]
    parquet.write_table(arrow.Table.from_pylist(rows, schema=schema(arrow, rows)), path)
    assert calls(one(path)) == calls(one(SAMPLES / "phoenix.json"))


def schema(arrow: Any, rows: list[dict[str, Any]]) -> Any:
    fields: dict[str, Any] = {}
    for row in rows:
        for key, value in row.items():
            inferred = arrow.array([value]).type
            if key not in fields or arrow.types.is_null(fields[key]):
                fields[key] = inferred
            elif arrow.types.is_struct(inferred):
                fields[key] = arrow.unify_schemas([arrow.schema(list(fields[key])), arrow.schema(list(inferred))])
                fields[key] = arrow.struct(list(fields[key]))
    return arrow.schema(fields)


@pytest.mark.parametrize("data", [b"PAR1 and nothing more", b"PAR1" + b"\0" * 100 + b"PAR1"])
def test_torn_parquet_is_told(data, tmp_path):
    pytest.importorskip("pyarrow")
    path = tmp_path / "torn"
    path.write_bytes(data)
    report = ReadReport()
    assert list(read(str(path), report=report)) == []
    assert dict(report.reasons) == {"torn file": 1}


def test_parquet_of_something_else_is_told(tmp_path):
    arrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "other"
    parquet.write_table(arrow.Table.from_pylist([{"apples": 3}]), path)
    report = ReadReport()
    assert list(read(str(path), report=report)) == []
    assert dict(report.reasons) == {"unknown format": 1}


def test_spans_of_mlflow_2_are_read():
    record = {
        "info": {"request_id": "r", "request_metadata": {"mlflow.trace.session": "s-1"}},
        "data": {
            "spans": [
                {
                    "name": "get_weather",
                    "context": {"trace_id": "0x" + "a" * 32, "span_id": "0x" + "b" * 16},
                    "parent_id": None,
                    "start_time": AT,
                    "end_time": AT + 5,
                    "status_code": "ERROR",
                    "status_message": "sold out",
                    "attributes": {"mlflow.spanType": '"TOOL"', "mlflow.spanInputs": '{"city": "Zürich"}', "n": "{"},
                    "events": [{"name": "exception", "timestamp": AT, "attributes": {}}],
                },
                3,
                {},
            ]
        },
    }
    span, *faults = mlflow.read_record(record, "")
    assert isinstance(span, Span)
    assert (span.trace_id, span.span_id, span.start_ns, span.status_code) == ("a" * 32, "b" * 16, AT, Status.ERROR)
    assert span.attributes["mlflow.spanType"] == "TOOL"
    assert span.attributes["mlflow.trace.session"] == "s-1"
    assert len(faults) == 2


def test_tags_of_jaeger_may_be_an_object_and_numbers_texts():
    (span,) = jaeger.read_record(
        {
            "traceID": "t",
            "spanID": "s",
            "parentSpanID": "p",
            "operationName": "o",
            "startTime": 1,
            "tags": [{"key": "n", "type": "int64", "value": "7"}, {"key": "b", "type": "bool", "value": "true"}],
            "process": {"serviceName": "travel", "tags": {"k": "v"}},
        },
        "",
    )
    assert isinstance(span, Span)
    assert (span.parent_id, span.start_ns, span.end_ns) == ("p", 1_000, 1_000)
    assert span.attributes == {"n": 7, "b": True}
    assert span.resource == {"k": "v", "service.name": "travel"}


def test_references_of_jaeger_that_do_not_contain_are_no_parents():
    follows = [{"refType": "FOLLOWS_FROM", "spanID": "x"}, {"refType": "CHILD_OF", "spanID": "p"}]
    (span,) = jaeger.read_record({"traceID": "t", "spanID": "s", "operationName": "o", "references": follows}, "")
    assert isinstance(span, Span)
    assert span.parent_id == "p"


def test_runs_inside_a_run_of_langsmith_are_read():
    inner = {"id": "b", "run_type": "tool", "name": "search", "inputs": {"input": "plain words"}, "outputs": None}
    outer = {"id": "a", "trace_id": "a", "run_type": "chain", "name": "agent", "inputs": {}, "child_runs": [inner, 3]}
    found = list(langsmith.read_record(outer, ""))
    spans = [each for each in found if isinstance(each, Span)]
    assert [(span.span_id, span.parent_id, span.trace_id) for span in spans] == [("a", None, "a"), ("b", "a", "a")]
    assert spans[1].attributes["gen_ai.prompt"] == {"input": "plain words"}
    assert len(found) == 3


def test_an_error_of_langsmith_that_is_no_exception_is_a_message():
    run = {"id": "a", "trace_id": "t", "run_type": "tool", "inputs": {}, "error": "it broke"}
    (span,) = langsmith.read_record(run, "")
    assert isinstance(span, Span)
    assert dict(span.events[0].attributes) == {"exception.message": "it broke"}


def request(span: dict[str, Any]) -> dict[str, Any]:
    return {"resourceSpans": [{"resource": {}, "scopeSpans": [{"spans": [span]}]}]}


def one(path: Path) -> Trajectory:
    (found,) = read(str(path))
    return found


def calls(run: Trajectory) -> list[tuple[Any, ...]]:
    return [(step.call.name, step.call.arguments, step.call.id, step.result) for step in run.steps]
