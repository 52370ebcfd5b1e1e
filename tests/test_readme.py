"""What README and docs show is true: their Python runs, their links lead somewhere, their policies load."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from sybil import Example
from sybil.document import Document
from sybil.parsers.markdown import CodeBlockParser, PythonCodeBlockParser

from agentguard.policy import Policy, PolicyFile

ROOT = Path(__file__).resolve().parents[1]
README = ROOT / "README.md"
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
POLICY_KEYS = set(PolicyFile.__struct_fields__)
SH_BLOCK = re.compile(r"^```sh\n(.*?)^```", re.S | re.M)
CODE = re.compile(r"^```.*?^```|`[^`\n]*`", re.S | re.M)
LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_python_and_policies_of_a_page_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    document = Document.parse(str(page), PythonCodeBlockParser(), CodeBlockParser("toml", load_policy))
    monkeypatch.chdir(tmp_path)
    outcomes = [example.evaluate() for example in document.examples()]
    assert not any(outcomes)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_of_a_page_lead_to_files(page: Path):
    targets = [link.partition("#")[0] for link in LINK.findall(CODE.sub("", page.read_text())) if ":" not in link]
    assert [target for target in targets if target and not (page.parent / target).exists()] == []


def test_the_readme_is_short():
    assert len(README.read_text().splitlines()) <= 150


def test_the_readme_example_is_short():
    first = next(iter(Document.parse(str(README), PythonCodeBlockParser()).examples()))
    assert len(first.parsed.splitlines()) < 15


def test_the_readme_has_two_commands_to_copy():
    demo, tests = SH_BLOCK.findall(README.read_text())
    assert demo.splitlines()[-1] == ".venv/bin/agentguard demo"
    assert tests.splitlines()[-1].startswith(".venv/bin/pytest")


def load_policy(example: Example) -> None:
    """Load a TOML block; as a policy, when its first key is one."""
    data = tomllib.loads(example.parsed)
    if data.keys() & POLICY_KEYS:
        Policy.from_dict(data)
