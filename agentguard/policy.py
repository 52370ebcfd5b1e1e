"""What a guard is to check and how hard it is to be, in code or in TOML."""

from __future__ import annotations

import difflib
import enum
import hashlib
import tomllib
import types
import typing
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any, cast

import msgspec

from agentguard.checks import BUILT_IN, Check
from agentguard.checks.arguments import Arguments
from agentguard.checks.budget import BudgetCheck
from agentguard.checks.cycles import Cycles
from agentguard.checks.deadline import Deadline
from agentguard.checks.failures import Failures
from agentguard.checks.order import Order, OrderRule
from agentguard.checks.repeats import Repeats
from agentguard.checks.unknown_tool import UnknownTool
from agentguard.errors import PolicyError
from agentguard.fingerprint import canonical
from agentguard.ledger import Budget
from agentguard.tools import Poll, Tool

ENTRY_POINTS = "agentguard.checks"
"""The entry-point group in which outsiders offer checks."""


class Mode(enum.StrEnum):
    """Whether decisions are carried out."""

    ENFORCE = "enforce"
    OBSERVE = "observe"
    """Every call runs; what would have been done is recorded."""


class OnFault(enum.StrEnum):
    """What happens to a call when the guard itself fails on it."""

    ALLOW = "allow"
    HALT = "halt"


