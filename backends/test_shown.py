"""The page of a trace in each backend's own interface, looked at in Chromium."""

from __future__ import annotations

import shutil
from collections.abc import Generator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

from backends.conftest import Exported, Urls
from backends.seen import get

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
PATIENCE = 60_000.0
"""Milliseconds for a page to show what is asked for."""
LARGEST = 200_000
"""Bytes of a picture."""

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="needs chromium on the path")


@pytest.fixture(scope="module")
def browser() -> Generator[Browser]:
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield chromium
        chromium.close()


@pytest.fixture
def page(browser: Browser) -> Generator[Page]:
    opened = browser.new_page(viewport={"width": 1280, "height": 720}, color_scheme="light")
    opened.set_default_timeout(PATIENCE)
    yield opened
    opened.close()


def expect_calls(page: Page, run: Exported) -> None:
    """Expect the name of each call as often as it was asked for."""
    for name in {span.name for span in run.originals}:
        count = sum(span.name == name for span in run.originals)
        shown = page.get_by_text(name, exact=True)
        expect(shown.nth(count - 1)).to_be_visible(timeout=PATIENCE)


def expect_panes(page: Page, *, given: str) -> None:
    """Expect the argument in the one pane and the feedback in the other."""
    expect(page.get_by_text(given, exact=True).first).to_be_visible(timeout=PATIENCE)
    expect(page.get_by_text("it was not run again").first).to_be_visible(timeout=PATIENCE)


def take(page: Page, path: Path) -> None:
    page.wait_for_timeout(1_000)  # what slides in has to come to rest
    page.screenshot(path=path)
    assert path.stat().st_size < LARGEST


def test_phoenix_shows_the_refused_call(page: Page, exported: dict[str, Exported], urls: Urls, images: Path) -> None:
    run = exported["enforced"]
    projects = {project["name"]: project["id"] for project in get(f"{urls.phoenix}/v1/projects?limit=100")["data"]}
    trace = run.phoenix[0]["context"]["trace_id"]
    page.goto(f"{urls.phoenix}/projects/{projects[run.project]}/traces/{trace}")
    expect_calls(page, run)
    page.get_by_text("execute_tool search_docs", exact=True).nth(1).click()
    expect(page.get_by_text("refused: repeat.identical").first).to_be_visible(timeout=PATIENCE)
    expect_panes(page, given='"failing test"')
    take(page, images / "phoenix.png")


def test_mlflow_shows_the_refused_call(page: Page, exported: dict[str, Exported], urls: Urls, images: Path) -> None:
    run = exported["enforced"]
    trace = run.mlflow.info.trace_id
    page.goto(f"{urls.mlflow}/#/experiments/{run.experiment}/traces?selectedEvaluationId={trace}")
    expect_calls(page, run)
    page.get_by_text("execute_tool search_docs", exact=True).nth(1).click()
    expect_panes(page, given="failing test")
    take(page, images / "mlflow.png")
