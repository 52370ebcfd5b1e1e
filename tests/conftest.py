"""Fixtures that every test may use."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import settings

settings.register_profile("fuzz", deadline=None, max_examples=5_000)
settings.register_profile("fuzz-short", deadline=None, max_examples=500)

SHARED = Path(__file__).resolve().parents[2] / "shared" / "data"


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Return the folder of recorded runs, spans and cases beside the checkout; skip where there is none."""
    if not SHARED.is_dir():
        pytest.skip(f"needs the recorded data in {SHARED}")
    return SHARED
