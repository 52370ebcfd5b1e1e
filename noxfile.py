"""The checks of this repository, each in an environment of its own; `nox --list` names them."""

from __future__ import annotations

import shutil
from pathlib import Path

import nox

nox.needs_version = ">=2024.10"
nox.options.default_venv_backend = "uv|virtualenv"
nox.options.reuse_venv = "yes"
nox.options.error_on_missing_interpreters = False
nox.options.download_python = "never"
nox.options.sessions = ["lint", "types", "tests", "bare", "wheel"]

ROOT = Path(__file__).parent
PROJECT = nox.project.load_toml("pyproject.toml")
PYTHON = "3.11"
PYTHONS = ["3.11", "3.12", "3.13", "3.14"]
PINS = sorted(ROOT.glob("integrations/agentguard_*/*.txt"))
FRAMEWORKS = {
    path.name.removeprefix("agentguard_").replace("_", "-") for path in ROOT.glob("integrations/agentguard_*")
}
OWN_EXTRAS = sorted(PROJECT["project"]["optional-dependencies"].keys() - FRAMEWORKS)
ALL = f".[{','.join(OWN_EXTRAS)}]"
"""With every extra but the frameworks, whose pins contradict each other."""
BESIDE_THE_SOURCE = [
    "tests",
    "docs",
    "examples",
    "benchmarks",
    "pyproject.toml",
    "LICENSE",
    *map(str, ROOT.glob("*.md")),
]


def group(name: str) -> tuple[str, ...]:
    """Return the requirements of a dependency group; pip of Python 3.11 has no --group."""
    return nox.project.dependency_groups(PROJECT, name)


@nox.session(python=PYTHONS)
def tests(session: nox.Session) -> None:
    """Run the tests with every extra, and ask for branch coverage."""
    session.install("-e", ALL)
    session.run("coverage", "erase")
    session.run("coverage", "run", "-m", "pytest", "-n", "2", *session.posargs)
    session.run("coverage", "combine", "--quiet")
    session.run("coverage", "report")


@nox.session(python=PYTHON)
def bare(session: nox.Session) -> None:
    """Run the tests with no extra; what needs one is skipped by name."""
    session.install("-e", ".[test]")
    session.run("pytest", "-n", "2", *session.posargs)


@nox.session(python=PYTHON)
def types(session: nox.Session) -> None:
    """Check types by mypy and pyright, both strict, and the types that users see."""
    session.install("-e", ALL, *group("types"))
    session.run("mypy")
    session.run("mypy", "tests/typing/api.py")
    session.run("pyright", "--pythonpath", str(Path(session.bin) / "python"))


@nox.session(python=PYTHON)
def lint(session: nox.Session) -> None:
    """Check style and format by ruff."""
    session.install(*group("lint"))
    session.run("ruff", "check")
    session.run("ruff", "format", "--check")


@nox.session(python=PYTHON)
def wheel(session: nox.Session) -> None:
    """Build the wheel, install it alone, and run the tests where the source is out of the way."""
    room = _empty(session)
    checkout = room / "checkout"
    session.install("build")
    session.run("python", "-m", "build", "--outdir", str(room / "dist"), silent=True)
    (built,) = room.glob("dist/*.whl")
    session.install("--force-reinstall", f"{built}[{','.join(OWN_EXTRAS)}]")
    for name in BESIDE_THE_SOURCE:
        _copy(ROOT / name, checkout / Path(name).name)
    for page in ROOT.glob("integrations/*/*.[mt][dx]*"):  # the pages and pins, not the packages
        _copy(page, checkout / page.relative_to(ROOT))
    session.chdir(checkout)
    session.run("python", "-c", "import agentguard; assert 'site-packages' in agentguard.__file__, agentguard.__file__")
    session.run("pytest", "-n", "2", "-m", "not slow", *session.posargs)


@nox.session(python=PYTHON)
@nox.parametrize("pins", PINS, ids=[f"{pins.parent.name.removeprefix('agentguard_')}-{pins.stem}" for pins in PINS])
def integration(session: nox.Session, pins: Path) -> None:
    """Run the tests of one integration against its oldest or latest framework; `-- langchain` runs only those."""
    if session.posargs and not any(wanted in pins.parent.name for wanted in session.posargs):
        session.skip(f"not among {', '.join(session.posargs)}")
    session.install("-r", str(pins), ".[test]")
    folder = _empty(session)
    for name in ("README.md", "tests"):
        _copy(pins.parent / name, folder / name)
    _copy(ROOT / "pyproject.toml", folder / "pyproject.toml")
    session.chdir(folder)
    session.run("pytest", "tests")
    names = folder / "tests" / "readme_names.py"
    if names.exists():
        session.run("python", str(ROOT / "tests" / "run_page.py"), "README.md", str(names))
    else:
        session.warn("the example of the README is not run: tests/readme_names.py does not define what it starts from")


@nox.session(python=PYTHON)
def fuzz(session: nox.Session) -> None:
    """Try the laws on many more examples than the tests do; `-- fuzz-short` takes a tenth of them."""
    session.install("-e", ALL)
    profile = session.posargs[0] if session.posargs else "fuzz"
    session.run("pytest", "-n", "2", "--timeout", "3600", "--hypothesis-profile", profile, "tests/properties")


@nox.session(python=PYTHON)
def fuzz_reading(session: nox.Session) -> None:
    """Try twenty times as many broken inputs on the readers as the tests do."""
    session.install("-e", ALL)
    session.run("pytest", "-n", "2", "--timeout", "3600", "tests/fuzz", *session.posargs, env={"AGENTGUARD_FUZZ": "20"})


@nox.session(python=PYTHON)
def atheris(session: nox.Session) -> None:
    """Look for inputs that make the guard raise, guided by coverage; `-- -runs=N` says how many."""
    session.install("-e", ".", "atheris")
    session.run("python", "fuzz/fuzz_guard.py", *(session.posargs or ["-runs=20000"]))


@nox.session(python=PYTHON)
def kill(session: nox.Session) -> None:
    """Kill writers at random, over and over; nothing written may be lost."""
    session.install("-e", ALL)
    session.run(
        "pytest",
        "--timeout",
        "3600",
        "-k",
        "kill",
        "tests/test_recorder.py",
        *session.posargs,
        env={"AGENTGUARD_KILLS": "100"},
    )


@nox.session(python=PYTHON)
def backends(session: nox.Session) -> None:
    """Export the demo to real servers of Phoenix and MLflow; `-- --screenshots` renews the pictures in the manual."""
    session.install("-r", "backends/requirements.txt", "-e", ALL)
    # Phoenix's client brings a plugin of its own, whose import warns
    session.run("pytest", "-p", "no:phoenix", "--timeout", "300", "backends", *session.posargs)


@nox.session(python=PYTHON)
def bench(session: nox.Session) -> None:
    """Print the benchmarks as ratios; none fails for being slow."""
    session.install("-e", ALL, "pysimdjson")
    for path in sorted(ROOT.glob("benchmarks/bench_*.py")):
        session.run("python", "-m", f"benchmarks.{path.stem}", *session.posargs)


def _empty(session: nox.Session) -> Path:
    """Return an empty folder of the session, out of reach of the source."""
    folder = Path(session.create_tmp()).resolve()
    shutil.rmtree(folder)
    folder.mkdir()
    return folder


def _copy(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    if source.is_dir():
        shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__", "*.pyc"))
    else:
        shutil.copy2(source, target)
