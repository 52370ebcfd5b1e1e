"""Runs in, scores out: for every run a verdict with all its reasons, for every model + harness the figures."""

from __future__ import annotations

import enum
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from statistics import median
from typing import Final

import msgspec

from agentguard.matching import Match, keyed
from agentguard.metrics import BUILT_IN, Metric, Reason, Score, Subject
from agentguard.reference import Judgement, Reference, References
from agentguard.statistics import Band, Trials, Watched, loops_by_length, trials
from agentguard.tools import Tool
from agentguard.trajectory import UNKNOWN, Ending, RunKey, Trajectory

VERDICT: Final = ("match", "repeats", "repeated_turns", "cycles", "steps", "ending", "outcome")
"""The metrics whose reasons fail a run, in the order in which the reasons are listed: necessary calls made, loops,
steps against the budget, and only then how it ended and whether the final state passed."""


_REPEATS: Final = ("repeats", "repeated_turns")


class Grade(enum.StrEnum):
    """The verdict about a run."""

    PASS = "pass"
    FAIL = "fail"
    UNSCORED = "unscored"
    """Nothing is known to be wrong, and something that had to be looked at was not recorded."""


class RunScore(msgspec.Struct, frozen=True, kw_only=True):
    """One run judged."""

    run_id: str
    key: RunKey
    grade: Grade
    response: Grade
    """The verdict of whoever looks at the final state alone: UNSCORED when nobody said whether it passed."""
    reasons: tuple[Reason, ...]
    """Everything that fails the run, in the order of `VERDICT`. Empty unless `grade` is FAIL."""
    unscored: tuple[str, ...]
    """Why parts of the verdict could not be given. Empty when all were."""
    calls: int
    """Attempted calls."""
    scores: Mapping[str, Score]
    """Every metric's score, by name."""
    ending: Ending
    outcome: bool | None = None
    task: str | None = None
    source: str | None = None
    cost_usd: float | None = None
    """US dollars of the whole run. None when not recorded."""
    trajectory: Trajectory | None = None
    """The run itself. None unless it was asked to be kept."""
    judgement: Judgement | None = None
    """The run beside its reference. None without one, or unless it was asked to be kept."""


class Rate(msgspec.Struct, frozen=True):
    """So many of so many."""

    hits: int
    of: int

    @property
    def share(self) -> float | None:
        """Hits by number; None of none."""
        return self.hits / self.of if self.of else None


class Figure(msgspec.Struct, frozen=True, kw_only=True):
    """One metric over the runs of a row."""

    mean: float | None
    """None when no run has a value."""
    median: float | None
    runs: int
    """Runs with a value."""
    unscored: int
    """Runs to which it applies and that could not be scored, or only in part."""


class Confusion(msgspec.Struct, frozen=True):
    """One tool called where another was wanted."""

    wanted: str
    called: str
    times: int


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """The figures of one model + harness."""

    key: RunKey
    runs: int
    calls: int
    """Attempted calls."""
    passed: Rate
    """Verdict PASS, of the runs with a verdict."""
    success: Rate
    """Final state right, of the runs where somebody said."""
    back_to_back: Rate
    """At least one repeat of a call or turn just before it, of the runs where that can be told."""
    over_budget: Rate
    """More steps than the budget, of the runs that have one."""
    not_terminated: Rate
    """Stopped by a limit, or without any end, of all runs."""
    accidental: Rate
    """Success in spite of loops, failures or invalid arguments, of the successes where that can be told."""
    selection: float | None
    """Mean F1 of tool selection. None without a reference."""
    arguments: float | None
    """Mean share of right arguments among the calls whose tool was right. None without a reference."""
    mean_cost_usd: float | None
    """Mean over the runs whose cost is known. None when none is."""
    median_steps: float | None
    """Median of the steps. None without runs."""
    unscored: int
    """Runs without a verdict because something was not recorded."""
    trials: Trials | None
    """pass@k and pass^k of the final states, k: how often most tasks were tried. None when none was tried twice."""
    loops_by_length: tuple[Band, ...]
    """How many runs of about one length looped: a run that ends early has no time to. Only lengths that occur."""
    marginal_steps: float | None
    """Mean steps beyond the fewest with which any run of all rows did the same task right. None where no task is known
    to have been done right."""
    instead: tuple[Confusion, ...]
    """Which tools were called where others were wanted, the most frequent first, ten at most."""
    figures: Mapping[str, Figure]
    """Every metric, by name."""

    @property
    def is_comparable(self) -> bool:
        """Whether a harness is named: without one the figures compare with nothing, and no rank is given."""
        return self.key.harness != UNKNOWN


