"""How sure a figure is: intervals, repeated trials, paired comparison, and rates that run length does not distort.

Undefined is None, never NaN. Nothing here is random: whoever resamples hands in the seed.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from statistics import NormalDist
from typing import Any, Final

import msgspec

from agentguard.errors import IntegrationMissing

CONFIDENCE: Final = 0.95
RESAMPLES: Final = 2000
"""Bootstrap resamples: enough that the ends of an interval move by about a percent of its width."""


class Interval(msgspec.Struct, frozen=True):
    """Both ends of a confidence interval."""

    low: float
    high: float


class Estimate(msgspec.Struct, frozen=True, kw_only=True):
    """A mean over runs, with the uncertainty that comes from which tasks were asked."""

    value: float
    interval: Interval | None
    """None with fewer than two tasks: then nothing is known about other tasks."""
    tasks: int
    runs: int


def wilson(hits: int, of: int, *, confidence: float = CONFIDENCE) -> Interval | None:
    """Return Wilson's score interval for a rate; None of none. Source: E. B. Wilson, JASA 22 (1927).

    In closed form, because every report shows it and scipy takes seconds to import; the tests hold it against scipy.

    >>> wilson(0, 10)
    Interval(low=0.0, high=0.27753279986288915)
    """
    if not 0 <= hits <= of:
        raise ValueError(f"hits: {hits} of {of}; expected 0 to {of}")
    if of == 0:
        return None
    z = NormalDist().inv_cdf((1 + confidence) / 2)
    share, weight = hits / of, z * z / of
    centre = (share + weight / 2) / (1 + weight)
    reach = z / (1 + weight) * math.sqrt(share * (1 - share) / of + weight / of / 4)
    return Interval(0.0 if hits == 0 else centre - reach, 1.0 if hits == of else centre + reach)


# ---------------------------------------------------------------- runs that share tasks


def mean_over_tasks(
    values: Mapping[str, Sequence[float]], *, seed: int, confidence: float = CONFIDENCE, resamples: int = RESAMPLES
) -> Estimate | None:
    """Return the mean over all runs; whole tasks are resampled, because runs of one task are not independent.

    `values` holds the runs' values by task. None when there are none.
    """
    tasks = [list(runs) for _, runs in sorted(values.items()) if runs]
    if not tasks:
        return None
    sums, sizes = [math.fsum(runs) for runs in tasks], [len(runs) for runs in tasks]
    interval = _resampled(sums, sizes, seed=seed, confidence=confidence, resamples=resamples)
    return Estimate(value=math.fsum(sums) / sum(sizes), interval=interval, tasks=len(tasks), runs=sum(sizes))


def mean_difference(
    base: Mapping[str, Sequence[float]],
    new: Mapping[str, Sequence[float]],
    *,
    seed: int,
    confidence: float = CONFIDENCE,
    resamples: int = RESAMPLES,
) -> Estimate | None:
    """Return by how much `new` is above `base`, as the mean over the tasks that both have runs of.

    Each task counts once, however many runs it has. None without a task in common.
    """
    shared = sorted(task for task in base.keys() & new.keys() if base[task] and new[task])
    if not shared:
        return None
    gaps = [_mean(new[task]) - _mean(base[task]) for task in shared]
    interval = _resampled(gaps, [1] * len(gaps), seed=seed, confidence=confidence, resamples=resamples)
    runs = sum(len(base[task]) + len(new[task]) for task in shared)
    return Estimate(value=_mean(gaps), interval=interval, tasks=len(shared), runs=runs)


_AT_ONCE: Final = 1_000_000
"""Values drawn at a time, which bounds the memory; the draws are the same however they are split."""


def _resampled(
    sums: Sequence[float], sizes: Sequence[int], *, seed: int, confidence: float, resamples: int
) -> Interval | None:
    """Return the percentile bootstrap interval of a mean whose summands come in clusters."""
    if len(sums) < 2:
        return None
    numpy, stats = _import("numpy"), _import("scipy.stats")
    told = stats.bootstrap(
        (numpy.array(sums, float), numpy.array(sizes, float)),
        _ratio,
        paired=True,
        vectorized=True,
        n_resamples=resamples,
        batch=max(1, _AT_ONCE // len(sums)),
        confidence_level=confidence,
        method="percentile",  # the bias-corrected one is NaN when all tasks agree
        random_state=numpy.random.default_rng(seed),  # `rng` only since scipy 1.15
    ).confidence_interval
    return Interval(float(told.low), float(told.high))


def _ratio(sums: Any, sizes: Any, axis: int) -> Any:
    return sums.sum(axis=axis) / sizes.sum(axis=axis)


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)


# ---------------------------------------------------------------- several trials of one task


def pass_at(k: int, *, passed: int, trials: int) -> float | None:
    """Return the chance that at least one of `k` trials passes (pass@k); None when k is more than the trials.

    The unbiased estimator of Chen et al., "Evaluating large language models trained on code" (2021).

    >>> pass_at(2, passed=1, trials=4)
    0.5
    """
    if k > trials:
        return None
    return 1 - math.comb(trials - passed, k) / math.comb(trials, k)


def pass_every(k: int, *, passed: int, trials: int) -> float | None:
    """Return the chance that all of `k` trials pass (pass^k); None when k is more than the trials.

    The unbiased estimator of Yao et al., "tau-bench" (2024).

    >>> pass_every(2, passed=3, trials=4)
    0.5
    """
    return math.comb(passed, k) / math.comb(trials, k) if k <= trials else None


class Trials(msgspec.Struct, frozen=True, kw_only=True):
    """Tasks tried several times."""

    k: int
    at_least_one: float | None
    """pass@k, mean over tasks. None when no task has k trials."""
    every: float | None
    """pass^k, mean over tasks."""
    tasks: int
    """Tasks with k trials or more."""
    left_out: int
    """Tasks with fewer."""


def trials(outcomes: Mapping[str, Sequence[bool]], k: int) -> Trials:
    """Return pass@k and pass^k over tasks, from whether each task's runs passed."""
    if k < 1:
        raise ValueError(f"k: {k}; expected 1 or more")
    enough = [(sum(runs), len(runs)) for runs in outcomes.values() if len(runs) >= k]
    ones = [1 - math.comb(of - passed, k) / math.comb(of, k) for passed, of in enough]
    alls = [math.comb(passed, k) / math.comb(of, k) for passed, of in enough]
    return Trials(
        k=k,
        at_least_one=_mean(ones) if ones else None,
        every=_mean(alls) if alls else None,
        tasks=len(enough),
        left_out=len(outcomes) - len(enough),
    )


