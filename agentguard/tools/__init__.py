"""What a guard is told about tools, and the forms in which it can be told."""

from agentguard.tools.declare import declare
from agentguard.tools.tool import Poll, Tool

__all__ = ["Poll", "Tool", "declare"]
