"""Every span of the worked example, as Phoenix and MLflow give it back."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import orjson
import pytest
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.trace import SpanContext

from agentguard.semconv import (
    CALL_EXECUTED,
    OI_INPUT_VALUE,
    OI_OUTPUT_VALUE,
    OI_SPAN_KIND,
    TOOL_CALL_ARGUMENTS,
    TOOL_CALL_RESULT,
)
from backends.conftest import Exported
from backends.seen import Seen, by_mlflow, by_phoenix

CONTENT = (TOOL_CALL_ARGUMENTS, TOOL_CALL_RESULT, OI_INPUT_VALUE, OI_OUTPUT_VALUE)
ROOT, STARTED = "invoke_agent", "agentguard.run_started"
TASK = "make the failing test pass"
DOCS, TYPO, MISSING = "no page mentions 'failing test'", "src/mian.py", "FileNotFoundError"
PHRASE, FILE = {"q": "failing test"}, {"path": "src/main.py"}
RED, GREEN = "1 failed: add(2, 3) is not 5", "1 passed"


def call(tool: str, given: dict[str, Any], gave: Any, *verdicts: str) -> Seen:
    return Seen(name=f"execute_tool {tool}", kind="TOOL", parent=ROOT, given=given, gave=gave, verdicts=verdicts)


def failed(seen: Seen, message: str) -> Seen:
    return dataclasses.replace(seen, status="ERROR", message=message)


def agent(**gave: Any) -> Seen:
    return Seen(name=ROOT, kind="AGENT", given=TASK, gave=gave)


def typo(*verdicts: str) -> Seen:
    return failed(call("read_file", {"path": TYPO}, f"{MISSING}: no such file: {TYPO}", *verdicts), MISSING)


START = Seen(name=STARTED, kind="CHAIN", parent=ROOT)
OBSERVED = [
    agent(ending="finished", outcome=True, steps=8),
    START,
    call("search_docs", PHRASE, DOCS),
    call("search_docs", PHRASE, DOCS, "repeat.identical"),
    typo(),
    typo("repeat.identical"),
    call("run_tests", {}, RED),
    call("list_dir", {"path": "src"}, "src/main.py", "budget.steps"),
    call("edit_file", FILE, "edited src/main.py", "budget.steps"),
    call("run_tests", {}, GREEN, "budget.steps"),
]


def enforced(originals: tuple[ReadableSpan, ...]) -> list[Seen]:
    """Return what is expected of the enforced run: the feedback as it was written, everything else said here."""
    told = [span.attributes or {} for span in originals]
    docs, file = (json.loads(str(each[TOOL_CALL_RESULT])) for each in told if each.get(CALL_EXECUTED) is False)
    why = "refused: repeat.identical"
    return [
        agent(ending="finished", outcome=True, steps=7),
        START,
        call("search_docs", PHRASE, DOCS),
        failed(call("search_docs", PHRASE, docs, "repeat.identical"), why),
        typo(),
        failed(call("read_file", {"path": TYPO}, file, "repeat.identical"), why),
        call("list_dir", {"path": "src"}, "src/main.py"),
        call("edit_file", FILE, "edited src/main.py"),
        call("run_tests", {}, GREEN),
    ]


def in_mlflow(seen: list[Seen]) -> list[Seen]:
    """Return the same with what MLflow leaves out: the input of a call that has no arguments."""
    return [dataclasses.replace(each, given=each.given or None) for each in seen]


def test_phoenix_shows_every_span_of_the_observed_run(exported: dict[str, Exported]) -> None:
    assert by_phoenix(exported["observed"].phoenix) == OBSERVED


def test_mlflow_shows_every_span_of_the_observed_run(exported: dict[str, Exported]) -> None:
    assert by_mlflow(exported["observed"].mlflow) == in_mlflow(OBSERVED)


def test_phoenix_shows_refused_calls_as_errors(exported: dict[str, Exported]) -> None:
    run = exported["enforced"]
    assert by_phoenix(run.phoenix) == enforced(run.originals)


def test_mlflow_shows_refused_calls_as_errors(exported: dict[str, Exported]) -> None:
    run = exported["enforced"]
    assert by_mlflow(run.mlflow) == in_mlflow(enforced(run.originals))


def test_mlflow_previews_task_and_ending_of_a_run(exported: dict[str, Exported]) -> None:
    info = exported["observed"].mlflow.info
    assert (json.loads(info.request_preview), json.loads(info.response_preview)) == (TASK, OBSERVED[0].gave)


@pytest.mark.parametrize("name", ["observed", "enforced", "plain"])
def test_phoenix_keeps_ids_and_every_attribute(exported: dict[str, Exported], name: str) -> None:
    run = exported[name]
    kept = {
        span["context"]["span_id"]: (span["parent_id"], {**span["attributes"], OI_SPAN_KIND: span["span_kind"]})
        for span in run.phoenix
    }
    assert as_written(kept, run.originals) == written(run.originals)


@pytest.mark.parametrize("name", ["observed", "enforced", "plain"])
def test_mlflow_keeps_ids_and_every_attribute(exported: dict[str, Exported], name: str) -> None:
    run = exported[name]
    kept = {span.span_id: (span.parent_id, as_json_texts(span.attributes)) for span in run.mlflow.data.spans}
    assert as_written(kept, run.originals) == written(run.originals)


def test_without_the_switch_kinds_are_known_and_panes_are_empty(exported: dict[str, Exported]) -> None:
    run = exported["plain"]
    phoenix, mlflow = by_phoenix(run.phoenix), by_mlflow(run.mlflow)
    kinds = ["AGENT", "LLM", *["TOOL"] * 8]  # a model's name without an operation is taken for a model call
    assert [seen.kind for seen in phoenix] == [seen.kind for seen in mlflow] == kinds
    assert {seen.given for seen in phoenix} == {None}
    assert [seen.given for seen in mlflow[2:]] == [seen.given or None for seen in OBSERVED[2:]]
    assert (run.mlflow.info.request_preview, run.mlflow.info.response_preview) == (None, None)


Told = dict[str, tuple[str | None, dict[str, Any]]]
"""The parent's id and the attributes of each span, by its id."""


def written(originals: tuple[ReadableSpan, ...]) -> Told:
    return {span_id(span.context): (span_id(span.parent), dict(span.attributes or {})) for span in originals}


def span_id(context: SpanContext | None) -> str | None:
    return None if context is None else f"{context.span_id:016x}"


def as_written(kept: Told, originals: tuple[ReadableSpan, ...]) -> Told:
    """Return what was kept without the attributes that the backend added."""
    told = written(originals)
    return {
        span: (parent, {name: value for name, value in attributes.items() if name in told[span][1]})
        for span, (parent, attributes) in kept.items()
    }


def as_json_texts(attributes: dict[str, Any]) -> dict[str, Any]:
    """Return attributes of MLflow with those that it parsed as the texts that were written."""
    parsed = {name for name in CONTENT if name in attributes and attributes[name] != TASK}
    return attributes | {name: orjson.dumps(attributes[name]).decode() for name in parsed}