# ---------------------------------------------------------------- two harnesses on the same tasks


class Paired(msgspec.Struct, frozen=True, kw_only=True):
    """The same tasks done once by each of two."""

    both: int
    """Tasks that passed with both."""
    only_base: int
    only_new: int
    neither: int
    p: float | None
    """McNemar's exact two-sided p: how often tasks would part so unevenly if neither were better. None of no tasks."""


def mcnemar(outcomes: Iterable[tuple[bool, bool]]) -> Paired:
    """Compare two harnesses by tasks that both did once, each a pair (base passed, new passed)."""
    pairs = [(bool(base), bool(new)) for base, new in outcomes]
    only_base, only_new = pairs.count((True, False)), pairs.count((False, True))
    return Paired(
        both=pairs.count((True, True)),
        only_base=only_base,
        only_new=only_new,
        neither=pairs.count((False, False)),
        p=_sign_test(only_base, only_new) if pairs else None,
    )


def _sign_test(one: int, other: int) -> float:
    if one == other:
        return 1.0
    return float(_import("scipy.stats").binomtest(one, one + other, 0.5).pvalue)


# ---------------------------------------------------------------- loops and failure, at equal length


class Watched(msgspec.Struct, frozen=True):
    """What is needed of a run to ask whether looping goes with failing."""

    calls: int
    looped_at: int | None
    """How many calls it had made when it first repeated one, that one included. None: it never did."""
    failed: bool | None
    """None when nobody said; such a run is left out where outcomes are compared."""


