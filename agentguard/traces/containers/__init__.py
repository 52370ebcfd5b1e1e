"""File formats; one file each, one line each in `BUILT_IN`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from agentguard.traces.container import Container
from agentguard.traces.containers.otlp_json import OTLP_JSON
from agentguard.traces.containers.plain import PLAIN

BUILT_IN: Final[Mapping[str, Container]] = {
    "otlp-json": OTLP_JSON,
    "plain": PLAIN,
}
"""Every format by its name, in the order in which a record is asked for."""
