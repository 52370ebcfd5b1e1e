"""Laws of the fingerprint over values that nobody chose."""

from __future__ import annotations

import datetime
import math
import random

from hypothesis import given
from hypothesis import strategies as st

from agentguard.fingerprint import _Slow, canonical, fingerprint, normalised, result_token

# Few texts and numbers, so that equal values turn up by chance.
TEXTS = st.text(max_size=5) | st.sampled_from(["1", "1.0", '"', "\\", '",1.0,"', "1e16", "10000000000000000", "null"])
NUMBERS = (
    st.integers(-3, 3)
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from([0.0, -0.0, 1.0, 1e15, 1e16, 2**53, 2.0**53, 2**53 + 1, 10**16, 2**60, 2.0**60])
)  # fmt: skip
SCALARS = st.none() | st.booleans() | NUMBERS | TEXTS


def trees(leaves, keys=TEXTS):
    return st.recursive(
        leaves,
        lambda inner: st.lists(inner, max_size=4) | st.lists(inner, max_size=4).map(tuple)
        | st.dictionaries(keys, inner, max_size=4),
        max_leaves=12,
    )  # fmt: skip


JSON = trees(SCALARS)
SURROGATES = st.text(st.characters(), max_size=3) | st.sampled_from(["\ud800", "a\udfff"])
ANYTHING = trees(
    SCALARS | SURROGATES | st.binary(max_size=4) | st.decimals() | st.complex_numbers() | st.uuids() | st.datetimes()
    | st.timedeltas() | st.floats() | st.frozensets(SCALARS, max_size=3) | st.builds(object)
    | st.fractions() | st.builds(memoryview, st.binary(max_size=3)) | st.just(datetime) | st.functions()
    | st.builds(iter, st.just(())),
    SURROGATES | st.integers() | st.none() | st.booleans() | st.tuples(st.integers()),
)  # fmt: skip


def means(one, other):
    """Say whether two values mean the same JSON, by Python's own equality, kept apart where JSON does."""
    if isinstance(one, (list, tuple)):
        return isinstance(other, (list, tuple)) and len(one) == len(other) and all(map(means, one, other))
    if isinstance(one, dict):
        return isinstance(other, dict) and one.keys() == other.keys() and all(means(one[k], other[k]) for k in one)
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    return not isinstance(other, (list, tuple, dict)) and one == other


def shuffled(value, draw):
    if isinstance(value, dict):
        keys = draw.sample(list(value), len(value))
        return {key: shuffled(value[key], draw) for key in keys}
    return [shuffled(item, draw) for item in value] if isinstance(value, (list, tuple)) else value


def respelt(value):
    """Return the same JSON with other Python types: tuples for lists, floats for integers where exact."""
    if isinstance(value, dict):
        return {key: respelt(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return tuple(respelt(item) for item in value)
    if type(value) is int and abs(value) < 10**300 and float(value) == value:
        return float(value)
    return int(value) if type(value) is float and math.isfinite(value) and value == int(value) else value


@given(JSON, JSON)
def test_equal_iff_they_mean_the_same(one, other):
    assert (canonical(one) == canonical(other)) is means(one, other)
    assert (fingerprint(one) == fingerprint(other)) is means(one, other)


@given(SCALARS, SCALARS)
def test_scalars_are_equal_iff_they_mean_the_same(one, other):
    assert (canonical(one) == canonical(other)) is means(one, other)


@given(JSON)
def test_other_spellings_of_the_same_json_are_equal(value):
    assert canonical(value) == canonical(respelt(value))


@given(JSON | ANYTHING, st.integers())
def test_key_order_never_matters(value, seed):
    assert canonical(value) == canonical(shuffled(value, random.Random(seed)))


@given(JSON | ANYTHING)
def test_both_paths_write_the_same_bytes(value):
    assert canonical(value) == _Slow().encode(value)


@given(JSON, JSON)
def test_values_are_equal_iff_they_are_inside_another(one, other):
    assert (fingerprint({"a": [one]}) == fingerprint({"a": [other]})) is (fingerprint(one) == fingerprint(other))


@given(ANYTHING)
def test_every_value_has_a_fingerprint_and_equals_itself(value):
    assert fingerprint(value) == fingerprint(value)
    assert result_token(value, False) == result_token(value, False)


@given(st.text(st.sampled_from("01259:-T .,Zsmhµ\x1b[;a")))
def test_normalising_takes_away_and_adds_nothing(text):
    rest = iter(text)

    assert all(character in rest for character in normalised(text))


@given(st.text(st.characters(exclude_categories=["Nd"], exclude_characters="\x1b")))
def test_text_without_digits_is_left_alone(text):
    assert text == normalised(text)
