"""How all arguments of a call are compared, tool by tool."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec

from agentguard.fingerprint import fingerprint
from agentguard.matching.paths import covers, inside, look_up, without
from agentguard.matching.rules import EQUAL, MISSING, Difference, Equal, Leafwise, ValueRule


class Arguments(msgspec.Struct, frozen=True, kw_only=True):
    """How the arguments of a call are compared. As it stands: JSON equality of all of them.

    A path is made of names and list positions joined by dots; the empty path is the arguments as a whole.
    """

    values: ValueRule = EQUAL
    """For every argument that no path of `at` names."""
    at: Mapping[str, ValueRule] = {}
    """Rules by path; what stands there is judged apart from the rest."""
    only: tuple[str, ...] | None = None
    """The paths that alone are compared; one that is on neither side fails. None: everything. Empty: nothing."""
    ignore: tuple[str, ...] = ()
    """Paths left out on both sides, whatever the other settings say of them."""
    allow_extra: bool = False
    """Arguments (at the top) that the reference does not have are tolerated."""
    allow_missing: bool = False
    """Arguments (at the top) that the reference has may be left out."""

    @property
    def needs_arguments(self) -> bool:
        """False when no arguments can change the answer."""
        return self.only != ()

    @property
    def is_equivalence(self) -> bool:
        """Whether calls fall into classes, so that keys can stand for them."""
        return type(self.values) is Equal and not (self.at or self.allow_extra or self.allow_missing)

    @property
    def is_equality(self) -> bool:
        """Whether this is plain JSON equality of all arguments."""
        return self.is_equivalence and self.only is None and not self.ignore

    def key(self, arguments: Mapping[str, Any]) -> bytes | None:
        """Return what equal arguments share, by a rule that is an equivalence; None: these fit no others."""
        if self.only is None:
            return fingerprint(without(arguments, self.ignore))
        values = [self._part(arguments, path) for path in self._listed()]
        return None if MISSING in map(_kind, values) else fingerprint(values)

    def fits(self, wanted: Mapping[str, Any], given: Mapping[str, Any]) -> bool:
        """Whether `given` is what the reference wants. Raises what a custom rule raises."""
        return next(self.differences(wanted, given), None) is None

    def differences(self, wanted: Mapping[str, Any], given: Mapping[str, Any]) -> Iterator[Difference]:
        """Yield what keeps `given` from fitting, in the order of paths asked for and then of names."""
        for path in self._listed():
            yield from self._at_listed(path, wanted, given)
        for path in filter(self._is_apart, self.at):
            yield from _differences(self.at[path], path, self._part(wanted, path), self._part(given, path))
        if self.only is None:
            apart = (*self.ignore, *self.at)
            yield from self._rest(without(wanted, apart), without(given, apart))

    def _listed(self) -> list[str]:
        return [path for path in self.only or () if not self._is_ignored(path)]

    def _at_listed(self, path: str, wanted: Mapping[str, Any], given: Mapping[str, Any]) -> Iterator[Difference]:
        apart = () if path in self.at else tuple(self.at)
        want, have = self._part(wanted, path, apart), self._part(given, path, apart)
        if want is MISSING and have is MISSING:
            yield Difference(path, MISSING, MISSING)
        else:
            yield from _differences(self.at.get(path, self.values), path, want, have)

    def _is_apart(self, path: str) -> bool:
        """Whether a path of `at` is judged on its own."""
        if self.only is None:
            return not self._is_ignored(path)
        asked = path not in self.only and any(covers(listed, path) for listed in self.only)
        return asked and not self._is_ignored(path)

    def _is_ignored(self, path: str) -> bool:
        return any(covers(ignored, path) for ignored in self.ignore)

    def _part(self, arguments: Mapping[str, Any], path: str, apart: tuple[str, ...] = ()) -> Any:
        """Return what stands at a path, without what is ignored or judged apart in it."""
        return without(look_up(arguments, path), inside(path, (*self.ignore, *apart)))

    def _rest(self, wanted: Mapping[str, Any], given: Mapping[str, Any]) -> Iterator[Difference]:
        for name in dict.fromkeys([*wanted, *given]):
            want, have = wanted.get(name, MISSING), given.get(name, MISSING)
            if (have is MISSING and self.allow_missing) or (want is MISSING and self.allow_extra):
                continue
            yield from _differences(self.values, str(name), want, have)


EXACTLY: Final = Arguments()
"""JSON equality of all arguments."""
ANYTHING: Final = Arguments(only=())
"""Arguments are not looked at."""


class Rules(msgspec.Struct, frozen=True, kw_only=True):
    """How arguments are compared, tool by tool."""

    default: Arguments = EXACTLY
    tools: Mapping[str, Arguments] = {}
    """By tool name, in place of `default`."""

    def of(self, tool: str) -> Arguments:
        """Return the rule for a tool."""
        return self.tools.get(tool, self.default)


PLAIN: Final = Rules()
"""JSON equality for every tool."""


def _differences(rule: ValueRule, path: str, wanted: Any, given: Any) -> Iterator[Difference]:
    if rule.fits(wanted, given):
        return
    if isinstance(rule, Leafwise) and wanted is not MISSING and given is not MISSING:
        within = list(rule.differences(path, wanted, given))
        if within:
            yield from within
            return
    yield Difference(path, wanted, given)


def _kind(value: Any) -> Any:
    return value if value is MISSING else None