class ToolRules(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a policy says about one tool; what it leaves out stays as the tool was declared."""

    schema: dict[str, Any] | msgspec.UnsetType = msgspec.UNSET
    """JSON Schema of the arguments."""
    writes: bool | msgspec.UnsetType = msgspec.UNSET
    """A repeat of an identical call does harm: it is blocked at once."""
    repeatable: bool | msgspec.UnsetType = msgspec.UNSET
    """Identical calls back to back are normal."""
    poll: Poll | msgspec.UnsetType = msgspec.UNSET
    """Identical calls back to back are polling, within limits."""
    ignore: tuple[str, ...] | msgspec.UnsetType = msgspec.UNSET
    """Arguments that do not make a call another call."""
    empty_is_error: bool | msgspec.UnsetType = msgspec.UNSET
    """An empty result counts as a failure."""
    cost_usd: Decimal | msgspec.UnsetType = msgspec.UNSET
    """Price of one call in US dollars."""
    deadline: float | msgspec.UnsetType = msgspec.UNSET
    """Seconds that one call may take."""

    def applied(self, tool: Tool) -> Tool:
        """Return the tool with what is said here."""
        said = {name: value for name, value in msgspec.structs.asdict(self).items() if value is not msgspec.UNSET}
        return msgspec.structs.replace(tool, **said)


class PolicyFile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The keys of a policy file. Every key is optional; an unknown key is an error."""

    name: str = "default"
    """Shown in spans and reports."""
    mode: Mode = Mode.ENFORCE
    on_fault: OnFault = OnFault.ALLOW
    advise: bool = False
    """Append the advice of warnings to results that are text."""
    budget: Budget = Budget()
    tools: dict[str, ToolRules] = {}
    order: tuple[OrderRule, ...] = ()
    unknown_tool: UnknownTool = UnknownTool()
    arguments: Arguments = Arguments()
    deadline: Deadline = Deadline()
    repeats: Repeats = Repeats()
    failures: Failures = Failures()
    cycles: Cycles = Cycles()
    disabled: tuple[str, ...] = ()
    """Names of checks that are left out."""
    checks: dict[str, dict[str, Any]] = {}
    """Settings of checks from other packages, by name."""


class Policy(msgspec.Struct, frozen=True, kw_only=True):
    """Checks with their settings, ceilings, and what is said about tools.

    >>> Policy.from_dict({"budget": {"stpes": 5}})
    Traceback (most recent call last):
    ...
    agentguard.errors.PolicyError: budget.stpes: unknown setting; did you mean steps? known: calls_per_tool, cost_usd, \
failures, per_lane, seconds, steps, tokens, warn_at
    """

    name: str = "default"
    mode: Mode = Mode.ENFORCE
    on_fault: OnFault = OnFault.ALLOW
    advise: bool = False
    """Append the advice of warnings to results that are text."""
    budget: Budget = Budget()
    checks: tuple[Check, ...] = tuple(check() for check in BUILT_IN.values())
    """In the order in which equally strong verdicts are listed."""
    tools: Mapping[str, ToolRules] = types.MappingProxyType({})

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Policy:
        """Return the policy that a parsed file holds; a fault in it is a PolicyError naming the key."""
        _refuse_unknown_keys(PolicyFile, data, ())
        try:
            file = msgspec.convert(data, PolicyFile, strict=True)
        except msgspec.ValidationError as error:
            raise _policy_error(error) from None
        _check_figures(file)
        return cls(
            name=file.name,
            mode=file.mode,
            on_fault=file.on_fault,
            advise=file.advise,
            budget=file.budget,
            checks=_checks(file),
            tools=types.MappingProxyType(file.tools),
        )

    @classmethod
    def load(cls, path: str | Path) -> Policy:
        """Return the policy in a TOML file."""
        try:
            text = Path(path).read_text(encoding="utf-8")
            return cls.from_dict(tomllib.loads(text))
        except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
            raise PolicyError("", f"{path}: {error}") from error

    @property
    def digest(self) -> str:
        """16 hex digits that change when anything about the policy does."""
        checks = [(type(check).name, canonical(check)) for check in self.checks]
        said = {name: msgspec.to_builtins(rules) for name, rules in self.tools.items()}
        whole = canonical([self.name, self.mode, self.on_fault, self.advise, self.budget, checks, said])
        return hashlib.blake2b(whole, digest_size=8).hexdigest()


def policy_schema() -> dict[str, Any]:
    """Return the JSON Schema of a policy file, for editors."""
    return msgspec.json.schema(PolicyFile)


def _checks(file: PolicyFile) -> tuple[Check, ...]:
    built_in: dict[str, Check] = {
        "unknown_tool": file.unknown_tool,
        "arguments": file.arguments,
        "budget": BudgetCheck(),
        "order": Order(rules=file.order),
        "deadline": file.deadline,
        "repeats": file.repeats,
        "failures": file.failures,
        "cycles": file.cycles,
    }
    known = [*built_in, *file.checks]
    for name in file.disabled:
        if name not in known:
            raise PolicyError("disabled", f"unknown check {name!r}{_suggestion(name, known)}")
    others = {name: _from_entry_point(name, settings) for name, settings in file.checks.items()}
    return tuple(check for name, check in {**built_in, **others}.items() if name not in file.disabled)


def _from_entry_point(name: str, settings: Mapping[str, Any]) -> Check:
    from importlib.metadata import entry_points  # only a policy with foreign checks pays for it

    if name in BUILT_IN:
        raise PolicyError(f"checks.{name}", f"is built in; its settings go under [{name}]")
    found = {point.name: point for point in entry_points(group=ENTRY_POINTS)}
    if name not in found:
        raise PolicyError(f"checks.{name}", f"unknown check{_suggestion(name, [*BUILT_IN, *found])}")
    try:
        check = found[name].load()(**settings)
    except Exception as error:
        raise PolicyError(f"checks.{name}", f"cannot be made: {error}") from error
    if not isinstance(check, Check):
        raise PolicyError(f"checks.{name}", "has no method before(attempt)")
    return check


def _check_figures(file: PolicyFile) -> None:
    share = file.budget.warn_at
    if share is not None and not 0 < share < 1:
        raise PolicyError("budget.warn_at", f"is a share above 0 and below 1, not {share:g}")
    for key, value in _figures("", file):
        if value < 0:
            raise PolicyError(key, f"cannot be negative, is {value}")


def _figures(path: str, value: Any) -> Iterable[tuple[str, float | Decimal]]:
    if isinstance(value, msgspec.Struct):
        value = msgspec.structs.asdict(value)
    if isinstance(value, Mapping):
        for name, inner in cast("Mapping[str, Any]", value).items():
            yield from _figures(f"{path}.{name}" if path else str(name), inner) if name != "schema" else ()
    elif isinstance(value, (int, float, Decimal)) and not isinstance(value, bool):
        yield path, value


def _refuse_unknown_keys(kind: Any, data: Any, path: tuple[str, ...]) -> None:
    """Walk data beside the types it will be converted to, and stop at a key that no type has."""
    if _is_array(data):
        for index, item in enumerate(data):
            _refuse_unknown_keys(_inner(kind), item, (*path, str(index)))
        return
    if not isinstance(data, Mapping):
        return
    table = cast("Mapping[str, Any]", data)
    struct = _struct_in(kind)
    if struct is None:
        for name, item in table.items():
            _refuse_unknown_keys(_inner(kind), item, (*path, str(name)))
        return
    fields = {field.name: field.type for field in msgspec.structs.fields(struct)}
    for name, item in table.items():
        if name not in fields:
            raise PolicyError(".".join([*path, str(name)]), f"unknown setting{_suggestion(str(name), list(fields))}")
        _refuse_unknown_keys(fields[name], item, (*path, str(name)))


def _is_array(data: Any) -> bool:
    return isinstance(data, Sequence) and not isinstance(data, str)


def _struct_in(kind: Any) -> type[msgspec.Struct] | None:
    candidates = typing.get_args(kind) if isinstance(kind, types.UnionType) else (kind,)
    return next((c for c in candidates if isinstance(c, type) and issubclass(c, msgspec.Struct)), None)


def _inner(kind: Any) -> Any:
    arguments = [a for a in typing.get_args(kind) if a not in (str, Ellipsis)]
    return arguments[-1] if arguments else None


def _suggestion(name: str, known: Sequence[str]) -> str:
    near = difflib.get_close_matches(name, known, n=1)
    meant = f"; did you mean {near[0]}?" if near else ";"
    return f"{meant} known: {', '.join(sorted(known))}"


def _policy_error(error: msgspec.ValidationError) -> PolicyError:
    message, _, where = str(error).partition(" - at `$")
    key = where.rstrip("`").lstrip(".").replace("[...]", "")
    return PolicyError(key, message[:1].lower() + message[1:])
