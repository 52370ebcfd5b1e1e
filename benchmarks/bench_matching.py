"""What matching costs: every mode, selection, arguments and loops of 20-call runs, beside making their keys.

Run: python benchmarks/bench_matching.py

500 distinct pairs of 20 calls (arguments: two scalars and a small nested object); a quarter each equal, shuffled, with
one call more, with one argument changed. One call of a case is one pair. `--per-second` prints pairs a second instead,
which hold for one machine at one moment only.
"""

from __future__ import annotations

import itertools
import random
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from agentguard.matching import Call, Match, compare, diff, keyed, longest_repeat
from benchmarks.paired import Case, Work, main

Pair = tuple[list[Call], list[Call]]
PAIRS = 500
CALLS = 20
TOOLS = ("find_train", "hold_seat", "send_mail", "get_row", "weather")


def pairs() -> list[Pair]:
    generator = random.Random(20)
    return [_pair(generator, number) for number in range(PAIRS)]


def _pair(generator: random.Random, number: int) -> Pair:
    reference = [_call(generator, number, position) for position in range(CALLS)]
    actual = list(reference)
    if number % 4 == 1:
        generator.shuffle(actual)
    elif number % 4 == 2:
        actual.insert(generator.randrange(CALLS), _call(generator, number, CALLS))
    elif number % 4 == 3:
        actual[generator.randrange(CALLS)] = _call(generator, number, CALLS)
    return reference, [Call(call.tool, dict(call.arguments or {})) for call in actual]


def _call(generator: random.Random, number: int, position: int) -> Call:
    tool = TOOLS[position % len(TOOLS)]
    nested = {"from": "Bergen", "stops": [position, "Voss"], "options": {"wifi": True}}
    return Call(tool, {"id": number * 100 + position, "name": generator.choice("abcdef") * 8, "route": nested})


def make_keys(pair: Pair) -> object:
    """The canonical keys of both sides: the floor under everything that compares arguments."""
    return [call.identity for side in pair for call in side]


def all_modes(pair: Pair) -> object:
    """Six verdicts, selection, arguments, calls and loops from raw arguments."""
    reference, actual = pair
    actual = keyed(actual)
    both = compare(reference, actual)
    verdicts = [both.passes(mode) for mode in Match]
    return verdicts, both.selection, both.arguments, both.calls, longest_repeat(actual)


def with_alignment(pair: Pair) -> object:
    """The same, and the alignment."""
    reference, actual = pair
    both = compare(reference, actual)
    return [both.passes(mode) for mode in Match], both.selection, both.arguments, both.alignment


def as_text(pair: Pair) -> object:
    """The diff alone."""
    return diff(compare(*pair))


def cases() -> list[Case]:
    raw = pairs()
    ready = [(keyed(reference), keyed(actual)) for reference, actual in raw]
    half = [(keyed(reference), actual) for reference, actual in raw]
    return [
        Case(
            name="all modes, from raw arguments", work=_over(all_modes, raw), reference=_over(make_keys, raw), target=3
        ),
        Case(name="all modes, reference keyed", work=_over(all_modes, half), reference=_over(make_keys, raw), target=3),
        Case(name="all modes, keys ready", work=_over(all_modes, ready), reference=_over(make_keys, raw), target=2),
        Case(name="modes and alignment", work=_over(with_alignment, raw), reference=_over(make_keys, raw)),
        Case(name="diff as text", work=_over(as_text, raw), reference=_over(make_keys, raw)),
    ]


def _over(work: Callable[[Pair], object], items: Sequence[Pair]) -> Work:
    following = itertools.cycle(items).__next__
    return lambda: work(following())


def per_second(seconds: float = 1.0) -> None:
    for case in cases():
        start, done = time.thread_time(), 0
        while (spent := time.thread_time() - start) < seconds:
            case.work()
            done += 1
        print(f"{case.name:<32} {done / spent:>9,.0f} pairs/s  {1e6 * spent / done:6.1f} us")


if __name__ == "__main__":
    if "--per-second" in sys.argv:
        per_second()
    else:
        main(cases())
