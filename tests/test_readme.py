"""What README and docs show is true: their Python runs, their links lead somewhere, their policies load."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from sybil import Example
from sybil.document import Document
from sybil.parsers.markdown import CodeBlockParser, PythonCodeBlockParser

from agentguard.policy import Policy, PolicyFile

ROOT = Path(__file__).resolve().parents[1]
RUN_PAGE = Path(__file__).with_name("run_page.py")
README = ROOT / "README.md"
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
POLICY_KEYS = set(PolicyFile.__struct_fields__)
WITH_PYTHON = [page for page in PAGES if "```python" in page.read_text()]
COMMAND = re.compile(r"^\$ (agentguard .*)$", re.M)
SH_BLOCK = re.compile(r"^```sh\n(.*?)^```", re.S | re.M)
CODE = re.compile(r"^```.*?^```|`[^`\n]*`", re.S | re.M)
LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_policies_of_a_page_load(page: Path):
    document = Document.parse(str(page), CodeBlockParser("toml", load_policy))
    assert not any(example.evaluate() for example in document.examples())


@pytest.mark.parametrize("page", WITH_PYTHON, ids=lambda page: str(page.relative_to(ROOT)))
def test_python_of_a_page_runs(page: Path, tmp_path: Path):
    assert run_python(page, tmp_path).returncode == 0


def test_commands_of_the_readme_read_what_its_example_recorded(tmp_path: Path):
    run_python(README, tmp_path)
    commands = [shlex.split(line, comments=True) for line in COMMAND.findall(README.read_text())]
    assert [command[1] for command in commands] == ["score", "show", "policy", "backtest"]
    for _, *arguments in commands:
        agentguard = Path(sys.executable).with_name("agentguard")
        ran = subprocess.run([agentguard, *arguments], cwd=tmp_path, capture_output=True, text=True)
        assert ran.returncode in (0, 1), ran.stderr


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_of_a_page_lead_to_files(page: Path):
    targets = [link.partition("#")[0] for link in LINK.findall(CODE.sub("", page.read_text())) if ":" not in link]
    assert [target for target in targets if target and not (page.parent / target).exists()] == []


def test_every_page_of_the_documentation_is_in_its_index():
    index = ROOT / "docs" / "index.md"
    linked = {(index.parent / link).resolve() for link in LINK.findall(index.read_text())}
    assert set(ROOT.glob("docs/**/*.md")) - {index} - linked == set()


def test_the_readme_is_short():
    assert len(README.read_text().splitlines()) <= 150


def test_the_readme_example_is_short():
    first = next(iter(Document.parse(str(README), PythonCodeBlockParser()).examples()))
    assert len(first.parsed.splitlines()) < 15


def test_the_readme_has_two_commands_to_copy():
    demo, tests = SH_BLOCK.findall(README.read_text())
    assert demo.splitlines()[-1] == ".venv/bin/agentguard demo"
    assert tests.splitlines()[-1].startswith(".venv/bin/pytest")


def run_python(page: Path, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run the Python blocks of a page in a process of their own: some set OpenTelemetry's global provider."""
    command = [sys.executable, str(RUN_PAGE), str(page)]
    return subprocess.run(command, cwd=folder, text=True, check=True)


def load_policy(example: Example) -> None:
    """Load a TOML block; as a policy, when its first key is one."""
    data = tomllib.loads(example.parsed)
    if data.keys() & POLICY_KEYS:
        Policy.from_dict(data)
