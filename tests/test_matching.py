"""Matching: rules for arguments, verdicts, figures, alignments; most of it after faults seen in other evaluators."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Any

import pytest

from agentguard.call import ToolCall
from agentguard.matching import (
    ANYTHING,
    MISSING,
    OPTIONAL,
    Arguments,
    Attempts,
    Call,
    Comparison,
    Contains,
    Custom,
    Difference,
    Equal,
    Figures,
    Folded,
    Ignored,
    Kind,
    Match,
    OneOf,
    Regex,
    Rules,
    Status,
    Tolerance,
    Valid,
    ValueRule,
    compare,
    counted,
    diff,
    doubts,
    faults,
    keyed,
    longest_repeat,
    schema,
)
from agentguard.matching.alignment import differences
from agentguard.matching.paths import look_up, without


def shown(value: Any) -> str:
    """Return the name of a case, without addresses: the processes of xdist must agree on it."""
    return re.sub(r" at 0x\w+", "", str(value))


A, B, C = Call("a", {}), Call("b", {}), Call("c", {})


def f(**arguments: Any) -> Call:
    return Call("f", arguments)


def match(mode: Match, reference: list[Call], actual: list[Call], rule: Arguments | None = None) -> bool | None:
    return compare(reference, actual, Rules(default=rule or Arguments())).passes(mode)


def kinds(both: Comparison) -> list[str]:
    return [entry.kind.value for entry in both.alignment.entries]


# ---------------------------------------------------------------- rules for values


@pytest.mark.parametrize(
    ("rule", "wanted", "given", "fits"),
    [
        (Equal(), 1, 1.0, True),
        (Equal(), 1, True, False),
        (Equal(), 2**53 + 1, float(2**53), False),
        (Equal(), [1, [True]], [1.0, [1]], False),
        (Equal(), {1: "x"}, {"1": "x"}, False),
        (Equal(), (1, 2), [1, 2], True),
        (Equal(), "Zürich", "Zu\u0308rich", False),
        (Folded(), "New  York\n", " new york", True),
        (Folded(), {"a": ["X"]}, {"a": ["x"]}, True),
        (Folded(), "12024", "1, 2024", False),
        (Folded(), "1", 1, False),
        (Tolerance(), 0.1, 0.100001, True),
        (Tolerance(), 0.1, 0.1000011, False),
        (Tolerance(absolute=0, relative=0.01), 200, 202, True),
        (Tolerance(absolute=0, relative=0.01), 200, 202.5, False),
        (Tolerance(absolute=2), {"x": [1, "a"]}, {"x": [3, "a"]}, True),
        (Tolerance(absolute=2), 1, True, False),
        (Tolerance(absolute=2), 0, False, False),
        (Tolerance(), 2**53 + 1, float(2**53), False),
        (Tolerance(absolute=1), Decimal("1.5"), 2, True),
        (Tolerance(absolute=1), Decimal("1e999999"), 2, False),
        (Tolerance(absolute=1), float("inf"), 2, False),
        (Tolerance(absolute=1), "1", 1, False),
        (Regex(), "R[0-9]+", "R61", True),
        (Regex(), "R[0-9]+", "R61 ", False),
        (Regex(), "R[0-9]+", "R[0-9]+", False),
        (Regex(), ["R.*", 1], ["R61", 1.0], True),
        (Regex("R.*"), MISSING, "R61", True),
        (Regex("R.*"), MISSING, MISSING, False),
        (Regex("1"), MISSING, 1, False),
        (OneOf(), ["C", "K"], "K", True),
        (OneOf(), ["C", "K"], "F", False),
        (OneOf(), ["C", OPTIONAL], MISSING, True),
        (OneOf(), ["C"], MISSING, False),
        (OneOf(), [1, True], 1.0, True),
        (OneOf(), [1], True, False),
        (OneOf(), ["C", OPTIONAL], OPTIONAL, False),
        (OneOf(), "C", "C", True),
        (OneOf(), MISSING, "C", False),
        (OneOf((1, 2)), MISSING, 2.0, True),
        (Contains(), "fail", "it failed", True),
        (Contains(), [1, 1], [1, 2, 1.0], True),
        (Contains(), [1, 1], [1, 2], False),
        (Contains(), 2, [1, 2], True),
        (Contains(), {"a": 1}, {"a": 1.0, "b": 2}, True),
        (Contains(), {"a": None}, {"b": 2}, False),
        (Contains(), 1, 1.0, True),
        (Contains("x"), MISSING, "xyz", True),
        (Contains(), MISSING, "xyz", False),
        (Ignored(), 1, MISSING, True),
        (Valid(lambda value: value > 1), MISSING, 2, True),
        (Valid(lambda value: True), MISSING, MISSING, False),
        (schema({"type": "string", "minLength": 2}), MISSING, "ab", True),
        (schema({"type": "string", "minLength": 2}), MISSING, "a", False),
        (Custom(lambda wanted, given: given % wanted == 0), 3, 9, True),
        (Custom(lambda wanted, given: True), 3, MISSING, False),
    ],
    ids=shown,
)
def test_value_rule(rule: ValueRule, wanted: Any, given: Any, *, fits: bool):
    assert rule.fits(wanted, given) is fits


# ---------------------------------------------------------------- rules for all arguments


@pytest.mark.parametrize(
    ("rule", "wanted", "given", "fits"),
    [
        (ANYTHING, {"a": 1}, {}, True),
        (Arguments(allow_extra=True), {"a": 1}, {"a": 1, "b": 2}, True),
        (Arguments(allow_extra=True), {"a": {}}, {"a": {"b": 2}}, False),
        (Arguments(allow_extra=True), {"a": 1}, {"b": 2}, False),
        (Arguments(allow_missing=True), {"a": 1, "b": 2}, {"a": 1}, True),
        (Arguments(allow_missing=True), {"a": 1}, {"a": 1, "b": 2}, False),
        (Arguments(ignore=("meta.id",)), {"meta": {"id": 1, "x": 2}}, {"meta": {"id": 9, "x": 2}}, True),
        (Arguments(ignore=("meta.id",)), {"meta": {"id": 1, "x": 2}}, {"meta": {"id": 1, "x": 3}}, False),
        (Arguments(ignore=("rows.1",)), {"rows": [1, 2, 3]}, {"rows": [1, 9, 3]}, True),
        (Arguments(ignore=("rows.0", "rows.1")), {"rows": [1, 2, 3]}, {"rows": [8, 9, 3]}, True),
        (Arguments(ignore=("rows.0", "rows.1")), {"rows": [1, 2, 3]}, {"rows": [1, 9, 7]}, False),
        (Arguments(ignore=("rows", "rows.1")), {"rows": [1, 2], "n": 1}, {"rows": [3], "n": 1}, True),
        (Arguments(ignore=("",)), {"rows": 1}, {}, True),
        (Arguments(only=("who.id",)), {"who": {"id": 1}, "x": 1}, {"who": {"id": 1.0}, "x": 2}, True),
        (Arguments(only=("who.id",)), {"who": {}}, {"who": {}}, False),
        (Arguments(only=("who.id",)), {"who": {"id": None}}, {"who": {}}, False),
        (Arguments(only=("n",), values=Tolerance(absolute=1)), {"n": 1}, {"n": 2, "m": 0}, True),
        (Arguments(only=("who",), ignore=("who.id",)), {"who": {"id": 1, "n": 2}}, {"who": {"id": 9, "n": 2}}, True),
        (Arguments(only=("who",), ignore=("who.id",)), {"who": {"id": 1, "n": 2}}, {"who": {"id": 1, "n": 3}}, False),
        (Arguments(only=("who.id", "n"), ignore=("who",)), {"n": 1}, {"n": 1}, True),
        (Arguments(only=("who",), at={"who.n": Folded()}), {"who": {"n": "A"}}, {"who": {"n": "a"}}, True),
        (Arguments(only=("who",), at={"who.n": Folded()}), {"who": {"n": "A", "x": 1}}, {"who": {"n": "a"}}, False),
        (Arguments(only=("n",), at={"n": Folded(), "q": Equal()}), {"n": "A", "q": 1}, {"n": "a", "q": 2}, True),
        (Arguments(only=("n",), at={"n": Folded()}), {}, {}, False),
        (Arguments(at={"q": Regex()}), {"q": "c.ts", "n": 1}, {"q": "cats", "n": 1}, True),
        (Arguments(at={"q": Regex()}), {"q": "c.ts", "n": 1}, {"q": "cats", "n": 2}, False),
        (Arguments(at={"q": Regex("c.ts")}), {"n": 1}, {"q": "cats", "n": 1}, True),
        (Arguments(at={"q": Regex("c.ts")}), {"n": 1}, {"n": 1}, False),
        (Arguments(at={"xs.0": Folded(), "xs.1": Folded()}), {"xs": ["A", "B"]}, {"xs": ["a", "b"]}, True),
        (Arguments(at={"xs.0": Folded(), "xs.1": Folded()}), {"xs": ["A", "B", 1]}, {"xs": ["a", "b", 2]}, False),
        (Arguments(at={"who": Folded()}, ignore=("who.id",)), {"who": {"id": 1, "n": "A"}}, {"who": {"n": "a"}}, True),
        (Arguments(at={"who.n": Regex("x")}, ignore=("who",)), {"who": {"n": 1}}, {"who": 2}, True),
        (Arguments(at={"t": Tolerance(absolute=1)}, values=Folded()), {"t": 1, "q": "A"}, {"t": 2, "q": "a "}, True),
        (Arguments(only=("",), at={"": Custom(lambda one, two: len(one) == len(two))}), {"a": 1}, {"b": 2}, True),
    ],
    ids=shown,
)
@pytest.mark.parametrize("mode", list(Match))
def test_arguments(rule: Arguments, wanted: dict[str, Any], given: dict[str, Any], mode: Match, *, fits: bool):
    assert rule.fits(wanted, given) is fits
    # The direction of a rule is the same in every mode: not so in agentevals 0.0.9.
    assert match(mode, [f(**wanted)], [f(**given)], rule) is fits


def test_rules_are_chosen_by_tool():
    rules = Rules(tools={"g": ANYTHING})
    reference, actual = [f(n=1), Call("g", {"n": 1})], [f(n=1), Call("g", {"n": 2})]
    assert compare(reference, actual, rules).passes(Match.EXACT) is True
    assert compare(reference, [f(n=2), Call("g", {"n": 2})], rules).passes(Match.EXACT) is False


def test_a_call_of_the_reference_may_have_a_rule_of_its_own():
    reference = [f(n=1), Call("f", {"n": 2}, rule=ANYTHING)]
    assert match(Match.EXACT, reference, [f(n=1), f(n=9)]) is True
    assert match(Match.EXACT, reference, [f(n=9), f(n=2)]) is False


def test_the_differing_paths_are_told():
    wanted = {"q": "a", "o": {"xs": [1, 2], "deep": {"k": 1}}, "gone": 1}
    given = {"q": "a", "o": {"xs": [1, 3, 4], "deep": {"k": True}}, "new": None}
    assert list(Arguments().differences(wanted, given)) == [
        Difference("o.xs.1", 2, 3),
        Difference("o.xs.2", MISSING, 4),
        Difference("o.deep.k", 1, True),
        Difference("gone", 1, MISSING),
        Difference("new", MISSING, None),
    ]


def test_what_shares_a_rule_but_no_shape_differs_as_a_whole():
    assert list(Arguments().differences({"x": {}}, {"x": []})) == [Difference("x", {}, [])]
    assert list(Arguments().differences({"x": {1: 2}}, {"x": {1: 3}})) == [Difference("x", {1: 2}, {1: 3})]
    assert list(Arguments(values=OneOf()).differences({"x": [1]}, {"x": 2})) == [Difference("x", [1], 2)]


def test_an_expression_of_its_own_is_told_where_both_sides_are_equal():
    rule = Arguments(at={"q": Regex("c.ts")})
    assert list(rule.differences({"q": "dogs"}, {"q": "dogs"})) == [Difference("q", "dogs", "dogs")]


def test_arguments_ten_thousand_deep_are_compared_by_every_rule():
    for rule in (Equal(), Folded(), Tolerance(), Regex(), OneOf(), Contains()):
        assert match(Match.EXACT, [f(x=deep(1))], [f(x=deep(2))], Arguments(values=rule)) is False
    assert match(Match.EXACT, [f(x=deep(1))], [f(x=deep(1.0))]) is True
    assert match(Match.EXACT, [f(x=deep("A"))], [f(x=deep("a"))], Arguments(values=Folded())) is True
    (found,) = compare([f(x=deep(1))], [f(x=deep(2))]).alignment.entries[0].differences
    assert (found.path.count("."), found.wanted, found.given) == (10_000, 1, 2)


def deep(leaf: Any) -> Any:
    for _ in range(10_000):
        leaf = [leaf]
    return leaf


def test_arguments_that_hold_themselves_are_compared():
    one: dict[str, Any] = {"n": 1}
    other: dict[str, Any] = {"n": 2}
    one["self"], other["self"] = one, other
    assert match(Match.EXACT, [f(x=one)], [f(x=other)], Arguments(values=Folded())) is False
    assert [found.path for found in Arguments().differences({"x": one}, {"x": other})] == ["x.n"]


def test_paths_go_through_names_with_dots_and_through_lists():
    assert look_up({"a.b": {"c": 1}}, "a.b.c") == 1
    assert look_up({"xs": [{"id": 1}]}, "xs.0.id") == 1
    assert look_up({"xs": [1]}, "xs.1") is MISSING
    assert look_up({"xs": "text"}, "xs.0") is MISSING
    assert without({"xs": [{"id": 1, "k": 2}]}, ["xs.0.id", "gone.id"]) == {"xs": [{"k": 2}]}


# ---------------------------------------------------------------- verdicts


def test_nothing_handed_in_is_changed():
    given = {"meta": {"id": 1}, "xs": [1]}
    compare([f(**given)], [f(**given)], Rules(default=Arguments(ignore=("meta.id", "xs.0")))).alignment  # noqa: B018
    assert given == {"meta": {"id": 1}, "xs": [1]}


@pytest.mark.parametrize("turned", [False, True])
def test_a_wide_call_of_the_reference_yields_to_a_narrow_one(*, turned: bool):
    reference = [f(u=["C", "K"]), f(u=["C"])]
    reference = reference[::-1] if turned else reference
    assert match(Match.ANY_ORDER, reference, [f(u="C"), f(u="K")], Arguments(values=OneOf())) is True


def test_an_assignment_moves_through_many_calls():
    reference = [f(**{str(k): 1 for k in range(n)}) for n in range(40)]
    actual = [f(**{str(k): 1 for k in range(n)}, extra=n) for n in range(40)]
    assert match(Match.ANY_ORDER, reference, actual, Arguments(allow_extra=True)) is True
    assert match(Match.ANY_ORDER, reference[::-1], actual, Arguments(allow_extra=True)) is True


def test_two_argument_sets_of_one_tool_are_told_apart():
    assert match(Match.ANY_ORDER, [f(n=1), f(n=2)], [f(n=2), f(n=1)]) is True
    assert match(Match.ANY_ORDER, [f(n=1), f(n=2)], [f(n=1), f(n=1)]) is False


def test_turns_are_compared_by_what_is_in_them():
    one_turn = [Call("a", {}, 0), Call("b", {}, 0)]
    assert match(Match.EXACT_TURNS, one_turn, one_turn[::-1]) is True
    assert match(Match.EXACT_TURNS, one_turn, [A, B]) is False
    assert match(Match.EXACT_TURNS, [A, B], [Call("a", {}, 7), Call("b", {}, 8)]) is True
    assert match(Match.EXACT_TURNS, [*one_turn, C], [Call("a", {}, 0), Call("c", {}, 0), B]) is False


def test_skipped_attempts_neither_satisfy_nor_disturb():
    failed, refused = Call("a", {}, status=Status.ERROR), Call("b", {}, status=Status.REFUSED)
    calls = [failed, refused, A]
    assert counted(calls, failed=Attempts.COUNT, refused=Attempts.COUNT) == calls
    assert counted(calls, failed=Attempts.SKIP, refused=Attempts.COUNT) == [refused, A]
    assert counted(calls, failed=Attempts.SKIP, refused=Attempts.SKIP) == [A]


def test_keys_worked_out_elsewhere_are_used():
    key = ToolCall("f", {"n": 1}).fingerprint
    assert f(n=1).identity == key
    assert [call.key for call in keyed([f(n=1), Call("f")])] == [key, None]
    assert match(Match.EXACT, [f(n=1)], [Call("f", {"n": 1.0}, key=key)]) is True


# ---------------------------------------------------------------- could not be scored

LOST = Call("f")


def test_arguments_not_recorded_are_neither_empty_nor_wrong():
    assert match(Match.EXACT, [f()], [LOST]) is None
    assert match(Match.EXACT, [f(n=1)], [LOST]) is None
    assert match(Match.SUPERSET, [LOST], [f(n=1)]) is None


def test_arguments_not_recorded_do_not_matter_where_nobody_looks_at_them():
    assert match(Match.EXACT, [f(n=1)], [LOST], ANYTHING) is True
    assert compare([f(n=1)], [LOST]).selection == Figures(1.0, 1.0, 1.0)


def test_what_fails_whatever_the_arguments_were_fails():
    assert match(Match.EXACT, [f(n=1), A], [LOST]) is False
    assert match(Match.SUPERSET, [A], [LOST]) is False
    assert match(Match.SUPERSET, [f(n=1)], [f(n=1), LOST]) is True
    assert match(Match.SUPERSET, [f(n=1), f(n=2)], [LOST, f(n=3)]) is False


def test_figures_that_lost_arguments_could_change_are_none():
    both = compare([f(n=1), A], [LOST, A])
    assert (both.calls, both.arguments, both.recall_in_order) == (Figures(None, None, None), None, None)
    settled = compare([f(n=1)], [f(n=1), LOST])
    assert (settled.hits, settled.arguments, settled.recall_in_order) == (1, 1.0, 1.0)


def test_the_reason_names_the_calls():
    cut = Call("f", absence="arguments are no JSON object")
    assert doubts(compare([f(n=1)], [A, LOST, cut, LOST])) == [
        "arguments not recorded (call 2, 4)",
        "arguments are no JSON object (call 3)",
    ]
    assert doubts(compare([LOST], [f(n=1)])) == ["arguments not recorded in the reference (call 1)"]


def test_a_rule_that_raises_leaves_the_verdict_open_and_says_so():
    def broken(wanted: Any, given: Any) -> bool:
        raise KeyError("unit")

    both = compare([f(n=1)], [f(n=1)], Rules(default=Arguments(values=Custom(broken))))
    assert both.passes(Match.EXACT) is None
    assert doubts(both) == ["rule failed: KeyError: 'unit' (call 1)"]
    assert kinds(both) == ["unknown"]


def test_a_rule_that_raises_after_a_difference_leaves_that_difference():
    def broken(wanted: Any, given: Any) -> bool:
        return given["unit"] == wanted["unit"]

    both = compare([f(a={"unit": 1}, b=1)], [f(a={"unit": 2}, b=1)], Rules(default=Arguments(values=Custom(broken))))
    assert both.passes(Match.EXACT) is False
    assert both.alignment.entries[0].differences == (Difference("a", {"unit": 1}, {"unit": 2}),)


def test_an_expression_in_a_reference_that_is_none_leaves_the_verdict_open():
    both = compare([f(q="(")], [f(q="x")], Rules(default=Arguments(values=Regex())))
    assert both.passes(Match.EXACT) is None
    assert doubts(both)[0].startswith("rule failed: ")


def test_calls_without_recorded_arguments_have_no_differences():
    assert differences(f(n=1), LOST, Rules()) == differences(LOST, f(n=1), Rules()) == ()


# ---------------------------------------------------------------- figures


def test_selection_and_arguments_are_two_numbers():
    both = compare([f(n=1), A], [f(n=2), A, B])
    assert both.selection == Figures(precision=2 / 3, recall=1.0, f1=4 / 5)
    assert both.arguments == 0.5
    assert both.calls == Figures(precision=1 / 3, recall=0.5, f1=2 / 5)


def test_no_right_tool_leaves_arguments_undefined():
    assert compare([A], [B]).arguments is None
    assert compare([], []).arguments is None


@pytest.mark.parametrize(
    ("reference", "actual", "figures"),
    [([], [], Figures(1, 1, 1)), ([A], [], Figures(None, 0, 0)), ([], [A], Figures(0, None, 0))],
)
def test_figures_of_nothing(reference: list[Call], actual: list[Call], figures: Figures):
    assert compare(reference, actual).calls == compare(reference, actual).selection == figures


def test_recall_in_order_counts_the_longest_part_in_order():
    assert compare([A, B, C], [C, A, B]).recall_in_order == 2 / 3
    assert compare([], []).recall_in_order == 1.0
    assert compare([], [A]).recall_in_order is None


def test_equal_calls_of_one_turn_are_no_repeat_but_equal_turns_are():
    assert longest_repeat([Call("a", {}, 0), Call("a", {}, 0)]) == 1
    assert longest_repeat([Call("a", {}, 0), Call("b", {}, 0), Call("b", {}, 1), Call("a", {}, 1)]) == 2
    assert longest_repeat([A, A, B, A]) == 2


def test_a_call_without_recorded_arguments_repeats_nothing():
    assert longest_repeat([LOST, LOST]) == 1
    assert longest_repeat([Call("f", turn=0), Call("f", turn=0), Call("f", turn=1), Call("f", turn=1)]) == 1


def test_confusion_says_what_was_used_where_what_was_needed():
    both = compare([A, B, f(n=1), C], [A, Call("x", {}), f(n=2), Call("y", {}), Call("c", {}), Call("z", {})])
    assert both.confusion == {
        ("a", "a"): 1,
        ("f", "f"): 1,
        ("c", "c"): 1,
        ("b", "x"): 1,
        (None, "y"): 1,
        (None, "z"): 1,
    }
    assert compare([A], []).confusion == {("a", None): 1}


# ---------------------------------------------------------------- alignment


def test_every_kind_of_line():
    both = compare([A, B, f(n=1), C, Call("g", {})], [B, A, f(n=2), Call("x", {}), Call("g")])
    assert [(e.kind.value, e.reference, e.actual) for e in both.alignment.entries] == [
        ("matched", 1, 0),
        ("out_of_order", 0, 1),
        ("wrong_arguments", 2, 2),
        ("missing", 3, None),
        ("extra", None, 3),
        ("unknown", 4, 4),
    ]
    assert both.alignment.cost == 5
    assert both.alignment.cost_in_any_order == 4
    assert [entry.actual for entry in both.alignment.of(Kind.EXTRA)] == [3]


def test_wrong_calls_are_paired_with_what_they_are_nearest_to():
    both = compare([f(a=1, b=1), f(a=2, b=2)], [f(a=2, b=9), f(a=1, b=9)])
    assert {(entry.reference, entry.actual) for entry in both.alignment.entries} == {(0, 1), (1, 0)}


def test_very_many_wrong_calls_are_paired_as_they_come():
    both = compare([f(n=n) for n in range(30)], [f(n=-n - 1) for n in range(31)])
    pairs = [(e.reference, e.actual) for e in both.alignment.entries if e.kind is Kind.WRONG_ARGUMENTS]
    assert pairs == [(n, n) for n in range(30)]


def test_the_diff_reads_in_the_order_of_the_run():
    reference = [A, f(city="Oslo", when={"day": 1}), C, Call("g", {})]
    both = compare(reference, [A, f(city="Voss", when={}), Call("x", {"long": "y" * 100}), Call("g")])
    assert diff(both, width=60).splitlines() == [
        "= a {}",
        '~ f {"city":"Voss","when":{}}',
        '    city: expected "Oslo", got "Voss"',
        "    when.day: expected 1, got nothing",
        "- c {}",
        '+ x {"long":"' + "y" * 44 + "...",
        "? g ...  (arguments not recorded)",
    ]


def test_the_diff_says_where_a_call_was_expected():
    assert diff(compare([A, B], [B, A])).splitlines() == ["= b {}", "> a {}  (expected as call 1, made as call 2)"]


def test_a_tool_name_cannot_break_the_lines():
    hostile = Call("a\n+ b\x1b[2J", {})
    assert diff(compare([hostile], [])) == '- "a\\n+ b\\u001b[2J" {}'
    assert faults(compare([hostile], []), Match.EXACT)[0].text == 'expected "a\\n+ b\\u001b[2J", not called'


def test_no_argument_can_speak_to_the_terminal():
    both = compare([f(**{"n\x1b[1m": "\x9b2J"})], [f(**{"n\x1b[1m": "\u202e"})])
    assert diff(both).splitlines() == [
        '~ f {"n\\u001b[1m":"\\u202e"}',
        '    "n\\u001b[1m": expected "\\u009b2J", got "\\u202e"',
    ]
    assert faults(both, Match.EXACT)[0].text == 'f: arguments differ from those expected: "n\\u001b[1m"'


def test_the_diff_names_null_and_the_whole():
    rule = Arguments(only=("",), at={"": Custom(lambda one, two: False)})
    assert "    arguments: expected {}, got {}" in diff(compare([A], [A], Rules(default=rule)))
    assert "    n: expected nothing, got null" in diff(compare([f()], [f(n=None)]))


# ---------------------------------------------------------------- faults


@pytest.mark.parametrize(
    ("mode", "reference", "actual", "codes"),
    [
        (Match.EXACT, [A, B], [B, A], ["match.out_of_order"]),
        (Match.EXACT, [A, f(n=1)], [C, f(n=2)], ["match.missing", "match.arguments", "match.extra"]),
        (Match.IN_ORDER, [A, B], [B, A, C], ["match.out_of_order"]),
        (Match.ANY_ORDER, [A, B], [B, A, C], ["match.extra"]),
        (Match.SUPERSET, [A, A], [A, C], ["match.missing"]),
        (Match.SUBSET, [A, B], [A, A], ["match.extra"]),
        (Match.SUPERSET, [A], [A, C], []),
        (Match.SUPERSET, [f(n=1)], [Call("f")], []),
        (Match.EXACT_TURNS, [Call("a", {}, 0), Call("b", {}, 0)], [A, B], ["match.turns"]),
    ],
)
def test_faults_by_mode(mode: Match, reference: list[Call], actual: list[Call], codes: list[str]):
    assert [fault.code for fault in faults(compare(reference, actual), mode)] == codes


@pytest.mark.parametrize(
    ("mode", "reference", "actual", "text"),
    [
        (Match.EXACT, [A], [], "expected a, not called"),
        (Match.EXACT, [A, A, A], [A], "expected a 3 times, called 1 times"),
        (Match.EXACT, [], [A], "a: not expected"),
        (Match.EXACT, [f(n=1, q=1)], [f(n=2)], "f: arguments differ from those expected: n, q"),
        (Match.EXACT, [A, B], [B, A], "a: expected as call 1 of the reference, out of order"),
        (
            Match.EXACT_TURNS,
            [Call("a", {}, 0), Call("b", {}, 0), C],
            [A, Call("b", {}, 1), Call("c", {}, 1)],
            "the calls are those expected, their parallel turns are not: expected 2+1, got 1+2",
        ),
        (Match.EXACT_TURNS, [A, B], [B, A], "the calls are those expected, but made in other turns"),
    ],
)
def test_a_fault_says_what_was_expected(mode: Match, reference: list[Call], actual: list[Call], text: str):
    assert faults(compare(reference, actual), mode)[0].text == text


def test_a_fault_of_turns_points_at_the_first_turn_that_is_another():
    reference = [Call("a", {}, 0), Call("b", {}, 1), Call("c", {}, 1)]
    (fault,) = faults(compare(reference, [A, B, C]), Match.EXACT_TURNS)
    assert (fault.code, fault.actual) == ("match.turns", 1)
    (fault,) = faults(compare([A, B, C], [A, C, B]), Match.EXACT_TURNS)
    assert (fault.code, fault.actual) == ("match.turns", 1)


def test_a_fault_holds_no_values():
    (fault,) = faults(compare([f(password="secret")], [f(password="other")]), Match.EXACT)
    assert "secret" not in fault.text
    assert "other" not in fault.text


def test_a_long_run_of_equal_calls_is_matched_in_time():
    both = compare([f(n=1)] * 1500, [f(n=1)] * 1000)
    assert (both.hits, both.passes(Match.SUBSET), both.alignment.cost) == (1000, True, 500)
