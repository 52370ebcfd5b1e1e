"""Every check, metric, trace format and convention is in the table by which it is found."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import agentguard

Offer = Callable[[Any], bool]


def is_check(value: Any) -> bool:
    return inspect.isclass(value) and hasattr(value, "before")


def is_metric(value: Any) -> bool:
    return inspect.isfunction(value) and value.__annotations__.get("return") == "Score"


def is_container(value: Any) -> bool:
    return type(value).__name__ == "Container"


def is_convention(value: Any) -> bool:
    return type(value).__name__ == "Convention"


TABLES = {
    "checks": is_check,
    "metrics": is_metric,
    "traces.containers": is_container,
    "traces.conventions": is_convention,
}


def test_every_table_is_looked_at_here():
    root = Path(agentguard.__path__[0])
    inits = [path for path in root.rglob("__init__.py") if re.search(r"^BUILT_IN\b", path.read_text(), re.M)]
    assert sorted(".".join(path.parent.relative_to(root).parts) for path in inits) == sorted(TABLES)


@pytest.mark.parametrize(("name", "is_offer"), TABLES.items(), ids=TABLES)
def test_every_file_has_its_line_in_the_table(name: str, is_offer: Offer):
    package = importlib.import_module(f"agentguard.{name}")
    assert forgotten(package, package.BUILT_IN.values(), is_offer) == []


@pytest.mark.parametrize(("name", "is_offer"), TABLES.items(), ids=TABLES)
def test_a_forgotten_line_is_told_by_its_file(name: str, is_offer: Offer):
    package = importlib.import_module(f"agentguard.{name}")
    first, *rest = package.BUILT_IN.values()
    assert forgotten(package, rest, is_offer) == [home(package, first, is_offer)]


def forgotten(package: ModuleType, listed: Iterable[Any], is_offer: Offer) -> list[str]:
    """Return the files of a package that offer something which is not listed."""
    known = {id(value) for value in listed}
    return [
        f"{module.__name__.rpartition('.')[2]}.py"
        for module in modules(package)
        if any(id(value) not in known for value in offers(module, is_offer))
    ]


def home(package: ModuleType, wanted: Any, is_offer: Offer) -> str:
    """Return the file of a package that offers this."""
    return next(
        f"{module.__name__.rpartition('.')[2]}.py"
        for module in modules(package)
        if any(value is wanted for value in offers(module, is_offer))
    )


def modules(package: ModuleType) -> list[ModuleType]:
    """Return the files beside a package's `__init__.py`."""
    names = [found.name for found in pkgutil.iter_modules(package.__path__) if not found.ispkg]
    return [importlib.import_module(f"{package.__name__}.{name}") for name in names]


def offers(module: ModuleType, is_offer: Offer) -> list[Any]:
    """Return what a file itself defines and its table should list."""
    own = [value for name, value in vars(module).items() if not name.startswith("_") and is_offer(value)]
    return [
        value for value in own if getattr(value, "__qualname__", None) is None or value.__module__ == module.__name__
    ]
