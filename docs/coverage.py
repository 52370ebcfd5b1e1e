"""Write docs/coverage.md: what the spans of each framework and instrumentation carry, from recorded runs.

    python docs/coverage.py ../shared/data/traces tests/traces > docs/coverage.md

A folder may hold an `index.json` with the ground truth: calls that no span tells are then counted too.
"""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable
from pathlib import Path

from agentguard.traces.read import read
from agentguard.trajectory import Ending, Step, Trajectory

COLUMNS: dict[str, Callable[[Step], bool]] = {
    "arguments": lambda step: "arguments" not in step.missing,
    "result": lambda step: step.result is not None,
    "call id": lambda step: step.call.id is not None,
    "whether it ran": lambda step: step.executed is not None,
}
INTRODUCTION = """# What the spans of each instrumentation carry

Calls read from recorded runs, and how many of them come with each part. What is missing is reported as missing: such a
call still counts where tools and order are compared, and not where arguments are. "Calls asked" is what the model asked
for by the ground truth, where there is one; fewer calls read than asked means that the spans do not tell of the others.
"Ending" counts the runs whose end the spans tell ([how](endings.md)).

Written by `python docs/coverage.py ../shared/data/traces tests/traces`.
"""


def main(folders: Iterable[str]) -> None:
    """Print the page."""
    runs: dict[str, list[Trajectory]] = defaultdict(list)
    asked: dict[str, int] = defaultdict(int)
    for folder in map(Path, folders):
        truth = ground_truth(folder)
        for path in sorted(folder.glob("*__*.jsonl")):
            if not path.name.endswith(".logs.jsonl"):
                pair = " / ".join(path.name.removesuffix(".jsonl").split("__")[:2])
                runs[pair] += runs_in(path)
                asked[pair] += truth.get(path.name, 0)
    sys.stdout.write(page(runs, asked))


def page(runs: dict[str, list[Trajectory]], asked: dict[str, int]) -> str:
    """Return the page for runs by framework and instrumentation."""
    names = ["framework / instrumentation", "runs", "calls asked", "calls read", *COLUMNS, "tokens", "model", "ending"]
    rows = [row(pair, found, asked[pair]) for pair, found in sorted(runs.items())]
    lines = [names, ["---"] * len(names), *rows]
    return INTRODUCTION + "\n" + "".join(f"| {' | '.join(line)} |\n" for line in lines)


def row(pair: str, runs: list[Trajectory], asked: int) -> list[str]:
    """Return the cells of one framework and instrumentation."""
    steps = [step for run in runs for step in run.steps]
    parts = [share(sum(map(has, steps)), len(steps)) for has in COLUMNS.values()]
    whole = [
        sum(run.usage is not None for run in runs),
        sum(run.key.model != "unknown" for run in runs),
        sum(run.ending is not Ending.UNFINISHED for run in runs),
    ]
    return [
        pair,
        str(len(runs)),
        str(asked or ""),
        str(len(steps)),
        *parts,
        *(share(each, len(runs)) for each in whole),
    ]


def share(part: int, whole: int) -> str:
    """Return "all", "none", or how many of how many."""
    return "all" if part == whole else "none" if part == 0 else f"{part} of {whole}"


def ground_truth(folder: Path) -> dict[str, int]:
    """Return how many calls the model asked for, by file."""
    index = folder / "index.json"
    runs = json.loads(index.read_text())["runs"] if index.exists() else ()
    return {run["file"]: len(run["model_calls"]) for run in runs}


def runs_in(path: Path) -> list[Trajectory]:
    """Read a file of spans, with the log records beside it."""
    logs = path.with_name(path.name.replace(".jsonl", ".logs.jsonl"))
    return list(read([str(each) for each in (path, logs) if each.exists()]))


if __name__ == "__main__":
    main(sys.argv[1:])
