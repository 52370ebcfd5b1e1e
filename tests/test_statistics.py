"""Figures of uncertainty against values worked out by hand or by another road."""

from __future__ import annotations

import importlib.util
import itertools
import math
import random
import sys

import pytest

from agentguard.errors import IntegrationMissing
from agentguard.statistics import (
    Band,
    Interval,
    Paired,
    Trials,
    Watched,
    landmark,
    loops_by_length,
    mcnemar,
    mean_difference,
    mean_over_tasks,
    pass_at,
    pass_every,
    pooled_odds,
    trials,
    wilson,
)

needs_scipy = pytest.mark.skipif(importlib.util.find_spec("scipy") is None, reason="needs the extra score")


@needs_scipy
@pytest.mark.parametrize("of", [1, 2, 7, 100, 12_345])
@pytest.mark.parametrize("confidence", [0.8, 0.95, 0.999])
def test_wilson_agrees_with_scipy(of: int, confidence: float):
    from scipy import stats

    for hits in {0, 1, of // 3, of - 1, of}:
        theirs = stats.binomtest(hits, of).proportion_ci(confidence, method="wilson")
        ours = wilson(hits, of, confidence=confidence)
        assert ours is not None
        assert (ours.low, ours.high) == pytest.approx((theirs.low, theirs.high), abs=1e-12)


def test_the_interval_of_no_hits_and_of_all_hits_ends_at_the_border():
    nothing, everything = wilson(0, 3), wilson(3, 3)
    assert nothing is not None
    assert everything is not None
    assert (nothing.low, everything.high) == (0.0, 1.0)


def test_a_rate_of_no_runs_has_no_interval():
    assert wilson(0, 0) is None


@pytest.mark.parametrize(("hits", "of"), [(4, 3), (-1, 3)])
def test_more_hits_than_runs_are_refused(hits: int, of: int):
    with pytest.raises(ValueError, match=f"hits: {hits} of 3; expected 0 to 3"):
        wilson(hits, of)


def test_pass_at_k_is_the_share_of_draws_with_a_success():
    for passed in range(6):
        draws = list(itertools.combinations([True] * passed + [False] * (5 - passed), 3))
        assert pass_at(3, passed=passed, trials=5) == pytest.approx(sum(map(any, draws)) / len(draws))
        assert pass_every(3, passed=passed, trials=5) == pytest.approx(sum(map(all, draws)) / len(draws))


def test_more_draws_than_trials_have_no_value():
    assert pass_at(3, passed=2, trials=2) is None
    assert pass_every(3, passed=2, trials=2) is None


def test_trials_are_averaged_over_tasks_and_short_tasks_are_counted():
    outcomes = {"a": [True, True], "b": [True, False], "c": [False, False], "d": [True]}
    assert trials(outcomes, 2) == Trials(k=2, at_least_one=2 / 3, every=1 / 3, tasks=3, left_out=1)


def test_trials_of_no_task_have_no_value():
    assert trials({"a": [True]}, 2) == Trials(k=2, at_least_one=None, every=None, tasks=0, left_out=1)


def test_less_than_one_trial_is_refused():
    with pytest.raises(ValueError, match="k: 0; expected 1 or more"):
        trials({}, 0)


@needs_scipy
def test_mcnemar_is_the_exact_binomial_of_the_tasks_that_part():
    outcomes = [(True, True)] * 5 + [(True, False)] * 1 + [(False, True)] * 6 + [(False, False)] * 2
    # two-sided: 2 * (C(7,0) + C(7,1)) / 2**7
    assert mcnemar(outcomes) == Paired(both=5, only_base=1, only_new=6, neither=2, p=pytest.approx(2 * 8 / 128))


def test_tasks_that_never_part_show_no_difference():
    assert mcnemar([(True, True), (False, False)]).p == 1.0


def test_no_tasks_show_nothing():
    assert mcnemar([]).p is None


@needs_scipy
def test_the_mean_is_over_runs_and_the_interval_over_tasks():
    spread = mean_over_tasks({"a": [1.0] * 50, "b": [0.0] * 50}, seed=1)
    assert spread is not None
    assert (spread.value, spread.tasks, spread.runs) == (0.5, 2, 100)
    assert spread.interval == Interval(0.0, 1.0)  # two tasks of opposite results: nothing is known about a third


@needs_scipy
def test_the_interval_agrees_with_resampling_by_hand():
    generator = random.Random(7)
    values = {str(task): [generator.random() for _ in range(1 + task % 4)] for task in range(30)}
    told = mean_over_tasks(values, seed=3, resamples=4000)
    assert told is not None
    assert told.interval is not None
    assert (told.interval.low, told.interval.high) == pytest.approx(by_hand(list(values.values()), 4000), abs=0.01)


def by_hand(tasks: list[list[float]], resamples: int) -> tuple[float, float]:
    generator = random.Random(11)
    means: list[float] = []
    for _ in range(resamples):
        runs = [value for task in generator.choices(tasks, k=len(tasks)) for value in task]
        means.append(sum(runs) / len(runs))
    means.sort()
    return means[int(0.025 * resamples)], means[int(0.975 * resamples) - 1]


@needs_scipy
def test_the_same_seed_gives_the_same_interval_in_any_order_of_tasks():
    values = {"a": [1.0, 0.0], "b": [0.0], "c": [1.0, 1.0]}
    backwards = dict(reversed(values.items()))
    assert mean_over_tasks(values, seed=5) == mean_over_tasks(backwards, seed=5)


def test_one_task_has_a_mean_and_no_interval():
    told = mean_over_tasks({"a": [1.0, 0.0], "b": []}, seed=1)
    assert told is not None
    assert (told.value, told.interval, told.tasks) == (0.5, None, 1)


def test_no_runs_have_no_mean():
    assert mean_over_tasks({"a": []}, seed=1) is None


@needs_scipy
def test_tasks_that_all_agree_have_an_interval_of_no_width():
    told = mean_over_tasks({"a": [1.0], "b": [1.0]}, seed=1)
    assert told is not None
    assert told.interval == Interval(1.0, 1.0)


@needs_scipy
def test_the_difference_is_taken_task_by_task():
    base = {"easy": [1.0, 1.0], "hard": [0.0], "only base": [1.0]}
    new = {"easy": [1.0], "hard": [1.0, 0.0], "only new": [0.0]}
    told = mean_difference(base, new, seed=1)
    assert told is not None
    assert (told.value, told.tasks, told.runs) == (0.25, 2, 6)
    assert told.interval == Interval(0.0, 0.5)


def test_no_task_in_common_gives_no_difference():
    assert mean_difference({"a": [1.0]}, {"b": [1.0], "a": []}, seed=1) is None


def test_loop_rates_are_told_by_length():
    runs = [Watched(2, None, None), Watched(4, 2, None), Watched(8, 3, None), Watched(30, None, None)]
    assert loops_by_length(runs, (1, 6, 11)) == [Band(1, 5, 1, 2), Band(6, 10, 1, 1), Band(11, None, 0, 1)]


@needs_scipy
def test_a_landmark_asks_only_runs_that_were_still_going():
    ended, unknown = Watched(3, 2, True), Watched(9, 2, None)
    runs = [Watched(9, 2, True), Watched(9, 3, False), Watched(9, 7, True), Watched(9, None, False)]
    told = landmark([ended, unknown, *runs], at=3)
    assert (told.looped, told.looped_failed, told.others, told.others_failed) == (2, 1, 2, 1)
    assert told.odds_ratio == 1.0
    assert told.interval is not None
    assert told.interval.low < 1 < told.interval.high


@needs_scipy
def test_the_exact_interval_of_odds_is_where_the_tails_hold_the_rest():
    told = landmark([*tea(3, loops=True), *tea(1, loops=False)], at=1)
    assert told.odds_ratio == 9.0
    assert told.interval is not None
    assert tail(range(3, 5), told.interval.low) == pytest.approx(0.025)
    assert tail(range(4), told.interval.high) == pytest.approx(0.025)


def tea(failed: int, *, loops: bool) -> list[Watched]:
    """Four runs, of which some failed: half of Fisher's table of the lady tasting tea."""
    return [Watched(9, 1 if loops else None, index < failed) for index in range(4)]


def tail(cells: range, odds: float) -> float:
    """The chance of such a first cell when all margins are 4."""
    weights = [math.comb(4, cell) ** 2 * odds**cell for cell in range(5)]
    return sum(weights[cell] for cell in cells) / sum(weights)


def test_an_empty_cell_leaves_the_odds_undefined():
    told = landmark([Watched(9, 1, True), Watched(9, None, False)], at=1)
    assert (told.odds_ratio, told.interval) == (None, None)


@needs_scipy
def test_runs_that_end_early_raise_raw_odds_and_no_landmark():
    short = [Watched(2, None, False)] * 80
    long = [Watched(20, 10, True)] * 10 + [Watched(20, 10, False)] * 10
    long += [Watched(20, None, True)] * 10 + [Watched(20, None, False)] * 10
    assert landmark(short + long, at=0).odds_ratio is None
    assert landmark(short + long, at=10).odds_ratio == 1.0


@needs_scipy
def test_pooling_by_harness_undoes_what_throwing_runs_together_makes_up():
    good = runs_of(looped=(1, 9), others=(9, 81))
    bad = runs_of(looped=(72, 8), others=(18, 2))
    assert landmark([*good, *bad], at=1).odds_ratio == pytest.approx(73 * 83 / (17 * 27))
    assert pooled_odds([landmark(good, at=1), landmark(bad, at=1)]) == pytest.approx(1.0)


def runs_of(*, looped: tuple[int, int], others: tuple[int, int]) -> list[Watched]:
    """Runs of one harness, by how many failed and how many did not."""
    runs = [Watched(9, 1, True)] * looped[0] + [Watched(9, 1, False)] * looped[1]
    return runs + [Watched(9, None, True)] * others[0] + [Watched(9, None, False)] * others[1]


def test_no_strata_have_no_common_odds():
    assert pooled_odds([]) is None
    assert pooled_odds([landmark([], at=1)]) is None


def test_without_scipy_the_message_says_what_to_install(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "scipy.stats", None)
    with pytest.raises(
        IntegrationMissing, match=r"scipy is not installed; run: pip install 'agentguard-otel\[score\]'"
    ):
        mcnemar([(True, False)])
