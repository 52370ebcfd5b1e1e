"""Puts this folder on the path, as pytest's importlib mode does not, and lets the framework warn of itself."""

import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))


def pytest_configure(config: Any) -> None:
    """Importing Agent Framework 1.3 warns that classes of its own are experimental."""
    config.addinivalue_line("filterwarnings", r"ignore:\[[A-Z]+\] \w+ is experimental")
