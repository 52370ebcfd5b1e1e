"""Every example in a docstring gives what it says."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

import agentguard
from agentguard.errors import IntegrationMissing

MODULES = ["agentguard", *(found.name for found in pkgutil.walk_packages(agentguard.__path__, "agentguard."))]


@pytest.mark.parametrize("name", MODULES)
def test_examples_of(name: str):
    try:
        module = importlib.import_module(name)
    except IntegrationMissing as missing:
        pytest.skip(str(missing))
    failed, _ = doctest.testmod(module)
    assert failed == 0
