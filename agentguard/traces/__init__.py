"""Reading traces of any convention, from files of any format, as trajectories."""

from __future__ import annotations

from agentguard.traces.assemble import Naming
from agentguard.traces.read import read
from agentguard.traces.report import ReadReport, Skipped

__all__ = ["Naming", "ReadReport", "Skipped", "read"]