def judge(subject: Subject, *, metrics: Mapping[str, Metric] = BUILT_IN, keep: bool = False) -> RunScore:
    """Return the scores of one run and the verdict that follows from them; `keep` leaves the run beside them."""
    run = subject.trajectory
    scores = {name: metric(subject) for name, metric in metrics.items()}
    told = [scores[name] for name in VERDICT if name in scores]
    reasons = tuple(reason for score in told for reason in score.reasons)
    unscored = tuple(dict.fromkeys(score.unscored for score in told if score.unscored is not None))
    return RunScore(
        run_id=run.run_id,
        key=run.key,
        grade=Grade.FAIL if reasons else Grade.UNSCORED if unscored else Grade.PASS,
        response=_GRADES[run.outcome],
        reasons=reasons,
        unscored=unscored,
        calls=len(run.steps),
        scores=scores,
        ending=run.ending,
        outcome=run.outcome,
        task=run.task,
        source=run.source,
        cost_usd=float(run.usage.cost_usd) if run.usage is not None and run.usage.cost_usd is not None else None,
        trajectory=run if keep else None,
        judgement=subject.judgement if keep else None,
    )


_GRADES: Final = {True: Grade.PASS, False: Grade.FAIL, None: Grade.UNSCORED}


def score(
    trajectories: Iterable[Trajectory],
    *,
    references: References | Reference | None = None,
    step_budget: int | None = None,
    tools: Mapping[str, Tool] | None = None,
    metrics: Mapping[str, Metric] = BUILT_IN,
    keep: bool = False,
) -> Iterator[RunScore]:
    """Yield the scores of the runs, one by one.

    Args:
        trajectories: The runs.
        references: What runs are held against: one for all, or by task and by run. A run without one is not matched.
        step_budget: Calls that may reach a tool, where the reference of a run says nothing. None means no ceiling.
        tools: What is declared about tools, by name: schemas, and whether repeats are normal.
        metrics: Which to work out, by name.
        keep: Leave the runs themselves beside their scores, for reports that show them call by call.
    """
    ready: dict[int, Reference] = {}
    for trajectory in trajectories:
        reference = _reference(references, trajectory)
        if reference is not None:
            reference = ready.get(id(reference)) or ready.setdefault(id(reference), _keyed(reference))
        subject = Subject(trajectory, reference=reference, step_budget=step_budget, tools=tools)
        yield judge(subject, metrics=metrics, keep=keep)


def _keyed(reference: Reference) -> Reference:
    """Return the reference with the keys of its calls worked out, since it is used for many runs."""
    others = tuple(_keyed(other) for other in reference.alternatives)
    return msgspec.structs.replace(reference, calls=tuple(keyed(reference.calls)), alternatives=others)


def matched_by(references: References, mode: Match) -> References:
    """Return the references with this mode in place of their own, and of their alternatives'."""
    tasks = {name: _matched_by(reference, mode) for name, reference in references.tasks.items()}
    runs = {name: _matched_by(reference, mode) for name, reference in references.runs.items()}
    return References(tasks=tasks, runs=runs)


def _matched_by(reference: Reference, mode: Match) -> Reference:
    others = tuple(_matched_by(other, mode) for other in reference.alternatives)
    return msgspec.structs.replace(reference, match=mode, alternatives=others)


def _reference(references: References | Reference | None, run: Trajectory) -> Reference | None:
    return references.find(run=run.run_id, task=run.task) if isinstance(references, References) else references


def rows(scored: Iterable[RunScore]) -> list[Row]:
    """Return the figures of every model + harness, sorted by both. They do not depend on the order of the runs."""
    by_key: dict[RunKey, list[RunScore]] = {}
    fewest: dict[str, float] = {}
    for run in scored:
        by_key.setdefault(run.key, []).append(run)
        if run.task is not None and run.outcome:
            fewest[run.task] = min(_steps(run), fewest.get(run.task, math.inf))
    return [_row(key, by_key[key], fewest) for key in sorted(by_key, key=_sortable)]


def _steps(run: RunScore) -> float:
    """Return the steps of a run; infinitely many where they are not known."""
    steps = run.scores.get("steps")
    return math.inf if steps is None or steps.value is None or steps.unscored else steps.value


def _sortable(key: RunKey) -> tuple[str, str, str]:
    return key.model, key.harness, key.digest or ""


