"""Run the Python blocks of a Markdown page, one after another in one namespace.

    python run_page.py PAGE [NAMES]

NAMES is a Python file whose names the page may use, for what a reader has already: a model, tools.
"""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

from sybil.document import Document
from sybil.parsers.markdown import PythonCodeBlockParser


def main() -> None:
    """Run the page that is named on the command line; the first block that fails ends it."""
    page, *names = sys.argv[1:]
    document = Document.parse(page, PythonCodeBlockParser())
    for path in names:
        sys.path.insert(0, str(Path(path).resolve().parent))  # what it needs lies beside it
        document.namespace.update(runpy.run_path(path))
    for example in document.examples():
        example.evaluate()


if __name__ == "__main__":
    main()
