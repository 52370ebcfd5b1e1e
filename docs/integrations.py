"""Write docs/integrations.md from the README and the pins of every integration.

python docs/integrations.py > docs/integrations.md
"""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
INTRODUCTION = """# Integrations

Each plugs in by the framework's own hook and runs one contract on the real framework, on the oldest and the latest
version below, in an environment of its own: `nox -s integration`. What a framework makes unreachable is skipped there
by name.

Every integration judges by the run whose block it is used in, or by the one it is given: start one with `guard.run`.
"""


def page() -> str:
    """Return the page."""
    folders = sorted(path.parent for path in ROOT.glob("integrations/agentguard_*/README.md"))
    return "\n".join([INTRODUCTION, *(section(folder) for folder in folders)])


def section(folder: Path) -> str:
    """Return what is said of one integration."""
    lines = (folder / "README.md").read_text(encoding="utf-8").splitlines()
    table = [line for line in lines if line.startswith("|")]
    title = lines[0].removeprefix("# agentguard for ")
    tested = f"Tested with {pins(folder / 'oldest.txt')}, and with {pins(folder / 'latest.txt')}."
    readme = f"[`{folder.name}`](../integrations/{folder.name}/README.md)"
    return "\n".join([f"## {title}", "", f"{readme}. {tested}", "", *table, ""])


def pins(path: Path) -> str:
    """Return the pins of a file as words."""
    return ", ".join(line.replace("==", " ") for line in path.read_text(encoding="utf-8").split())


if __name__ == "__main__":
    print(page(), end="")
