"""Arguments that are not JSON, or not what the tool's schema allows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import msgspec

from agentguard.attempt import Attempt
from agentguard.decision import Action, Verdict
from agentguard.tools import Tool

_SHOWN = 20


class Arguments(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Speaks of malformed arguments always, of invalid ones where the tool has a schema."""

    name: ClassVar[str] = "arguments"

    def passes(self, tool: Tool) -> Callable[[Any], bool] | None:
        """Return a quick test of arguments that are a mapping: where it is true there is nothing to say."""
        return None if tool.validator is None else tool.validator.quick_test

    def before(self, attempt: Attempt) -> Verdict | None:
        """Block a call whose arguments the tool cannot take."""
        call = attempt.call
        if call.raw_arguments is not None:
            return Verdict(self.name, "arguments.malformed", Action.BLOCK, "the arguments are not a JSON object")
        validator = attempt.tool.validator
        if validator is None or call.arguments is None or validator.is_valid(call.arguments):
            return None
        problems = validator.problems(call.arguments)
        if not problems:
            return None
        # No paths: a key that the schema does not know is the model's own text, and reasons go to logs and spans.
        reason = f"the arguments do not fit the tool's schema: {len(problems)} problem{'s' * (len(problems) > 1)}"
        shown = [msgspec.structs.asdict(problem) for problem in problems[:_SHOWN]]
        return Verdict(self.name, "arguments.invalid", Action.BLOCK, reason, {"problems": shown})
