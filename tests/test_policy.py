"""Policies: what a file may say, and how a fault in it is told."""

from __future__ import annotations

from decimal import Decimal
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any, ClassVar

import jsonschema_rs
import msgspec
import pytest

from agentguard import Guard, Mode, Policy, PolicyError, Poll, ToolCall, Verdict
from agentguard.attempt import Attempt
from agentguard.checks import BUILT_IN
from agentguard.checks.repeats import Repeats
from agentguard.decision import Action
from agentguard.policy import policy_schema

FULL = """
name = "production"
mode = "observe"
on_fault = "halt"
advise = true
disabled = ["cycles"]

[budget]
steps = 40
calls_per_tool = { search = 5 }
tokens = 100_000
cost_usd = "1.50"
seconds = 600
failures = 20
warn_at = 0.8

[budget.per_lane]
steps = 10

[repeats]
block = 3
halt = 6

[tools.search]
ignore = ["request_id"]
cost_usd = "0.01"
deadline = 30
poll = { max = 10, min_interval = 2 }

[tools.send]
writes = true
schema = { type = "object", properties = { to = { type = "string" } } }

[[order]]
tool = "charge"
needs = "authorise"
same = ["order_id"]
"""


def test_a_file_says_everything(tmp_path: Path) -> None:
    path = tmp_path / "agentguard.toml"
    path.write_text(FULL)
    policy = Policy.load(path)
    assert (policy.name, policy.mode, policy.advise) == ("production", Mode.OBSERVE, True)
    assert policy.budget.cost_usd == Decimal("1.50")
    assert policy.budget.per_lane is not None
    assert policy.budget.per_lane.steps == 10
    assert policy.tools["search"].poll == Poll(max=10, min_interval=2)
    assert [check.name for check in policy.checks] == [name for name in BUILT_IN if name != "cycles"]
    assert Repeats(block=3, halt=6) in policy.checks


def test_an_empty_file_is_the_default() -> None:
    assert Policy.from_dict({}) == Policy()


@pytest.mark.parametrize(
    ("data", "key", "message"),
    [
        ({"bugdet": {}}, "bugdet", "bugdet: unknown setting; did you mean budget?"),
        ({"budget": {"stpes": 1}}, "budget.stpes", "did you mean steps? known: calls_per_tool, cost_usd, failures"),
        ({"budget": {"per_lane": {"x": 1}}}, "budget.per_lane.x", "unknown setting"),
        ({"tools": {"f": {"write": True}}}, "tools.f.write", "did you mean writes?"),
        ({"tools": {"f": {"poll": {"maximum": 1}}}}, "tools.f.poll.maximum", "known: max, min_interval"),
        ({"order": [{"tool": "a", "needs": "b", "equal": []}]}, "order.0.equal", "known: needs, same, tool"),
        ({"budget": {"steps": "five"}}, "budget.steps", "expected `int | null`, got `str`"),
        ({"budget": {"steps": -1}}, "budget.steps", "cannot be negative, is -1"),
        ({"budget": {"warn_at": 2}}, "budget.warn_at", "is a share above 0 and below 1, not 2"),
        ({"mode": "enforced"}, "mode", "invalid enum value 'enforced'"),
        ({"disabled": ["cycle"]}, "disabled", "unknown check 'cycle'; did you mean cycles?"),
        ({"checks": {"repeats": {}}}, "checks.repeats", "is built in; its settings go under [repeats]"),
        ({"checks": {"too_slow": {}}}, "checks.too_slow", "unknown check; known:"),
    ],
)
def test_a_fault_is_told_with_its_key_and_the_way_out(data: dict[str, Any], key: str, message: str) -> None:
    with pytest.raises(PolicyError) as error:
        Policy.from_dict(data)
    assert error.value.key == key
    assert message in str(error.value)


@pytest.mark.parametrize("text", ["mode = ", "\xff"], ids=["no TOML", "no UTF-8"])
def test_a_file_that_cannot_be_read_is_told_by_its_path(tmp_path: Path, text: str) -> None:
    path = tmp_path / "agentguard.toml"
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(PolicyError, match=r"agentguard\.toml"):
        Policy.load(path)


def test_a_missing_file_is_told_by_its_path(tmp_path: Path) -> None:
    with pytest.raises(PolicyError, match="nowhere"):
        Policy.load(tmp_path / "nowhere.toml")


def test_the_digest_changes_with_every_setting() -> None:
    changed = [
        {"name": "x"},
        {"mode": "observe"},
        {"budget": {"steps": 1}},
        {"repeats": {"block": 3}},
        {"disabled": ["cycles"]},
        {"tools": {"f": {"writes": True}}},
        {"tools": {"f": {"schema": {"type": "object"}}}},
    ]
    digests = {Policy.from_dict(data).digest for data in changed} | {Policy().digest}
    assert len(digests) == len(changed) + 1
    assert Policy().digest == Policy.from_dict({}).digest


def test_the_schema_for_editors_takes_a_full_file_and_refuses_unknown_keys() -> None:
    import tomllib

    validator = jsonschema_rs.validator_for(policy_schema())
    assert validator.is_valid(tomllib.loads(FULL))
    assert not validator.is_valid({"bugdet": {}})


def test_what_a_policy_says_about_a_tool_is_laid_over_its_declaration() -> None:
    def send(to: str) -> None:
        """Send a message."""

    guard = Guard(Policy.from_dict({"tools": {"send": {"writes": True}}}), tools=[send])
    assert guard.tools["send"].writes
    assert guard.tools["send"].description == "Send a message."
    assert guard.tools["send"].schema is not None


def test_naming_a_tool_does_not_make_the_others_unknown() -> None:
    guard = Guard(Policy.from_dict({"tools": {"send": {"writes": True}}}), quiet=True)
    assert guard.run(model="m", harness="h").judge(ToolCall("other", {})).verdicts == ()


class TooMany(msgspec.Struct, frozen=True):
    """A check from another package."""

    most: int = 1
    name: ClassVar[str] = "too_many"

    def before(self, attempt: Attempt) -> Verdict | None:
        if attempt.seq < self.most:
            return None
        return Verdict(self.name, "too_many", Action.BLOCK, f"more than {self.most} calls")


class NoCheck:
    pass


def offered(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    point = EntryPoint("too_many", f"{__name__}:{value}", "agentguard.checks")
    monkeypatch.setattr(EntryPoint, "load", lambda self: globals()[self.value.rpartition(":")[2]])
    monkeypatch.setattr("importlib.metadata.entry_points", lambda *, group: [point])


def test_a_check_of_another_package_is_found_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    offered(monkeypatch, "TooMany")
    guard = Guard(Policy.from_dict({"checks": {"too_many": {"most": 2}}}), quiet=True)
    run = guard.run(model="m", harness="h")
    assert [run.judge(ToolCall("f", {"i": i})).code for i in range(3)] == [None, None, "too_many"]


def test_a_check_of_another_package_refuses_unknown_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    offered(monkeypatch, "TooMany")
    with pytest.raises(PolicyError, match=r"checks\.too_many: cannot be made: .*least"):
        Policy.from_dict({"checks": {"too_many": {"least": 2}}})


def test_what_is_no_check_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    offered(monkeypatch, "NoCheck")
    with pytest.raises(PolicyError, match=r"checks\.too_many: has no method before"):
        Policy.from_dict({"checks": {"too_many": {}}})
