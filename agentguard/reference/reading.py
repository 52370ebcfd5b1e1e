"""Reading references from TOML, YAML, JSON or JSON lines."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from agentguard.errors import IntegrationMissing, ReferencesError
from agentguard.reference.record import Reference
from agentguard.reference.tables import Table, reference_of


class Format(enum.StrEnum):
    """How a file of references is written; the values are the endings of such files."""

    TOML = "toml"
    YAML = "yaml"
    JSON = "json"
    JSONL = "jsonl"


class References(msgspec.Struct, frozen=True, kw_only=True):
    """References by what they are about."""

    tasks: Mapping[str, Reference] = {}
    """By task id: for every run of that task."""
    runs: Mapping[str, Reference] = {}
    """By run id: for that run alone, before the one of its task."""

    def find(self, *, run: str, task: str | None) -> Reference | None:
        """Return the reference of a run; None when there is none."""
        return self.runs.get(run) or (None if task is None else self.tasks.get(task))


def load_references(path: str | Path) -> References:
    """Read a file of references; its ending says how it is written. Raises ReferencesError, OSError."""
    path = Path(path)
    ending = path.suffix.removeprefix(".").lower()
    ending = "yaml" if ending == "yml" else ending
    if ending not in list(Format):
        raise ReferencesError(str(path), "", f"unknown ending {path.suffix!r}; known: {', '.join(Format)}")
    return parse_references(path.read_bytes(), form=Format(ending), place=str(path))


def parse_references(text: str | bytes, *, form: Format, place: str = "references") -> References:
    """Read references from text; `place` stands for it in error messages. Raises ReferencesError.

    >>> text = '[tasks.fix]\\nmatch = "superset"\\ncalls = ["list_dir", {tool = "edit", arguments = {path = "a.py"}}]'
    >>> [call.tool for call in parse_references(text, form=Format.TOML).tasks["fix"].calls]
    ['list_dir', 'edit']
    """
    data = text.encode() if isinstance(text, str) else text
    if form is Format.JSONL:
        return _from_lines(data, place)
    whole = Table.of(_decoded(_DECODERS[form], data, place), place, "")
    whole.refuse_others({"tasks", "runs", "defaults"})
    defaults = whole.table("defaults").value
    return References(
        tasks=dict(_references(whole.table("tasks"), defaults)), runs=dict(_references(whole.table("runs"), defaults))
    )


def _references(tables: Table, defaults: Mapping[str, Any]) -> Iterator[tuple[str, Reference]]:
    for name in tables.value:
        table = tables.table(name)
        yield name, reference_of(Table({**defaults, **table.value}, table.place, table.key))


def _from_lines(data: bytes, place: str) -> References:
    tasks: dict[str, Reference] = {}
    runs: dict[str, Reference] = {}
    for number, line in enumerate(data.splitlines(), 1):
        if line.strip():
            _add_line(Table.of(_decoded(_json, line, f"{place}:{number}"), f"{place}:{number}", ""), tasks, runs)
    return References(tasks=tasks, runs=runs)


def _add_line(line: Table, tasks: dict[str, Reference], runs: dict[str, Reference]) -> None:
    ids = [name for name in ("task", "run") if name in line.value]
    if len(ids) != 1:
        raise line.error("", "expected either task or run, to say what the reference is for")
    name = line.text(ids[0])
    known = tasks if ids == ["task"] else runs
    if name in known:
        raise line.error(ids[0], f"{name!r} has a reference already; write one and give it alternatives")
    rest = {key: value for key, value in line.value.items() if key not in ids}
    known[name] = reference_of(Table(rest, line.place, ""))


def _decoded(decode: Callable[[bytes], Any], data: bytes, place: str) -> Any:
    try:
        return decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as fault:
        raise ReferencesError(place, "", f"cannot be read: {fault}") from fault


def _json(data: bytes) -> Any:
    return msgspec.json.decode(data)


def _toml(data: bytes) -> Any:
    return msgspec.toml.decode(data)


def _yaml(data: bytes) -> Any:
    try:
        return msgspec.yaml.decode(data)
    except ImportError as missing:
        raise IntegrationMissing("pyyaml", "score") from missing


_DECODERS: Final = {Format.TOML: _toml, Format.YAML: _yaml, Format.JSON: _json}
