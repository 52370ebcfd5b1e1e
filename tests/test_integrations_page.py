"""The page of integrations says what their READMEs and pins say."""

from __future__ import annotations

import runpy
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def test_the_page_of_integrations_is_up_to_date() -> None:
    if not (ROOT / "integrations").is_dir():  # the tests of a built wheel run without the sources
        import pytest

        pytest.skip("needs the folders of the integrations")
    written = runpy.run_path(str(ROOT / "docs" / "integrations.py"))["page"]()
    assert (ROOT / "docs" / "integrations.md").read_text(encoding="utf-8") == written