def _row(key: RunKey, runs: list[RunScore], fewest: Mapping[str, float]) -> Row:
    names = dict.fromkeys(name for run in runs for name in run.scores)
    costs = [run.cost_usd for run in runs if run.cost_usd is not None]
    figures = {name: _figure([run.scores[name] for run in runs if name in run.scores]) for name in names}
    return Row(
        key=key,
        runs=len(runs),
        calls=sum(run.calls for run in runs),
        passed=_rate(_passed(run) for run in runs),
        success=_rate(run.outcome for run in runs),
        back_to_back=_rate(back_to_back(run) for run in runs),
        over_budget=_rate(over_budget(run) for run in runs),
        not_terminated=_rate(not_terminated(run) for run in runs),
        accidental=_rate(_holds(run, "recovery") for run in runs),
        selection=figures["selection"].mean if "selection" in figures else None,
        arguments=figures["arguments"].mean if "arguments" in figures else None,
        mean_cost_usd=math.fsum(costs) / len(costs) if costs else None,
        median_steps=figures["steps"].median if "steps" in figures else None,
        unscored=sum(run.grade is Grade.UNSCORED for run in runs),
        trials=_trials(runs),
        loops_by_length=tuple(band for band in loops_by_length(_watched(runs)) if band.runs),
        marginal_steps=_marginal_steps(runs, fewest),
        instead=_instead(runs),
        figures=figures,
    )


def _marginal_steps(runs: Iterable[RunScore], fewest: Mapping[str, float]) -> float | None:
    pairs = ((_steps(run), fewest.get(run.task or "", math.inf)) for run in runs)
    beyond = [steps - best for steps, best in pairs if steps < math.inf and best < math.inf]
    return math.fsum(beyond) / len(beyond) if beyond else None


def _instead(runs: Iterable[RunScore]) -> tuple[Confusion, ...]:
    scores = (run.scores["selection"] for run in runs if "selection" in run.scores)
    count = Counter((wanted, called) for score in scores for wanted, called in score.data.get("instead", ()))
    ranked = sorted(count.items(), key=lambda pair: (-pair[1], pair[0]))
    return tuple(Confusion(wanted, called, times) for (wanted, called), times in ranked[:10])


def _trials(runs: Iterable[RunScore]) -> Trials | None:
    outcomes: dict[str, list[bool]] = {}
    for run in runs:
        if run.task is not None and run.outcome is not None:
            outcomes.setdefault(run.task, []).append(run.outcome)
    often = Counter(len(told) for told in outcomes.values() if len(told) > 1)
    return trials(outcomes, max(often, key=lambda k: (often[k], k))) if often else None


def _watched(runs: Iterable[RunScore]) -> Iterator[Watched]:
    """Yield what is known of the runs where it can be told whether they looped."""
    for run in runs:
        if back_to_back(run) is not None:
            again = [step for name in _REPEATS if name in run.scores for step in run.scores[name].steps]
            failed = None if run.outcome is None else not run.outcome
            yield Watched(run.calls, min(again) + 1 if again else None, failed)


def back_to_back(run: RunScore) -> bool | None:
    """Whether a call or turn of the run stood just behind an identical one; None when that cannot be told."""
    answers = {_holds(run, name) for name in _REPEATS}
    return True if True in answers else None if None in answers else False


def over_budget(run: RunScore) -> bool | None:
    """Whether the run took more steps than its budget; None when it had none, or steps are missing."""
    steps = run.scores.get("steps")
    if steps is None or steps.data.get("budget") is None:
        return None
    return True if steps.reasons else None if steps.unscored else False


def not_terminated(run: RunScore) -> bool:
    """Whether the run neither finished nor failed by itself."""
    return run.ending in (Ending.HALTED, Ending.UNFINISHED)


def _passed(run: RunScore) -> bool | None:
    return None if run.grade is Grade.UNSCORED else run.grade is Grade.PASS


def _holds(run: RunScore, metric: str) -> bool | None:
    score = run.scores.get(metric)
    return None if score is None or score.value is None else score.value > 0


def _rate(answers: Iterable[bool | None]) -> Rate:
    told = [answer for answer in answers if answer is not None]
    return Rate(sum(told), len(told))


def _figure(scores: list[Score]) -> Figure:
    values = [score.value for score in scores if score.value is not None]
    return Figure(
        mean=math.fsum(values) / len(values) if values else None,
        median=median(values) if values else None,
        runs=len(values),
        unscored=sum(score.unscored is not None for score in scores),
    )
