"""The page: one file, nothing from outside, nothing of a trace that runs."""

from __future__ import annotations

import base64
import hashlib
import html.parser
import json
import re
from decimal import Decimal
from typing import Any

import pytest

from agentguard.call import ToolCall, ToolResult, Usage
from agentguard.decision import Action, Decision
from agentguard.matching import Call, Match
from agentguard.reference import Reference
from agentguard.report import report
from agentguard.report.page import page
from agentguard.report.page.charts import pareto
from agentguard.scoring import score
from agentguard.traces import ReadReport
from agentguard.trajectory import RunKey, Step, Trajectory

pytest.importorskip("jinja2")
pytest.importorskip("vl_convert")

CANARY = "</script><script>alert(1)</script><img src=x onerror=alert(1)>\"'&{{7*7}}\u2028"
BLOCKED = Decision(Action.BLOCK, (), "not run")


def run(run_id: str, *steps: Step, **fields: Any) -> Trajectory:
    return Trajectory(run_id=run_id, steps=steps, **{"key": RunKey("m", "h 1"), "outcome": True} | fields)


def step(tool: str = "a", result: Any = "ok", **fields: Any) -> Step:
    return Step(call=ToolCall(tool, {"n": 1}), result=ToolResult(result), **fields)


def built(*runs: Trajectory, references: Reference | None = None, keep: bool = True) -> str:
    return page(report(score(runs, references=references, keep=keep), ReadReport())).decode()


class Tags(html.parser.HTMLParser):
    """Collects what a browser would find."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


def data(text: str) -> list[dict[str, Any]]:
    return json.loads(re.findall(r'<script type="application/json" id="data">(.*?)</script>', text, re.S)[0])


def test_only_the_named_script_and_style_may_run():
    text = built(run("r", step()))
    (policy,) = [attrs["content"] for tag, attrs in Tags(text).found if tag == "meta" and "http-equiv" in attrs]
    assert policy is not None
    assert policy.startswith("default-src 'none'; style-src 'sha256-")
    for kind in ("style", "script"):
        (body,) = re.findall(rf"<{kind}>(.*?)</{kind}>", text, re.S)
        digest = base64.b64encode(hashlib.sha256(body.encode()).digest()).decode()
        assert f"{kind}-src 'sha256-{digest}'" in policy


def test_nothing_is_fetched():
    tags = Tags(built(run("r", step()), run("q", step(), step()))).found
    assert [tag for tag, _ in tags if tag in ("link", "img", "iframe", "object", "embed", "audio", "video")] == []
    assert [attrs for _, attrs in tags if {"src", "href", "action", "style"} & attrs.keys()] == []


def test_what_a_hostile_trace_says_stays_text():
    hostile = run(CANARY, step(CANARY, CANARY), step(CANARY, CANARY), key=RunKey(CANARY, CANARY), task=CANARY)
    text = built(hostile)
    tags = Tags(text).found
    assert [tag for tag, _ in tags].count("script") == 2
    assert not [attrs for _, attrs in tags if any(name.startswith("on") for name in attrs)]
    assert "alert(1)</script><img" not in text
    assert "49" not in re.findall(r"<h2.*", text)[0]
    (told,) = data(text)
    assert (told["id"], told["task"]) == (CANARY, CANARY)


def test_a_run_is_told_call_by_call():
    steps = (
        step("a"),
        step("a", "x" * 500),
        Step(call=ToolCall("b", None, None, "{n"), result=ToolResult("no", True)),
        Step(call=ToolCall("c"), decision=BLOCKED, executed=False),
        Step(call=ToolCall("d", {}), executed=False, result=ToolResult({"x": 1})),
    )
    (told,) = data(built(run("r", *steps)))
    assert told["steps"][0] == ["a", '{"n":1}', "ok", ""]
    assert len(told["steps"][1][2]) == 160
    assert told["steps"][2] == ["b", "{n", "no", "error"]
    assert told["steps"][3] == ["c", "(not recorded)", "(not recorded)", "refused"]
    assert told["steps"][4] == ["d", "{}", '{"x":1}', "not run"]


def test_every_reason_points_at_its_calls():
    (told,) = data(built(run("r", step(), step(), outcome=False)))
    assert told["reasons"][0] == {"text": "repeated identical call a", "steps": [0, 1]}


def test_a_run_stands_beside_its_reference():
    reference = Reference(calls=(Call("a", {"n": 1}), Call("z", {})), match=Match.SUPERSET)
    (told,) = data(built(run("r", step()), references=reference))
    assert told["diff"].splitlines() == ['= a {"n":1}', "- z {}"]


def test_runs_that_were_not_kept_are_listed_all_the_same():
    (told,) = data(built(run("r", step()), keep=False))
    assert (told["id"], told["steps"], told["diff"]) == ("r", None, "")


def test_success_is_drawn_against_cost_where_it_is_known():
    assert "Success against median steps" in built(run("r", step()))
    assert "Success against US dollars a run" in built(run("r", step(), usage=Usage(cost_usd=Decimal("0.5"))))


def test_a_chart_without_figures_is_left_out():
    text = built(run("r", step(), outcome=None))
    assert "Success against" not in text
    assert "Runs by their steps" in text


def test_the_front_holds_what_no_other_point_beats():
    points = [{"x": x, "success": success} for x, success in ((1, 0.5), (2, 0.4), (2, 0.7), (3, 0.7), (4, 0.9))]
    assert [(point["x"], point["success"]) for point in pareto(points)] == [(1, 0.5), (2, 0.7), (4, 0.9)]


def test_loops_are_shown_by_length_and_trials_by_task():
    text = built(*[run(f"r{n}", step(), step(), task="t", outcome=n > 0) for n in range(2)], run("q"))
    assert '<th scope="col" class="n">1-5 calls</th>' in text
    assert "100% of 2" in text
    assert "1 tasks tried 2 times; at least one right final state (pass@2) 100%, all right (pass^2) 0%" in text


def test_a_row_without_a_harness_gets_no_rank():
    text = built(run("r", step(), key=RunKey("m")), run("q", step(), key=RunKey("z", "h 1")))
    assert text.index("compares with nothing") > text.index('<th scope="row">z</th>')
    assert "Not beaten: z + h 1 (1, 100%)</p>" in text
