"""Runs told by messages: chat transcripts, ATIF, Inspect logs, Claude Code sessions."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import pytest

from agentguard.call import ToolResult, Usage
from agentguard.traces import ReadReport, read
from agentguard.trajectory import Ending, Trajectory

SAMPLES = Path(__file__).parent / "traces" / "containers"


def call(call_id: str, name: str = "search", arguments: Any = None) -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments or "{}"}}


def asks(*calls: dict[str, Any]) -> dict[str, Any]:
    return {"role": "assistant", "content": None, "tool_calls": list(calls)}


def answers(call_id: str, content: Any = "ok") -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "content": content}


SAYS = {"role": "assistant", "content": "Done."}
USER = {"role": "user", "content": "Go on."}


class TestChat:
    def test_calls_of_one_message_are_one_turn(self, tmp_path):
        run = chat(tmp_path, [USER, asks(call("a"), call("b")), answers("b", "2"), answers("a", "1"), asks(call("c"))])
        assert [(step.call.id, step.turn) for step in run.steps] == [("a", 1), ("b", 1), ("c", 2)]
        assert [step.result for step in run.steps] == [ToolResult(1), ToolResult(2), None]

    def test_calls_of_one_response_are_one_turn_and_those_after_a_result_another(self, tmp_path):
        def item(call_id: str) -> dict[str, Any]:
            return {"type": "function_call", "call_id": call_id, "name": "search", "arguments": "{}"}

        def output(call_id: str) -> dict[str, Any]:
            return {"type": "function_call_output", "call_id": call_id, "output": "ok"}

        run = chat(tmp_path, [USER, item("a"), item("b"), output("a"), output("b"), item("c"), output("c")])
        assert [step.turn for step in run.steps] == [1, 1, 2]

    def test_an_id_that_comes_again_is_answered_each_time(self, tmp_path):
        run = chat(tmp_path, [asks(call("a")), answers("a", "1"), asks(call("a")), answers("a", "2"), SAYS])
        assert [step.result for step in run.steps] == [ToolResult(1), ToolResult(2)]

    def test_a_result_without_an_id_answers_the_first_open_call_of_its_name(self, tmp_path):
        old = {"role": "assistant", "content": None, "function_call": {"name": "search", "arguments": '{"q": 1}'}}
        run = chat(tmp_path, [USER, old, {"role": "function", "name": "search", "content": "found"}, SAYS])
        assert [(step.call.arguments, step.result) for step in run.steps] == [({"q": 1}, ToolResult("found"))]

    def test_arguments_that_are_no_json_stay_as_the_model_wrote_them(self, tmp_path):
        (step,) = chat(tmp_path, [asks(call("a", arguments='{"q": '))]).steps
        assert (step.call.arguments, step.call.raw_arguments) == (None, '{"q": ')

    def test_an_unknown_tool_did_not_run(self, tmp_path):
        tools = [{"type": "function", "function": {"name": "search", "parameters": {"type": "object"}}}]
        messages = [asks(call("a"), call("b", "teleport")), answers("a"), answers("b", "no such tool"), SAYS]
        run = chat(tmp_path, messages, tools=tools)
        assert [step.executed for step in run.steps] == [True, False]
        assert run.tools == {"search": {"type": "object"}}

    def test_a_call_without_a_result_is_not_known_to_have_run(self, tmp_path):
        (step,) = chat(tmp_path, [USER, asks(call("a"))]).steps
        assert (step.executed, step.missing) == (None, ("result",))

    def test_messages_of_a_user_may_be_a_harnesss_and_end_no_streak(self, tmp_path):
        run = chat(tmp_path, [asks(call("a")), answers("a"), USER, asks(call("b")), answers("b"), SAYS])
        assert [step.user_turn for step in run.steps] == [False, False]

    @pytest.mark.parametrize(
        ("messages", "ending"),
        [
            ([USER, asks(call("a")), answers("a"), SAYS], Ending.FINISHED),
            ([USER, asks(call("a", "submit"))], Ending.FINISHED),
            ([USER, asks(call("a")), answers("a")], Ending.UNFINISHED),
            ([USER, asks(call("a")), answers("a"), SAYS, USER], Ending.UNFINISHED),
            ([USER], Ending.UNFINISHED),
        ],
    )
    def test_the_end_is_the_last_word_of_the_model(self, messages, ending, tmp_path):
        assert chat(tmp_path, messages).ending is ending

    def test_the_answer_beside_a_request_is_its_last_message(self, tmp_path):
        response = {"model": "gpt-4o-mini-2024", "choices": [{"message": asks(call("a"))}]}
        run = chat(tmp_path, [USER], response=response)
        assert (len(run.steps), run.key.model) == (1, "gpt-4o-mini-2024")

    def test_cached_tokens_that_anthropic_counts_beside_the_input_are_input(self, tmp_path):
        usage = {
            "input_tokens": 10,
            "output_tokens": 5,
            "cache_read_input_tokens": 90,
            "cache_creation_input_tokens": 7,
        }
        assert chat(tmp_path, [USER, SAYS], usage=usage).usage == Usage(107, 5, 90)

    def test_langchain_messages_are_read(self, tmp_path):
        asked = {"id": "a", "name": "search", "args": {"q": 1}, "type": "tool_call"}
        ai = {"type": "ai", "data": {"content": "", "tool_calls": [asked]}}
        tool = {"type": "tool", "data": {"content": "found", "tool_call_id": "a", "status": "error"}}
        (step,) = chat(tmp_path, [{"type": "human", "data": {"content": "Go"}}, ai, tool]).steps
        assert (step.call.arguments, step.result) == ({"q": 1}, ToolResult("found", is_error=True))

    def test_many_conversations_stand_one_a_line(self, tmp_path):
        path = tmp_path / "chats.jsonl"
        path.write_text("".join(json.dumps({"id": f"c{at}", "messages": [USER, SAYS]}) + "\n" for at in range(3)))
        assert [run.run_id for run in read(str(path))] == ["c0", "c1", "c2"]

    def test_what_is_no_message_is_told_and_the_rest_read(self, tmp_path):
        path = tmp_path / "chats.jsonl"
        path.write_text(json.dumps({"messages": [USER, SAYS]}) + '\n{"apples": 3}\n' + json.dumps([USER, SAYS]) + "\n")
        report = ReadReport()
        assert len(list(read(str(path), report=report))) == 2
        assert dict(report.reasons) == {"not a message": 1}


class TestClaudeCode:
    def test_a_person_speaks_between_calls(self, tmp_path):
        run = session(tmp_path, person("Go"), used("a"), result("a"), person("More"), used("b"), result("b"))
        assert [step.user_turn for step in run.steps] == [True, True]

    def test_what_the_program_inserts_is_no_person(self, tmp_path):
        run = session(tmp_path, used("a"), result("a"), person("<caveat>", isMeta=True), used("b"))
        assert [step.user_turn for step in run.steps] == [False, False]

    @pytest.mark.parametrize(
        "told",
        [
            {"toolUseResult": "User rejected tool use"},
            {"toolDenialKind": "automode-blocked"},
            {"content": "Permission to use Bash has been denied."},
        ],
    )
    def test_a_denied_call_did_not_run(self, told, tmp_path):
        content = told.get("content", "The user doesn't want to proceed with this tool use.")
        more = {key: value for key, value in told.items() if key != "content"}
        (step,) = session(tmp_path, used("a"), result("a", content, is_error=True, **more)).steps
        assert (step.executed, step.result) == (False, ToolResult(content, is_error=True))

    def test_sub_agents_are_lanes(self, tmp_path):
        run = session(
            tmp_path,
            used("a", "Task"),
            used("b", isSidechain=True, agentId="explorer"),
            result("b", isSidechain=True, agentId="explorer"),
            result("a"),
        )
        assert [(step.call.name, step.lane) for step in run.steps] == [("Task", "main"), ("Bash", "explorer")]

    def test_a_sub_agents_own_file_is_a_run(self, tmp_path):
        run = session(tmp_path, used("a", isSidechain=True, agentId="x1"), result("a", isSidechain=True, agentId="x1"))
        assert (run.run_id, [step.lane for step in run.steps]) == ("s-1/x1", ["main"])

    def test_blocks_of_one_answer_are_one_turn_and_count_its_tokens_once(self, tmp_path):
        run = session(tmp_path, used("a", message="m"), used("b", message="m"), result("a"), result("b"), used("c"))
        assert [step.turn for step in run.steps] == [1, 1, 2]
        assert run.usage == Usage(2 * (3 + 17 + 100), 2 * 15, 2 * 17)

    def test_an_interrupted_session_is_unfinished(self, tmp_path):
        run = session(tmp_path, used("a"), person("[Request interrupted by user for tool use]"))
        assert (run.ending, run.notes) == (Ending.UNFINISHED, ("interrupted by the user",))

    def test_an_error_of_the_interface_is_a_failure(self, tmp_path):
        failed = entry(
            "assistant", {"id": "m", "content": [{"type": "text", "text": "API Error"}]}, isApiErrorMessage=True
        )
        run = session(tmp_path, used("a"), result("a"), failed)
        assert (run.ending, run.notes) == (Ending.FAILED, ("ended with an error: API Error",))

    def test_sessions_of_one_file_are_runs_of_their_own(self, tmp_path):
        path = tmp_path / "two.jsonl"
        entries = [used("a"), used("b", sessionId="s-2")]
        path.write_text("".join(json.dumps(each) + "\n" for each in entries))
        assert [run.run_id for run in read(str(path))] == ["s-1", "s-2"]


class TestAtif:
    def test_model_harness_and_tokens_are_told(self):
        (run,) = read(str(SAMPLES / "atif.json"))
        assert (run.key.model, run.key.harness, run.usage) == ("gpt-4o-mini", "harbor-agent 1.0.0", Usage(420, 45, 64))

    def test_without_final_metrics_the_steps_are_summed(self, tmp_path):
        record = json.loads((SAMPLES / "atif.json").read_text())
        del record["final_metrics"]
        assert one(tmp_path, record).usage == Usage(420, 45, 64)

    def test_context_copied_from_an_earlier_trajectory_is_no_call_of_this_one(self, tmp_path):
        record = json.loads((SAMPLES / "atif.json").read_text())
        record["steps"][1]["is_copied_context"] = True
        assert [step.call.name for step in one(tmp_path, record).steps] == ["book_flight"]

    def test_sub_agents_inside_are_runs(self, tmp_path):
        record = json.loads((SAMPLES / "atif.json").read_text())
        record["subagent_trajectories"] = [{**record, "session_id": "inner"}]
        path = tmp_path / "atif.json"
        path.write_text(json.dumps(record))
        assert [run.run_id for run in read(str(path))] == ["atif-1", "inner"]


class TestInspect:
    def test_what_ran_is_told_by_the_errors(self):
        (run,) = read(str(SAMPLES / "inspect.json"))
        assert [step.executed for step in run.steps] == [True, True, False, False, True, True, True]
        assert [step.turn for step in run.steps] == [1, 1, 2, 3, 4, 5, 6]
        assert (run.outcome, run.task, run.key.harness) == (True, "travel/trip", "inspect_ai 0.3.285 react")

    def test_a_sample_stopped_at_a_limit_was_halted(self, tmp_path):
        run = sample(tmp_path, limit={"type": "message", "limit": 6})
        assert (run.ending, run.notes) == (Ending.HALTED, ("stopped at a limit: message of 6",))

    def test_a_sample_with_an_error_failed(self, tmp_path):
        run = sample(tmp_path, error={"message": "connection lost"})
        assert (run.ending, run.notes) == (Ending.FAILED, ("ended with an error: connection lost",))

    def test_without_events_the_messages_tell(self, tmp_path):
        run = sample(tmp_path, events=[])
        assert [step.call.name for step in run.steps][-1] == "book_flight"
        assert [step.result.is_error for step in run.steps if step.result] == [False, False, True, True, True, False]

    @pytest.mark.parametrize(
        ("values", "outcome"), [(["C"], True), (["I", 0], False), (["C", "I"], None), ([0.7], None), ([], None)]
    )
    def test_only_scores_that_agree_are_an_outcome(self, values, outcome, tmp_path):
        scores = {f"s{at}": {"value": value} for at, value in enumerate(values)}
        assert sample(tmp_path, scores=scores).outcome is outcome

    def test_long_texts_that_are_kept_apart_are_put_back(self, tmp_path):
        record = json.loads((SAMPLES / "inspect.json").read_text())
        told = json.dumps(record).replace('"booked"', '"attachment://0123"')
        record = json.loads(told)
        record["samples"][0]["attachments"] = {"0123": "booked at length"}
        assert one(tmp_path, record).steps[5].result == ToolResult("booked at length")

    def test_calls_inside_a_scorer_are_no_calls_of_the_run(self, tmp_path):
        record = json.loads((SAMPLES / "inspect.json").read_text())
        events = record["samples"][0]["events"]
        scorer = next(event["id"] for event in events if event.get("type") == "scorer")
        events.append({**next(event for event in events if event["event"] == "tool"), "span_id": scorer, "id": "x"})
        assert len(one(tmp_path, record).steps) == 7

    def test_agents_inside_an_agent_are_lanes(self, tmp_path):
        record = json.loads((SAMPLES / "inspect.json").read_text())
        events = record["samples"][0]["events"]
        agent = next(event["id"] for event in events if event.get("type") == "agent")
        events.append({"event": "span_begin", "id": "inner", "parent_id": agent, "type": "agent", "name": "helper"})
        events.append({**next(event for event in events if event["event"] == "tool"), "span_id": "inner", "id": "x"})
        assert [step.lane for step in one(tmp_path, record).steps] == ["main"] * 7 + ["helper"]

    def test_a_log_without_samples_is_told(self, tmp_path):
        path = tmp_path / "log.json"
        path.write_text(json.dumps({"status": "success", "eval": {}, "samples": [3]}))
        report = ReadReport()
        assert list(read(str(path), report=report)) == []
        path.write_text(json.dumps({"status": "success", "eval": {}}))
        assert list(read(str(path), report=report)) == []
        assert dict(report.reasons) == {"not a sample": 1, "no samples": 1}

    @pytest.mark.parametrize("packing", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2])
    def test_archives_of_a_killed_evaluation_are_read_as_far_as_they_go(self, packing, tmp_path):
        record = json.loads((SAMPLES / "inspect.json").read_text())
        with zipfile.ZipFile(tmp_path / "log.eval", "w", packing) as archive:
            archive.writestr("_journal/start.json", json.dumps({"eval": record["eval"], "plan": record["plan"]}))
            archive.writestr("samples/trip_epoch_1.json", json.dumps(record["samples"][0]))
        report = ReadReport()
        runs = list(read(str(tmp_path / "log.eval"), report=report))
        known = packing != zipfile.ZIP_BZIP2
        assert [run.key.harness for run in runs] == ["inspect_ai 0.3.285 react"] * known
        assert dict(report.reasons) == ({} if known else {"torn sample": 1})


def chat(folder: Path, messages: list[Any], **more: Any) -> Trajectory:
    return one(folder, {"messages": messages, **more})


def one(folder: Path, record: Any) -> Trajectory:
    path = folder / "record.json"
    path.write_text(json.dumps(record))
    (run,) = read(str(path))
    return run


def sample(folder: Path, **changes: Any) -> Trajectory:
    record = json.loads((SAMPLES / "inspect.json").read_text())
    record["samples"][0] |= changes
    return one(folder, record)


def session(folder: Path, *entries: dict[str, Any]) -> Trajectory:
    path = folder / "session.jsonl"
    path.write_text("".join(json.dumps(each) + "\n" for each in entries))
    (run,) = read(str(path))
    return run


def entry(kind: str, message: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"type": kind, "sessionId": "s-1", "uuid": "u", "version": "2.1.81", "message": message, **more}


def used(call_id: str, name: str = "Bash", *, message: str | None = None, **more: Any) -> dict[str, Any]:
    usage = {
        "input_tokens": 3,
        "cache_read_input_tokens": 17,
        "cache_creation_input_tokens": 100,
        "output_tokens": 15,
    }
    block = {"type": "tool_use", "id": call_id, "name": name, "input": {}}
    return entry(
        "assistant", {"id": message or call_id, "role": "assistant", "content": [block], "usage": usage}, **more
    )


def result(call_id: str, content: str = "ok", *, is_error: bool = False, **more: Any) -> dict[str, Any]:
    block = {"type": "tool_result", "tool_use_id": call_id, "content": content, "is_error": is_error}
    return entry("user", {"role": "user", "content": [block]}, **more)


def person(text: str, **more: Any) -> dict[str, Any]:
    return entry("user", {"role": "user", "content": text}, **more)