class Band(msgspec.Struct, frozen=True):
    """How many of the runs of about one length looped."""

    shortest: int
    """Calls, inclusive."""
    longest: int | None
    """Calls, inclusive. None: no limit."""
    looped: int
    runs: int


def loops_by_length(runs: Iterable[Watched], starts: Sequence[int] = (1, 6, 11, 21, 41)) -> list[Band]:
    """Return how many runs looped, by length; each band begins at one of `starts`. Shorter runs are left out."""
    known = list(runs)
    bounds: list[tuple[int, int | None]] = [(low, high - 1) for low, high in pairwise(starts)]
    bounds += [(low, None) for low in starts[-1:]]
    return [_band(low, high, known) for low, high in bounds]


def _band(shortest: int, longest: int | None, runs: Sequence[Watched]) -> Band:
    inside = [run for run in runs if shortest <= run.calls <= (math.inf if longest is None else longest)]
    return Band(shortest, longest, sum(run.looped_at is not None for run in inside), len(inside))


class Landmark(msgspec.Struct, frozen=True, kw_only=True):
    """Runs that were still going after a number of calls, parted by whether they had looped by then."""

    at: int
    """Calls made."""
    looped: int
    looped_failed: int
    others: int
    others_failed: int
    odds_ratio: float | None
    """Odds of failing of those that had looped, over the odds of the others. None when a cell of the table is empty."""
    interval: Interval | None
    """95%, exact and conditional on the margins. None as for `odds_ratio`."""


def landmark(runs: Iterable[Watched], at: int) -> Landmark:
    """Compare, among runs that made more than `at` calls, those that had looped by then with the others.

    Comparing all runs that ever looped with all that never did mistakes length for harm: a run that ends early has
    had no time to repeat itself. Source: J. R. Anderson et al., J Clin Oncol 1 (1983), on landmark analysis.
    """
    going = [run for run in runs if run.calls > at and run.failed is not None]
    looped = [run for run in going if run.looped_at is not None and run.looped_at <= at]
    failed, looped_failed = _failed(going), _failed(looped)
    others, others_failed = len(going) - len(looped), failed - looped_failed
    table = [[looped_failed, len(looped) - looped_failed], [others_failed, others - others_failed]]
    defined = all(all(row) for row in table)
    return Landmark(
        at=at,
        looped=len(looped),
        looped_failed=looped_failed,
        others=others,
        others_failed=others_failed,
        odds_ratio=_cross(table) if defined else None,
        interval=_odds_interval(table) if defined else None,
    )


def pooled_odds(strata: Iterable[Landmark]) -> float | None:
    """Return the odds ratio common to several landmarks, e.g. one for each model and harness; None when undefined.

    The estimator of Mantel and Haenszel (1959). Throwing all runs together instead mistakes a harness that both loops
    and fails more for harm done by loops.
    """
    tables = [(one, one.looped - one.looped_failed, one.others - one.others_failed) for one in strata]
    above = math.fsum(one.looped_failed * well / (one.looped + one.others) for one, _, well in tables if one.others)
    below = math.fsum(
        looped_well * one.others_failed / (one.looped + one.others) for one, looped_well, _ in tables if one.others
    )
    return above / below if below else None


def _failed(runs: Iterable[Watched]) -> int:
    return sum(run.failed is True for run in runs)


def _cross(table: list[list[int]]) -> float:
    return table[0][0] * table[1][1] / (table[0][1] * table[1][0])


def _odds_interval(table: list[list[int]]) -> Interval:
    told = _import("scipy.stats.contingency").odds_ratio(table).confidence_interval(CONFIDENCE)
    return Interval(float(told.low), float(told.high))


def _import(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as missing:
        raise IntegrationMissing("scipy", "score") from missing
