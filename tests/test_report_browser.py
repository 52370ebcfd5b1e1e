"""The page in a real browser: filtering, opening, following a reason, by keyboard, in the dark, with hostile runs."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agentguard.call import ToolCall, ToolResult
from agentguard.report import report
from agentguard.report.page import page
from agentguard.scoring import score
from agentguard.traces import ReadReport
from agentguard.trajectory import Ending, RunKey, Step, Trajectory

pytest.importorskip("jinja2")
pytest.importorskip("vl_convert")
playwright = pytest.importorskip("playwright.sync_api")
axe = pytest.importorskip("axe_playwright_python.sync_playwright")

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
MANY = 10_000
CANARY = "</script><script>window.ran = true</script><img src=x onerror='window.ran = true'>"

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="needs chromium on the path")


def run(number: int) -> Trajectory:
    tools = ("list", "read", "read", "edit") if number % 10 == 0 else ("list", "read", "edit")
    steps = tuple(Step(call=ToolCall(tool, {"n": 1}), result=ToolResult("ok")) for tool in tools)
    key = RunKey(f"model {number % 3}", "harness 1")
    return Trajectory(run_id=f"run {number}", key=key, steps=steps, ending=Ending.FINISHED, outcome=number % 4 > 0)


def hostile() -> Trajectory:
    step = Step(call=ToolCall(CANARY, {CANARY: CANARY}), result=ToolResult(CANARY))
    return Trajectory(run_id=CANARY, key=RunKey(CANARY, CANARY), steps=(step, step), task=CANARY)


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> str:
    runs = [hostile(), *(run(number) for number in range(MANY - 1))]
    path: Path = tmp_path_factory.mktemp("page") / "report.html"
    path.write_bytes(page(report(score(runs, keep=True), ReadReport())))
    return path.as_uri()


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with playwright.sync_playwright() as started:
        chromium = started.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield chromium
        chromium.close()


@pytest.fixture
def opened(browser: Any, address: str) -> Iterator[Any]:
    tab = browser.new_page()
    tab.faults = []
    tab.requests = []
    tab.on("pageerror", lambda fault: tab.faults.append(str(fault)))
    tab.on("console", lambda message: tab.faults.append(message.text))
    tab.on("request", lambda request: tab.requests.append(request.url))
    tab.goto(address)
    yield tab
    assert tab.faults == []
    tab.close()


def test_ten_thousand_runs_are_listed_a_hundred_at_a_time(opened: Any):
    assert opened.text_content("#count") == "10000 of 10000 runs, 100 shown"
    opened.click("#more")
    assert opened.text_content("#count") == "10000 of 10000 runs, 200 shown"
    assert opened.locator("#list > li").count() == 200


def test_filtering_ten_thousand_runs_does_not_stutter(opened: Any):
    slowest = opened.evaluate(
        """() => {
            const words = document.getElementById("words");
            return Math.max(...["r", "ru", "repeated", "repeated model", ""].map((text) => {
                const began = performance.now();
                words.value = text;
                words.dispatchEvent(new Event("input"));
                return performance.now() - began;
            }));
        }"""
    )
    assert slowest < 1000


def test_runs_are_filtered_by_words_verdict_and_row(opened: Any):
    opened.fill("#words", "repeated READ")
    assert opened.text_content("#count") == "1000 of 10000 runs, 100 shown"
    opened.select_option("#key", "model 1 + harness 1")
    opened.select_option("#verdict", "pass")
    assert opened.text_content("#count") == "0 of 10000 runs, 0 shown"


def test_a_reason_leads_to_its_calls(opened: Any):
    opened.fill("#words", "repeated read")
    opened.click("#list > li > button")
    opened.click(".reasons button")
    assert opened.locator("tr.pointed td:first-child").all_text_contents() == ["2", "3"]
    assert opened.evaluate("document.activeElement.firstChild.textContent") == "2"


def test_the_keyboard_is_enough(opened: Any):
    opened.focus("#words")
    opened.keyboard.type("repeated read")
    for _ in range(3):
        opened.keyboard.press("Tab")
    opened.keyboard.press("Enter")
    assert opened.get_attribute("#list > li > button", "aria-expanded") == "true"
    opened.keyboard.press("Tab")
    opened.keyboard.press("Enter")
    assert opened.locator("tr.pointed").count() == 2
    opened.focus("#list > li > button")
    opened.keyboard.press("Enter")
    assert opened.locator(".run").count() == 0


def test_nothing_that_a_trace_says_runs_and_nothing_is_fetched(opened: Any, address: str):
    opened.fill("#words", "window.ran")
    opened.click("#list > li > button")
    assert opened.text_content(".calls tbody tr td:nth-child(2)") == CANARY
    assert opened.evaluate("window.ran") is None
    assert opened.requests == [address]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_no_serious_fault(browser: Any, address: str, scheme: str):
    tab = browser.new_page(color_scheme=scheme, bypass_csp=True)
    tab.goto(address)
    tab.fill("#words", "repeated read")
    tab.click("#list > li > button")
    found = axe.Axe().run(tab).response["violations"]
    tab.close()
    assert [(fault["id"], fault["nodes"]) for fault in found if fault["impact"] in ("serious", "critical")] == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_follows_the_readers_light_or_dark(browser: Any, address: str, scheme: str):
    tab = browser.new_page(color_scheme=scheme)
    tab.goto(address)
    colour = tab.evaluate("getComputedStyle(document.body).color")
    tab.close()
    assert colour == ("rgb(17, 17, 17)" if scheme == "light" else "rgb(238, 238, 238)")


def test_it_fits_a_phone(browser: Any, address: str):
    tab = browser.new_page(viewport={"width": 390, "height": 800})
    tab.goto(address)
    width = tab.evaluate("document.documentElement.scrollWidth")
    tab.close()
    assert width <= 390
