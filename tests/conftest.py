"""Fixtures that every test may use."""

from __future__ import annotations

from collections.abc import Generator
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import pytest
from hypothesis import settings

from agentguard import IntegrationMissing

settings.register_profile("untimed", deadline=None)  # a busy machine is no fault of the code
settings.load_profile("untimed")
settings.register_profile("fuzz", deadline=None, max_examples=5_000)
settings.register_profile("fuzz-short", deadline=None, max_examples=500)

SHARED = Path(__file__).resolve().parents[2] / "shared" / "data"


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Return the folder of recorded runs, spans and cases beside the checkout; skip where there is none."""
    if not SHARED.is_dir():
        pytest.skip(f"needs the recorded data in {SHARED}")
    return SHARED


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call() -> Generator[None, object, object]:
    """Skip, by its name, what needs an extra that is not installed; fail where the package is there after all."""
    try:
        return (yield)
    except IntegrationMissing as error:
        if not _is_installed(error.package):
            pytest.skip(str(error))
        raise


def _is_installed(package: str) -> bool:
    try:
        return bool(distribution(package))
    except PackageNotFoundError:
        return False
