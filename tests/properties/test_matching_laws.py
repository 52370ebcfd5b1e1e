"""Laws of matching that hold for every reference and every run."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentguard.matching import (
    MISSING,
    PLAIN,
    Arguments,
    Call,
    Custom,
    Equal,
    Folded,
    Match,
    OneOf,
    Rules,
    Tolerance,
    compare,
    diff,
    faults,
)
from agentguard.matching.assignment import in_order, length_in_order, longest_in_order, maximum

VALUES = st.sampled_from([0, 1, 1.0, True, "1", None, [1], [True], {"b": 1, "a": 2}, {"a": 2.0, "b": 1}, 2**53 + 1])
CALLS = st.builds(
    Call,
    st.sampled_from("fg"),
    st.dictionaries(st.sampled_from("ab"), VALUES, max_size=2),
    st.none() | st.integers(0, 2),
)
RUNS = st.lists(CALLS, max_size=6)
FEW = [Call("f", {"n": 0}), Call("f", {"n": 1}), Call("g", {}), Call("g", {"n": 0})]
SHORT = st.lists(st.sampled_from(FEW), max_size=5)
RULES = st.sampled_from(
    [
        PLAIN,
        Rules(default=Arguments(only=())),
        Rules(default=Arguments(only=("a",))),
        Rules(default=Arguments(ignore=("b",))),
        Rules(default=Arguments(allow_extra=True)),
        Rules(default=Arguments(allow_missing=True), tools={"f": Arguments(values=Tolerance(absolute=1))}),
        Rules(default=Arguments(values=Folded()), tools={"g": Arguments(at={"a": OneOf()})}),
    ]
)
ROWS = st.integers(0, 6).flatmap(
    lambda columns: st.tuples(st.lists(st.integers(0, 2**columns - 1), max_size=6), st.just(columns))
)


@given(RUNS, RUNS, RULES)
def test_stricter_modes_imply_looser_ones(reference: list[Call], actual: list[Call], rules: Rules):
    both = compare(reference, actual, rules)
    passes = {mode for mode in Match if both.passes(mode)}
    for stricter, looser in [
        (Match.EXACT, Match.IN_ORDER),
        (Match.EXACT, Match.ANY_ORDER),
        (Match.EXACT_TURNS, Match.ANY_ORDER),
        (Match.IN_ORDER, Match.SUPERSET),
        (Match.ANY_ORDER, Match.SUPERSET),
        (Match.ANY_ORDER, Match.SUBSET),
    ]:
        assert stricter not in passes or looser in passes


@given(RUNS, st.data())
def test_exact_implies_exact_turns_where_the_turns_are_the_same(reference: list[Call], data: st.DataObject):
    rules = data.draw(RULES)
    arguments = [data.draw(st.dictionaries(st.sampled_from("ab"), VALUES, max_size=2)) for _ in reference]
    actual = [Call(call.tool, given, call.turn) for call, given in zip(reference, arguments, strict=True)]
    both = compare(reference, actual, rules)
    assert not both.passes(Match.EXACT) or both.passes(Match.EXACT_TURNS)


@given(RUNS, RUNS, RULES)
def test_any_order_is_superset_and_subset(reference: list[Call], actual: list[Call], rules: Rules):
    both = compare(reference, actual, rules)
    assert both.passes(Match.ANY_ORDER) == (both.passes(Match.SUPERSET) and both.passes(Match.SUBSET))


@given(RUNS, RUNS)
def test_any_order_is_symmetric_and_superset_is_subset_turned_round(one: list[Call], other: list[Call]):
    there, back = compare(one, other), compare(other, one)
    assert there.passes(Match.ANY_ORDER) == back.passes(Match.ANY_ORDER)
    assert there.passes(Match.SUPERSET) == back.passes(Match.SUBSET)


@given(RUNS, RUNS, CALLS, st.integers(0, 6), RULES)
def test_one_more_call_never_loses_what_was_found(
    reference: list[Call], actual: list[Call], more: Call, place: int, rules: Rules
):
    longer = [*actual[:place], more, *actual[place:]]
    before, after = compare(reference, actual, rules), compare(reference, longer, rules)
    for mode in (Match.SUPERSET, Match.IN_ORDER):
        assert not before.passes(mode) or after.passes(mode)


@given(RUNS, RUNS, RULES, st.randoms(use_true_random=False))
def test_nothing_order_free_depends_on_how_the_reference_is_written(
    reference: list[Call], actual: list[Call], rules: Rules, random: object
):
    written_otherwise = sorted(reference, key=lambda _: random.random())  # type: ignore[attr-defined]
    one, other = compare(reference, actual, rules), compare(written_otherwise, actual, rules)
    for mode in (Match.ANY_ORDER, Match.SUPERSET, Match.SUBSET):
        assert one.passes(mode) == other.passes(mode)
    assert (one.calls, one.selection, one.arguments) == (other.calls, other.selection, other.arguments)
    assert one.alignment.cost_in_any_order == other.alignment.cost_in_any_order


@given(RUNS, RUNS, RULES)
def test_every_call_stands_in_one_line_and_the_lines_say_what_the_figures_say(
    reference: list[Call], actual: list[Call], rules: Rules
):
    both = compare(reference, actual, rules)
    lines = both.alignment.entries
    assert sorted(line.reference for line in lines if line.reference is not None) == list(range(len(reference)))
    assert sorted(line.actual for line in lines if line.actual is not None) == list(range(len(actual)))
    paired = [line for line in lines if None not in (line.reference, line.actual)]
    assert len(paired) == both.right_tools
    assert len([line for line in paired if line.kind in ("matched", "out_of_order")]) == both.hits
    assert all(reference[line.reference or 0].tool == actual[line.actual or 0].tool for line in paired)


@given(RUNS, RUNS, RULES)
def test_a_run_has_faults_iff_it_fails(reference: list[Call], actual: list[Call], rules: Rules):
    both = compare(reference, actual, rules)
    for mode in Match:
        assert bool(faults(both, mode)) == (both.passes(mode) is False)


@given(SHORT, SHORT, SHORT)
def test_the_cost_of_an_alignment_is_a_metric(a: list[Call], b: list[Call], c: list[Call]):
    def cost(one: list[Call], other: list[Call]) -> int:
        return compare(one, other).alignment.cost

    assert (cost(a, b) == 0) == bool(compare(a, b).passes(Match.EXACT))
    assert cost(a, b) == cost(b, a)
    assert cost(a, c) <= cost(a, b) + cost(b, c)


@given(SHORT, SHORT, SHORT)
def test_the_cost_in_any_order_is_a_metric(a: list[Call], b: list[Call], c: list[Call]):
    def cost(one: list[Call], other: list[Call]) -> int:
        return compare(one, other).alignment.cost_in_any_order

    assert (cost(a, b) == 0) == bool(compare(a, b).passes(Match.ANY_ORDER))
    assert cost(a, b) == cost(b, a)
    assert cost(a, c) <= cost(a, b) + cost(b, c)


@given(SHORT, SHORT)
def test_the_cost_is_the_larger_number_of_calls_by_tool_less_the_common_subsequence(a: list[Call], b: list[Call]):
    larger = sum(max(sum(call.tool == tool for call in run) for run in (a, b)) for tool in "fg")
    common = max(len(part) for part in common_subsequences(a, b))
    assert compare(a, b).alignment.cost == larger - common


def common_subsequences(a: list[Call], b: list[Call]) -> list[tuple[Call, ...]]:
    parts = {part for size in range(len(b) + 1) for part in itertools.combinations(map(str, b), size)}
    return [
        part for size in range(len(a) + 1) for part in itertools.combinations(a, size) if tuple(map(str, part)) in parts
    ]


@given(RUNS, RUNS)
def test_keys_give_what_comparing_every_pair_gives(reference: list[Call], actual: list[Call]):
    def equal(wanted: object, given: object) -> bool:
        return Equal().fits(wanted, given)

    one_by_one = Rules(default=Arguments(only=("",), at={"": Custom(equal)}))
    assert compare(reference, actual).relation == compare(reference, actual, one_by_one).relation


@given(RUNS, RUNS, RULES, st.data())
def test_what_is_said_without_all_arguments_holds_whatever_they_were(
    reference: list[Call], actual: list[Call], rules: Rules, data: st.DataObject
):
    lost = [data.draw(st.booleans()) for _ in actual]
    seen = [
        Call(call.tool, None if gone else call.arguments, call.turn) for call, gone in zip(actual, lost, strict=True)
    ]
    partly, wholly = compare(reference, seen, rules), compare(reference, actual, rules)
    for mode in Match:
        assert partly.passes(mode) in (None, wholly.passes(mode))
    for figure in ("arguments", "recall_in_order", "hits"):
        assert getattr(partly, figure) in (None, getattr(wholly, figure))
    assert partly.selection == wholly.selection


@given(RUNS, RUNS, RULES)
def test_the_same_calls_give_the_same_text(reference: list[Call], actual: list[Call], rules: Rules):
    assert diff(compare(reference, actual, rules)) == diff(compare(reference, actual, rules))


# ---------------------------------------------------------------- assignments, against trying everything


@given(ROWS)
def test_a_maximum_matching_is_as_large_as_any(relation: tuple[list[int], int]):
    rows, columns = relation
    pairs = maximum(rows)
    assert all(rows[i] >> j & 1 for i, j in pairs.items())
    assert len(set(pairs.values())) == len(pairs) == largest(rows, columns)


def largest(rows: list[int], columns: int) -> int:
    orders = itertools.permutations([*range(columns), *[columns] * len(rows)], len(rows))
    return max((sum(row >> j & 1 for row, j in zip(rows, order, strict=True)) for order in set(orders)), default=0)


@given(ROWS)
def test_a_common_subsequence_is_as_long_as_any(relation: tuple[list[int], int]):
    rows, columns = relation
    pairs = longest_in_order(rows, columns)
    assert all(rows[i] >> j & 1 for i, j in pairs.items())
    assert list(pairs.items()) == sorted(pairs.items())
    assert list(pairs.values()) == sorted(set(pairs.values()))
    assert len(pairs) == length_in_order(rows, columns) == by_table(rows, columns)
    assert in_order(rows) == (len(pairs) == len(rows))


def by_table(rows: list[int], columns: int) -> int:
    lengths = [0] * (columns + 1)
    for row in rows:
        before = list(lengths)
        for j in range(columns):
            lengths[j + 1] = before[j] + 1 if row >> j & 1 else max(before[j + 1], lengths[j])
    return lengths[columns]


@given(VALUES, VALUES)
def test_equality_is_symmetric_and_a_difference_is_found_iff_unequal(one: object, other: object):
    rule = Equal()
    assert rule.fits(one, other) == rule.fits(other, one)
    assert rule.fits(one, other) == (not list(rule.differences("", one, other)))


@pytest.mark.parametrize("rule", [Equal(), Folded(), Tolerance(), OneOf()])
def test_nothing_equals_something_missing(rule: Equal):
    assert not rule.fits(MISSING, None)
    assert not rule.fits(None, MISSING)
