"""Arguments against a JSON Schema: a quick test, and every problem in words a model can act on."""

from agentguard.schema.problems import Problem
from agentguard.schema.validator import Validator

__all__ = ["Problem", "Validator"]
