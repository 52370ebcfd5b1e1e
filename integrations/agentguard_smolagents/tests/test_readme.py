"""The example of the README runs as it stands."""

from __future__ import annotations

import runpy
from pathlib import Path

from sybil.document import Document
from sybil.parsers.markdown import PythonCodeBlockParser

FOLDER = Path(__file__).parent


def test_the_example_of_the_readme_guards_its_call() -> None:
    document = Document.parse(str(FOLDER.parent / "README.md"), PythonCodeBlockParser())
    document.namespace.update(runpy.run_path(str(FOLDER / "readme_names.py")))
    for example in document.examples():
        example.evaluate()
    run = document.namespace["run"]
    assert [(step.call.name, step.executed) for step in run.trajectory.steps] == [("search", True)]
    assert run.ledger.tokens == 2 * 15
