"""docs/metrics.md says of every metric what it counts."""

from __future__ import annotations

import re
from pathlib import Path

from agentguard.metrics import BUILT_IN
from agentguard.scoring import VERDICT

PAGE = (Path(__file__).resolve().parents[1] / "docs" / "metrics.md").read_text()


def test_every_metric_has_its_row_in_the_order_of_the_table():
    assert re.findall(r"^\| `(\w+)` \|", PAGE, re.M) == list(BUILT_IN)


def test_the_verdict_is_told_in_its_order():
    sentence = PAGE.partition("A run fails by the reasons of ")[2].partition(", in this")[0]
    assert re.findall(r"`(\w+)`", sentence) == list(VERDICT)


def test_every_metric_of_the_verdict_is_built_in():
    assert set(VERDICT) <= set(BUILT_IN)
