"""What Phoenix, MLflow and the OpenAI Agents SDK give back reads to the runs that the spans they were given read to."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agentguard.traces import ReadReport, read
from agentguard.trajectory import Ending, Trajectory

pytestmark = pytest.mark.shared

EXPORTS = ["mlflow_3.17_search_traces.json", "phoenix_20.26_spans.json", "phoenix_20.26_spans_otlpv1.json"]
STORIES = ["bad_args", "clean", "fail_recover", "loop", "nonterm", "parallel", "unknown_tool"]


@pytest.mark.parametrize("name", EXPORTS)
def test_exports_read_to_the_calls_of_the_original_spans(name, shared_data):
    originals = {run.run_id: run for path in shared_data.glob("traces/*.jsonl") for run in read(str(path))}
    report = ReadReport()
    runs = list(read(str(shared_data / "traces" / "exports" / name), report=report))
    assert (len(runs), dict(report.reasons)) == (4, {})
    compared = [run for run in runs if run.run_id in originals]
    assert [steps(run) for run in compared] == [steps(originals[run.run_id]) for run in compared]
    assert [run.ending for run in compared] == [originals[run.run_id].ending for run in compared]
    assert [run.usage for run in compared if name.startswith("mlflow")] == [
        originals[run.run_id].usage for run in compared if name.startswith("mlflow")
    ]
    assert len(compared) >= 1


@pytest.mark.parametrize("story", STORIES)
def test_native_traces_of_the_agents_sdk_tell_what_its_model_asked_for(story, shared_data):
    index = json.loads((shared_data / "traces" / "index.json").read_text())["runs"]
    truth = next(run for run in index if run["file"] == f"openai-agents__openinference__{story}.jsonl")
    (run,) = read(str(shared_data / "traces" / "openai_agents_native" / f"{story}.jsonl"))
    expected: list[dict[str, Any]] = truth["model_calls"]
    assert [step.call.name for step in run.steps] == [call["tool"] for call in expected]
    assert [step.turn for step in run.steps] == [call["turn"] for call in expected]
    carried = story != "unknown_tool"
    assert [step.call.arguments for step in run.steps] == [call["args"] if carried else None for call in expected]


def test_a_native_trace_that_ran_out_of_turns_was_halted(shared_data):
    (run,) = read(str(shared_data / "traces" / "openai_agents_native" / "nonterm.jsonl"))
    assert (run.ending, run.notes[0]) == (Ending.HALTED, "stopped at a limit: Max turns exceeded")


def test_a_tool_that_does_not_exist_did_not_run(shared_data):
    (run,) = read(str(shared_data / "traces" / "openai_agents_native" / "unknown_tool.jsonl"))
    (step,) = run.steps
    assert (step.call.name, step.executed, step.missing) == ("cancel_flight", False, ("arguments",))


def steps(run: Trajectory) -> list[tuple[Any, ...]]:
    return [
        (
            step.call.name,
            step.call.arguments,
            step.call.id,
            step.executed,
            step.turn,
            step.result.content if step.result is not None else None,
            step.result.is_error if step.result is not None else None,
        )
        for step in run.steps
    ]
