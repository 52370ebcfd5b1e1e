"""The same report as JUnit XML, Markdown, CSV and Parquet."""

from __future__ import annotations

import csv
import io
import json
from decimal import Decimal
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import jsonschema_rs
import msgspec
import pytest

from agentguard.call import ToolCall, Usage
from agentguard.errors import AgentGuardError
from agentguard.report import Gate, Report, report
from agentguard.report.as_json import as_json
from agentguard.report.files import BUILT_IN, form_of
from agentguard.report.junit import junit
from agentguard.report.markdown import markdown
from agentguard.report.tables import as_csv, as_parquet, call_rows, run_rows
from agentguard.scoring import score
from agentguard.traces import ReadReport, Skipped
from agentguard.trajectory import Ending, RunKey, Step, Trajectory


def run(run_id: str, *tools: str, **fields: Any) -> Trajectory:
    settings: dict[str, Any] = {"run_id": run_id, "key": RunKey("m", "h 1"), "ending": Ending.FINISHED}
    return Trajectory(steps=tuple(Step(call=ToolCall(tool, {})) for tool in tools), **settings | fields)


def blind(run_id: str) -> Trajectory:
    steps = (Step(call=ToolCall("a")), Step(call=ToolCall("a")))
    return Trajectory(run_id=run_id, steps=steps, key=RunKey("n", "h 1"), ending=Ending.FINISHED)


def reported(*runs: Trajectory) -> Report:
    return report(score(runs), ReadReport())


THREE = (run("good", "a", "b", outcome=True), run("bad", "a", "a", outcome=False), blind("blind"))
HOSTILE = run("=1+1\x1b[2J", "a|b](x)<script>", "a|b](x)<script>", key=RunKey("*m*\n# x", "`h` @everyone"))


def test_junit_has_a_suite_a_row_and_a_case_a_run():
    suites = ElementTree.fromstring(junit(reported(*THREE)))
    assert suites.attrib == {"name": "agentguard", "tests": "3", "failures": "1", "skipped": "1", "errors": "0"}
    assert [(suite.get("name"), suite.get("tests")) for suite in suites] == [("m + h 1", "2"), ("n + h 1", "1")]
    failure = suites.find(".//testcase[@name='bad']/failure")
    assert failure is not None
    assert (failure.get("type"), failure.get("message"), failure.text) == (
        "repeat.identical",
        "repeated identical call a",
        "repeated identical call a\nthe final state is wrong",
    )
    assert suites.find(".//testcase[@name='blind']/skipped") is not None
    assert len(suites.findall(".//testcase[@name='good']/*")) == 0


def test_junit_of_a_hostile_trace_is_xml_all_the_same():
    ElementTree.fromstring(junit(reported(HOSTILE)))


def test_markdown_has_the_verdict_the_table_and_the_failing_runs():
    lines = markdown(reported(*THREE)).splitlines()
    assert lines[0] == "## agentguard: NOT READY"
    assert lines[2] == "3 runs, 6 calls: 1 pass, 1 fail, 1 could not be scored"
    assert "| m | h 1 | 2 | 50% (9-91) | 50% (9-91) | – | – | – | 0% (0-66) | 2 |" in lines
    assert "- **bad** (m \\+ h 1)".replace("\\", "") in lines
    assert "  1. repeated identical call a (calls 1-2)" in lines
    assert "  2. the final state is wrong" in lines


def test_markdown_counts_what_it_does_not_show():
    runs = [run(f"r{n}", "a", "a") for n in range(5)]
    assert "3 more failing runs" in markdown(reported(*runs), limit=2).splitlines()
    assert "more failing runs" not in markdown(reported(*runs), limit=0)


def test_markdown_of_runs_without_a_fault_lists_none():
    assert "failing runs" not in markdown(reported(run("good", "a")))


def test_markdown_of_a_hostile_trace_obeys_nothing_in_it():
    told = markdown(reported(HOSTILE))
    assert "<script>" not in told
    assert "\x1b" not in told
    assert "@everyone" not in told
    assert "\n# x" not in told
    assert "](x)" not in told


def test_a_row_a_run_carries_every_score():
    good, bad, unscored = run_rows(reported(*THREE))
    assert (good["verdict"], good["response_level"], good["score_repeats"], good["reasons"]) == (
        "pass",
        "pass",
        0.0,
        "",
    )
    assert bad["reasons"] == "repeated identical call a; the final state is wrong"
    assert (unscored["verdict"], unscored["score_repeats"]) == ("unscored", None)
    assert unscored["unscored"] == "neither arguments nor fingerprints of neighbouring calls were recorded"


def test_a_row_a_call_says_what_was_found_there():
    rows = [(row["run_id"], row["call"], row["metric"], row["code"]) for row in call_rows(reported(*THREE))]
    assert ("bad", 1, "repeats", None) in rows
    assert [row for row in rows if row[3] == "repeat.identical"] == [
        ("bad", 0, None, "repeat.identical"),
        ("bad", 1, None, "repeat.identical"),
    ]


def test_csv_is_no_formula_for_a_spreadsheet():
    (row,) = csv.DictReader(io.StringIO(as_csv(run_rows(reported(HOSTILE)))))
    assert row["run_id"].startswith("'=1+1")


def test_csv_of_nothing_is_an_empty_head():
    assert as_csv([]) == "\n"


def test_parquet_keeps_types_and_none():
    parquet = pytest.importorskip("pyarrow.parquet")
    table = parquet.read_table(io.BytesIO(as_parquet(run_rows(reported(*THREE))))).to_pylist()
    assert table == list(run_rows(reported(*THREE)))


@pytest.mark.parametrize("ending", BUILT_IN)
def test_the_ending_of_a_file_says_its_form(ending: str):
    for needed in {".html": ("jinja2", "vl_convert"), ".parquet": ("pyarrow",)}.get(Path(f"x{ending}").suffix, ()):
        pytest.importorskip(needed)
    assert form_of(Path(f"report{ending}"))(reported(*THREE))


def test_an_unknown_ending_is_told_with_those_known():
    with pytest.raises(AgentGuardError, match=r"out.docx: unknown ending of a report; known: \.json, \.xml"):
        form_of(Path("out.docx"))


def test_json_is_what_the_published_schema_says():
    schema = json.loads((Path(__file__).resolve().parents[1] / "docs" / "report.schema.json").read_text())
    told = msgspec.structs.replace(
        reported(*THREE, HOSTILE, run("costly", "a", usage=Usage(cost_usd=Decimal("0.5")))),
        gates=(Gate("one", None, "nothing to judge by"),),
        skipped={"torn line": 1},
        skipped_examples=(Skipped("a.jsonl", 3, "torn line", "no JSON"),),
    )
    jsonschema_rs.validator_for(schema).validate(json.loads(as_json(told)))
